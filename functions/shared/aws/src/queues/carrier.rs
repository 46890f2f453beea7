//! Messages on their way to SQS, up to ten in a request.

use std::sync::Arc;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{
    BatchResultErrorEntry, MessageAttributeValue, MessageSystemAttributeNameForSends, MessageSystemAttributeValue,
    SendMessageBatchRequestEntry,
};
use domain::ports::PortError;
use domain::trace::{TRACEPARENT, TraceParent};
use serde::Serialize;

use crate::batching::{Carrier, SendOutcome};
use crate::sdk_error::port_error;

/// The type of an attribute that is a text.
const TEXT: &str = "String";
/// What an attribute with a [`TraceParent`] counts for, in bytes: name, type and value.
const PARENT_BYTES: usize = TRACEPARENT.len() + TEXT.len() + 55;

/// One message, as it goes into a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    body: String,
    delay_s: Option<i32>,
    trace_header: Option<Arc<str>>,
    parent: Option<TraceParent>,
    ordering: Option<Ordering>,
}

/// What a FIFO queue asks for.
#[derive(Debug, Clone)]
pub(crate) struct Ordering {
    /// Messages of one group stay in their order.
    pub(crate) group: Arc<str>,
    /// A repeat under this id is not taken again within five minutes.
    pub(crate) id: Arc<str>,
}

impl Message {
    /// A message whose body is this as JSON.
    ///
    /// # Errors
    /// Where it has no JSON form.
    pub(crate) fn of(content: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self { body: sendable(serde_json::to_string(content)?), ..Self::default() })
    }

    /// Delivered after so many seconds.
    pub(crate) fn delayed(self, delay_s: u64) -> Self {
        // Without a delay of its own a message has that of its queue, which a FIFO queue insists on.
        Self { delay_s: i32::try_from(delay_s).ok().filter(|&delay_s| delay_s > 0), ..self }
    }

    /// Carrying on a trace.
    pub(crate) fn traced(self, trace_header: Option<Arc<str>>) -> Self {
        Self { trace_header, ..self }
    }

    /// Sent by a span.
    pub(crate) fn from(self, parent: Option<TraceParent>) -> Self {
        Self { parent, ..self }
    }

    /// For a FIFO queue.
    pub(crate) fn ordered(self, ordering: Ordering) -> Self {
        Self { ordering: Some(ordering), ..self }
    }

    fn entry(&self, id: usize) -> Result<SendMessageBatchRequestEntry, BuildError> {
        let mut entry = SendMessageBatchRequestEntry::builder()
            .id(id.to_string())
            .message_body(&self.body)
            .set_delay_seconds(self.delay_s)
            .set_message_group_id(self.ordering.as_ref().map(|ordering| ordering.group.to_string()))
            .set_message_deduplication_id(self.ordering.as_ref().map(|ordering| ordering.id.to_string()));
        if let Some(parent) = self.parent {
            let value = MessageAttributeValue::builder().data_type(TEXT).string_value(parent.to_string()).build()?;
            entry = entry.message_attributes(TRACEPARENT, value);
        }
        let Some(trace_header) = &self.trace_header else { return entry.build() };
        let header = MessageSystemAttributeValue::builder().data_type(TEXT).string_value(&**trace_header).build()?;
        entry.message_system_attributes(MessageSystemAttributeNameForSends::AwsTraceHeader, header).build()
    }
}

/// JSON in which stands no character that SQS would refuse a whole message for. JSON has them in strings alone, where
/// they may as well be written as escapes.
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
        // System attributes are not counted, others are.
        message.body.len() + message.parent.map_or(0, |_| PARENT_BYTES)
    }

    async fn carry(&self, url: &str, messages: &[&Message]) -> Result<Vec<SendOutcome>, PortError> {
        let entries = messages.iter().enumerate().map(|(id, message)| message.entry(id)).collect::<Result<Vec<_>, _>>();
        let entries = entries.map_err(|error| PortError::refused(Self::OPERATION, error))?;
        let sent = self.client.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await;
        sent.map(|answer| outcomes(&answer, messages.len())).map_err(|error| port_error(Self::OPERATION, &error))
    }
}

/// The fate of each of so many entries.
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
    // Being throttled counts as the sender's fault, and is over after a while.
    let is_throttle = ["Throttl", "LimitExceeded", "OverLimit"].iter().any(|word| failed.code().contains(word));
    if failed.sender_fault() && !is_throttle { SendOutcome::Refused(problem) } else { SendOutcome::NotNow(problem) }
}
