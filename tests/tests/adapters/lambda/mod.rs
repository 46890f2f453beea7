//! The functions' common part. A real process takes invocations from a platform, answers them and ends. Another test
//! runs an order through all ports.
//!
//! The function under test is this program itself. It starts once more to run one test, and that test is the function.

#![allow(clippy::disallowed_methods, reason = "a test waits in its own time")]

mod function;
mod order;
mod traces;

use serde_json::{Value, json};
use tests::runtime_api::{Answered, RuntimeApi};

use function::Function;

/// A time far above the duration of any invocation here.
const LONG_MS: u64 = 60_000;

fn batch(bodies: &[&str]) -> Value {
    let record = |body: &&str| {
        json!({
            "messageId": format!("id-{body}"), "receiptHandle": "handle", "body": body,
            "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "0"},
            "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-central-1:1:any",
        })
    };
    json!({"Records": bodies.iter().map(record).collect::<Vec<_>>()})
}

/// The answer that requests another delivery of these messages.
fn failed(bodies: &[&str]) -> Answered {
    let failed = bodies.iter().map(|body| json!({"itemIdentifier": format!("id-{body}")}));
    Answered::Answer(json!({"batchItemFailures": failed.collect::<Vec<_>>()}))
}

#[tokio::test]
async fn a_bad_body_and_a_panic_fail_one_record_each_and_the_process_goes_on() {
    let platform = RuntimeApi::start().await.unwrap();
    let function = Function::start(&platform);
    let answer = platform.invoke(&batch(&["1", "nonsense", "2", "3"]), LONG_MS).await.unwrap();
    assert_eq!(answer, failed(&["nonsense", "2"]));
    assert_eq!(platform.invoke(&batch(&["1"]), LONG_MS).await.unwrap(), failed(&[]));
    drop(function);
}

#[tokio::test]
async fn an_invocation_is_answered_at_its_deadline_with_what_is_not_done() {
    let platform = RuntimeApi::start().await.unwrap();
    let _function = Function::start(&platform);
    platform.asked().await.unwrap();
    // That it is in time, the tests of the crate say: their clock stands still.
    let answer = platform.invoke(&batch(&["1", "4"]), 10_000).await.unwrap();
    assert_eq!(answer, failed(&["4"]));
}

#[tokio::test]
async fn an_event_that_cannot_be_read_fails_as_a_whole() {
    let platform = RuntimeApi::start().await.unwrap();
    let _function = Function::start(&platform);
    let Answered::Error(error) = platform.invoke(&json!({"detail": 1}), LONG_MS).await.unwrap() else {
        panic!("it was taken for a batch");
    };
    assert!(error["errorMessage"].as_str().unwrap().contains("not a batch of an SQS queue"), "{error}");
    assert_eq!(platform.invoke(&batch(&["1"]), LONG_MS).await.unwrap(), failed(&[]));
}

// The test blocks its thread while it reads the function's output. The function calls the platform meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn told_to_end_it_answers_what_it_has_and_takes_nothing_more() {
    let platform = RuntimeApi::start().await.unwrap();
    let mut function = Function::start(&platform);
    platform.asked().await.unwrap();
    platform.give(&batch(&["5"]), LONG_MS).unwrap();
    function.says("begun");
    function.terminate();
    assert_eq!(platform.answered().await.unwrap(), failed(&[]), "that record ends when it hears the signal");
    assert!(function.ended_well());
}

// The test blocks its thread while it reads the function's output. The function calls the platform meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn told_to_end_while_it_waits_for_work_it_ends_at_once() {
    let platform = RuntimeApi::start().await.unwrap();
    let mut function = Function::start(&platform);
    platform.asked().await.unwrap();
    function.terminate();
    assert!(function.ended_well());
}
