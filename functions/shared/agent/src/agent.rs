//! The agent and its handler.

use std::fmt;
use std::sync::Arc;

use domain::batch::{self, Failures, Record};
use domain::limits::NAME_CHARS_MAX;
use domain::message::{Delivery, Receipt, Request};
use domain::ports::{Environment, HasEnvironment, HasQueues, HasRecords, Queues};
use domain::trace;
use tracing::Instrument;

use crate::health::SharedHealth;
use crate::policy::{Policy, PolicyError, within};
use crate::service::Service;
use crate::work::Work;

/// How long a message that nobody can read is hidden, in milliseconds. It has as many deliveries as one that is parked, and
/// with the queue's own pause between them it would be days on its way to the dead letters.
const UNREADABLE_MS: u64 = 1_000;

/// What an agent needs from the world.
pub trait AgentPorts: HasQueues + HasRecords + HasEnvironment {}

impl<P: HasQueues + HasRecords + HasEnvironment> AgentPorts for P {}

/// One agent: the name that workflows and its queue know it by, its patience, and how its service is made. Making one
/// must be cheap, since each message gets its own. An instance makes one agent and keeps it, since the agent remembers what
/// it knows of the service's health; a clone shares that.
#[derive(Clone)]
pub struct Agent<F> {
    pub(crate) name: Arc<str>,
    pub(crate) policy: Policy,
    pub(crate) make_service: F,
    /// What this instance knows of the service's health.
    pub(crate) health: Arc<SharedHealth>,
}

impl<F> Agent<F> {
    /// # Errors
    /// [`PolicyError`] when the name is empty or longer than [`NAME_CHARS_MAX`], or a value of the policy makes no sense.
    pub fn new(name: impl Into<Arc<str>>, policy: Policy, make_service: F) -> Result<Self, PolicyError> {
        let name = name.into();
        within("length of the agent's name", name.len() as u64, 1, NAME_CHARS_MAX as u64)?;
        policy.check()?;
        let health = Arc::new(SharedHealth::new(name.clone(), policy.health.clone()));
        Ok(Self { name, policy, make_service, health })
    }

    /// The name that workflows and its queue know it by.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// How patient it is with its service.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }
}

impl<F> fmt::Debug for Agent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// Takes requests off the agent's queue: calls the service for each until there is an answer or no time left, and sends
/// the answer to the scheduler.
///
/// Reported as failures, to be delivered again, are requests that wait on the queue, whose call panicked, or whose reply
/// could not be sent. A request that would have to wait for a failing service beyond its deadline is given back to the
/// scheduler, which counts nothing; any other without an answer in time is let go in silence (rule 6).
pub async fn handle<S, F>(ports: &impl AgentPorts, agent: &Agent<F>, batch: Vec<Delivery<Request>>) -> Failures
where
    S: Service,
    F: Fn() -> S + Sync,
{
    // The budget runs while a record waits for its neighbours, so one receipt time serves them all.
    let received_at = ports.environment().now();
    let unreadable: Vec<Receipt> =
        batch.iter().filter(|delivery| delivery.body.is_err()).map(|delivery| delivery.receipt.clone()).collect();
    let span = |record: &Record<Request>| trace::handled(&agent.name, record.message.order_id, record);
    let failures = batch::each(batch, span, |record| {
        let Request { step, direction, attempt, .. } = &record.message;
        trace::is_about(step, *direction, *attempt);
        let span = span_of(&agent.name, &record);
        Work::new(ports, agent, record, received_at).run().instrument(span)
    })
    .await;
    for receipt in &unreadable {
        if let Err(error) = ports.queues().return_to_agent(&agent.name, receipt, UNREADABLE_MS).await {
            tracing::debug!(message_id = &*receipt.message_id, "hidden for as long as the queue says: {error}");
        }
    }
    agent.health.tell();
    failures
}

fn span_of(agent: &str, record: &Record<Request>) -> tracing::Span {
    let Request { order_id, step, direction, attempt, .. } = &record.message;
    let direction = direction.name();
    tracing::info_span!("request", agent, %order_id, %step, direction, attempt, receive_count = record.receive_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_logs_an_agent_has_its_name_and_how_patient_it_is() {
        let agent = Agent::new("payment", Policy::default(), || ()).unwrap();
        let text = format!("{agent:?}");
        assert!(text.starts_with("Agent { name: \"payment\", policy: Policy {"), "{text}");
    }
}
