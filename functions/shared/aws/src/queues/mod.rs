//! The queues between the functions, on SQS.

mod carrier;
mod handle;
mod redelivery;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aws_sdk_sqs::Client;
use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{Inserted, PortError, Queues};
use domain::trace;

use crate::batching::Batcher;
use crate::config::QueueUrls;
use crate::environment::Random;
use crate::scope::Scope;
use crate::sdk_error::port_error;
pub(crate) use carrier::{Message, SqsCarrier};
pub(crate) use handle::handle_from;
pub(crate) use redelivery::{AsTheQueueSays, FailedRecord, Redelivers};

const SUBMIT: &str = "queues.submit";
const TO_SCHEDULER: &str = "queues.to_scheduler";
const TO_AGENT: &str = "queues.to_agent";
const RETURN_TO_AGENT: &str = "queues.return_to_agent";

/// The longest delivery delay that SQS allows, in seconds.
const DELAY_S_MAX: u64 = 15 * 60;
/// The longest new visibility timeout, in seconds. SQS allows 12 hours from the receipt of a message, and a function
/// may already have used 15 minutes.
const HIDDEN_S_MAX: u64 = 12 * 60 * 60 - 15 * 60;

/// The queues on SQS.
#[derive(Debug)]
pub struct Sqs {
    client: Client,
    sender: Batcher<SqsCarrier>,
    urls: QueueUrls,
    random: Arc<Random>,
}

impl Sqs {
    pub(crate) fn new(client: Client, urls: QueueUrls, random: Arc<Random>) -> Self {
        let sender = Batcher::new(SqsCarrier::new(client.clone()), random.clone());
        Self { client, sender, urls, random }
    }

    /// The sender to any queue. It batches messages to the same queue.
    pub(crate) const fn sender(&self) -> &Batcher<SqsCarrier> {
        &self.sender
    }

    async fn send(
        &self,
        operation: &'static str,
        url: &Arc<str>,
        message: Result<Message, serde_json::Error>,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        let message = message
            .map_err(|error| PortError::refused(operation, error))?
            .delayed(seconds(delay_ms, DELAY_S_MAX))
            .traced(Scope::current().trace_header)
            .from(trace::current());
        self.sender.send(url, message).await.map_err(|error| PortError { operation, ..error })
    }

    /// Hides a delivered message for another time.
    async fn hide(&self, operation: &'static str, receipt: &Receipt, hidden_ms: u64) -> Result<(), PortError> {
        let (queue, handle) = handle::parse(&receipt.handle)
            .ok_or_else(|| PortError::refused(operation, "the receipt is not one of an SQS queue"))?;
        let hidden_s = i32::try_from(seconds(hidden_ms, HIDDEN_S_MAX)).unwrap_or(i32::MAX);
        let change = self.client.change_message_visibility().queue_url(self.urls.url_of(queue));
        let changed = change.receipt_handle(handle).visibility_timeout(hidden_s).send().await;
        changed.map(|_| ()).map_err(|error| port_error(operation, &error))
    }
}

impl Queues for Sqs {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        let priority = order.priority.unwrap_or_default();
        self.send(SUBMIT, self.urls.submission.get(priority), Message::of(&order), delay_ms).await?;
        Ok(Inserted::New)
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        self.send(TO_SCHEDULER, self.urls.scheduler.get(priority), Message::of(&message), delay_ms).await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        // A copy that the client makes would not say that it is one (rule 16).
        let message = Message::of(&request).map(Message::single);
        if let Some(own) = self.urls.agents.get(agent) {
            return self.send(TO_AGENT, own.get(request.priority), message, 0).await;
        }
        // The group keeps a slow service from holding up the others.
        let message = message.map(|message| message.of_group(agent.into()));
        self.send(TO_AGENT, self.urls.shared.get(request.priority), message, 0).await
    }

    async fn return_to_agent(&self, _: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.hide(RETURN_TO_AGENT, receipt, delay_ms).await
    }
}

/// Rounds up to whole seconds, at most `max_s`.
fn seconds(ms: u64, max_s: u64) -> u64 {
    ms.div_ceil(1_000).min(max_s)
}
