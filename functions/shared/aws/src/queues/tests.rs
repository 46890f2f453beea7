use std::pin::pin;
use std::task::Poll;

use domain::batch::Cause;
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{Wake, decode};
use domain::ports::PortErrorKind;
use domain::task::Direction;
use domain::time::Timestamp;
use domain::trace::{self, TraceParent};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::*;
use crate::config::testing::queue_urls;
use crate::scope::Company;
use crate::testing::{FakeAws, Said, all_taken, random};

fn sqs(fake: &FakeAws) -> Sqs {
    Sqs::new(fake.clients().sqs, queue_urls(), random())
}

fn order_id(name: &str) -> OrderId {
    OrderId::from_idempotency_key("test", name)
}

fn wake(name: &str) -> SchedulerMessage {
    SchedulerMessage::Wake(Wake { order_id: order_id(name), hops: 0 })
}

fn request(document: &str, priority: Priority) -> Request {
    Request {
        order_id: order_id("a"),
        step: "charge-payment".into(),
        agent: "payment".into(),
        direction: Direction::Forward,
        attempt: 1,
        idempotency_key: "a/charge-payment".into(),
        complete_by: Timestamp::from_epoch_ms(0),
        budget_ms: 1,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        may_run_until: None,
        wait_within_ms: None,
        may_decline: false,
        was_done: false,
        hops: 0,
        priority,
        order: Json::document(document.as_bytes()).unwrap(),
        outputs: Default::default(),
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

fn receipt(handle: Arc<str>) -> Receipt {
    Receipt { message_id: "m".into(), handle }
}

/// The only recorded request.
fn only(fake: &FakeAws) -> (String, Value) {
    let mut requests = fake.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests.remove(0)
}

#[tokio::test]
async fn the_messages_of_records_that_are_handled_together_go_in_one_request_with_a_trace_each() {
    let fake = FakeAws::that_takes_everything().await;
    let (sqs, company) = (sqs(&fake), Company::default());
    let sending = ["a", "b", "c"].map(|name| {
        let scope = Scope { trace_header: Some(format!("Root={name}").into()), company: company.clone() };
        scope.run(sqs.to_scheduler(wake(name), Priority::High, 0))
    });
    join_all(sending).await.into_iter().collect::<Result<(), _>>().unwrap();
    let (operation, body) = only(&fake);
    assert_eq!((&*operation, &body["QueueUrl"]), ("SendMessageBatch", &json!("http://127.0.0.1:1/1/scheduler-high")));
    for (place, name) in ["a", "b", "c"].into_iter().enumerate() {
        let entry = &body["Entries"][place];
        let header = json!({"AWSTraceHeader": {"DataType": "String", "StringValue": format!("Root={name}")}});
        assert_eq!(entry["MessageSystemAttributes"], header);
        let sent: SchedulerMessage = decode(entry["MessageBody"].as_str().unwrap().as_bytes()).unwrap();
        assert_eq!(sent, wake(name));
        assert_eq!(entry.get("DelaySeconds"), None);
    }
}

#[tokio::test]
async fn each_message_of_a_request_carries_the_span_that_sent_it_and_none_where_nobody_makes_traces() {
    let fake = FakeAws::that_takes_everything().await;
    let (sqs, company) = (sqs(&fake), Company::default());
    let parent = |n: u8| TraceParent::new([n; 16], [n; 8], true);
    let sqs = &sqs;
    let sending = [parent(1), None, parent(3)].map(|parent| {
        let work = async move {
            // A span sets its parent in the same way around each poll.
            let before = trace::set_current(parent);
            let mut sending = pin!(sqs.to_scheduler(wake("a"), Priority::High, 0));
            let first = futures_util::poll!(sending.as_mut());
            trace::set_current(before);
            if let Poll::Ready(sent) = first { sent } else { sending.await }
        };
        Scope { trace_header: None, company: company.clone() }.run(work)
    });
    join_all(sending).await.into_iter().collect::<Result<(), _>>().unwrap();
    let (_, body) = only(&fake);
    let attribute = |n: u8| {
        let value = parent(n).unwrap().to_string();
        json!({"traceparent": {"DataType": "String", "StringValue": value}})
    };
    let sent: Vec<_> = body["Entries"].as_array().unwrap().iter().map(|entry| entry.get("MessageAttributes")).collect();
    assert_eq!(sent, [Some(&attribute(1)), None, Some(&attribute(3))]);
}

#[tokio::test]
async fn a_delay_is_never_shorter_than_asked_for_nor_longer_than_sqs_allows() {
    let fake = FakeAws::that_takes_everything().await;
    let sqs = sqs(&fake);
    for (delay_ms, delay_s) in [(0, None), (1, Some(1)), (1_000, Some(1)), (1_001, Some(2)), (u64::MAX, Some(900))] {
        sqs.to_scheduler(wake("a"), Priority::Normal, delay_ms).await.unwrap();
        let (_, body) = fake.requests().pop().unwrap();
        assert_eq!(body["Entries"][0].get("DelaySeconds"), delay_s.map(|delay_s| json!(delay_s)).as_ref());
    }
}

#[tokio::test]
async fn a_request_goes_to_its_agents_own_queue_or_else_to_the_shared_one_in_the_group_of_its_agent() {
    let fake = FakeAws::that_takes_everything().await;
    let sqs = sqs(&fake);
    sqs.to_agent("payment", request("{}", Priority::High)).await.unwrap();
    sqs.to_agent("shipping", request("{}", Priority::Normal)).await.unwrap();
    sqs.to_agent("customs", request("{}", Priority::High)).await.unwrap();
    let of = |(_, body): (String, Value)| (body["QueueUrl"].clone(), body["Entries"][0].get("MessageGroupId").cloned());
    let sent: Vec<_> = fake.requests().into_iter().map(of).collect();
    let expected = [("payment-high", None), ("agents", Some("shipping")), ("agents-high", Some("customs"))];
    let expected =
        expected.map(|(queue, group)| (json!(format!("http://127.0.0.1:1/1/{queue}")), group.map(Value::from)));
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_parked_request_is_hidden_on_the_queue_that_delivered_it() {
    let fake = FakeAws::start(|_, _| (200, json!({}))).await;
    let sqs = sqs(&fake);
    for (queue, delay_ms, hidden_s) in
        [("payment-high", 1_500, 2), ("agents", 0, 0), ("shipping-high", u64::MAX, 42_300)]
    {
        let handle = handle_from(&format!("arn:aws:sqs:eu-central-1:1:{queue}"), "AQEB 1");
        sqs.return_to_agent("payment", &receipt(handle), delay_ms).await.unwrap();
        let (operation, body) = fake.requests().pop().unwrap();
        assert_eq!(operation, "ChangeMessageVisibility");
        let url = format!("http://127.0.0.1:1/1/{queue}");
        assert_eq!(body, json!({"QueueUrl": url, "ReceiptHandle": "AQEB 1", "VisibilityTimeout": hidden_s}));
    }
    let error = sqs.return_to_agent("payment", &receipt("AQEB".into()), 0).await.unwrap_err();
    assert_eq!((error.operation, error.kind), (RETURN_TO_AGENT, PortErrorKind::Refused));
}

#[tokio::test]
async fn each_caller_learns_the_fate_of_its_own_message() {
    let outcome = |body: &Value| -> Said {
        let mut answer = json!({"Successful": [], "Failed": []});
        for entry in body["Entries"].as_array().unwrap() {
            let (list, result) = match entry["MessageBody"].as_str().unwrap() {
                body if body.contains(&order_id("bad").to_string()) => {
                    ("Failed", json!({"Id": entry["Id"], "SenderFault": true, "Code": "InvalidMessageContents"}))
                }
                body if body.contains(&order_id("busy").to_string()) => {
                    ("Failed", json!({"Id": entry["Id"], "SenderFault": false, "Code": "InternalError"}))
                }
                _ => ("Successful", json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "x"})),
            };
            answer[list].as_array_mut().unwrap().push(result);
        }
        (200, answer)
    };
    let fake = FakeAws::start(move |_, body| outcome(body)).await;
    let (sqs, company) = (sqs(&fake), Company::default());
    let sending = ["good", "bad", "busy"].map(|name| {
        let scope = Scope { trace_header: None, company: company.clone() };
        scope.run(sqs.to_scheduler(wake(name), Priority::Normal, 0))
    });
    let mut outcomes =
        join_all(sending).await.into_iter().map(|sent| sent.map_err(|error| (error.operation, error.kind)));
    assert_eq!(outcomes.next().unwrap(), Ok(()));
    assert_eq!(outcomes.next().unwrap(), Err((TO_SCHEDULER, PortErrorKind::Refused)));
    assert_eq!(outcomes.next().unwrap(), Err((TO_SCHEDULER, PortErrorKind::Unavailable)));
    let sizes: Vec<usize> = fake.requests().iter().map(|(_, body)| body["Entries"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [3, 1, 1, 1], "only what was busy is sent again");
}

#[tokio::test]
async fn a_missing_right_is_refused_at_once_and_an_outage_is_tried_three_times() {
    for (status, code, kind, requests) in [
        (403, "AccessDeniedException", PortErrorKind::Refused, 1),
        (400, "QueueDoesNotExist", PortErrorKind::Refused, 1),
        (400, "ThrottlingException", PortErrorKind::Unavailable, 3),
        (500, "InternalError", PortErrorKind::Unavailable, 3),
    ] {
        let fake = FakeAws::start(move |_, _| (status, json!({"__type": format!("com.amazonaws.sqs#{code}")}))).await;
        let error = sqs(&fake).to_scheduler(wake("a"), Priority::Normal, 0).await.unwrap_err();
        assert_eq!((error.kind, fake.requests().len()), (kind, requests), "{code}: {:?}", error.source);
    }
}

#[tokio::test]
async fn a_queue_that_nobody_serves_is_unavailable() {
    let fake = FakeAws::that_takes_everything().await;
    let sqs = sqs(&fake);
    drop(fake);
    // The listener ends with its task.
    tokio::task::yield_now().await;
    let error = sqs.to_scheduler(wake("a"), Priority::Normal, 0).await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Unavailable);
}

#[tokio::test]
async fn two_messages_that_are_too_large_together_go_one_after_the_other_and_one_alone_is_refused() {
    let fake = FakeAws::that_takes_everything().await;
    let (sqs, company) = (sqs(&fake), Company::default());
    let url: Arc<str> = "http://127.0.0.1:1/1/any".into();
    let send = |kilobytes: usize| {
        let scope = Scope { trace_header: None, company: company.clone() };
        let message = Message::of(&"x".repeat(kilobytes * 1024)).unwrap();
        scope.run(sqs.sender().send(&url, message))
    };
    let (first, second, large) = tokio::join!(send(600), send(500), send(1024));
    assert!(first.is_ok() && second.is_ok());
    let large = large.unwrap_err();
    assert_eq!(large.kind, PortErrorKind::Refused);
    assert!(large.source.unwrap().to_string().contains("1048578 bytes are too many"), "1 MiB and two quotes");
    assert_eq!(fake.requests().len(), 2);
}

#[tokio::test]
async fn a_character_that_sqs_does_not_take_is_sent_as_its_escape() {
    let fake = FakeAws::start(|_, body| {
        let body_text = body["Entries"][0]["MessageBody"].as_str().unwrap();
        assert!(!body_text.contains(['\u{FFFE}', '\u{FFFF}']));
        (200, all_taken(body))
    })
    .await;
    let document = "{\"Name\":\"\u{FFFF}\u{FFFE}\u{1F600}\"}";
    sqs(&fake).to_agent("payment", request(document, Priority::Normal)).await.unwrap();
    let (_, body) = only(&fake);
    let sent: Value = serde_json::from_str(body["Entries"][0]["MessageBody"].as_str().unwrap()).unwrap();
    assert_eq!(sent["Order"]["Name"], "\u{FFFF}\u{FFFE}\u{1F600}");
}

const BODY: &str = "{\"Wake\": {\"OrderID\": 7}}";

fn failed(cause: Cause, receive_count: u32) -> FailedRecord<'static> {
    let handle = handle_from("arn:aws:sqs:eu-central-1:1:scheduler", "h");
    FailedRecord { receipt: receipt(handle), receive_count, body: BODY, cause }
}

/// The seconds for which the only request hides the record.
fn hidden_s(fake: &FakeAws) -> u64 {
    let (operation, body) = only(fake);
    assert_eq!((&*operation, &body["ReceiptHandle"]), ("ChangeMessageVisibility", &json!("h")));
    assert_eq!(body["QueueUrl"], json!("http://127.0.0.1:1/1/scheduler"));
    body["VisibilityTimeout"].as_u64().unwrap()
}

#[tokio::test]
async fn rule_47_a_passing_failure_comes_again_after_a_back_off_and_is_never_given_up() {
    for (receive_count, longest_s) in [(1, 1), (2, 3), (3, 7), (7, 127), (50, 127), (999, 127)] {
        let fake = FakeAws::that_takes_everything().await;
        assert!(sqs(&fake).redeliver(failed(Cause::Passing, receive_count)).await);
        assert!(hidden_s(&fake) <= longest_s, "delivery {receive_count}");
    }
}

#[tokio::test]
async fn rule_47_what_cannot_be_read_is_a_dead_letter_after_fifty_deliveries_and_what_lasts_after_550() {
    for (cause, receives_max) in [(Cause::Unreadable, 50), (Cause::Lasting, 550)] {
        let fake = FakeAws::that_takes_everything().await;
        assert!(sqs(&fake).redeliver(failed(cause, receives_max - 1)).await);
        assert!(hidden_s(&fake) <= 127);

        let fake = FakeAws::that_takes_everything().await;
        assert!(!sqs(&fake).redeliver(failed(cause, receives_max)).await, "its message may be deleted");
        let (operation, body) = only(&fake);
        assert_eq!((&*operation, &body["QueueUrl"]), ("SendMessageBatch", &json!("http://127.0.0.1:1/1/dead")));
        assert_eq!(body["Entries"][0]["MessageBody"], BODY);
    }
}

#[tokio::test]
async fn rule_47_what_no_dead_letter_queue_took_comes_again() {
    let refused = (400, json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no"}));
    let answer = move |operation: &str, body: &Value| match operation {
        "SendMessageBatch" => refused.clone(),
        _ => (200, all_taken(body)),
    };
    let fake = FakeAws::start(answer).await;
    assert!(sqs(&fake).redeliver(failed(Cause::Unreadable, 60)).await);
    let operations: Vec<String> = fake.requests().into_iter().map(|(operation, _)| operation).collect();
    assert_eq!(operations, ["SendMessageBatch", "ChangeMessageVisibility"]);

    let fake = FakeAws::that_takes_everything().await;
    let urls = QueueUrls { dead_letters: None, ..queue_urls() };
    let without = Sqs::new(fake.clients().sqs, urls, random());
    assert!(without.redeliver(failed(Cause::Unreadable, 60)).await, "without the variable there is no such queue");
    hidden_s(&fake);
}

#[tokio::test]
async fn rule_47_a_record_that_was_given_back_keeps_the_time_that_its_handler_chose() {
    let fake = FakeAws::that_takes_everything().await;
    assert!(sqs(&fake).redeliver(failed(Cause::Returned, 700)).await);
    assert!(fake.requests().is_empty());
}
