//! Calls over a real socket: the POST, and the meaning of each kind of response.

mod mapped;
pub(crate) mod network;
mod polled;
mod silence;

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::{Answer, Call, MayBegin, OUTPUT_TOO_LARGE, Service};
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::{ANSWER_BYTES_MAX, SETTLES_WITHIN_MS_DEFAULT};
use domain::message::{Failure, Priority, Request, idempotency_key};
use domain::task::Direction;
use domain::time::Timestamp;
use domain::trace::{self, TraceParent};
use serde_json::json;

use crate::stand_in::{Respond, StandIn, response};
use crate::{AgentSettings, HttpClients, HttpService, Operations, Remote, Settings};

/// Fri, 20 Nov 2026 17:26:43 GMT.
pub(crate) const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);

pub(crate) fn request(direction: Direction) -> Request {
    let order_id = OrderId::from_idempotency_key("test", "agents");
    Request {
        order_id,
        step: "charge-payment".into(),
        agent: "payment".into(),
        direction,
        attempt: 1,
        idempotency_key: idempotency_key(order_id, "charge-payment", direction),
        complete_by: NOW.plus_ms(30_000),
        budget_ms: 30_000,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        may_run_until: None,
        wait_within_ms: None,
        may_decline: false,
        was_done: false,
        hops: 1,
        priority: Priority::Normal,
        order: Json::document(b"{\"Total\": 12.50}").unwrap(),
        outputs: BTreeMap::from([("reserve-inventory".into(), Json::document(b"{\"Shelf\":4}").unwrap())]),
        method: domain::workflow::Method::Post,
        body: None,
        encode: domain::workflow::Encoding::Json,
        path: None,
        headers: Default::default(),
        keep: None,
        poll: None,
        look: None,
    }
}

/// The payment service under this base URL, with a pool of its own.
fn payment(base: &str) -> HttpService {
    payment_with(base, "")
}

/// The same with these lines of settings.
fn payment_with(base: &str, lines: &str) -> HttpService {
    let text = format!("[agents.payment]\n{lines}");
    let settings =
        Settings::from(config::Settings::parse("agents.toml", &text).unwrap()).of("payment").unwrap().clone();
    service(base, settings)
}

pub(crate) fn service(base: &str, settings: AgentSettings) -> HttpService {
    service_over(&HttpClients::new(), base, settings)
}

fn service_over(clients: &HttpClients, base: &str, settings: AgentSettings) -> HttpService {
    let remote = Remote::new(base, settings.operations(Operations::usual("payment"))).unwrap();
    let client = settings.auth.as_ref().and_then(|auth| auth.tls_client());
    let client = client.unwrap_or_else(|| clients.reaching(remote.is_encrypted()).unwrap());
    HttpService::new(client, Arc::new(remote), Arc::new(settings), clients.calls.clone())
}

async fn call(service: &mut HttpService, direction: Direction) -> Answer {
    call_at(service, direction, NOW).await
}

pub(crate) async fn call_at(service: &mut HttpService, direction: Direction, now: Timestamp) -> Answer {
    call_with(service, &request(direction), now).await
}

/// A call that may begin for as long as this says.
pub(crate) async fn call_while(service: &mut HttpService, may_begin: &(dyn Fn() -> bool + Sync)) -> Answer {
    let request = request(Direction::Forward);
    service.forward(&Call { may_begin: MayBegin(may_begin), ..call_of(&request, NOW) }).await
}

async fn call_with(service: &mut HttpService, request: &Request, now: Timestamp) -> Answer {
    let call = call_of(request, now);
    match request.direction {
        Direction::Forward => service.forward(&call).await,
        Direction::Undo => service.undo(&call).await,
    }
}

fn call_of(request: &Request, now: Timestamp) -> Call<'_> {
    Call::of(request, now, 10_000, MayBegin(&|| true))
}

#[tokio::test]
async fn f70_a_call_for_which_no_descriptor_is_left_is_made_later() {
    let stand_in = StandIn::start([response(200, &[], "{}"), response(200, &[], "{}")]).await;
    let clients = HttpClients::with_calls_max(1);
    let mut service = service_over(&clients, &stand_in.base, AgentSettings::default());
    let other = clients.calls.place().unwrap();
    let Answer::NotCalled { problem } = call(&mut service, Direction::Forward).await else { panic!("none is left") };
    assert!(problem.contains("all 1 calls"), "{problem}");
    drop(other);
    for direction in [Direction::Forward, Direction::Undo] {
        assert!(matches!(call(&mut service, direction).await, Answer::Done(_)), "the place is given back");
    }
}

/// The agent's answer to one response.
async fn answer_to(respond: Respond) -> Answer {
    let stand_in = StandIn::start([respond]).await;
    call(&mut payment(&stand_in.base), Direction::Forward).await
}

fn done(text: &str) -> Answer {
    Answer::Done(Json::parse(text.as_bytes(), ANSWER_BYTES_MAX).unwrap())
}

fn failure(answer: Answer) -> Failure {
    let Answer::Fail(failure) = answer else { panic!("a failure expected, got {answer:?}") };
    failure
}

fn problem(answer: Answer) -> String {
    let (Answer::Retry { after_ms: None | Some(0), problem } | Answer::Unknown { after_ms: None, problem }) = answer
    else {
        panic!("a retry expected, got {answer:?}")
    };
    problem
}

#[tokio::test]
async fn a_call_posts_order_and_outputs_to_its_operation_with_the_key() {
    let stand_in = StandIn::start([response(200, &[], "{}"), response(200, &[], "{}")]).await;
    let mut service = payment(&format!("{}/v1/", stand_in.base));
    for (direction, path) in [(Direction::Forward, "/v1/charge"), (Direction::Undo, "/v1/refund")] {
        assert_eq!(call(&mut service, direction).await, done("{}"));
        let received = stand_in.received().pop().unwrap();
        let request = request(direction);
        assert_eq!(received.line, format!("POST {path} HTTP/1.1"));
        assert_eq!(received.header("idempotency-key"), Some(&*request.idempotency_key));
        assert_eq!(received.header("content-type"), Some("application/json"));
        let body = json!({
            "OrderID": request.order_id.to_string(),
            "Order": {"Total": 12.50},
            "Outputs": {"reserve-inventory": {"Shelf": 4}},
        });
        assert_eq!(received.body, body);
    }
}

#[tokio::test]
async fn a_call_has_the_operation_and_the_headers_of_its_settings() {
    let stand_in = StandIn::start([response(200, &[], "{}"), response(200, &[], "{}")]).await;
    let lines = "forward = \"v1/charges\"\nheaders = { Api-Version = \"7\", Accept = \"application/json\" }";
    let mut service = payment_with(&stand_in.base, lines);
    for (direction, path) in [(Direction::Forward, "/v1/charges"), (Direction::Undo, "/refund")] {
        call(&mut service, direction).await;
        let received = stand_in.received().pop().unwrap();
        assert_eq!(received.line, format!("POST {path} HTTP/1.1"));
        assert_eq!((received.header("api-version"), received.header("accept")), (Some("7"), Some("application/json")));
    }
}

#[tokio::test]
async fn a_status_means_what_the_table_of_its_operation_says() {
    let stand_in = StandIn::start([response(404, &[], ""), response(404, &[], "")]).await;
    let mut service = payment_with(&stand_in.base, "undo.status = { 404 = \"done\" }");
    assert_eq!(call(&mut service, Direction::Undo).await, done("{}"));
    assert!(matches!(call(&mut service, Direction::Forward).await, Answer::Misconfigured { .. }));
}

#[tokio::test]
async fn a_call_carries_the_span_that_it_is_in_and_nothing_where_there_is_none() {
    let stand_in = StandIn::start([response(200, &[], "{}"), response(200, &[], "{}")]).await;
    let mut service = payment(&stand_in.base);
    call(&mut service, Direction::Forward).await;
    trace::set_current(TraceParent::new([0xab; 16], [0xcd; 8], true));
    call(&mut service, Direction::Forward).await;
    trace::set_current(None);
    let seen = stand_in.received();
    let sent = format!("00-{}-{}-01", "ab".repeat(16), "cd".repeat(8));
    assert_eq!((seen[0].header("traceparent"), seen[1].header("traceparent")), (None, Some(&*sent)));
}

#[tokio::test]
async fn rule_38_a_call_has_the_address_for_its_result_if_there_is_one() {
    let stand_in = StandIn::start([response(200, &[], "{}"), response(200, &[], "{}")]).await;
    let request = request(Direction::Forward);
    for callback_url in [None, Some("https://orders.example.com/callbacks/AQ")] {
        let call = Call { callback_url, ..call_of(&request, NOW) };
        assert_eq!(payment(&stand_in.base).forward(&call).await, done("{}"));
        assert_eq!(stand_in.received().pop().unwrap().header("callback-url"), callback_url);
    }
}

#[tokio::test]
async fn two_calls_use_one_connection() {
    let stand_in =
        StandIn::start([response(200, &[], "{\"a\":1}"), response(402, &[], "{}"), response(204, &[], "")]).await;
    let mut service = payment(&stand_in.base);
    for _ in 0..3 {
        call(&mut service, Direction::Forward).await;
    }
    let connections: Vec<usize> = stand_in.received().iter().map(|received| received.connection).collect();
    assert_eq!(connections, [1, 1, 1]);
}

#[tokio::test]
async fn a_success_is_done_with_its_body() {
    for status in [200, 201, 203] {
        assert_eq!(answer_to(response(status, &[], " {\"Receipt\": 1.10}\n")).await, done("{\"Receipt\": 1.10}"));
    }
    for json in ["null", "[1]", "\"ok\"", "7"] {
        assert_eq!(answer_to(response(200, &[], json)).await, done(json));
    }
}

#[tokio::test]
async fn a_success_without_a_body_is_an_empty_object() {
    for respond in [
        response(200, &[], ""),
        response(200, &[], " \r\n"),
        Respond::With(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
    ] {
        assert_eq!(answer_to(respond).await, done("{}"));
    }
}

#[tokio::test]
async fn a_success_whose_body_is_no_json_is_asked_again() {
    for body in ["<html>please log in</html>", "OK", "{\"a\":", "{} {}", "{\"a\":\"\u{1}\"}"] {
        let problem = problem(answer_to(response(200, &[], body)).await);
        assert!(problem.starts_with("HTTP 200 OK, but its body is not valid JSON"), "{body}: {problem}");
    }
}

#[tokio::test]
async fn a_success_whose_body_breaks_off_is_asked_again() {
    let broken = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"Receipt\":".to_vec();
    let problem = problem(answer_to(Respond::WithAndHangUp(broken)).await);
    assert!(problem.starts_with("HTTP 200 OK, but its body broke off"), "{problem}");
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_and_not_read_to_its_end() {
    let of_bytes = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let largest = of_bytes(ANSWER_BYTES_MAX);
    assert_eq!(answer_to(response(200, &[], &largest)).await, done(&largest));

    let refused = failure(answer_to(response(200, &[], &of_bytes(ANSWER_BYTES_MAX + 1))).await);
    assert_eq!(&*refused.code, OUTPUT_TOO_LARGE);
    assert_eq!(&*refused.message, "the service's answer has more than 262144 bytes");

    // The body is endless; without a limit the agent would wait for its end.
    let endless =
        format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n{}", "[".repeat(ANSWER_BYTES_MAX + 1));
    assert_eq!(&*failure(answer_to(Respond::With(endless.into_bytes())).await).code, OUTPUT_TOO_LARGE);

    // Only a part may be kept of it.
    let deep = ["[".repeat(65), "]".repeat(65)].concat();
    assert!(matches!(answer_to(response(200, &[], &deep)).await, Answer::Done(_)));
}

#[tokio::test]
async fn what_may_work_later_is_asked_again() {
    for status in [101, 302, 303, 307, 408, 425, 429, 500, 501, 502, 503, 504, 507, 599, 600, 999] {
        let problem = problem(answer_to(response(status, &[], "{\"code\":\"whatever\"}")).await);
        assert!(problem.starts_with(&format!("HTTP {status}")), "{problem}");
    }
}

#[tokio::test]
async fn a_later_answer_is_asked_for_no_earlier_than_the_service_commands() {
    for (header, after_ms) in [
        ("7", Some(7_000)),
        ("Fri, 20 Nov 2026 17:27:00 GMT", Some(17_000)),
        ("Fri, 20 Nov 2026 17:00:00 GMT", Some(0)),
        ("whenever", None),
    ] {
        for status in [403, 404, 408, 429, 502, 503, 504] {
            let answer = answer_to(response(status, &[("Retry-After", header)], "")).await;
            let (Answer::Retry { after_ms: got, .. }
            | Answer::Unknown { after_ms: got, .. }
            | Answer::Misconfigured { after_ms: got, .. }) = answer
            else {
                panic!("a retry expected, got {answer:?}")
            };
            // A service that limits its calls is not asked again at once.
            let after_ms = after_ms.or((status == 429).then_some(0));
            assert_eq!(got, after_ms, "{status} {header}");
        }
    }
}

#[tokio::test]
async fn the_status_of_a_passing_failure_is_enough() {
    // The body never comes.
    let respond = Respond::With(b"HTTP/1.1 503 Busy\r\nContent-Length: 9\r\nRetry-After: 2\r\n\r\n".to_vec());
    let answer = answer_to(respond).await;
    assert!(matches!(answer, Answer::Retry { after_ms: Some(2_000), .. }), "{answer:?}");
}

#[tokio::test]
async fn any_other_status_is_no_for_good_with_the_reason_of_the_body() {
    for (status, body, code, message) in [
        (402, r#"{"code":"card_declined","message":"no money"}"#, "card_declined", "no money"),
        (404, r#"{"Code":"OutOfStock","Message":"none left"}"#, "OutOfStock", "none left"),
        (422, r#"{"type":"https://e.org/no","title":"t","detail":"d"}"#, "https://e.org/no", "d"),
        (402, r#"{"error":{"code":"card_declined","type":"card_error","message":"no"}}"#, "card_declined", "no"),
        (404, r#"{"error":{"code":"missing","message":"gone"}}"#, "missing", "gone"),
        (402, r#"{"error":{"message":"no"},"code":"declined","message":"top"}"#, "declined", "no"),
        (404, r#"{"error":{"type":"card_error"},"code":"gone","detail":"top"}"#, "gone", "top"),
        (422, r#"{"errors":[{"code":"sold_out","detail":"none left"},{"code":"b"}]}"#, "sold_out", "none left"),
        (404, r#"{"errors":[{"code":"missing"}],"title":"t"}"#, "missing", "t"),
        (422, r#"{"errors":[],"message":"m"}"#, "http-422", "m"),
        (400, r#"{"type":"about:blank","title":"Bad Request"}"#, "http-400", "Bad Request"),
        (400, r#"{"code":17,"error":"seventeen"}"#, "http-400", "seventeen"),
        (400, r#"{"code":"two words"}"#, "http-400", r#"{"code":"two words"}"#),
        (413, r#"{"code":"output-too-large","message":"no"}"#, "http-413", "no"),
        (415, "", "http-415", "HTTP 415 Unsupported Media Type"),
    ] {
        let failure = failure(answer_to(response(status, &[], body)).await);
        assert_eq!((&*failure.code, &*failure.message), (code, message), "{status} {body}");
    }
}

#[tokio::test]
async fn a_fault_of_the_configuration_is_no_rejection() {
    let bodies = |status| match status {
        401 | 403 | 407 => vec!["", "keep out", r#"{"code":"expired_token"}"#],
        // Some frameworks send `type` with every unknown route.
        _ => vec!["", "<h1>Not here</h1>", r#"{"type":"https://example.org/rfc9110#section-15.5.5"}"#],
    };
    for status in [301, 308, 401, 403, 404, 405, 407, 410, 421] {
        for body in bodies(status) {
            let answer = answer_to(response(status, &[], body)).await;
            let Answer::Misconfigured { problem, .. } = answer else {
                panic!("misconfigured expected, got {answer:?}")
            };
            assert!(problem.starts_with(&format!("HTTP {status}")), "{problem}");
        }
    }
}

#[tokio::test]
async fn a_call_that_was_taken_on_is_under_way_and_a_conflict_is_if_another_call_can_be() {
    let later = [("Retry-After", "7")];
    let taken_on = Answer::UnderWay { after_ms: Some(7_000), unless_alone: None, poll: None };
    assert_eq!(answer_to(response(202, &later, r#"{"status":"pending"}"#)).await, taken_on);
    for status in [409, 423] {
        let body = r#"{"code":"in_use","message":"at work"}"#;
        let unless_alone = Some(Failure { code: "in_use".into(), message: "at work".into() });
        let conflict = Answer::UnderWay { after_ms: Some(7_000), unless_alone, poll: None };
        assert_eq!(answer_to(response(status, &later, body)).await, conflict);
    }
}

#[tokio::test]
async fn an_answer_in_place_of_the_service_leaves_the_effect_open() {
    for respond in [
        response(408, &[], ""),
        response(502, &[], ""),
        response(504, &[], ""),
        response(200, &[], "<h1>Maintenance</h1>"),
        Respond::WithAndHangUp("".into()),
    ] {
        let answer = answer_to(respond).await;
        assert!(matches!(answer, Answer::Unknown { .. }), "{answer:?}");
    }
}

#[tokio::test]
async fn the_explanation_of_a_failure_is_read_up_to_a_limit() {
    let endless =
        format!("HTTP/1.1 400 No\r\nContent-Length: 1000000000000\r\n\r\n{}", "x".repeat(ANSWER_BYTES_MAX + 1));
    let failure = failure(answer_to(Respond::With(endless.into_bytes())).await);
    assert_eq!((&*failure.code, failure.message.len()), ("http-400", ANSWER_BYTES_MAX));
}

#[tokio::test]
async fn a_response_may_have_100_header_fields_and_no_more() {
    let of = |fields: usize| {
        let fields: String = (1..fields).map(|n| format!("X-{n}: v\r\n")).collect();
        Respond::With(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{fields}\r\n{{}}").into_bytes())
    };
    assert_eq!(answer_to(of(100)).await, done("{}"));
    assert!(problem(answer_to(of(101)).await).ends_with("message head is too large"));
}

#[tokio::test]
async fn no_connection_and_no_http_are_asked_again() {
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let nobody_listens = format!("http://{}", held.local_addr().unwrap());
    let refused = problem(call(&mut payment(&nobody_listens), Direction::Forward).await);
    assert!(refused.to_lowercase().contains("refused"), "{refused}");

    for nonsense in ["", "220 mail.example ESMTP\r\n\r\n"] {
        problem(answer_to(Respond::WithAndHangUp(nonsense.into())).await);
    }
}
