//! A function with a queue and an HTTP API as its sources.

use bytes::Bytes;
use domain::batch::Failures;
use domain::message::Delivery;
use http::{Request, Response};
use lambda_runtime::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::invocation::Invocation;
use super::payload::read;
use super::runtime::serve;
use super::{http_api, queue, record};
use crate::ports::Ports;
use crate::queues::Redelivers;

/// The member that a batch has and a request has not.
#[derive(Debug, Deserialize)]
struct Shape<'a> {
    #[serde(rename = "Records", default, borrow)]
    records: Option<&'a RawValue>,
}

/// The answer to either.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Answer {
    Batch(record::Answer),
    Request(http_api::Answer),
}

/// Runs a function behind a queue, as [`queue()`](super::queue()) does, and behind routes of an HTTP API, as
/// [`http_api()`](super::http_api()) does. An event tells by its form where it comes from.
///
/// # Errors
/// Fails if the platform cannot be reached.
pub async fn queue_and_http_api<M, OfBatch, Batching, OfRequest, Requesting>(
    ports: &Ports,
    of_batch: OfBatch,
    of_request: OfRequest,
) -> Result<(), Error>
where
    M: DeserializeOwned,
    OfBatch: Fn(Vec<Delivery<M>>) -> Batching,
    Batching: Future<Output = Failures>,
    OfRequest: Fn(http_api::Identity, Request<Bytes>) -> Requesting,
    Requesting: Future<Output = Response<Bytes>>,
{
    let (of_batch, of_request) = (&of_batch, &of_request);
    serve(move |payload, invocation| async move {
        answer(&payload, &invocation, ports.sqs(), of_batch, of_request).await
    })
    .await
}

async fn answer<M, OfBatch, Batching, OfRequest, Requesting>(
    payload: &RawValue,
    invocation: &Invocation,
    source: &impl Redelivers,
    of_batch: &OfBatch,
    of_request: &OfRequest,
) -> Result<Answer, Error>
where
    M: DeserializeOwned,
    OfBatch: Fn(Vec<Delivery<M>>) -> Batching,
    Batching: Future<Output = Failures>,
    OfRequest: Fn(http_api::Identity, Request<Bytes>) -> Requesting,
    Requesting: Future<Output = Response<Bytes>>,
{
    let shape: Shape<'_> = read(payload, "a batch of an SQS queue or a request of an HTTP API")?;
    match shape.records {
        Some(_) => queue::batch_of(payload, invocation, source, of_batch).await.map(Answer::Batch),
        None => http_api::answer(payload, invocation, of_request).await.map(Answer::Request),
    }
}

#[cfg(test)]
mod tests {
    use domain::batch::Failure;
    use serde_json::{Value, json};

    use super::*;
    use crate::queues::AsTheQueueSays;

    async fn answered(event: &Value) -> Result<Value, Error> {
        let payload = serde_json::value::to_raw_value(event).unwrap();
        let fails = async |batch: Vec<Delivery<u32>>| {
            Failures(batch.into_iter().map(|one| Failure::lasting(one.receipt)).collect())
        };
        let echo = async |caller: http_api::Identity, request: Request<Bytes>| {
            Response::new(Bytes::from(format!("{} {} {}", caller.name, request.method(), request.uri())))
        };
        let answer = answer(&payload, &Invocation::for_test(60_000), &AsTheQueueSays, &fails, &echo).await;
        answer.map(|answer| serde_json::to_value(answer).unwrap())
    }

    #[tokio::test]
    async fn a_batch_and_a_request_are_told_apart_by_their_form() {
        let record =
            json!({"messageId": "1", "receiptHandle": "h", "body": "7", "eventSourceARN": "arn:aws:sqs:e:1:q"});
        let batch = answered(&json!({"Records": [record]})).await.unwrap();
        assert_eq!(batch, json!({"batchItemFailures": [{"itemIdentifier": "1"}]}));
        let context = json!({"http": {"method": "POST"}, "stage": "$default"});
        // What a caller sends is within a member, and so is no batch.
        let request = json!({"rawPath": "/webhooks/bank", "requestContext": context, "body": "{\"Records\": []}"});
        let answer = answered(&request).await.unwrap();
        assert_eq!((&answer["statusCode"], &answer["body"]), (&200.into(), &"anonymous POST /webhooks/bank".into()));
    }

    #[tokio::test]
    async fn an_event_that_is_neither_fails_the_invocation() {
        for event in [json!({"detail": {}}), json!([]), json!({"Records": 7})] {
            assert!(answered(&event).await.is_err(), "{event}");
        }
    }
}
