//! A call that was taken on, and the looks at its state (rule 36).

use domain::message::Look;
use domain::template::PollPath;

use super::*;

const HOUR_MS: u64 = 3_600_000;

/// Where the state of a call is asked that was answered so.
async fn led(path: &str, status: u16, headers: &[(&str, &str)], body: &str) -> Result<Arc<str>, String> {
    let stand_in = StandIn::start([response(status, headers, body)]).await;
    let poll = Some(PollPath::parse(path).unwrap());
    let request = Request { poll, wait_within_ms: Some(HOUR_MS), ..request(Direction::Forward) };
    let answer = call_with(&mut payment(&format!("{}/v1", stand_in.base)), &request, NOW).await;
    let Answer::UnderWay { poll: Some(led), .. } = answer else { panic!("{answer:?}") };
    led
}

#[tokio::test]
async fn rule_36_an_answer_under_way_says_where_its_state_is_asked() {
    assert_eq!(led("transfers/{/id}", 202, &[], r#"{"id":"t 7"}"#).await.as_deref(), Ok("transfers/t%207"));
    assert_eq!(led("/v1/{/id}?x={/n?}", 202, &[], r#"{"id":7}"#).await.as_deref(), Ok("/v1/7"));
    assert_eq!(led("state?n=7", 409, &[], "").await.as_deref(), Ok("state?n=7"), "an answer that got lost was a 202");
    let location = async |to: &str| led("{header:Location}", 202, &[("Location", to)], "").await;
    assert_eq!(location("/jobs/7?x=1").await.as_deref(), Ok("/jobs/7?x=1"));
    assert_eq!(location("jobs/7").await.as_deref(), Ok("/v1/jobs/7"));
    for (to, words) in [
        ("https://evil.example/jobs/7", "leads to another host, scheme or port"),
        ("//evil.example/jobs/7", "leads to another host, scheme or port"),
        ("/jobs/../7", "a path with dots"),
        ("/jobs/caf\u{e9}", "a text, a number or a boolean at header:Location"),
        ("", "names no"),
    ] {
        match location(to).await {
            Err(problem) => assert!(problem.contains(words), "{to}: {problem}"),
            // Without a reference, it is the URL that was called.
            Ok(path) => assert_eq!((to, &*path), ("", "/v1/charge")),
        }
    }
    assert_eq!(
        led("a/{/id}", 202, &[], "<html>").await.unwrap_err(),
        "`poll.path` needs a text, a number or a boolean at /id"
    );
}

#[tokio::test]
async fn rule_36_a_202_whose_body_does_not_come_is_a_202() {
    let stalled = Respond::With(b"HTTP/1.1 202 Whatever\r\nContent-Length: 9\r\n\r\n{\"id\"".to_vec());
    let stand_in = StandIn::start([stalled]).await;
    let poll = Some(PollPath::parse("transfers/{/id}").unwrap());
    let request = Request { poll, wait_within_ms: Some(HOUR_MS), ..request(Direction::Forward) };
    let answer = call_with(&mut payment(&stand_in.base), &request, NOW).await;
    let Answer::UnderWay { poll, unless_alone: None, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(poll, Some(Err("its body did not come".to_owned())));
}

/// What a look learns of this answer, and the call that it made.
async fn look(answers: &str, keep: Option<&str>, status: u16, body: &str) -> (Answer, String) {
    let stand_in = StandIn::start([response(status, &[("Retry-After", "1")], body)]).await;
    let look = format!(r#"{{"Path":"/jobs/7?x=1","Answers":{answers}}}"#);
    let look: Look = serde_json::from_str(&look).unwrap();
    let keep = keep.map(|keep| serde_json::from_str(keep).unwrap());
    let request = Request { look: Some(look), keep, order: Json::empty(), ..request(Direction::Forward) };
    // What a call means by its status says nothing about a look.
    let lines = "headers = { Api-Version = \"7\" }\nforward.status = { 404 = \"no\", 200 = \"no\" }";
    let mut service = payment_with(&format!("{}/v1/", stand_in.base), lines);
    let answer = service.look(&call_of(&request, NOW)).await;
    let received = stand_in.received().pop().unwrap();
    assert_eq!((&*received.text, received.header("api-version")), ("", Some("7")));
    let none = ["callback-url", "idempotency-key", "content-type"].map(|name| received.header(name));
    assert_eq!(none, [None, None, None]);
    (answer, received.line.clone())
}

const ANSWERS: &str = r#"[
    {"Status": 200, "When": "/status == 'failed'", "Means": "No"},
    {"Status": 200, "When": "/status in ['succeeded', 'paid']", "Means": "Done"},
    {"Status": 404, "When": "/code == 'expired'", "Means": "No"},
    {"Status": 400, "When": "/status / 0 == 1", "Means": "No"},
    {"Status": 500, "When": "/code == 'expired'", "Means": "No"}
]"#;

#[tokio::test]
async fn rule_36_a_look_is_a_get_and_only_a_condition_makes_a_result_of_its_answer() {
    let keep = Some(r#"{"ID":"/id"}"#);
    let of = async |status: u16, body: &str| look(ANSWERS, keep, status, body).await;
    let (answer, line) = of(200, r#"{"status":"paid","id":7}"#).await;
    assert_eq!((answer, &*line), (done(r#"{"status":"paid","id":7}"#), "GET /jobs/7?x=1 HTTP/1.1"));
    assert!(matches!(of(200, r#"{"status":"failed"}"#).await.0, Answer::Fail(failure) if &*failure.code == "failed"));
    let expired = of(404, r#"{"code":"expired","message":"too late"}"#).await.0;
    assert_eq!(expired, Answer::fail("expired", "too late"));
    for (status, body) in [(200, r#"{"status":"pending"}"#), (200, "{}"), (202, r#"{"status":"paid"}"#), (204, "")] {
        assert_eq!(of(status, body).await.0, Answer::under_way(), "{status} {body}");
    }
    for (status, body) in [
        (404, "{}"),
        (404, r#"{"code":"unknown_customer"}"#),
        (422, r#"{"code":"no"}"#),
        (401, ""),
        (409, ""),
        (301, ""),
        (200, "<html>log in</html>"),
        (404, "code: expired"),
        (200, r#"{"status":"failed","status":"paid"}"#),
        (400, r#"{"status":7}"#),
    ] {
        assert!(matches!(of(status, body).await.0, Answer::Misconfigured { .. }), "{status} {body}");
    }
    for (status, body) in [(429, ""), (503, ""), (500, r#"{"code":"expired"}"#)] {
        assert!(matches!(of(status, body).await.0, Answer::Retry { after_ms: Some(1_000), .. }), "{status} {body}");
    }
}

#[tokio::test]
async fn rule_36_without_conditions_a_200_in_which_keep_finds_its_values_is_done() {
    let keep = Some(r#"{"ID":"/receipt"}"#);
    assert_eq!(look("[]", keep, 200, r#"{"receipt":7}"#).await.0, done(r#"{"receipt":7}"#));
    for (status, body) in [(200, "{}"), (200, "<html>"), (202, r#"{"receipt":7}"#), (201, r#"{"receipt":7}"#)] {
        assert_eq!(look("[]", keep, status, body).await.0, Answer::under_way(), "{status} {body}");
    }
    assert!(matches!(look("[]", keep, 404, r#"{"receipt":7}"#).await.0, Answer::Misconfigured { .. }));
}
