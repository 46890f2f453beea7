//! The supervisor function. A schedule, the dead-letter queues and the stream of the table of tasks invoke it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use domain::batch::{Failure, Failures};
use domain::limits::BATCH_MAX;
use domain::message::{Delivery, Request, decode};
use domain::ports::{DeadLetter, SourceQueue};
use domain::tally::Batch;
use futures_util::future::Either;
use lambda_runtime::Error;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::invocation::Invocation;
use super::payload::{Payload, read};
use super::queue::each;
use super::record::{Answer, SQS_EVENT, SqsEvent, SqsRecord};
use super::runtime::serve;
use super::stream::{audited, changes};
use crate::environment::within;
use crate::queues::AsTheQueueSays;
use crate::scope::Company;

/// The share of an invocation's time in which a run may begin new work, in percent. The work in flight ends in the
/// rest.
const BEGINNING_PERCENT: u64 = 75;

/// Runs the supervisor. It passes the dead letters of a dead-letter queue to `dead_letters`, the changes of tasks to
/// `count`, and calls `run` for any other event. The argument of `run` is the time in which it may begin new work, in
/// milliseconds.
///
/// # Errors
/// Fails if the platform cannot be reached. An error of a run or of a count fails its invocation, which makes the error
/// visible.
pub async fn supervisor<Run, Running, Settle, Settling, Count, Counting>(
    queues: &BTreeMap<Arc<str>, SourceQueue>,
    run: Run,
    dead_letters: Settle,
    count: Count,
) -> Result<(), Error>
where
    Run: Fn(u64) -> Running,
    Running: Future<Output = Result<(), Error>>,
    Settle: Fn(Vec<Delivery<DeadLetter>>) -> Settling,
    Settling: Future<Output = Failures>,
    Count: Fn(Batch) -> Counting,
    Counting: Future<Output = Result<(), Error>>,
{
    let (run, dead_letters, count) = (&run, &dead_letters, &count);
    let dispatch = move |payload: Payload, invocation| async move {
        dispatch(&payload, &invocation, queues, run, dead_letters, count).await
    };
    serve(dispatch).await
}

/// The parts of an event that distinguish a queue's batch, a stream's batch and a schedule's event.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "Records", default, borrow)]
    records: Option<&'a RawValue>,
    #[serde(rename = "shardId", default)]
    shard: Option<IgnoredAny>,
}

/// The source of a record.
#[derive(Deserialize)]
struct Sourced<'a> {
    #[serde(rename = "eventSource", default, borrow)]
    source: Cow<'a, str>,
}

impl Kind<'_> {
    /// Whether it is a batch of a stream. The last batch of a window has no records.
    fn is_stream(&self) -> bool {
        let sourced = || serde_json::from_str::<Vec<Sourced<'_>>>(self.records?.get()).ok();
        self.shard.is_some() || sourced().is_some_and(|all| all.iter().any(|one| one.source == "aws:dynamodb"))
    }
}

/// One invocation of [`supervisor`]: the answer to this event, if it is a batch.
///
/// # Errors
/// An error of `run` or `count`, or [`BadPayload`](super::BadPayload) if the batch is none of a queue or stream.
pub async fn dispatch<Run, Running, Settle, Settling, Count, Counting>(
    payload: &RawValue,
    invocation: &Invocation,
    queues: &BTreeMap<Arc<str>, SourceQueue>,
    run: &Run,
    dead_letters: &Settle,
    count: &Count,
) -> Result<Option<Answer>, Error>
where
    Run: Fn(u64) -> Running,
    Running: Future<Output = Result<(), Error>>,
    Settle: Fn(Vec<Delivery<DeadLetter>>) -> Settling,
    Settling: Future<Output = Failures>,
    Count: Fn(Batch) -> Counting,
    Counting: Future<Output = Result<(), Error>>,
{
    let kind = serde_json::from_str::<Kind<'_>>(payload.get()).ok();
    let left_ms = invocation.left_ms();
    if kind.as_ref().is_some_and(Kind::is_stream) {
        let scope = invocation.scope(None, Company::of(1));
        let batch = changes(payload)?;
        // The stream delivers the batch again.
        if !audited(&batch) {
            return Err("the log did not take the audit stream".into());
        }
        return match within(left_ms, scope.run(count(batch))).await {
            Some(counted) => counted.map(|()| Some(Answer::counted())),
            None => Err("the changes were not counted before the invocation's deadline".into()),
        };
    }
    if kind.is_some_and(|kind| kind.records.is_some()) {
        let event: SqsEvent<'_> = read(payload, SQS_EVENT)?;
        let settle = |record| match dead_letter(record, queues) {
            Some(dead_letter) => Either::Left(dead_letters(vec![dead_letter])),
            None => Either::Right(unknown(record)),
        };
        return Ok(Some(each(&event.records, invocation, &AsTheQueueSays, settle).await));
    }
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
            Ok(request) => SourceQueue::Agent(request.agent),
            Err(_) => SourceQueue::Agent(of_queue),
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
    Failures(vec![Failure::lasting(record.delivery_of(()).receipt)])
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use domain::task::Task;
    use domain::time::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn queues() -> BTreeMap<Arc<str>, SourceQueue> {
        BTreeMap::from([
            ("arn:aws:sqs:r:1:submission-dead".into(), SourceQueue::Submission),
            ("arn:aws:sqs:r:1:payment-dead".into(), SourceQueue::Agent("payment".into())),
        ])
    }

    /// A record of the calls: the times of runs, the dead letters, and the changes.
    #[derive(Default)]
    struct Seen {
        runs: Mutex<Vec<u64>>,
        dead_letters: Mutex<Vec<DeadLetter>>,
        counted: Mutex<Vec<Batch>>,
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
        let count = async |batch| {
            seen.counted.lock().unwrap().push(batch);
            Ok(())
        };
        dispatch(&payload, &Invocation::for_test(60_500), &queues(), &run, &dead_letters, &count).await
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
        let bodies = [request("customs").to_string(), "nonsense".to_owned()];
        sent(&seen, json!({ "Records": bodies.map(record) })).await.unwrap();
        let queues: Vec<_> = seen.dead_letters.into_inner().unwrap().into_iter().map(|letter| letter.queue).collect();
        assert_eq!(queues, ["customs", "payment"].map(|agent| SourceQueue::Agent(agent.into())));
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
        let count = async |_| Ok(());
        assert!(dispatch(&payload, &invocation, &queues(), &failing, &dead_letters, &count).await.is_err());
        let endless = async |_| std::future::pending().await;
        let invocation = Invocation::for_test(510);
        assert!(dispatch(&payload, &invocation, &queues(), &endless, &dead_letters, &count).await.is_err());
    }

    /// A change as DynamoDB's documentation shows it, with these images of a task.
    fn record(sequence: &str, old: Option<Value>, new: Option<Value>) -> Value {
        let mut body = json!({
            "ApproximateCreationDateTime": 1_795_195_603.0, "Keys": {"OrderID": {"S": "x"}}, "SequenceNumber": sequence,
            "SizeBytes": 26, "StreamViewType": "NEW_AND_OLD_IMAGES",
        });
        for (name, image) in [("OldImage", old), ("NewImage", new)] {
            image.into_iter().for_each(|image| body[name] = image);
        }
        json!({
            "eventID": "1", "eventName": "MODIFY", "eventVersion": "1.1", "eventSource": "aws:dynamodb",
            "awsRegion": "eu-central-1", "dynamodb": body, "eventSourceARN": "arn",
        })
    }

    fn image(version: u64) -> Value {
        json!({
            "OrderID": {"S": "01934b2e-1c5a-7d3f-8a21-5f0c9f4be011"}, "Version": {"N": version.to_string()},
            "Nonce": {"B": "AAAAAAAAAAc="}, "Workflow": {"S": "order"}, "WorkflowVersion": {"N": "1"},
            "ProcessState": {"S": "Pending"}, "Notify": {"BOOL": true}, "Priority": {"NULL": true},
            "Later": {"SS": ["a"]}, "History": {"S": "[[\"S\",1795195603007,\"shop\"]]"},
            "Steps": {"L": [{"M": {
                "Name": {"S": "a"}, "Agent": {"S": "b"}, "ProcessState": {"S": "Pending"}, "LockedBy": {"NULL": true},
                "FailureCount": {"N": "0"}, "Attempt": {"N": "0"},
            }}]},
        })
    }

    fn window(records: &[Value]) -> Value {
        json!({
            "Records": records, "window": {"start": "2026-11-20T17:26:00Z", "end": "2026-11-20T17:41:00Z"}, "state": {},
            "shardId": "shardId-00000001795195603-0f", "eventSourceARN": "arn:stream/1",
            "isFinalInvokeForWindow": false, "isWindowTerminatedEarly": false,
        })
    }

    #[tokio::test]
    async fn changes_of_tasks_are_counted_but_for_those_that_cannot_be_read() {
        let seen = Seen::default();
        let records = [
            record("111", None, Some(image(1))),
            record("112", Some(json!({"OrderID": {"S": "x"}})), Some(image(2))),
            json!({"eventSource": "aws:dynamodb"}),
            record("113", Some(image(2)), Some(image(3))),
        ];
        let answer = sent(&seen, window(&records)).await.unwrap();
        assert_eq!(serde_json::to_value(answer).unwrap(), json!({"batchItemFailures": [], "state": {}}));
        let [batch] = &seen.counted.into_inner().unwrap()[..] else { panic!("one batch") };
        assert_eq!((&*batch.stream, &*batch.shard), ("arn:stream/1", "shardId-00000001795195603-0f"));
        let version = |task: &Option<Task>| task.as_ref().map(|task| task.version);
        let versions: Vec<_> = batch.changes.iter().map(|one| (version(&one.before), version(&one.after))).collect();
        assert_eq!(versions, [(None, Some(1)), (Some(2), Some(3))]);
        let first = &batch.changes[0];
        assert_eq!((&first.sequence, first.at.epoch_ms()), (&"111".into(), 1_795_195_603_000));
        let task = first.after.as_ref().unwrap();
        assert_eq!((task.nonce, task.notify, &*task.steps[0].agent), (7, true, "b"));
        assert!(seen.runs.into_inner().unwrap().is_empty());
    }

    #[tokio::test]
    async fn the_end_of_a_window_is_no_schedule_and_a_batch_without_its_shard_is_refused() {
        let seen = Seen::default();
        let answer = sent(&seen, window(&[])).await.unwrap();
        assert_eq!(serde_json::to_value(answer).unwrap()["state"], json!({}));
        assert!(seen.counted.lock().unwrap()[0].changes.is_empty());
        let without_window = json!({"Records": [record("111", None, Some(image(1)))]});
        let error = sent(&seen, without_window).await.unwrap_err().to_string();
        assert!(error.contains("tumbling window") && error.contains("shardId"), "{error}");
        assert!(seen.runs.into_inner().unwrap().is_empty());
    }

    #[tokio::test]
    async fn changes_that_could_not_be_counted_come_again() {
        let payload = serde_json::value::to_raw_value(&window(&[])).unwrap();
        let (run, dead_letters) = (async |_| Ok(()), async |_| Failures::default());
        let failing = async |_| Err(Error::from("no store"));
        let invocation = Invocation::for_test(60_000);
        assert!(dispatch(&payload, &invocation, &queues(), &run, &dead_letters, &failing).await.is_err());
        let endless = async |_| std::future::pending().await;
        let invocation = Invocation::for_test(510);
        assert!(dispatch(&payload, &invocation, &queues(), &run, &dead_letters, &endless).await.is_err());
    }
}
