mod misfits;

use domain::definition::{Catalogue, Pin};
use domain::index::Term;
use domain::limits::{DOCUMENT_BYTES_MAX, NESTING_MAX, TEXT_CHARS_MAX};
use domain::message::Priority;
use domain::search::Pointer;
use domain::task::ProcessState;
use domain::workflow::Workflows;
use serde_json::json;

use super::*;
use crate::testing::{CALLER, CHANNEL, Fake, ORDER};

fn catalogue(workflows: &[&str]) -> Catalogue {
    Catalogue::new(Workflows::parse(workflows, "w", &["x"]).unwrap())
}

const KEY: (&str, &str) = ("Idempotency-Key", "k1");

#[test]
fn an_order_is_queued_and_answered_with_where_it_is() {
    let fake = Fake::default();
    let answer = fake.post("/orders", &[], ORDER);
    let [order] = fake.submitted().try_into().unwrap();
    assert_eq!((answer.status, answer.header("content-type")), (202, Some("application/json")));
    assert_eq!(answer.header("location"), Some(format!("/orders/{}", order.order_id).as_str()));
    assert_eq!(answer.body, json!({"OrderID": order.order_id.to_string(), "ProcessState": "Pending"}));
    assert_eq!((&*order.submitter, &*order.fingerprint), (CALLER, order.document.fingerprint().as_str()));
    assert_eq!((&order.reply_channel, &order.correlation_id), (&None, &None));
    assert!(fake.waits().is_empty() && fake.scheduled().is_empty());
}

#[test]
fn the_document_reaches_the_queue_digit_for_digit() {
    let text = r#"{ "Total": 10000000000000000000000.10, "e": 1E400, "n": -0, "s": "\u00e9\ud800", "a": 1 }"#;
    let fake = Fake::default();
    assert_eq!(fake.post("/orders", &[], text).status, 202);
    assert_eq!(fake.submitted()[0].document.text(), text);
}

#[test]
fn the_reserved_members_are_read_and_stay_in_the_document() {
    let text = format!(r#"{{"ReplyChannel":"{CHANNEL}","CorrelationID":"caf\u00e9-7","Total":1.0}}"#);
    let fake = Fake::default();
    assert_eq!(fake.post("/orders", &[], &text).status, 202);
    let order = &fake.submitted()[0];
    assert_eq!(order.reply_channel.as_deref(), Some(CHANNEL));
    assert_eq!(order.correlation_id.as_deref(), Some("café-7"));
    assert_eq!(order.document.text(), text);
    // Many programs write `null` for a member that they leave out.
    let text = r#"{"ReplyChannel":null,"CorrelationID":null,"Workflow":null,"Priority":null}"#;
    assert_eq!(fake.post("/orders", &[], text).status, 202);
    let order = &fake.submitted()[1];
    assert_eq!((&order.reply_channel, &order.correlation_id, order.priority), (&None, &None, None));
}

#[test]
fn a_reserved_member_that_is_wrong_is_400_and_named() {
    let fake = Fake::default();
    let text_of = |characters| format!(r#"{{"CorrelationID":"{}"}}"#, "é".repeat(characters));
    for (body, name) in [
        (r#"{"CorrelationID":7}"#, "CorrelationID"),
        (r#"{"CorrelationID":""}"#, "CorrelationID"),
        (&text_of(TEXT_CHARS_MAX + 1), "CorrelationID"),
        (r#"{"ReplyChannel":["shop-replies"]}"#, "ReplyChannel"),
        (r#"{"ReplyChannel":""}"#, "ReplyChannel"),
        (r#"{"ReplyChannel":"https://example.org/hook"}"#, "ReplyChannel"),
        (r#"{"Reply\u0043hannel":"unknown"}"#, "ReplyChannel"),
    ] {
        let answer = fake.post("/orders", &[], body);
        answer.names(400, "invalid-field", name);
        assert!(!answer.text.contains(CHANNEL), "{}", answer.text);
    }
    fake.queued_nothing();
    assert_eq!(fake.post("/orders", &[], &text_of(TEXT_CHARS_MAX)).status, 202);
}

#[test]
fn an_order_may_name_its_priority_and_else_leaves_it_to_the_workflow() {
    for (text, priority) in [
        (r#"{"Priority":"high"}"#, Some(Priority::High)),
        (r#"{"Priority":"hi\u0067h"}"#, Some(Priority::High)),
        (r#"{"Priority":"normal"}"#, Some(Priority::Normal)),
        (r#"{"Item":{"Priority":"high"}}"#, None),
    ] {
        let fake = Fake::default();
        assert_eq!(fake.post("/orders", &[], text).status, 202);
        let order = &fake.submitted()[0];
        assert_eq!((order.priority, order.document.text()), (priority, text));
    }
    let fake = Fake::default();
    for name in [
        "priority",
        "Priorty",
        "completeBy",
        "CompletBy",
        "notBefore",
        "workflow",
        "Workflows",
        "CorrelationId",
        "completeby",
        "WORKFLOW",
    ] {
        let document = format!("{{\"Item\":{{\"{name}\":1}},\"{name}\":null}}");
        fake.post("/orders", &[], &document).names(400, "invalid-field", name);
    }
    for value in ["\"High\"", "\"urgent\"", "\"\"", "1", "true", "[\"high\"]", "{\"high\":null}"] {
        let document = format!("{{\"Priority\":{value}}}");
        fake.post("/orders", &[], &document).names(400, "invalid-field", "Priority");
    }
    fake.queued_nothing();
}

#[test]
fn an_order_that_names_no_priority_is_queued_in_that_of_the_workflow() {
    let (normal, high) = (Some(Priority::Normal), Some(Priority::High));
    for (workflow, text, priority) in [
        (Priority::High, ORDER, high),
        (Priority::High, r#"{"Priority":"normal"}"#, normal),
        (Priority::Normal, ORDER, None),
        (Priority::Normal, r#"{"Priority":"high"}"#, high),
    ] {
        let fake = Fake::default();
        let text_of = format!(
            "name = \"w\"\nversion = 1\npriority = \"{}\"\n[[step]]\nname = \"a\"\nagent = \"x\"",
            if workflow == Priority::High { "high" } else { "normal" }
        );
        fake.config(ApiConfig::default().with_catalogue(&catalogue(&[&text_of])));
        assert_eq!(fake.post("/orders", &[], text).status, 202);
        assert_eq!(fake.submitted()[0].priority, priority, "{text} in a workflow of lane {workflow:?}");
    }
}

#[test]
fn an_order_is_pinned_to_the_workflow_that_it_names_or_to_the_default() {
    let text =
        |name: &str, version| format!("name = {name:?}\nversion = {version}\n[[step]]\nname = \"a\"\nagent = \"x\"");
    let texts = [text("w", 1), text("w", 2), text("return", 1)];
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&catalogue(&texts.each_ref().map(|text| &**text))));
    for (body, name, version) in
        [("{}", "w", 2), (r#"{"Workflow":"return"}"#, "return", 1), (r#"{"Workf\u006cow":"w"}"#, "w", 2)]
    {
        assert_eq!(fake.post("/orders", &[], body).status, 202);
        let order = fake.submitted().pop().unwrap();
        assert_eq!(order.workflow, Some(Pin { name: name.into(), version }));
        assert_eq!(order.document.text(), body);
    }
    let queued = fake.submitted().len();
    let unknown = fake.post("/orders", &[], r#"{"Workflow":"refund"}"#);
    unknown.is_problem(400, "invalid-field");
    assert_eq!(unknown.body["field"], "Workflow");
    assert_eq!(unknown.body["detail"], "there is no workflow \"refund\" for new orders. There are: return, w");
    fake.post("/orders", &[], r#"{"Workflow":7}"#).names(400, "invalid-field", "Workflow");
    assert_eq!(fake.submitted().len(), queued);
}

#[test]
fn an_order_has_terms_for_its_correlation_id_and_for_what_its_workflow_declares() {
    let workflow = "name = \"w\"\nversion = 1\nindex = [\"/Email\", \"/Cvc\"]\n[[step]]\nname = \"a\"\nagent = \"x\"";
    let fake = Fake::default();
    let config = || ApiConfig::default().redacting(["cvc"]);
    fake.config(config().with_catalogue(&catalogue(&[workflow])));
    let text = r#"{"CorrelationID": "c-1", "Email": "ann@x.example", "Cvc": "123"}"#;
    assert_eq!(fake.post("/orders", &[], text).status, 202);
    let email = Term::member(&Pointer::parse("/Email").unwrap(), "ann@x.example");
    assert_eq!(fake.submitted()[0].terms, [Term::correlation("c-1"), email]);
    fake.config(config());
    assert_eq!(fake.post("/orders", &[KEY], text).status, 202);
    assert_eq!(fake.submitted()[1].terms, [Term::correlation("c-1")]);
}

#[test]
fn rules_35_and_37_a_time_that_an_order_names_is_read_or_400() {
    let workflow =
        "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\nnot_before = \"/Order/Deliver/On\"";
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&catalogue(&[workflow])));
    for (text, name) in [
        (r#"{"NotBefore":"tomorrow"}"#, "NotBefore"),
        (r#"{"NotBefore":"2999-01-01T00:00:00Z"}"#, "NotBefore"),
        (r#"{"Deliver":{"On":7}}"#, "/Deliver/On"),
    ] {
        fake.post("/orders", &[], text).names(400, "invalid-field", name);
    }
    fake.queued_nothing();
    for time in ["soon", "2999-01-01T00:00:00Z"] {
        fake.post("/orders", &[], &format!("{{\"CompleteBy\":\"{time}\"}}")).names(400, "invalid-field", "CompleteBy");
    }
    fake.queued_nothing();
    let text = r#"{"CompleteBy":"2001-01-01T00:00:00Z"}"#;
    fake.post("/orders", &[], text).names(400, "invalid-field", "CompleteBy");
    fake.queued_nothing();
    let text = r#"{"CompleteBy":null,"Item":{"CompleteBy":1,"completeBy":1},"Complete":1}"#;
    assert_eq!(fake.post("/orders", &[], text).status, 202);
    let text = r#"{"NotBefore":"2001-01-01T00:00:00+01:00","Deliver":{"On":"2001-01-01T00:00:00Z"}}"#;
    assert_eq!(fake.post("/orders", &[], text).status, 202);
}

#[test]
fn an_order_with_a_member_that_its_workflow_refuses_is_422_and_goes_nowhere() {
    let workflow =
        "name = \"w\"\nversion = 1\nrefuse = [\"Cvc\", \"/Card/Number\"]\n[[step]]\nname = \"a\"\nagent = \"x\"";
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&catalogue(&[workflow])));
    let answer = fake.post("/orders", &[KEY], r#"{"Card": {"Number": "4111", "cvc": "123"}}"#);
    answer.names(422, "member-refused", "Cvc");
    assert_eq!(answer.body["detail"], "no order of workflow w may carry Cvc, /Card/Number");
    assert!(!answer.text.contains("4111"));
    fake.queued_nothing();
    assert_eq!(fake.post("/orders", &[KEY], r#"{"Card": {"Token": "t"}, "Number": 1}"#).status, 202);
}

#[test]
fn a_body_that_is_no_order_is_refused_and_queues_nothing() {
    let fake = Fake::default();
    for body in ["", "{", "{} {}", "{'a':1}", "{\"a\":01}", "key=value"] {
        fake.post("/orders", &[KEY], body).is_problem(400, "malformed-json");
    }
    for body in ["[]", "7", "null", "\"text\"", " true"] {
        fake.post("/orders", &[KEY], body).is_problem(400, "not-an-object");
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(NESTING_MAX), "]".repeat(NESTING_MAX));
    fake.post("/orders", &[KEY], &deep).is_problem(400, "too-deep");
    let not_utf8 = Bytes::from_static(b"{\"a\":\"\xff\"}");
    fake.call_as(CALLER, "POST", "/orders", &[], not_utf8).is_problem(400, "malformed-json");
    fake.queued_nothing();
}

#[test]
fn a_body_of_128_kib_is_taken_and_one_byte_more_is_413() {
    let fake = Fake::default();
    let of_bytes = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
    fake.post("/orders", &[], &of_bytes(DOCUMENT_BYTES_MAX + 1)).is_problem(413, "body-too-large");
    fake.queued_nothing();
    assert_eq!(fake.post("/orders", &[], &of_bytes(DOCUMENT_BYTES_MAX)).status, 202);
}

#[test]
fn what_curl_sends_is_taken_and_what_is_no_json_is_415() {
    let fake = Fake::default();
    for name in ["multipart/form-data; boundary=x", "text/xml", "application/octet-stream"] {
        fake.post("/orders", &[("Content-Type", name)], ORDER).is_problem(415, "unsupported-media-type");
    }
    let twice = [("Content-Type", "application/json"), ("Content-Type", "text/xml")];
    fake.post("/orders", &twice, ORDER).is_problem(415, "unsupported-media-type");
    fake.queued_nothing();
    for name in ["application/json", "application/x-www-form-urlencoded", "application/vnd.shop+json"] {
        assert_eq!(fake.post("/orders", &[("Content-Type", name)], ORDER).status, 202);
    }
}

#[test]
fn a_bad_header_is_400_named_and_queues_nothing() {
    let fake = Fake::default();
    let too_long = "k".repeat(256);
    for key in ["", "\"\"", "two words", &too_long] {
        fake.post("/orders", &[("Idempotency-Key", key)], ORDER).names(400, "invalid-header", "Idempotency-Key");
    }
    fake.post("/orders", &[KEY, KEY], ORDER).names(400, "invalid-header", "Idempotency-Key");
    for wait in ["wait=999", "wait=21", "wait=soon", "respond-async, wait=-1"] {
        fake.post("/orders", &[("Prefer", wait)], ORDER).names(400, "invalid-header", "Prefer");
    }
    fake.queued_nothing();
    assert_eq!(fake.post("/orders", &[("Idempotency-Key", &too_long[1..])], ORDER).status, 202);
}

#[test]
fn orders_without_a_key_are_different_orders() {
    let fake = Fake::default();
    let ids = [(); 2].map(|()| fake.post("/orders", &[], ORDER).body["OrderID"].to_string());
    assert_ne!(ids[0], ids[1]);
    assert_eq!(fake.submitted().len(), 2);
}

#[test]
fn f01_the_same_key_and_document_is_the_same_order_and_is_queued_once() {
    let fake = Fake::default();
    let first = fake.post("/orders", &[KEY], ORDER);
    fake.submission_runs(ProcessState::Pending);
    let quoted = ("Idempotency-Key", "\"k1\"");
    let again = fake.post("/orders", &[quoted], "{ \"Total\": 12.50,\n \"Item\": \"book\" }");
    assert_eq!((again.status, &again.body), (202, &first.body));
    assert_eq!(again.header("location"), first.header("location"));
    fake.submission_runs(ProcessState::Processing);
    assert_eq!(fake.post("/orders", &[KEY], ORDER).body["ProcessState"], "Processing");
    assert_eq!(fake.submitted().len(), 1);
}

#[test]
fn a_repeat_before_the_first_is_stored_has_the_same_id() {
    let fake = Fake::default();
    let answers = [(); 2].map(|()| fake.post("/orders", &[KEY], ORDER));
    assert_eq!(answers[0].body, answers[1].body);
    assert!(fake.submitted().iter().all(|order| order.order_id == OrderId::from_idempotency_key(CALLER, "k1")));
}

#[test]
fn f06_the_same_key_with_another_document_is_422() {
    let fake = Fake::default();
    let first = fake.post("/orders", &[KEY], ORDER);
    fake.submission_runs(ProcessState::Processed);
    let other = fake.post("/orders", &[KEY], r#"{"Item":"book","Total":12.5}"#);
    other.is_problem(422, "idempotency-key-reused");
    assert_eq!(other.body["instance"].as_str(), first.header("location"));
    assert_eq!(fake.submitted().len(), 1);
}

#[test]
fn a_caller_without_a_wait_also_learns_that_the_key_went_to_another_document() {
    let fake = Fake::default();
    fake.another_gets_the_key(r#"{"Item":"other"}"#);
    let answer = fake.post("/orders", &[KEY], ORDER);
    answer.is_problem(422, "idempotency-key-reused");
    assert_eq!(fake.submitted().len(), 1, "nobody had the key when it was looked up");
    let fake = Fake::default();
    fake.another_gets_the_key(ORDER);
    assert_eq!(fake.post("/orders", &[KEY], ORDER).status, 202);
}

#[test]
fn a_key_belongs_to_its_caller() {
    let fake = Fake::default();
    let [one, other] =
        ["shop", "market"].map(|caller| fake.call_as(caller, "POST", "/orders", &[KEY], Bytes::from(ORDER)));
    assert_ne!(one.body["OrderID"], other.body["OrderID"]);
}

#[test]
fn a_waiting_caller_gets_the_task_once_it_is_settled() {
    for state in [ProcessState::Processed, ProcessState::Compensated, ProcessState::Error] {
        let fake = Fake::default();
        fake.settles_as(state);
        let answer = fake.post("/orders", &[("Prefer", "respond-async, wait=\"10\"")], ORDER);
        assert_eq!((answer.status, answer.header("preference-applied")), (200, Some("wait=10")));
        assert_eq!(answer.body["ProcessState"], state.name());
        assert!(answer.body["Steps"].is_array() && answer.header("location").is_some());
        assert_eq!(fake.waits(), ["10000"]);
    }
}

#[test]
fn a_caller_whose_wait_ends_unsettled_gets_202_with_the_state() {
    let fake = Fake::default();
    let wait = ("Prefer", "wait=1");
    let answer = fake.post("/orders", &[wait], ORDER);
    assert_eq!((answer.status, &answer.body["ProcessState"]), (202, &json!("Pending")));
    assert_eq!(answer.header("preference-applied"), None);
    fake.settles_as(ProcessState::Compensating);
    let answer = fake.post("/orders", &[wait], ORDER);
    assert_eq!((answer.status, &answer.body["ProcessState"]), (202, &json!("Compensating")));
}

#[test]
fn a_repeated_post_may_wait_too() {
    let fake = Fake::default();
    fake.post("/orders", &[KEY], ORDER);
    fake.submission_runs(ProcessState::Processing);
    fake.settles_as(ProcessState::Processed);
    let answer = fake.post("/orders", &[KEY, ("Prefer", "wait=5")], ORDER);
    assert_eq!((answer.status, fake.submitted().len(), fake.waits()), (200, 1, vec!["5000".to_owned()]));
}

#[test]
fn an_order_that_may_not_be_queued_is_503_and_may_be_posted_again() {
    for port in ["store.order", "queues.submit"] {
        let fake = Fake::default();
        fake.down(port);
        let answer = fake.post("/orders", &[KEY, ("Prefer", "wait=5")], ORDER);
        answer.is_problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(
            answer.body["detail"].as_str().unwrap().contains("safe to post it again with the same Idempotency-Key")
        );
        fake.queued_nothing();
        assert!(fake.waits().is_empty());
        fake.up(port);
        assert_eq!(fake.post("/orders", &[KEY], ORDER).status, 202);
        assert_eq!(fake.submitted().len(), 1);
    }
}

#[test]
fn an_order_without_a_key_is_not_called_safe_to_post_again() {
    let fake = Fake::default();
    fake.down("queues.submit");
    let answer = fake.post("/orders", &[], ORDER);
    answer.is_problem(503, "unavailable");
    assert!(answer.body["detail"].as_str().unwrap().contains("may become a second order"));
}

#[test]
fn an_accepted_order_is_answered_202_even_when_it_cannot_be_watched() {
    let fake = Fake::default();
    fake.down("store.settled");
    let answer = fake.post("/orders", &[("Prefer", "wait=5")], ORDER);
    assert_eq!((answer.status, fake.submitted().len()), (202, 1));
}
