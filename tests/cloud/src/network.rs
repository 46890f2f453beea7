//! A network to AWS.

use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use crate::refusals::refusal;

/// An answer: a status and a body.
pub type Said = (u16, Value);

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The rate is too high, or another write is in the way. The number chooses the words of the refusal.
    Throttled(u64),
    /// The answer is 500. The request was carried out or not.
    Error {
        /// Whether it was.
        done: bool,
    },
    /// The connection breaks. The request was carried out or not.
    Broken {
        /// Whether it was.
        done: bool,
    },
    /// There is no answer. The request was carried out or not.
    Silence {
        /// Whether it was.
        done: bool,
    },
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Course {
    /// The time to the service, in milliseconds.
    pub there_ms: u64,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// The time of the answer, in milliseconds.
    pub back_ms: u64,
}

/// The services behind a network.
pub trait Cloud: Send + 'static {
    /// Decides what becomes of a request.
    fn course(&mut self, operation: &str) -> Course;

    /// Carries a request out.
    fn serve(&mut self, operation: &str, body: &Value) -> Said;
}

/// A network, as a transport of the SDK's clients. Cloning it copies a pointer.
pub struct Network<C>(Arc<Mutex<C>>);

impl<C: Cloud> Network<C> {
    /// A network to this cloud.
    pub fn new(cloud: C) -> Self {
        Self(Arc::new(Mutex::new(cloud)))
    }

    /// What stands behind it.
    pub fn cloud(&self) -> MutexGuard<'_, C> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fault {
    /// The answer, if there is one. `None`: none comes.
    fn answer(self, operation: &str) -> Option<Result<Said, ConnectorError>> {
        match self {
            Self::Throttled(chosen) => Some(Ok(throttled(operation, chosen))),
            Self::Error { .. } => Some(Ok(error(500, "InternalServerError"))),
            Self::Broken { .. } => Some(Err(ConnectorError::io("the connection broke".into()))),
            Self::Silence { .. } => None,
        }
    }

    const fn is_done(self) -> bool {
        match self {
            Self::Throttled(_) => false,
            Self::Error { done } | Self::Broken { done } | Self::Silence { done } => done,
        }
    }
}

fn error(status: u16, name: &str) -> Said {
    (status, json!({ "__type": format!("com.amazonaws#{name}"), "message": "by chance" }))
}

/// Another write is in the way, or the rate is too high. Nothing was done.
fn throttled(operation: &str, chosen: u64) -> Said {
    const REASONS: [&str; 3] = ["TransactionConflict", "ThrottlingError", "InternalServerError"];
    let (kind, chosen) = (chosen % 4, chosen / 4);
    match operation {
        "TransactWriteItems" if kind > 0 => {
            let mut reasons = [json!({ "Code": "None" }), json!({ "Code": "None" })];
            let (place, reason) = (chosen % 2, chosen / 2 % 3);
            reasons[usize::from(place == 1)] = json!({ "Code": REASONS[usize::try_from(reason).unwrap_or_default()] });
            let (status, mut said) = error(400, "TransactionCanceledException");
            said["CancellationReasons"] = json!(reasons);
            (status, said)
        }
        "UpdateItem" if kind > 1 => error(400, "TransactionConflictException"),
        _ if chosen.is_multiple_of(2) => error(400, "ProvisionedThroughputExceededException"),
        _ => error(400, "ThrottlingException"),
    }
}

impl<C: Cloud> Network<C> {
    async fn carry(self, operation: String, body: Value) -> Result<HttpResponse, ConnectorError> {
        if let Some(why) = refusal(&operation, &body) {
            panic!("AWS refuses this {operation}: {why}");
        }
        let course = self.cloud().course(&operation);
        pass(course.there_ms).await;
        let answer = match course.fault {
            None => Some(Ok(self.cloud().serve(&operation, &body))),
            Some(fault) => {
                if fault.is_done() {
                    let _ = self.cloud().serve(&operation, &body);
                }
                fault.answer(&operation)
            }
        };
        pass(course.back_ms).await;
        let Some(answer) = answer else { return pending().await };
        let (status, said) = answer?;
        let status = status.try_into().map_err(|error| ConnectorError::other(Box::new(error), None))?;
        Ok(HttpResponse::new(status, SdkBody::from(said.to_string())))
    }
}

#[expect(clippy::disallowed_methods, reason = "the runtime of a test has a clock of its own")]
async fn pass(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl<C> Clone for Network<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for Network<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").finish_non_exhaustive()
    }
}

impl<C: Cloud> HttpClient for Network<C> {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl<C: Cloud> HttpConnector for Network<C> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(request.body().bytes().unwrap_or_default()).unwrap_or_default();
        HttpConnectorFuture::new(self.clone().carry(operation, body))
    }
}
