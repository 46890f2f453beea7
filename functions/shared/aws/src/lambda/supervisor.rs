//! The supervisor function. A schedule and the dead-letter queues invoke it.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::batch::Failures;
use domain::limits::BATCH_MAX;
use domain::message::{Delivery, Request, decode};
use domain::ports::{DeadLetter, SourceQueue};
use futures_util::future::Either;
use lambda_runtime::Error;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::invocation::Invocation;
use super::payload::read;
use super::queue::each;
use super::record::{Answer, SQS_EVENT, SqsEvent, SqsRecord};
use super::runtime::serve;
use crate::environment::within;
use crate::scope::Company;

/// The share of an invocation's time in which a run may begin new work, in percent. The work in flight ends in the
/// rest.
const BEGINNING_PERCENT: u64 = 75;

/// Runs the supervisor. It passes the dead letters of a dead-letter queue to `dead_letters`, and calls `run` for any
/// other event. The argument of `run` is the time in which it may begin new work, in milliseconds.
///
/// # Errors
/// Fails if the platform cannot be reached. A run's error fails its invocation, which makes the error visible.
pub async fn supervisor<Run, Running, Settle, Settling>(
    queues: &BTreeMap<Arc<str>, SourceQueue>,
    run: Run,
    dead_letters: Settle,
) -> Result<(), Error>
where
    Run: Fn(u64) -> Running,
    Running: Future<Output = Result<(), Error>>,
    Settle: Fn(Vec<Delivery<DeadLetter>>) -> Settling,
    Settling: Future<Output = Failures>,
{
    let (run, dead_letters) = (&run, &dead_letters);
    serve(move |payload, invocation| async move { dispatch(&payload, &invocation, queues, run, dead_letters).await })
        .await
}

/// The part of an event that distinguishes a queue's batch from a schedule's event.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "Records", default, borrow)]
    records: Option<&'a RawValue>,
}

/// One invocation of [`supervisor`]: the answer to this event, if it is a batch.
///
/// # Errors
/// An error of `run`, or [`BadPayload`](super::BadPayload) if the batch is none of a queue.
pub async fn dispatch<Run, Running, Settle, Settling>(
    payload: &RawValue,
    invocation: &Invocation,
    queues: &BTreeMap<Arc<str>, SourceQueue>,
    run: &Run,
    dead_letters: &Settle,
) -> Result<Option<Answer>, Error>
where
    Run: Fn(u64) -> Running,
    Running: Future<Output = Result<(), Error>>,
    Settle: Fn(Vec<Delivery<DeadLetter>>) -> Settling,
    Settling: Future<Output = Failures>,
{
    let is_batch = serde_json::from_str::<Kind<'_>>(payload.get()).is_ok_and(|kind| kind.records.is_some());
    if is_batch {
        let event: SqsEvent<'_> = read(payload, SQS_EVENT)?;
        let settle = |record| match dead_letter(record, queues) {
            Some(dead_letter) => Either::Left(dead_letters(vec![dead_letter])),
            None => Either::Right(unknown(record)),
        };
        return Ok(Some(each(&event.records, invocation, settle).await));
    }
    let left_ms = invocation.left_ms();
    // A run handles many orders at once, so its messages can share requests.
    let scope = invocation.scope(None, Company::of(BATCH_MAX));
    match within(left_ms, scope.run(run(left_ms * BEGINNING_PERCENT / 100))).await {
        Some(ended) => ended.map(|()| None),
        None => Err("the run was not done before the invocation's deadline".into()),
    }
}

/// The dead letter and its source queue; `None` if the queue is unknown. A request names its agent, since agents share a
/// queue.
fn dead_letter(record: &SqsRecord<'_>, queues: &BTreeMap<Arc<str>, SourceQueue>) -> Option<Delivery<DeadLetter>> {
    let queue = match queues.get(&*record.queue_arn)?.clone() {
        SourceQueue::Agent(of_queue) => match decode::<Request>(record.body.as_bytes()) {
            Ok(request) if !request.agent.is_empty() => SourceQueue::Agent(request.agent),
            Ok(_) | Err(_) => SourceQueue::Agent(of_queue),
        },
        queue @ (SourceQueue::Submission | SourceQueue::Scheduler) => queue,
    };
    Some(record.delivery_of(DeadLetter {
        queue,
        message_id: record.message_id.as_ref().into(),
        body: record.body.as_ref().into(),
        receive_count: record.receive_count(),
        at: record.sent_at(),
    }))
}

/// A dead letter of an unknown queue stays in its queue until an operator corrects the configuration.
async fn unknown(record: &SqsRecord<'_>) -> Failures {
    tracing::error!(queue = &*record.queue_arn, "DEAD_LETTER_QUEUES does not name this queue: its letter stays there");
    Failures(vec![record.delivery_of(()).receipt])
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use domain::time::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn queues() -> BTreeMap<Arc<str>, SourceQueue> {
        BTreeMap::from([
            ("arn:aws:sqs:r:1:submission-dead".into(), SourceQueue::Submission),
            ("arn:aws:sqs:r:1:payment-dead".into(), SourceQueue::Agent("payment".into())),
        ])
    }

    /// A record of the calls: the times of runs, and the dead letters.
    #[derive(Default)]
    struct Seen {
        runs: Mutex<Vec<u64>>,
        dead_letters: Mutex<Vec<DeadLetter>>,
    }

    async fn sent(seen: &Seen, payload: Value) -> Result<Option<Answer>, Error> {
        let payload = serde_json::value::to_raw_value(&payload).unwrap();
        let run = async |run_ms_max| {
            seen.runs.lock().unwrap().push(run_ms_max);
            Ok(())
        };
        let dead_letters = async |batch: Vec<Delivery<DeadLetter>>| {
            seen.dead_letters.lock().unwrap().extend(batch.into_iter().map(|delivery| delivery.body.unwrap()));
            Failures::default()
        };
        dispatch(&payload, &Invocation::for_test(60_500), &queues(), &run, &dead_letters).await
    }

    #[tokio::test]
    async fn a_schedule_makes_a_run_that_ends_before_the_deadline() {
        for payload in [json!({}), json!(null), json!({"Input": "{}", "ScheduleArn": "arn"}), json!({"Records": null})]
        {
            let seen = Seen::default();
            assert_eq!(sent(&seen, payload).await.unwrap(), None);
            let runs = seen.runs.into_inner().unwrap();
            assert!(runs.len() == 1 && (44_000..=45_000).contains(&runs[0]), "{runs:?}");
        }
    }

    #[tokio::test]
    async fn dead_letters_come_with_the_queue_that_gave_them_up() {
        let record = |id: &str, queue: &str| {
            json!({
                "messageId": id, "receiptHandle": "h", "body": "what was sent",
                "attributes": {"ApproximateReceiveCount": "6", "SentTimestamp": "1795195603007"},
                "eventSourceARN": format!("arn:aws:sqs:r:1:{queue}"),
            })
        };
        let seen = Seen::default();
        let records = [record("a", "payment-dead"), record("b", "payment"), record("c", "submission-dead")];
        let answer = sent(&seen, json!({ "Records": records })).await.unwrap().unwrap();
        assert_eq!(answer.message_ids(), ["b"], "nobody knows whose letters are in that queue");
        let dead_letters = seen.dead_letters.into_inner().unwrap();
        let expected = |id: &str, queue| DeadLetter {
            queue,
            message_id: id.into(),
            body: "what was sent".into(),
            receive_count: 6,
            at: Timestamp::from_epoch_ms(1_795_195_603_007),
        };
        assert_eq!(
            dead_letters,
            [expected("a", SourceQueue::Agent("payment".into())), expected("c", SourceQueue::Submission)]
        );
        assert!(seen.runs.into_inner().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_dead_request_of_the_shared_queue_is_one_of_its_agent() {
        let request = |agent: &str| {
            let order = "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011";
            json!({
                "OrderID": order, "Step": "clear", "Agent": agent, "Direction": "Forward", "Attempt": 1,
                "IdempotencyKey": "k", "CompleteBy": "2026-11-20T17:27:13.007Z", "BudgetMs": 1, "Order": {},
            })
        };
        let record = |body: String| json!({"messageId": "a", "receiptHandle": "h", "body": body, "eventSourceARN": "arn:aws:sqs:r:1:payment-dead"});
        let seen = Seen::default();
        let bodies = [request("customs").to_string(), request("").to_string(), "nonsense".to_owned()];
        sent(&seen, json!({ "Records": bodies.map(record) })).await.unwrap();
        let queues: Vec<_> = seen.dead_letters.into_inner().unwrap().into_iter().map(|letter| letter.queue).collect();
        assert_eq!(queues, ["customs", "payment", "payment"].map(|agent| SourceQueue::Agent(agent.into())));
    }

    #[tokio::test]
    async fn a_batch_that_cannot_be_read_is_not_taken_for_a_schedule() {
        let seen = Seen::default();
        assert!(sent(&seen, json!({"Records": [{"body": 1}]})).await.is_err());
        assert!(seen.runs.into_inner().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_run_that_fails_or_takes_too_long_fails_its_invocation() {
        let payload = serde_json::value::to_raw_value(&json!({})).unwrap();
        let dead_letters = async |_| Failures::default();
        let failing = async |_| Err(Error::from("no store"));
        let invocation = Invocation::for_test(60_000);
        assert!(dispatch(&payload, &invocation, &queues(), &failing, &dead_letters).await.is_err());
        let endless = async |_| std::future::pending().await;
        assert!(dispatch(&payload, &Invocation::for_test(510), &queues(), &endless, &dead_letters).await.is_err());
    }
}
