//! The stand-ins on a socket.

#![expect(clippy::disallowed_methods, reason = "a stand-in is an external service with its own clock")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::json;
use standins::{CALL_BYTES_MAX, Call, Operation, Service, answer_to, problem, response};
use tokio::net::TcpListener;

use super::ledger::{Ledger, ServiceEffects, Totals};
use super::switches::{Change, Switches};
use crate::http_server::{HangUp, Server};

/// Keys that each service of `stepwarden serve` keeps: more than can be in flight at once, and about 5 MB in all.
pub const KEYS_SERVE: usize = 8_192;
/// For tests that check every key.
pub const KEYS_UNLIMITED: usize = usize::MAX;

/// The grace of slow calls at a stop. The caller retries a cancelled call.
const GRACE_MS: u64 = 200;

/// The effects of each service.
pub type Effects = BTreeMap<Service, ServiceEffects>;

/// Three services on one socket.
#[derive(Debug)]
pub struct StandIns {
    server: Server,
    ledgers: Arc<Ledgers>,
}

#[derive(Debug)]
struct Ledgers {
    started: Instant,
    /// In the order of [`Service::ALL`].
    by_service: [Mutex<Ledger>; 3],
}

impl StandIns {
    /// Serves on `listener`; each service keeps its newest `keys_max` idempotency keys.
    ///
    /// # Errors
    /// The errors of [`Server::start`].
    pub fn start(listener: TcpListener, keys_max: usize) -> std::io::Result<Self> {
        let by_service = Service::ALL.map(|_| Mutex::new(Ledger::new(keys_max)));
        let ledgers = Arc::new(Ledgers { started: Instant::now(), by_service });
        let answering = ledgers.clone();
        let handle = move |request| answer(answering.clone(), request);
        let server = Server::start(listener, CALL_BYTES_MAX, GRACE_MS, handle)?;
        Ok(Self { server, ledgers })
    }

    /// Serves on a free port of the loopback interface.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start_anywhere(keys_max: usize) -> std::io::Result<Self> {
        Self::start(TcpListener::bind(("127.0.0.1", 0)).await?, keys_max)
    }

    /// The base URL of all three, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The base URL of one service, as an agent gets it.
    #[must_use]
    pub fn url_of(&self, service: Service) -> String {
        format!("{}/{service}", self.url())
    }

    /// The effects so far, as in `GET /effects`.
    #[must_use]
    pub fn effects(&self) -> Effects {
        self.ledgers.effects()
    }

    /// Switches a whole service off or on. While off, it answers 503 to every call.
    pub fn set_down(&self, service: Service, down: bool) {
        self.ledgers.with(service, |ledger| ledger.switches().down = down);
    }

    /// Makes a whole service ignore idempotency keys, or honour them again.
    pub fn set_forget_keys(&self, service: Service, forget_keys: bool) {
        self.ledgers.with(service, |ledger| ledger.switches().forget_keys = forget_keys);
    }

    /// The totals of a service.
    #[must_use]
    pub fn totals(&self, service: Service) -> Totals {
        self.ledgers.with(service, |ledger| ledger.totals())
    }

    /// Takes the largest number of calls to a service in any second since the last call of this function.
    #[must_use]
    pub fn take_peak(&self, service: Service) -> u64 {
        self.ledgers.with(service, Ledger::take_peak)
    }

    /// Answers the requests in flight and stops.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

impl Ledgers {
    fn with<T>(&self, service: Service, work: impl FnOnce(&mut Ledger) -> T) -> T {
        let ledger = match service {
            Service::Inventory => &self.by_service[0],
            Service::Payment => &self.by_service[1],
            Service::Shipping => &self.by_service[2],
        };
        work(&mut ledger.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn effects(&self) -> Effects {
        Service::ALL.into_iter().map(|service| (service, self.with(service, |ledger| ledger.effects()))).collect()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

async fn answer(ledgers: Arc<Ledgers>, request: Request<Bytes>) -> Result<Response<Bytes>, HangUp> {
    let path: Vec<&str> = request.uri().path().split('/').skip(1).collect();
    let (service, last) = match path.as_slice() {
        ["effects"] if request.method() == Method::GET => {
            return Ok(json_response(StatusCode::OK, &json!(ledgers.effects())));
        }
        [service, last] => (Service::named(service), *last),
        _ => (None, ""),
    };
    match (service, request.method()) {
        (Some(service), &Method::GET) if last == "effects" => {
            let effects = ledgers.with(service, |ledger| ledger.effects());
            Ok(json_response(StatusCode::OK, &json!(effects)))
        }
        (Some(service), &Method::GET) if last == "control" => {
            Ok(switched(ledgers.with(service, |ledger| *ledger.switches())))
        }
        (Some(service), &Method::POST) if last == "control" => Ok(control(&ledgers, service, request.body())),
        (Some(service), &Method::POST) => match service.operation(last) {
            Some(operation) => call(&ledgers, service, operation, &request).await,
            None => Ok(problem(StatusCode::NOT_FOUND, "not-found", "this service has no such operation")),
        },
        _ => Ok(problem(StatusCode::NOT_FOUND, "not-found", "POST /{service}/{operation} or GET /effects")),
    }
}

async fn call(
    ledgers: &Ledgers,
    service: Service,
    operation: Operation,
    request: &Request<Bytes>,
) -> Result<Response<Bytes>, HangUp> {
    let Call { key, behaviour } = match Call::read(request, service, operation) {
        Ok(call) => call,
        Err(refusal) => return Ok(*refusal),
    };
    let now_ms = ledgers.now_ms();
    let verdict = ledgers.with(service, |ledger| ledger.call(key, operation, &behaviour, now_ms));
    if behaviour.slow_ms > 0 {
        tokio::time::sleep(Duration::from_millis(behaviour.slow_ms)).await;
    }
    answer_to(verdict, service, operation, key).ok_or(HangUp)
}

fn control(ledgers: &Ledgers, service: Service, body: &[u8]) -> Response<Bytes> {
    match serde_json::from_slice::<Change>(body) {
        Ok(change) => switched(ledgers.with(service, |ledger| {
            ledger.switches().change(change);
            *ledger.switches()
        })),
        Err(error) => problem(StatusCode::BAD_REQUEST, "bad-control", &error.to_string()),
    }
}

fn switched(switches: Switches) -> Response<Bytes> {
    json_response(StatusCode::OK, &json!(switches))
}

fn json_response(status: StatusCode, body: &serde_json::Value) -> Response<Bytes> {
    response(status, "application/json", body.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    async fn post(client: &Client, url: &str, key: &str, order: &str) -> Option<(u16, serde_json::Value)> {
        let body = format!(r#"{{"OrderID":"o","Order":{order},"Outputs":{{}}}}"#);
        let answer = client.post(url, &[("idempotency-key", key)], body).await.ok()?;
        Some((answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap()))
    }

    #[tokio::test]
    async fn a_call_over_the_wire_is_answered_counted_and_undone() {
        let stand_ins = StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap();
        let client = Client::new();
        let charge = format!("{}/charge", stand_ins.url_of(Service::Payment));
        let refund = format!("{}/refund", stand_ins.url_of(Service::Payment));
        let first = post(&client, &charge, "o/p", "{}").await.unwrap();
        assert_eq!((first.0, first.1["Status"].as_str()), (200, Some("captured")));
        assert_eq!(post(&client, &charge, "o/p", "{}").await.unwrap(), first);
        assert_eq!(post(&client, &refund, "o/p/undo", "{}").await.unwrap().1["Refunded"], true);
        let (status, problem) = post(&client, &charge, "o/p", "{}").await.unwrap();
        assert_eq!((status, problem["code"].as_str()), (409, Some("already-undone")));

        let told = client.get(&format!("{}/effects", stand_ins.url())).await.unwrap();
        let told: Effects = serde_json::from_slice(&told.body).unwrap();
        assert_eq!(told, stand_ins.effects());
        assert_eq!((told[&Service::Payment].of("o/p").effects, told[&Service::Payment].of("o/p").calls), (1, 3));
        stand_ins.stop().await;
    }

    #[tokio::test]
    async fn a_service_does_as_the_order_tells_it() {
        let stand_ins = StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap();
        let client = Client::new();
        let charge = format!("{}/charge", stand_ins.url_of(Service::Payment));
        let declined = r#"{"StandIn":{"payment":{"Decline":"card_declined"}}}"#;
        let (status, problem) = post(&client, &charge, "a", declined).await.unwrap();
        assert_eq!((status, problem["code"].as_str()), (402, Some("card_declined")));
        let flaky = r#"{"StandIn":{"payment":{"Flaky":1,"LoseAnswers":1}}}"#;
        assert_eq!(post(&client, &charge, "b", flaky).await.unwrap().0, 503);
        assert_eq!(post(&client, &charge, "b", flaky).await, None, "the answer is lost");
        assert_eq!(stand_ins.effects()[&Service::Payment].of("b").effects, 1, "but the card was charged");
        assert_eq!(post(&client, &charge, "b", flaky).await.unwrap().0, 200);
        let mistyped = r#"{"StandIn":{"payment":{"Flakey":1}}}"#;
        assert_eq!(post(&client, &charge, "c", mistyped).await.unwrap().0, 400);
    }

    #[tokio::test]
    async fn a_whole_service_is_switched_over_the_wire_and_from_within() {
        let stand_ins = StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap();
        let client = Client::new();
        let url = stand_ins.url_of(Service::Payment);
        let (charge, control) = (format!("{url}/charge"), format!("{url}/control"));
        let switch = async |body: &str| {
            let answer = client.post(&control, &[], body.to_owned()).await.unwrap();
            (answer.status.as_u16(), String::from_utf8_lossy(&answer.body).into_owned())
        };
        assert_eq!(switch(r#"{"Down": true}"#).await, (200, r#"{"Down":true,"ForgetKeys":false}"#.to_owned()));
        assert_eq!(post(&client, &charge, "a", "{}").await.unwrap().0, 503);
        let reserve = format!("{}/reserve", stand_ins.url_of(Service::Inventory));
        assert_eq!(post(&client, &reserve, "a", "{}").await.unwrap().0, 200, "the others are up");
        stand_ins.set_down(Service::Payment, false);
        let first = post(&client, &charge, "a", "{}").await.unwrap();
        assert_eq!(post(&client, &charge, "a", "{}").await.unwrap(), first);
        stand_ins.set_forget_keys(Service::Payment, true);
        let second = post(&client, &charge, "a", "{}").await.unwrap();
        assert!(second.0 == 200 && second.1["PaymentID"] != first.1["PaymentID"], "{second:?} after {first:?}");
        let told = client.get(&control).await.unwrap();
        assert_eq!(told.body, r#"{"Down":false,"ForgetKeys":true}"#);
        assert_eq!(switch(r#"{"Dwon": true}"#).await.0, 400);
        let Totals { calls, calls_while_down, effects, .. } = stand_ins.totals(Service::Payment);
        assert_eq!((calls, calls_while_down, effects), (4, 1, 2));
    }

    #[tokio::test]
    async fn what_is_no_call_is_refused() {
        let stand_ins = StandIns::start_anywhere(KEYS_UNLIMITED).await.unwrap();
        let client = Client::new();
        let url = stand_ins.url();
        assert_eq!(post(&client, &format!("{url}/payment/ship"), "k", "{}").await.unwrap().0, 404);
        assert_eq!(post(&client, &format!("{url}/bakery/charge"), "k", "{}").await.unwrap().0, 404);
        let no_key = client.post(&format!("{url}/payment/charge"), &[], r#"{"Order":{}}"#.to_owned()).await.unwrap();
        assert_eq!(no_key.status, StatusCode::BAD_REQUEST);
        assert!(stand_ins.effects().values().all(|service| service.calls == 0));
    }
}
