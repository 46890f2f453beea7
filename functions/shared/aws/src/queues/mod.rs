//! The queues between the functions, on SQS.

mod carrier;
mod handle;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use aws_sdk_sqs::Client;
use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{PortError, Queues};
use domain::trace;
use serde::Serialize;

use crate::batching::Batcher;
use crate::config::{QueuePair, QueueUrls};
use crate::environment::Random;
use crate::scope::Scope;
use crate::sdk_error::port_error;
pub(crate) use carrier::{Message, Ordering, SqsCarrier};
pub(crate) use handle::handle_in;

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
}

impl Sqs {
    pub(crate) fn new(client: Client, urls: QueueUrls, random: Arc<Random>) -> Self {
        let sender = Batcher::new(SqsCarrier::new(client.clone()), random);
        Self { client, sender, urls }
    }

    /// The sender to any queue. It batches messages to the same queue.
    pub(crate) const fn sender(&self) -> &Batcher<SqsCarrier> {
        &self.sender
    }

    async fn send(
        &self,
        operation: &'static str,
        url: &Arc<str>,
        message: &(impl Serialize + Sync),
        delay_ms: u64,
    ) -> Result<(), PortError> {
        let message = Message::of(message)
            .map_err(|error| PortError::refused(operation, error))?
            .delayed(seconds(delay_ms, DELAY_S_MAX))
            .traced(Scope::current().trace_header)
            .from(trace::current());
        self.sender.send(url, message).await.map_err(|error| PortError { operation, ..error })
    }

    fn agent(&self, operation: &'static str, agent: &str) -> Result<&QueuePair, PortError> {
        self.urls.agents.get(agent).ok_or_else(|| {
            PortError::refused(operation, format!("AGENT_QUEUES names no queues for the agent {agent:?}"))
        })
    }
}

impl Queues for Sqs {
    async fn submit(&self, order: Order) -> Result<(), PortError> {
        let priority = order.priority.unwrap_or_default();
        self.send(SUBMIT, self.urls.submission.get(priority), &order, 0).await
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        self.send(TO_SCHEDULER, self.urls.scheduler.get(priority), &message, delay_ms).await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        let url = self.agent(TO_AGENT, agent)?.get(request.priority);
        self.send(TO_AGENT, url, &request, 0).await
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        let priorities = self.agent(RETURN_TO_AGENT, agent)?;
        let (priority, handle) = handle::parse(&receipt.handle)
            .ok_or_else(|| PortError::refused(RETURN_TO_AGENT, "the receipt is not one of an SQS queue"))?;
        let hidden_s = i32::try_from(seconds(delay_ms, HIDDEN_S_MAX)).unwrap_or(i32::MAX);
        let change = self.client.change_message_visibility().queue_url(&**priorities.get(priority));
        let changed = change.receipt_handle(handle).visibility_timeout(hidden_s).send().await;
        changed.map(|_| ()).map_err(|error| port_error(RETURN_TO_AGENT, &error))
    }
}

/// Rounds up to whole seconds, at most `max_s`.
fn seconds(ms: u64, max_s: u64) -> u64 {
    ms.div_ceil(1_000).min(max_s)
}
