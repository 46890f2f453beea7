//! A network to AWS with faults by chance.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use crate::environment::Random;
use crate::testing::Said;

/// The kinds of faults.
const FAULTS: u64 = 7;

/// The service behind the network.
pub(super) trait Cloud: Send + 'static {
    /// Carries out a request.
    fn serve(&mut self, operation: &str, body: &Value, chance: &Chance) -> Said;
}

/// The chance of one world.
#[derive(Debug)]
pub(super) struct Chance {
    random: Random,
    /// Faults, of ten requests.
    faults: u64,
    /// The kind of every other fault, so that some calls meet it until they give up.
    usual: u64,
    is_calm: bool,
}

impl Chance {
    fn new(seed: u64) -> Self {
        let random = Random::of(seed.wrapping_mul(0x5DEE_CE66_D1CE_4E5B));
        let faults = [0, 1, 3, 6][usize::try_from(random.next() % 4).unwrap()];
        let usual = random.next() % FAULTS;
        Self { random, faults, usual, is_calm: false }
    }

    /// A number below `end`.
    pub(super) fn below(&self, end: u64) -> u64 {
        self.random.next() % end
    }

    /// Whether a fault strikes now.
    pub(super) fn strikes(&self) -> bool {
        !self.is_calm && self.below(10) < self.faults
    }
}

/// The answer of a request.
enum Answer {
    Said(Said),
    /// The connection breaks.
    Broken,
    /// There is none.
    Silence,
}

struct State {
    chance: Chance,
    cloud: Box<dyn Cloud>,
}

/// A network. Cloning it copies a pointer.
#[derive(Clone)]
pub(super) struct Network(Arc<Mutex<State>>);

impl Network {
    pub(super) fn new(seed: u64, cloud: impl Cloud) -> Self {
        Self(Arc::new(Mutex::new(State { chance: Chance::new(seed), cloud: Box::new(cloud) })))
    }

    /// A number below `end`.
    pub(super) fn below(&self, end: u64) -> u64 {
        self.state().chance.below(end)
    }

    /// What `look` finds while no fault strikes.
    pub(super) async fn calm<T>(&self, look: impl Future<Output = T>) -> T {
        self.state().chance.is_calm = true;
        let found = look.await;
        self.state().chance.is_calm = false;
        found
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn answer(&mut self, operation: &str, body: &Value) -> Answer {
        let Self { chance, cloud } = self;
        if !chance.strikes() {
            return Answer::Said(cloud.serve(operation, body, chance));
        }
        let fault = if chance.below(2) == 0 { chance.usual } else { chance.below(FAULTS) };
        if fault == 0 {
            return Answer::Said(throttled(operation, chance));
        }
        // The request may have been carried out or not.
        if fault.is_multiple_of(2) {
            let _ = cloud.serve(operation, body, chance);
        }
        match fault {
            1 | 2 => Answer::Said(error(500, "InternalServerError")),
            3 | 4 => Answer::Broken,
            _ => Answer::Silence,
        }
    }
}

fn error(status: u16, name: &str) -> Said {
    (status, json!({ "__type": format!("com.amazonaws#{name}"), "message": "by chance" }))
}

/// Another write is in the way, or the rate is too high. Nothing was done.
fn throttled(operation: &str, chance: &Chance) -> Said {
    const REASONS: [&str; 3] = ["TransactionConflict", "ThrottlingError", "InternalServerError"];
    match operation {
        "TransactWriteItems" if chance.below(4) > 0 => {
            let mut reasons = [json!({ "Code": "None" }), json!({ "Code": "None" })];
            let (place, reason) = (chance.below(2), chance.below(3));
            reasons[usize::try_from(place).unwrap()] = json!({ "Code": REASONS[usize::try_from(reason).unwrap()] });
            let (status, mut said) = error(400, "TransactionCanceledException");
            said["CancellationReasons"] = json!(reasons);
            (status, said)
        }
        "UpdateItem" if chance.below(2) == 0 => error(400, "TransactionConflictException"),
        _ => error(
            400,
            ["ProvisionedThroughputExceededException", "ThrottlingException"][usize::from(chance.below(2) == 0)],
        ),
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl HttpClient for Network {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Network {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let body = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap();
        let answer = self.state().answer(operation, &body);
        HttpConnectorFuture::new(async move {
            match answer {
                Answer::Said((status, said)) => {
                    Ok(HttpResponse::new(status.try_into().unwrap(), SdkBody::from(said.to_string())))
                }
                Answer::Broken => Err(ConnectorError::io("the connection broke".into())),
                Answer::Silence => pending().await,
            }
        })
    }
}
