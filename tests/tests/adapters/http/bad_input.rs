//! A bad request gets a problem document and changes nothing.

use domain::limits::{DOCUMENT_BYTES_MAX, NESTING_MAX};
use tests::machine::Machine;
use tests::socket::Answer;

const ORDER: &str = r#"{"Item": "mug", "Total": 12.50}"#;
const COMMAND: &str = r#"{"By": "ada", "Reason": "a test"}"#;

/// A request and its expected answer.
struct Case<'a> {
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a str,
    status: u16,
    kind: &'a str,
    field: Option<&'a str>,
}

impl Case<'_> {
    async fn is_refused_by(&self, machine: &Machine) -> Answer {
        let answer = machine.ask(self.method, self.path, self.headers, self.body).await;
        let what = format!("{} {} {:?} {:.80}: {answer:?}", self.method, self.path, self.headers, self.body);
        assert_eq!(answer.status, self.status, "{what}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{what}");
        let problem = answer.json();
        assert_eq!(problem["type"], format!("/problems/{}", self.kind), "{what}");
        assert_eq!(problem["status"], self.status, "{what}");
        assert!(
            ["title", "detail"].iter().all(|name| problem[*name].as_str().is_some_and(|it| !it.is_empty())),
            "{what}"
        );
        assert_eq!(problem["field"].as_str(), self.field, "{what}");
        if let Some(field) = self.field {
            assert!(problem["detail"].as_str().unwrap().starts_with(field), "{what}");
        }
        answer
    }
}

fn post<'a>(headers: &'a [(&'a str, &'a str)], body: &'a str, status: u16, kind: &'a str) -> Case<'a> {
    Case { method: "POST", path: "/orders", headers, body, status, kind, field: None }
}

fn get<'a>(path: &'a str, status: u16, kind: &'a str) -> Case<'a> {
    Case { method: "GET", path, headers: &[], body: "", status, kind, field: None }
}

/// Sends all requests to a machine with one finished order, and checks that nothing changed.
async fn leaves_no_trace(machine: &Machine, cases: &[Case<'_>]) {
    machine.settled(ORDER).await;
    let before = machine.trace().await;
    for case in cases {
        case.is_refused_by(machine).await;
    }
    assert_eq!(machine.trace().await, before);
    machine.settled(ORDER).await;
}

#[tokio::test]
async fn a_body_that_is_no_json_is_400() {
    let bodies = ["", "{", "{'a': 1}", "{\"a\": 01}", "{} {}", "Item=mug", "{\"a\": NaN}"];
    let cases = bodies.map(|body| post(&[], body, 400, "malformed-json"));
    leaves_no_trace(&Machine::start().await, &cases).await;
}

#[tokio::test]
async fn a_body_that_is_no_object_is_400() {
    let cases = ["[]", "[{}]", "7", "\"text\"", "true", "null"].map(|body| post(&[], body, 400, "not-an-object"));
    leaves_no_trace(&Machine::start().await, &cases).await;
}

#[tokio::test]
async fn a_body_that_is_nested_too_deep_is_400() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(NESTING_MAX), "]".repeat(NESTING_MAX));
    leaves_no_trace(&Machine::start().await, &[post(&[], &deep, 400, "too-deep")]).await;
}

#[tokio::test]
async fn a_member_of_the_wrong_type_is_400_and_named() {
    let machine = Machine::start().await;
    let long = format!(r#"{{"CorrelationID": "{}"}}"#, "x".repeat(257));
    let cases = [
        (r#"{"CorrelationID": 7}"#, "CorrelationID"),
        (r#"{"CorrelationID": ""}"#, "CorrelationID"),
        (r#"{"CorrelationID": {"a": 1}}"#, "CorrelationID"),
        (&long, "CorrelationID"),
        (r#"{"ReplyChannel": ["replies"]}"#, "ReplyChannel"),
        (r#"{"ReplyChannel": "nobody-registered-this"}"#, "ReplyChannel"),
        (r#"{"ReplyChannel": "https://sqs.example/queue"}"#, "ReplyChannel"),
    ];
    let cases = cases.map(|(body, name)| Case { field: Some(name), ..post(&[], body, 400, "invalid-field") });
    leaves_no_trace(&machine, &cases).await;
}

#[tokio::test]
async fn a_body_over_128_kib_is_413_and_one_of_128_kib_is_taken() {
    let machine = Machine::start().await;
    let of_bytes = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    let (over, several_mb) = (of_bytes(DOCUMENT_BYTES_MAX + 1), of_bytes(5_000_000));
    let cases = [post(&[], &over, 413, "body-too-large"), post(&[], &several_mb, 413, "body-too-large")];
    leaves_no_trace(&machine, &cases).await;
    machine.settled(&of_bytes(DOCUMENT_BYTES_MAX)).await;
}

#[tokio::test]
async fn a_body_that_says_it_is_no_json_is_415() {
    let headers = [("content-type", "text/xml")];
    leaves_no_trace(&Machine::start().await, &[post(&headers, ORDER, 415, "unsupported-media-type")]).await;
}

#[tokio::test]
async fn an_idempotency_key_that_is_empty_or_too_long_is_400_and_named() {
    let machine = Machine::start().await;
    let (longest, name) = ("k".repeat(255), "Idempotency-Key");
    let too_long = format!("{longest}k");
    let keys = [[(name, "")], [(name, too_long.as_str())], [(name, "two words")], [(name, "\"\"")]];
    let cases =
        keys.each_ref().map(|headers| Case { field: Some(name), ..post(headers, ORDER, 400, "invalid-header") });
    leaves_no_trace(&machine, &cases).await;
    assert_eq!(machine.post(&[(name, &longest)], ORDER).await.status, 202);
}

#[tokio::test]
async fn a_wait_of_999_is_400_and_names_the_header() {
    let machine = Machine::start().await;
    let (order_id, _) = machine.settled(ORDER).await;
    let path = format!("/orders/{order_id}");
    let waits = ["wait=999", "wait=21", "wait=-1", "wait=soon"].map(|wait| [("Prefer", wait)]);
    for headers in &waits {
        let posted = Case { field: Some("Prefer"), ..post(headers, ORDER, 400, "invalid-header") };
        let read = Case { headers, field: Some("Prefer"), ..get(&path, 400, "invalid-header") };
        leaves_no_trace(&machine, &[posted, read]).await;
    }
}

#[tokio::test]
async fn the_same_key_with_another_document_is_422_and_the_first_order_stays() {
    let machine = Machine::start().await;
    let headers = [("Idempotency-Key", "k1"), ("Prefer", "wait=20")];
    let first = machine.post(&headers, ORDER).await;
    let other = r#"{"Item": "mug", "Total": 12.5}"#;
    leaves_no_trace(&machine, &[post(&headers, other, 422, "idempotency-key-reused")]).await;
    let refused = machine.post(&headers, other).await.json();
    assert_eq!(refused["instance"].as_str(), first.header("location"), "it tells which order has the key");
    assert_eq!(machine.get(first.header("location").unwrap()).await.json(), first.json());
}

#[tokio::test]
async fn an_unknown_route_is_404() {
    let machine = Machine::start().await;
    let cases = ["/order", "/orders/", "/orders/x/y", "/orders/x/resubmit/now", "/ORDERS", "/services/payment"];
    let read = cases.map(|path| get(path, 404, "unknown-route"));
    let posted = cases.map(|path| Case { path, ..post(&[], ORDER, 404, "unknown-route") });
    leaves_no_trace(&machine, &read).await;
    leaves_no_trace(&machine, &posted).await;
}

#[tokio::test]
async fn a_wrong_method_is_405_and_says_which_are_right() {
    let machine = Machine::start().await;
    let (order_id, _) = machine.settled(ORDER).await;
    let (order, cancel) = (format!("/orders/{order_id}"), format!("/orders/{order_id}/cancel"));
    for (method, path, allow) in [
        ("DELETE", "/orders", "GET, HEAD, POST"),
        ("PUT", "/orders", "GET, HEAD, POST"),
        ("DELETE", &order, "GET, HEAD"),
        ("POST", &order, "GET, HEAD"),
        ("GET", &cancel, "POST"),
        ("POST", "/health", "GET, HEAD"),
        ("BREW", "/services", "GET, HEAD"),
    ] {
        let case = Case { method, path, ..post(&[], ORDER, 405, "method-not-allowed") };
        leaves_no_trace(&machine, &[case]).await;
        assert_eq!(machine.ask(method, path, &[], ORDER).await.header("allow"), Some(allow));
    }
}

#[tokio::test]
async fn a_cursor_that_somebody_made_up_and_every_other_bad_parameter_is_400_and_named() {
    let machine = Machine::start().await;
    for _ in 0..2 {
        machine.settled(ORDER).await;
    }
    let cursor = machine.get("/orders?state=Processed&limit=1").await.text_of("NextCursor");
    let of_another_state = format!("/orders?state=Error&cursor={cursor}");
    let cases = [
        ("/orders?cursor=made-up", "cursor"),
        ("/orders?cursor=", "cursor"),
        ("/orders?cursor=AAAA", "cursor"),
        (&of_another_state, "cursor"),
        ("/orders?state=Done", "state"),
        ("/orders?state=processed", "state"),
        ("/orders?limit=0", "limit"),
        ("/orders?limit=101", "limit"),
        ("/orders?limit=many", "limit"),
        ("/orders?limit=1&limit=2", "limit"),
        ("/orders?page=2", "page"),
    ];
    let cases = cases.map(|(path, name)| Case { field: Some(name), ..get(path, 400, "invalid-parameter") });
    leaves_no_trace(&machine, &cases).await;
}

#[tokio::test]
async fn an_order_that_nobody_posted_is_404() {
    let machine = Machine::start().await;
    let unknown = "/orders/01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";
    let read = [unknown, "/orders/x", "/orders/%00"].map(|path| get(path, 404, "order-not-found"));
    leaves_no_trace(&machine, &read).await;
    let resubmit = format!("{unknown}/resubmit");
    let commanded = [resubmit.as_str(), "/orders/x/cancel"];
    let commanded = commanded.map(|path| Case { path, ..post(&[], COMMAND, 404, "order-not-found") });
    leaves_no_trace(&machine, &commanded).await;
}

#[tokio::test]
async fn a_command_that_the_state_does_not_allow_is_409_and_tells_the_state() {
    let machine = Machine::start().await;
    let (order_id, _) = machine.settled(ORDER).await;
    for action in ["resubmit", "cancel"] {
        let path = format!("/orders/{order_id}/{action}");
        let case = Case { path: &path, ..post(&[], COMMAND, 409, "state-conflict") };
        assert_eq!(case.is_refused_by(&machine).await.json()["ProcessState"], "Processed");
        leaves_no_trace(&machine, &[case]).await;
    }
}

#[tokio::test]
async fn a_command_that_is_not_complete_is_400_and_names_the_member() {
    let machine = Machine::start().await;
    let declined = r#"{"StandIn": {"payment": {"Decline": "no", "Undo": {"Decline": "no"}}}}"#;
    let (order_id, held) = machine.settled(declined).await;
    assert_eq!(held.text_of("ProcessState"), "Error");
    let path = format!("/orders/{order_id}/resubmit");
    let cases = [
        ("{}", "By"),
        (r#"{"By": "ada"}"#, "Reason"),
        (r#"{"By": 7, "Reason": "x"}"#, "By"),
        (r#"{"By": "ada", "Reason": " "}"#, "Reason"),
        (r#"{"By": "ada", "Reason": "x", "Force": true}"#, "Force"),
    ];
    let cases =
        cases.map(|(body, name)| Case { path: &path, field: Some(name), ..post(&[], body, 400, "invalid-field") });
    leaves_no_trace(&machine, &cases).await;
    leaves_no_trace(&machine, &[Case { path: &path, ..post(&[], "{", 400, "malformed-json") }]).await;
}
