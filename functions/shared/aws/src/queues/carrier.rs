//! Sends messages to SQS, up to ten in a request.

use std::sync::Arc;

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
    SendMessageBatchRequestEntry,
};
use aws_sdk_sqs::{Client, Config};
use domain::ports::PortError;
use domain::trace::{TRACEPARENT, TraceParent};
use serde::Serialize;

use crate::batching::{Carrier, SendOutcome};
use crate::sdk_error::port_error;

/// The type of a text attribute.
const TEXT: &str = "String";
/// The counted size of an attribute with a [`TraceParent`], in bytes: name, type and value.
const PARENT_BYTES: usize = TRACEPARENT.len() + TEXT.len() + 55;

/// One message of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    body: String,
    delay_s: Option<i32>,
    trace_header: Option<Arc<str>>,
    parent: Option<TraceParent>,
    group: Option<Arc<str>>,
    deduplication_id: Option<Arc<str>>,
    /// Whether only its sender may send it again, since a copy has to differ from it.
    is_single: bool,
}

impl Message {
    /// A message with `content` as JSON in its body.
    ///
    /// # Errors
    /// Fails if `content` has no JSON form.
    pub(crate) fn of(content: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self { body: sendable(serde_json::to_string(content)?), ..Self::default() })
    }

    /// A message with the body of another.
    pub(crate) fn copy_of(body: &str) -> Self {
        Self { body: body.to_owned(), ..Self::default() }
    }

    /// Sets the delivery delay, in seconds.
    pub(crate) fn delayed(self, delay_s: u64) -> Self {
        // A message without its own delay has its queue's delay. A FIFO queue allows no other delay.
        Self { delay_s: i32::try_from(delay_s).ok().filter(|&delay_s| delay_s > 0), ..self }
    }

    /// Sets the trace header that the message carries on.
    pub(crate) fn traced(self, trace_header: Option<Arc<str>>) -> Self {
        Self { trace_header, ..self }
    }

    /// Sets the span that sends the message.
    pub(crate) fn from(self, parent: Option<TraceParent>) -> Self {
        Self { parent, ..self }
    }

    /// Sets the group of the message. A FIFO queue keeps the order within a group. A standard queue is fair: a group with
    /// many messages in flight does not keep those of other groups waiting.
    pub(crate) fn of_group(self, group: Arc<str>) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Sets the id of which a FIFO queue drops duplicates for five minutes.
    pub(crate) fn once(self, id: Arc<str>) -> Self {
        Self { deduplication_id: Some(id), ..self }
    }

    /// Has the client leave a repeat to the sender: an answer that is lost must not make two equal messages.
    pub(crate) fn single(self) -> Self {
        Self { is_single: true, ..self }
    }

    fn entry(&self, id: usize) -> Result<SendMessageBatchRequestEntry, BuildError> {
        let mut entry = SendMessageBatchRequestEntry::builder()
            .id(id.to_string())
            .message_body(&self.body)
            .set_delay_seconds(self.delay_s)
            .set_message_group_id(self.group.as_deref().map(str::to_owned))
            .set_message_deduplication_id(self.deduplication_id.as_deref().map(str::to_owned));
        if let Some(parent) = self.parent {
            let value = MessageAttributeValue::builder().data_type(TEXT).string_value(parent.to_string()).build()?;
            entry = entry.message_attributes(TRACEPARENT, value);
        }
        let Some(trace_header) = &self.trace_header else { return entry.build() };
        let header = MessageSystemAttributeValue::builder().data_type(TEXT).string_value(&**trace_header).build()?;
        entry.message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, header).build()
    }
}

/// Escapes the characters for which SQS refuses a whole message. In JSON they occur only inside strings, where an
/// escape means the same.
fn sendable(json: String) -> String {
    const REFUSED: [(char, &str); 2] = [('\u{FFFE}', "\\uFFFE"), ('\u{FFFF}', "\\uFFFF")];
    REFUSED.into_iter().fold(
        json,
        |json, (character, escape)| {
            if json.contains(character) { json.replace(character, escape) } else { json }
        },
    )
}

/// Sends messages to SQS.
#[derive(Debug)]
pub(crate) struct SqsCarrier {
    client: Client,
}

impl SqsCarrier {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }
}

impl Carrier for SqsCarrier {
    type Entry = Message;
    const OPERATION: &'static str = "sqs.send";
    const BYTES_MAX: usize = 1024 * 1024;

    fn bytes(message: &Message) -> usize {
        // SQS does not count system attributes, but counts others.
        message.body.len() + message.parent.map_or(0, |_| PARENT_BYTES)
    }

    async fn carry(&self, url: &str, messages: &[&Message]) -> Result<Vec<SendOutcome>, PortError> {
        let entries = messages.iter().enumerate().map(|(id, message)| message.entry(id)).collect::<Result<Vec<_>, _>>();
        let entries = entries.map_err(|error| PortError::refused(Self::OPERATION, error))?;
        let sending = self.client.send_message_batch().queue_url(url).set_entries(Some(entries));
        let sent = if messages.iter().any(|message| message.is_single) {
            let once = Config::builder().retry_config(RetryConfig::disabled());
            sending.customize().config_override(once).send().await
        } else {
            sending.send().await
        };
        sent.map(|answer| outcomes(&answer, messages.len())).map_err(|error| port_error(Self::OPERATION, &error))
    }
}

/// The outcome of each of `count` entries.
fn outcomes(answer: &SendMessageBatchOutput, count: usize) -> Vec<SendOutcome> {
    let mut outcomes = vec![SendOutcome::NotNow("SQS says nothing of it".to_owned()); count];
    for taken in answer.successful() {
        if let Some(outcome) = taken.id().parse::<usize>().ok().and_then(|id| outcomes.get_mut(id)) {
            *outcome = SendOutcome::Taken;
        }
    }
    for failed in answer.failed() {
        if let Some(outcome) = failed.id().parse::<usize>().ok().and_then(|id| outcomes.get_mut(id)) {
            *outcome = outcome_of(failed);
        }
    }
    outcomes
}

fn outcome_of(failed: &BatchResultErrorEntry) -> SendOutcome {
    let problem = format!("{}: {}", failed.code(), failed.message().unwrap_or("no reason given"));
    // SQS reports throttling as the sender's fault, but it passes after a while.
    let is_throttle = ["Throttl", "LimitExceeded", "OverLimit"].iter().any(|word| failed.code().contains(word));
    if failed.sender_fault() && !is_throttle { SendOutcome::Refused(problem) } else { SendOutcome::NotNow(problem) }
}
