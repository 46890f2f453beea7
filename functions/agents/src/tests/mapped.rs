//! Calls as a workflow maps them: method, path, headers and body, and what is kept of the answer.

use super::*;

#[tokio::test]
async fn a_mapped_call_posts_its_body_alone_below_the_path_of_its_operation() {
    let stand_in = StandIn::start([response(200, &[], "{}"), response(200, &[], "{}")]).await;
    let mut service = payment(&format!("{}/v1/", stand_in.base));
    let body = Json::parse(b"{\"amount\": 12.50, \"card\": {\"token\": \"t 1\"}}", 99).unwrap();
    let path = Some("a%2Fb/capture".into());
    let mapped = Request { body: Some(body), path, ..request(Direction::Forward) };
    let form = Request { encode: domain::workflow::Encoding::Form, path: None, ..mapped.clone() };
    for (request, line, content_type, text) in [
        (
            &mapped,
            "POST /v1/charge/a%2Fb/capture HTTP/1.1",
            "application/json",
            r#"{"amount": 12.50, "card": {"token": "t 1"}}"#,
        ),
        (&form, "POST /v1/charge HTTP/1.1", "application/x-www-form-urlencoded", "amount=12.50&card[token]=t%201"),
    ] {
        assert_eq!(call_with(&mut service, request, NOW).await, done("{}"));
        let received = stand_in.received().pop().unwrap();
        assert_eq!((&*received.line, received.header("content-type")), (line, Some(content_type)));
        assert_eq!(received.text, text);
    }
}

#[tokio::test]
async fn a_call_without_a_body_has_no_type_of_one() {
    let stand_in = StandIn::start([response(200, &[], "{}")]).await;
    let mut service = payment(&stand_in.base);
    let request = Request { encode: domain::workflow::Encoding::Empty, ..request(Direction::Forward) };
    assert_eq!(call_with(&mut service, &request, NOW).await, done("{}"));
    let received = stand_in.received().pop().unwrap();
    assert_eq!((&*received.line, &*received.text), ("POST /charge HTTP/1.1", ""));
    assert_eq!((received.header("content-type"), received.header("content-length")), (None, Some("0")));
}

#[tokio::test]
async fn rule_19_a_call_has_the_method_the_query_and_the_headers_of_its_step() {
    use domain::workflow::Method;
    let body = Some(Json::parse(b"{\"amount\": 12.50}", 99).unwrap());
    let headers = BTreeMap::from([("Api-Version".into(), "8".into()), ("X-Request-Id".into(), "a/charge".into())]);
    for (method, body, path, line, text) in [
        (Method::Get, None, "?ref=a%2Fb", "GET /v1/charge?ref=a%2Fb HTTP/1.1", ""),
        (Method::Delete, None, "7", "DELETE /v1/charge/7 HTTP/1.1", ""),
        (Method::Delete, body.clone(), "7?force", "DELETE /v1/charge/7?force HTTP/1.1", r#"{"amount": 12.50}"#),
        (Method::Put, body.clone(), "7", "PUT /v1/charge/7 HTTP/1.1", r#"{"amount": 12.50}"#),
        (Method::Patch, body, "7", "PATCH /v1/charge/7 HTTP/1.1", r#"{"amount": 12.50}"#),
    ] {
        let stand_in = StandIn::start([response(200, &[], "{}")]).await;
        let mut service = payment_with(&format!("{}/v1/", stand_in.base), "headers = { Api-Version = \"7\" }");
        let (path, headers) = (Some(path.into()), headers.clone());
        let request = Request { method, body, path, headers, ..request(Direction::Forward) };
        assert_eq!(call_with(&mut service, &request, NOW).await, done("{}"));
        let received = stand_in.received().pop().unwrap();
        assert_eq!((&*received.line, &*received.text), (line, text));
        let content_type = (!text.is_empty()).then_some("application/json");
        assert_eq!(received.header("content-type"), content_type);
        let named = ["api-version", "x-request-id", "idempotency-key"].map(|name| received.header(name));
        assert_eq!(named, [Some("8"), Some("a/charge"), Some(&*request.idempotency_key)], "the step's goes before");
    }
}

#[tokio::test]
async fn rule_19_a_step_keeps_a_header_the_status_and_a_text() {
    let kept = async |keep: &str, body: &str, status: u16| {
        let stand_in = StandIn::start([response(status, &[("Location", "/charges/7")], body)]).await;
        let request = Request { keep: serde_json::from_str(keep).unwrap(), ..request(Direction::Forward) };
        match call_with(&mut payment(&stand_in.base), &request, NOW).await {
            Answer::Done(output) => domain::output::done(output, request.keep.as_ref(), Direction::Forward),
            other @ (Answer::Retry { .. }
            | Answer::Unknown { .. }
            | Answer::UnderWay { .. }
            | Answer::Misconfigured { .. }
            | Answer::NotCalled { .. }
            | Answer::Fail(_)) => panic!("{other:?}"),
        }
    };
    let outcome = |text: &str| domain::message::Outcome::Done(Json::of_any_depth(text.as_bytes(), 999).unwrap());
    let all = r#"{"At":"header:location","Code":"answer:status","ID":"/id"}"#;
    assert_eq!(kept(all, r#"{"id":7}"#, 201).await, outcome(r#"{"At":"/charges/7","Code":201,"ID":7}"#));
    assert_eq!(kept(r#""answer:text""#, "PAID \u{e9}", 200).await, outcome("\"PAID \u{e9}\""));
    assert_eq!(kept(r#"{"At":"header:location"}"#, "", 204).await, outcome(r#"{"At":"/charges/7"}"#));
    let page =
        Request { keep: serde_json::from_str(r#"{"At":"header:location"}"#).unwrap(), ..request(Direction::Forward) };
    let stand_in = StandIn::start([response(200, &[], "<html>log in</html>")]).await;
    let answer = call_with(&mut payment(&stand_in.base), &page, NOW).await;
    assert!(matches!(answer, Answer::Unknown { .. }), "a page is no answer, unless its text is kept: {answer:?}");
    // Conditions read JSON. Without JSON, no condition can be judged.
    let lines = "[agents.payment.forward]\nstatus = { 200 = \"no\" }\nanswers = [{ status = 200, when = \"/s == 'paid'\", means = \"done\" }]";
    for text in ["<html>maintenance</html>", r#"{"s":"paid","x":"#] {
        let stand_in = StandIn::start([response(200, &[], text)]).await;
        let request =
            Request { keep: serde_json::from_str(r#""answer:text""#).unwrap(), ..request(Direction::Forward) };
        let answer = call_with(&mut payment_with(&stand_in.base, lines), &request, NOW).await;
        assert!(matches!(answer, Answer::Unknown { .. }), "{text}: {answer:?}");
    }
    let twice = [("Link", "</a>"), ("Link", "</b>")];
    let stand_in = StandIn::start([response(200, &twice, "{}")]).await;
    let request =
        Request { keep: serde_json::from_str(r#"{"All":"header:link"}"#).unwrap(), ..request(Direction::Forward) };
    let Answer::Done(answer) = call_with(&mut payment(&stand_in.base), &request, NOW).await else { panic!("done") };
    assert_eq!(answer.member("Headers"), Some(r#"{"link":"</a>, </b>"}"#));
}
