//! The services with their keys in memory: what they answer to a request. They do no I/O. A host brings the request
//! and the time, waits for the delay, and sends the answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde::Serialize;

use crate::behaviour::Change;
use crate::call::{Answer, Call, json, problem};
use crate::ledger::{Ledger, ServiceEffects, Totals};
use crate::service::Service;

/// The effects of each service.
pub type Effects = BTreeMap<Service, ServiceEffects>;

const ROUTES: &str = "POST /{service}/{operation} or GET /effects";

/// The services that ship, and any other that is called.
#[derive(Debug)]
pub struct Services {
    keys_max: usize,
    /// Another service gets its own with its first call.
    ledgers: Mutex<BTreeMap<Service, Ledger>>,
}

impl Services {
    /// Each service keeps its newest `keys_max` idempotency keys.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        let ledgers = Service::ALL.into_iter().map(|service| (service, Ledger::new(keys_max))).collect();
        Self { keys_max, ledgers: Mutex::new(ledgers) }
    }

    /// Answers one request at `now_ms` of a monotonic clock.
    #[must_use]
    pub fn handle(&self, request: &Request<Bytes>, now_ms: u64) -> Answer {
        let path: Vec<&str> = request.uri().path().split('/').skip(1).collect();
        let (service, last) = match path.as_slice() {
            ["effects"] if request.method() == Method::GET => return json_of(&self.effects(now_ms)).into(),
            [service, last] => (Service::of_agent(service), *last),
            _ => (None, ""),
        };
        let Some(service) = service else { return not_found(ROUTES).into() };
        match (request.method(), last) {
            (&Method::GET, "effects") => json_of(&self.with(service, |ledger| ledger.effects(now_ms))).into(),
            (&Method::GET, "control") => json_of(&self.with(service, |ledger| *ledger.switches())).into(),
            (&Method::POST, "control") => self.control(service, request.body()).into(),
            (&Method::POST, operation) => self.call(request, service, operation, now_ms),
            _ => not_found(ROUTES).into(),
        }
    }

    /// The effects until `now_ms`, as in `GET /effects`.
    #[must_use]
    pub fn effects(&self, now_ms: u64) -> Effects {
        let mut ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        ledgers.iter_mut().map(|(service, ledger)| (*service, ledger.effects(now_ms))).collect()
    }

    /// Switches a whole service off or on. While off, it answers 503 to every call.
    pub fn set_down(&self, service: Service, down: bool) {
        self.with(service, |ledger| ledger.switches().down = down);
    }

    /// Makes a whole service forget its callers, or know them again. Meanwhile it answers 401 to every call.
    pub fn set_unauthorised(&self, service: Service, unauthorised: bool) {
        self.with(service, |ledger| ledger.switches().unauthorised = unauthorised);
    }

    /// The totals of a service, as of its last call.
    #[must_use]
    pub fn totals(&self, service: Service) -> Totals {
        self.with(service, |ledger| ledger.totals())
    }

    /// Takes the largest number of calls to a service in any second since the last call of this function.
    #[must_use]
    pub fn take_peak(&self, service: Service) -> u64 {
        self.with(service, Ledger::take_peak)
    }

    fn call(&self, request: &Request<Bytes>, service: Service, operation: &str, now_ms: u64) -> Answer {
        match Call::read(request, service, operation) {
            Ok(call) => call.answer(self.with(service, |ledger| ledger.call(&call, now_ms))),
            Err(refusal) => (*refusal).into(),
        }
    }

    fn control(&self, service: Service, body: &[u8]) -> Response<Bytes> {
        match serde_json::from_slice::<Change>(body) {
            Ok(change) => json_of(&self.with(service, |ledger| {
                ledger.switches().change(change);
                *ledger.switches()
            })),
            Err(error) => problem(StatusCode::BAD_REQUEST, "bad-control", &error.to_string()),
        }
    }

    fn with<T>(&self, service: Service, work: impl FnOnce(&mut Ledger) -> T) -> T {
        let mut ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        work(ledgers.entry(service).or_insert_with(|| Ledger::new(self.keys_max)))
    }
}

fn json_of(value: &impl Serialize) -> Response<Bytes> {
    json(serde_json::json!(value).to_string())
}

fn not_found(detail: &str) -> Response<Bytes> {
    problem(StatusCode::NOT_FOUND, "not-found", detail)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn send(services: &Services, request: http::request::Builder, body: String) -> Option<(u16, Value)> {
        let response = services.handle(&request.body(Bytes::from(body)).unwrap(), 0).response?;
        Some((response.status().as_u16(), serde_json::from_slice(response.body()).unwrap()))
    }

    fn call(services: &Services, path: &str, key: &str, order: &str) -> Option<(u16, Value)> {
        let body = format!(r#"{{"OrderID":"o","Order":{order},"Outputs":{{}}}}"#);
        send(services, Request::post(path).header("idempotency-key", key), body)
    }

    #[test]
    fn a_call_is_answered_counted_and_undone() {
        let services = Services::new(usize::MAX);
        let first = call(&services, "/payment/charge", "o/p", "{}").unwrap();
        assert_eq!((first.0, first.1["Status"].as_str()), (200, Some("captured")));
        assert_eq!(call(&services, "/payment/charge", "o/p", "{}").unwrap(), first);
        assert_eq!(call(&services, "/payment/refund", "o/p/undo", "{}").unwrap().1["Refunded"], true);
        let (status, problem) = call(&services, "/payment/charge", "o/p", "{}").unwrap();
        assert_eq!((status, problem["code"].as_str()), (422, Some("already-undone")));

        let effects = services.effects(0);
        assert_eq!((effects[&Service::Payment].of("o/p").effects, effects[&Service::Payment].of("o/p").calls), (1, 3));
        let (status, all) = send(&services, Request::get("/effects"), String::new()).unwrap();
        assert_eq!((status, serde_json::from_value::<Effects>(all.clone()).unwrap()), (200, effects));
        assert_eq!(send(&services, Request::get("/payment/effects"), String::new()).unwrap().1, all["payment"]);
    }

    #[test]
    fn the_service_of_any_agent_is_played() {
        let services = Services::new(usize::MAX);
        let first = call(&services, "/customs/declare", "o/clear", "{}").unwrap();
        assert_eq!(first.0, 200);
        assert_eq!(call(&services, "/customs/declare", "o/clear", "{}").unwrap(), first);
        assert_eq!(call(&services, "/customs/undo", "o/clear/undo", "{}").unwrap().1["Undone"], true);
        assert_eq!(call(&services, "/customs/declare", "o/clear", "{}").unwrap().0, 422);
        let declined = r#"{"StandIn":{"customs":{"Decline":"forbidden"}}}"#;
        assert_eq!(call(&services, "/customs/declare", "p/clear", declined).unwrap().1["code"], "forbidden");
        let mapped = send(&services, Request::post("/customs/declare").header("idempotency-key", "q"), "{}".to_owned());
        assert_eq!(mapped.unwrap().0, 200, "the workflow says what a service gets");
        let customs = Service::of_agent("customs").unwrap();
        assert_eq!(services.effects(0)[&customs].of("o/clear").effects, 1);
    }

    #[test]
    fn a_service_does_as_the_order_tells_it() {
        let services = Services::new(usize::MAX);
        let declined = r#"{"StandIn":{"payment":{"Decline":"card_declined"}}}"#;
        let (status, problem) = call(&services, "/payment/charge", "a", declined).unwrap();
        assert_eq!((status, problem["code"].as_str()), (402, Some("card_declined")));
        let flaky = r#"{"StandIn":{"payment":{"Flaky":1,"LoseAnswers":1}}}"#;
        assert_eq!(call(&services, "/payment/charge", "b", flaky).unwrap().0, 503);
        assert_eq!(call(&services, "/payment/charge", "b", flaky), None, "the answer is lost");
        assert_eq!(services.effects(0)[&Service::Payment].of("b").effects, 1, "but the card was charged");
        assert_eq!(call(&services, "/payment/charge", "b", flaky).unwrap().0, 200);
        let mistyped = r#"{"StandIn":{"payment":{"Flakey":1}}}"#;
        assert_eq!(call(&services, "/payment/charge", "c", mistyped).unwrap().0, 400);
    }

    #[test]
    fn a_whole_service_is_switched_by_a_request_and_from_within() {
        let services = Services::new(usize::MAX);
        let charge = || call(&services, "/payment/charge", "a", "{}").unwrap();
        let switch = |body: &str| {
            let (status, body) = send(&services, Request::post("/payment/control"), body.to_owned()).unwrap();
            (status, body.to_string())
        };
        assert_eq!(
            switch(r#"{"Down": true}"#),
            (200, r#"{"Down":true,"ForgetKeys":false,"Unauthorised":false}"#.to_owned())
        );
        assert_eq!(charge().0, 503);
        assert_eq!(call(&services, "/inventory/reserve", "a", "{}").unwrap().0, 200, "the others are up");
        services.set_down(Service::Payment, false);
        let first = charge();
        assert_eq!(charge(), first);
        assert_eq!(switch(r#"{"ForgetKeys": true}"#).0, 200);
        let second = charge();
        assert!(second.0 == 200 && second.1["PaymentID"] != first.1["PaymentID"], "{second:?} after {first:?}");
        let control = send(&services, Request::get("/payment/control"), String::new()).unwrap();
        assert_eq!(control.1.to_string(), r#"{"Down":false,"ForgetKeys":true,"Unauthorised":false}"#);
        assert_eq!(switch(r#"{"Dwon": true}"#).0, 400);
        let Totals { calls, calls_while_down, effects, .. } = services.totals(Service::Payment);
        assert_eq!((calls, calls_while_down, effects), (4, 1, 2));
        assert_eq!(switch(r#"{"Unauthorised": true}"#).0, 200);
        let (status, problem) = charge();
        assert_eq!((status, problem["code"].as_str()), (401, Some("unauthorised")));
        assert_eq!((switch(r#"{"Unauthorised": false}"#).0, charge().0), (200, 200));
    }

    #[test]
    fn a_call_that_is_at_work_is_said_to_be_under_way() {
        let services = Services::new(usize::MAX);
        let busy = r#"{"StandIn":{"payment":{"BusyMs":300}}}"#;
        assert_eq!(call(&services, "/payment/charge", "a", busy).unwrap().0, 200);
        let (status, problem) = call(&services, "/payment/charge", "a", busy).unwrap();
        assert_eq!((status, problem["code"].as_str()), (409, Some("in-use")));
        let pending = r#"{"StandIn":{"payment":{"PendingMs":300}}}"#;
        let (status, body) = call(&services, "/payment/charge", "b", pending).unwrap();
        assert_eq!((status, body.to_string()), (202, r#"{"status":"pending"}"#.to_owned()));
        let effects = |now_ms| services.effects(now_ms)[&Service::Payment].effects;
        assert_eq!((effects(299), effects(300)), (0, 2));
    }

    #[test]
    fn what_is_no_call_is_refused() {
        let services = Services::new(usize::MAX);
        for path in ["/payment/ship", "/a%20bakery/charge", "/payment", "/payment/charge/"] {
            assert_eq!(call(&services, path, "k", "{}").unwrap().0, 404, "{path}");
        }
        let no_key = send(&services, Request::post("/payment/charge"), r#"{"Order":{}}"#.to_owned()).unwrap();
        assert_eq!((no_key.0, no_key.1["code"].as_str()), (400, Some("idempotency-key-missing")));
        assert!(services.effects(0).values().all(|service| service.calls == 0));
    }
}
