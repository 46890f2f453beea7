//! Functions with a queue as their source.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use domain::batch::{Cause, Failures};
use domain::id::OrderId;
use domain::message::Delivery;
use futures_util::FutureExt;
use futures_util::future::join_all;
use lambda_runtime::Error;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tracing::Instrument;

use super::invocation::Invocation;
use super::payload::read;
use super::record::{Answer, SQS_EVENT, SqsEvent, SqsRecord};
use super::runtime::serve;
use crate::environment::within;
use crate::ports::Ports;
use crate::queues::{AsTheQueueSays, Redelivers};
use crate::scope::Company;

/// Runs a function behind a queue. It passes each record of a batch to `handle` as a separate delivery, all at the same
/// time. It then reports the failed records to the platform, which delivers them again (rule 47). A record fails in three
/// cases:
/// - `handle` reports it;
/// - its handling panics;
/// - its handling is not done shortly before the invocation's deadline.
///
/// # Errors
/// Fails if the platform cannot be reached.
pub async fn queue<M, Handle, Handling>(ports: &Ports, handle: Handle) -> Result<(), Error>
where
    M: DeserializeOwned,
    Handle: Fn(Vec<Delivery<M>>) -> Handling,
    Handling: Future<Output = Failures>,
{
    let handle = &handle;
    serve(move |payload, invocation| async move { batch(&payload, &invocation, Some(ports), handle).await }).await
}

/// Runs a function behind a queue as [`queue`] does, and passes the sender of each record too (rule 45): the unique id
/// of a role or user, by the word of SQS. It is empty if SQS names none. Records of one sender for which `together` names
/// the same order are passed together.
///
/// # Errors
/// Fails if the platform cannot be reached.
pub async fn queue_with_senders<M, Handle, Handling>(
    ports: &Ports,
    together: fn(&Delivery<M>) -> Option<OrderId>,
    handle: Handle,
) -> Result<(), Error>
where
    M: DeserializeOwned,
    Handle: Fn(Arc<str>, Vec<Delivery<M>>) -> Handling,
    Handling: Future<Output = Failures>,
{
    let handle = &handle;
    serve(move |payload, invocation| async move {
        batch_with_senders(&payload, &invocation, ports, together, handle).await
    })
    .await
}

/// One invocation of [`queue_with_senders`]: the answer to this event.
///
/// # Errors
/// As those of [`batch`].
pub async fn batch_with_senders<M, Handle, Handling>(
    payload: &RawValue,
    invocation: &Invocation,
    ports: &Ports,
    together: fn(&Delivery<M>) -> Option<OrderId>,
    handle: &Handle,
) -> Result<Answer, Error>
where
    M: DeserializeOwned,
    Handle: Fn(Arc<str>, Vec<Delivery<M>>) -> Handling,
    Handling: Future<Output = Failures>,
{
    batch_of_senders(payload, invocation, ports.sqs(), together, handle).await
}

async fn batch_of_senders<M, Handle, Handling>(
    payload: &RawValue,
    invocation: &Invocation,
    source: &impl Redelivers,
    together: fn(&Delivery<M>) -> Option<OrderId>,
    handle: &Handle,
) -> Result<Answer, Error>
where
    M: DeserializeOwned,
    Handle: Fn(Arc<str>, Vec<Delivery<M>>) -> Handling,
    Handling: Future<Output = Failures>,
{
    let event: SqsEvent<'_> = read(payload, SQS_EVENT)?;
    let mut groups = Vec::<(Option<OrderId>, Vec<&SqsRecord<'_>>, Vec<Delivery<M>>)>::new();
    for record in &event.records {
        let delivery = record.delivery();
        let order_id = together(&delivery);
        let group = groups.iter_mut().find(|(other, records, _)| {
            order_id.is_some() && *other == order_id && records[0].sender() == record.sender()
        });
        match group {
            Some((_, records, deliveries)) => {
                records.push(record);
                deliveries.push(delivery);
            }
            None => groups.push((order_id, vec![record], vec![delivery])),
        }
    }
    let work = groups.into_iter().map(|(_, records, deliveries)| {
        let sender = records[0].sender().into();
        (records, async move { handle(sender, deliveries).await })
    });
    Ok(all(work, invocation, source).await)
}

/// One invocation of [`queue`]: the answer to this event. Without ports, a failed record stays hidden for as long as its
/// queue says.
///
/// # Errors
/// Fails if the event is no batch of a queue. The platform then delivers the whole event again.
pub async fn batch<M, Handle, Handling>(
    payload: &RawValue,
    invocation: &Invocation,
    ports: Option<&Ports>,
    handle: &Handle,
) -> Result<Answer, Error>
where
    M: DeserializeOwned,
    Handle: Fn(Vec<Delivery<M>>) -> Handling,
    Handling: Future<Output = Failures>,
{
    match ports {
        Some(ports) => batch_of(payload, invocation, ports.sqs(), handle).await,
        None => batch_of(payload, invocation, &AsTheQueueSays, handle).await,
    }
}

pub(super) async fn batch_of<M, Handle, Handling>(
    payload: &RawValue,
    invocation: &Invocation,
    source: &impl Redelivers,
    handle: &Handle,
) -> Result<Answer, Error>
where
    M: DeserializeOwned,
    Handle: Fn(Vec<Delivery<M>>) -> Handling,
    Handling: Future<Output = Failures>,
{
    let event: SqsEvent<'_> = read(payload, SQS_EVENT)?;
    Ok(each(&event.records, invocation, source, |record| handle(vec![record.delivery()])).await)
}

/// Handles the records of a batch at the same time, each in its own context. `source` decides about the failed ones.
pub(super) async fn each<'a, Handle, Handling>(
    records: &'a [SqsRecord<'a>],
    invocation: &Invocation,
    source: &impl Redelivers,
    handle: Handle,
) -> Answer
where
    Handle: Fn(&'a SqsRecord<'a>) -> Handling,
    Handling: Future<Output = Failures>,
{
    let handle = &handle;
    let groups = records.iter().map(|record| (vec![record], async move { handle(record).await }));
    all(groups, invocation, source).await
}

/// Does the work on each group of records at the same time, each in the context of its first record.
async fn all<'a, Handling>(
    groups: impl Iterator<Item = (Vec<&'a SqsRecord<'a>>, Handling)>,
    invocation: &Invocation,
    source: &impl Redelivers,
) -> Answer
where
    Handling: Future<Output = Failures>,
{
    let company = Company::default();
    let handling = groups.map(|(records, work)| {
        let first = records[0];
        let scope = invocation.scope(first.trace_header(), company.clone());
        let span = tracing::info_span!("record", message_id = &*first.message_id);
        let work = AssertUnwindSafe(scope.clone().run(work)).catch_unwind();
        let causes = async move {
            let count = records.len() as u64;
            let all = match within(invocation.left_ms(), work).await {
                Some(Ok(failures)) => {
                    return records
                        .into_iter()
                        .filter_map(|record| Some((record, failures.of(&record.message_id)?)))
                        .collect();
                }
                Some(Err(_)) => {
                    tracing::error!(monotonic_counter.records_panicked = count, "the handler panicked on this record");
                    Cause::Lasting
                }
                None => {
                    tracing::warn!(
                        monotonic_counter.records_failed = count,
                        "not done before the invocation's deadline"
                    );
                    Cause::Passing
                }
            };
            records.into_iter().map(|record| (record, all)).collect::<Vec<_>>()
        };
        let comes_again = async move {
            let redelivered = causes.await.into_iter().map(|(record, cause)| {
                let redelivery = scope.clone().run(source.redeliver(record.failed(cause)));
                // Without an answer of SQS it comes again as its queue says.
                async move {
                    let comes_again = within(invocation.rest_ms(), redelivery).await.unwrap_or(true);
                    comes_again.then(|| record.message_id.to_string())
                }
            });
            join_all(redelivered).await
        };
        comes_again.instrument(span)
    });
    let ended = join_all(handling).await;
    let answer = Answer::failed(ended.into_iter().flatten().flatten());
    tracing::debug!(failed = answer.len(), "batch");
    answer
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use domain::batch::Failure;
    use domain::message::SchedulerMessage;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::testing::queue_urls;
    use crate::queues::Sqs;
    use crate::scope::Scope;
    use crate::testing::{FakeAws, random};

    fn record(name: &str, body: &str, attributes: &Value) -> Value {
        json!({
            "messageId": name, "receiptHandle": format!("handle-{name}"), "body": body, "attributes": attributes,
            "messageAttributes": {}, "md5OfBody": "", "eventSource": "aws:sqs", "awsRegion": "eu-central-1",
            "eventSourceARN": "arn:aws:sqs:eu-central-1:1:scheduler-high",
        })
    }

    fn event(records: &[Value]) -> Box<RawValue> {
        serde_json::value::to_raw_value(&json!({ "Records": records })).unwrap()
    }

    fn numbers(numbers: &[&str]) -> Box<RawValue> {
        let records: Vec<Value> = numbers.iter().map(|number| record(number, number, &json!({}))).collect();
        event(&records)
    }

    /// The result for a delivery that the handler does not know: the delivery fails.
    fn failed(delivery: &Delivery<u32>) -> Failures {
        Failures(vec![Failure::lasting(delivery.receipt.clone())])
    }

    async fn answer<Handle, Handling>(payload: &RawValue, left_ms: u64, handle: Handle) -> Vec<String>
    where
        Handle: Fn(Delivery<u32>) -> Handling,
        Handling: Future<Output = Failures>,
    {
        let handle = |mut batch: Vec<Delivery<u32>>| {
            assert_eq!(batch.len(), 1, "each record comes by itself");
            handle(batch.remove(0))
        };
        let answer = batch(payload, &Invocation::for_test(left_ms), None, &handle).await.unwrap();
        answer.message_ids().into_iter().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_bad_body_and_a_panic_fail_one_record_each() {
        let payload = numbers(&["1", "{nonsense", "2", "3"]);
        let again = answer(&payload, 60_000, async |delivery| match delivery.body {
            Ok(2) => panic!("this panic is part of the test"),
            Ok(_) => Failures::default(),
            Err(_) => failed(&delivery),
        });
        assert_eq!(again.await, ["{nonsense", "2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_done_in_time_is_delivered_again_and_what_is_done_is_not() {
        let payload = numbers(&["1", "2"]);
        let again = answer(&payload, 600, async |delivery| match delivery.body {
            Ok(1) => Failures::default(),
            Ok(_) | Err(_) => std::future::pending().await,
        });
        assert_eq!(again.await, ["2"]);
    }

    /// A queue that is told of failed records.
    #[derive(Default)]
    struct Told(std::sync::Mutex<Vec<(String, Cause)>>);

    impl Redelivers for Told {
        async fn redeliver(&self, record: crate::queues::FailedRecord<'_>) -> bool {
            self.0.lock().unwrap().push((record.receipt.message_id.to_string(), record.cause));
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rule_47_what_is_not_done_in_time_is_told_to_its_queue_and_an_answer_of_it_is_not_waited_for() {
        let told = Told::default();
        let handle = async |_: Vec<Delivery<u32>>| std::future::pending().await;
        let answer = batch_of(&numbers(&["1"]), &Invocation::for_test(60_000), &told, &handle).await.unwrap();
        assert_eq!(answer.message_ids(), ["1"]);
        assert_eq!(*told.0.lock().unwrap(), [("1".to_owned(), Cause::Passing)]);
    }

    #[tokio::test]
    async fn rule_47_each_failed_record_of_a_batch_is_told_to_its_queue_by_its_cause() {
        let fake = FakeAws::that_takes_everything().await;
        let sqs = Sqs::new(fake.clients().sqs, queue_urls(), random());
        let often = json!({"ApproximateReceiveCount": "600"});
        let records = ["1", "2", "3", "{nonsense"].map(|body| record(body, body, &often));
        let handle = async |batch: Vec<Delivery<u32>>| {
            let delivery = &batch[0];
            let failed = |cause| Failures(vec![Failure { receipt: delivery.receipt.clone(), cause }]);
            match delivery.body {
                Ok(1) => Failures::default(),
                Ok(2) => failed(Cause::Passing),
                Ok(3) => panic!("this panic is part of the test"),
                Ok(_) => unreachable!("three numbers"),
                Err(_) => failed(Cause::Unreadable),
            }
        };
        let answer = batch_of(&event(&records), &Invocation::for_test(600_000), &sqs, &handle).await.unwrap();
        assert_eq!(answer.message_ids(), ["2"], "the two others are given up");
        let requests = fake.requests();
        let of = |operation: &str| {
            let of_it = requests.iter().filter(|(name, _)| name == operation);
            of_it.map(|(_, body)| body.clone()).collect::<Vec<_>>()
        };
        let hidden: Vec<_> = of("ChangeMessageVisibility").iter().map(|body| body["ReceiptHandle"].clone()).collect();
        assert_eq!(hidden, ["handle-2"]);
        let sent = of("SendMessageBatch");
        let mut given_up: Vec<_> = sent.iter().flat_map(|body| body["Entries"].as_array().unwrap()).collect();
        given_up.sort_by_key(|entry| entry["MessageBody"].to_string());
        let bodies: Vec<_> = given_up.iter().map(|entry| &entry["MessageBody"]).collect();
        assert_eq!(bodies, ["3", "{nonsense"]);
    }

    #[tokio::test]
    async fn the_records_of_a_batch_are_handled_at_the_same_time() {
        let payload = numbers(&["1", "2", "3"]);
        let all_here = tokio::sync::Barrier::new(3);
        let again = answer(&payload, 60_000, async |_| {
            all_here.wait().await;
            Failures::default()
        });
        assert!(again.await.is_empty());
    }

    #[tokio::test]
    async fn a_record_comes_with_its_count_its_queue_and_its_trace_or_that_of_the_invocation() {
        let attributes = json!({"ApproximateReceiveCount": "3", "SentTimestamp": "7", "AWSTraceHeader": "Root=own"});
        let payload = event(&[record("1", "1", &attributes), record("2", "2", &json!({}))]);
        let seen = AtomicU32::new(0);
        let again = answer(&payload, 60_000, async |delivery| {
            let trace = Scope::current().trace_header.unwrap();
            let told = (delivery.receive_count, &*delivery.receipt.handle, &*trace);
            match delivery.body.as_ref().unwrap() {
                1 => assert_eq!(told, (3, "1/scheduler-high handle-1", "Root=own")),
                _ => assert_eq!(told, (1, "1/scheduler-high handle-2", "Root=of-the-invocation")),
            }
            seen.fetch_add(1, Relaxed);
            Failures::default()
        });
        assert!(again.await.is_empty());
        assert_eq!(seen.into_inner(), 2);
    }

    #[tokio::test]
    async fn a_record_comes_with_the_span_that_sent_it_and_what_is_none_is_no_matter() {
        let sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let text = |value: &str| json!({"traceparent": {"dataType": "String", "stringValue": value}});
        let attributes = [
            text(sent),
            text("00-nonsense"),
            json!({"traceparent": {"dataType": "Binary", "binaryValue": "AP8="}}),
            json!({"other": {"dataType": "Number", "stringValue": "7"}}),
            json!({}),
            Value::Null,
        ];
        let mut records: Vec<Value> = ["1", "2", "3", "4", "5", "6"].map(|n| record(n, n, &json!({}))).into();
        for (record, attributes) in records.iter_mut().zip(attributes) {
            record["messageAttributes"] = attributes;
        }
        let payload = event(&records);
        let again = answer(&payload, 60_000, async |delivery| {
            let parent = delivery.parent.map(|parent| parent.to_string());
            assert_eq!(parent.as_deref(), (delivery.body == Ok(1)).then_some(sent));
            Failures::default()
        });
        assert!(again.await.is_empty());
    }

    #[tokio::test]
    async fn rule_45_a_record_comes_with_the_role_that_sent_it() {
        let sender = |id: &str| json!({ "SenderId": id });
        let payload = event(&[
            record("1", "1", &sender("AROAEXAMPLE:a-function")),
            record("2", "2", &sender("AIDAEXAMPLE")),
            record("3", "3", &json!({})),
        ]);
        let handle = async |sender: Arc<str>, batch: Vec<Delivery<u32>>| {
            let expected = ["AROAEXAMPLE", "AIDAEXAMPLE", ""];
            assert_eq!(*sender, *expected[*batch[0].body.as_ref().unwrap() as usize - 1]);
            Failures::default()
        };
        let (invocation, alone) = (Invocation::for_test(60_000), |_: &Delivery<u32>| None);
        let answer = batch_of_senders(&payload, &invocation, &AsTheQueueSays, alone, &handle).await.unwrap();
        assert_eq!(answer.len(), 0);
    }

    #[tokio::test]
    async fn rule_2_records_about_an_order_come_together_if_they_are_of_one_sender_and_fail_each_for_itself() {
        let of = |name: &str, sender: &str| record(name, &name[..1], &json!({ "SenderId": sender }));
        let payload =
            event(&[of("1a", "A"), of("2a", "A"), of("1b", "A"), of("3a", "A"), of("1c", "B"), of("3b", "A")]);
        // 3 is about no order.
        let together = |delivery: &Delivery<u32>| {
            let number = delivery.body.as_ref().ok().filter(|number| **number < 3)?;
            Some(OrderId::from_idempotency_key("tests", &number.to_string()))
        };
        let seen = Mutex::new(Vec::new());
        let handle = async |sender: Arc<str>, batch: Vec<Delivery<u32>>| {
            let names: Vec<String> = batch.iter().map(|one| one.receipt.message_id.to_string()).collect();
            seen.lock().unwrap().push(format!("{sender} {}", names.join(" ")));
            let failed = batch.into_iter().filter(|one| *one.receipt.message_id == *"1b");
            Failures(failed.map(|one| Failure::lasting(one.receipt)).collect())
        };
        let invocation = Invocation::for_test(60_000);
        let answer = batch_of_senders(&payload, &invocation, &AsTheQueueSays, together, &handle).await.unwrap();
        assert_eq!(seen.into_inner().unwrap(), ["A 1a 1b", "A 2a", "A 3a", "B 1c", "A 3b"]);
        assert_eq!(answer.message_ids(), ["1b"]);
    }

    #[tokio::test]
    async fn an_event_that_is_no_batch_fails_the_invocation() {
        let payload = serde_json::value::to_raw_value(&json!({"detail": {}})).unwrap();
        let handle = async |_: Vec<Delivery<SchedulerMessage>>| Failures::default();
        let error = batch(&payload, &Invocation::for_test(60_000), None, &handle).await.unwrap_err();
        assert!(
            error.to_string().contains("the event is not a batch of an SQS queue: missing field `Records`"),
            "{error}"
        );
    }
}
