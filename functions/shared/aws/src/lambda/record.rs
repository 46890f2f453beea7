//! A batch of an SQS queue as the platform passes it, and the answer to it.

use std::borrow::Cow;
use std::sync::Arc;

use domain::batch::Cause;
use domain::message::{Delivery, Receipt, Undecodable, decode};
use domain::time::Timestamp;
use domain::trace::TraceParent;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::environment::now;
use crate::queues::{FailedRecord, handle_from};

/// The name of a queue's event in errors.
pub(super) const SQS_EVENT: &str = "a batch of an SQS queue";

/// The event of a queue.
#[derive(Debug, Deserialize)]
pub(super) struct SqsEvent<'a> {
    #[serde(rename = "Records", borrow)]
    pub(super) records: Vec<SqsRecord<'a>>,
}

/// One message of the event.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SqsRecord<'a> {
    #[serde(borrow)]
    pub(super) message_id: Cow<'a, str>,
    #[serde(borrow)]
    receipt_handle: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) body: Cow<'a, str>,
    #[serde(default, borrow)]
    attributes: Attributes<'a>,
    #[serde(default)]
    message_attributes: Option<MessageAttributes>,
    #[serde(rename = "eventSourceARN", default, borrow)]
    pub(super) queue_arn: Cow<'a, str>,
}

/// SQS's own attributes of a message. Numbers are texts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes<'a> {
    #[serde(default, borrow)]
    sender_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    approximate_receive_count: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    sent_timestamp: Option<Cow<'a, str>>,
    #[serde(rename = "AWSTraceHeader", default, borrow)]
    trace_header: Option<Cow<'a, str>>,
}

/// The sender's attributes beside the body that this crate reads.
#[derive(Debug, Default, Deserialize)]
struct MessageAttributes {
    #[serde(default)]
    traceparent: Option<MessageAttribute>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageAttribute {
    #[serde(default)]
    string_value: Option<String>,
}

/// The answer to a batch: the messages that SQS must deliver again.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    batch_item_failures: Vec<Failed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
}

/// The state that one batch of a stream passes to the next: none.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct State {}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failed {
    item_identifier: String,
}

impl SqsRecord<'_> {
    /// The message, decoded separately: a bad body fails only this record.
    pub(super) fn delivery<M: DeserializeOwned>(&self) -> Delivery<M> {
        self.with(self.handle(), decode(self.body.as_bytes()))
    }

    /// The message after its handler could not handle it.
    pub(super) fn failed(&self, cause: Cause) -> FailedRecord<'_> {
        let receipt = Receipt { message_id: self.message_id.as_ref().into(), handle: self.handle() };
        FailedRecord { receipt, receive_count: self.receive_count(), body: &self.body, cause }
    }

    fn handle(&self) -> Arc<str> {
        handle_from(&self.queue_arn, &self.receipt_handle)
    }

    /// A delivery of a value made from the message, on a queue where no handler changes a visibility timeout.
    pub(super) fn delivery_of<M>(&self, message: M) -> Delivery<M> {
        self.with(self.receipt_handle.as_ref().into(), Ok(message))
    }

    fn with<M>(&self, handle: Arc<str>, body: Result<M, Undecodable>) -> Delivery<M> {
        let receipt = Receipt { message_id: self.message_id.as_ref().into(), handle };
        Delivery { receipt, receive_count: self.receive_count(), parent: self.parent(), body }
    }

    /// The unique id of the role or user that sent the message, as SQS found it. A role's session is left out.
    pub(super) fn sender(&self) -> &str {
        let sender = self.attributes.sender_id.as_deref().unwrap_or_default();
        sender.split_once(':').map_or(sender, |(role, _session)| role)
    }

    /// The number of deliveries, this one included.
    pub(super) fn receive_count(&self) -> u32 {
        let count = self.attributes.approximate_receive_count.as_deref();
        count.and_then(|count| count.parse().ok()).unwrap_or(1)
    }

    /// The time at which the message was sent, or now if SQS does not report it.
    pub(super) fn sent_at(&self) -> Timestamp {
        let sent = self.attributes.sent_timestamp.as_deref();
        sent.and_then(|sent| sent.parse().ok()).map_or_else(now, Timestamp::from_epoch_ms)
    }

    /// The span that sent the message. A malformed value counts as none.
    fn parent(&self) -> Option<TraceParent> {
        self.message_attributes.as_ref()?.traceparent.as_ref()?.string_value.as_deref()?.parse().ok()
    }

    /// The trace header that the message carries on.
    pub(super) fn trace_header(&self) -> Option<Arc<str>> {
        self.attributes.trace_header.as_deref().map(Into::into)
    }
}

impl Answer {
    /// Reports these messages as failed. SQS deletes all others.
    pub(super) fn failed(message_ids: impl IntoIterator<Item = String>) -> Self {
        let failed = message_ids.into_iter().map(|item_identifier| Failed { item_identifier });
        Self { batch_item_failures: failed.collect(), state: None }
    }

    /// Reports a batch of a stream as done. Without a state the platform takes it for failed.
    pub(super) fn counted() -> Self {
        Self { state: Some(State::default()), ..Self::default() }
    }

    /// The number of failed messages.
    pub(super) const fn len(&self) -> usize {
        self.batch_item_failures.len()
    }

    #[cfg(test)]
    pub(super) fn message_ids(&self) -> Vec<&str> {
        self.batch_item_failures.iter().map(|failed| &*failed.item_identifier).collect()
    }
}
