//! The agent and its handler.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::batch::{self, Cause, Failure, Failures, Record};
use domain::limits::NAME_CHARS_MAX;
use domain::message::{Delivery, Request};
use domain::ports::{Environment, HasEnvironment, HasQueues, HasRecords, HasStore};
use domain::trace;
use tracing::Instrument;

use crate::callbacks::Callbacks;
use crate::concurrency::Concurrency;
use crate::health::SharedHealth;
use crate::policy::{Policy, PolicyError, within};
use crate::service::Service;
use crate::work::Work;

/// The ports of an agent. Of the store it only reads tasks.
pub trait AgentPorts: HasQueues + HasRecords + HasStore + HasEnvironment {}

impl<P: HasQueues + HasRecords + HasStore + HasEnvironment> AgentPorts for P {}

/// One agent: its name in workflows and for its queue, its policy, and how its service is made. Each message gets its
/// own service, so making one must be cheap. An instance makes one agent and keeps it, since the agent remembers the
/// service's health; a clone shares that memory.
#[derive(Clone)]
pub struct Agent<F> {
    pub(crate) name: Arc<str>,
    pub(crate) policy: Policy,
    pub(crate) make_service: F,
    /// The service's health, as this instance knows it.
    pub(crate) health: Arc<SharedHealth>,
    /// The calls that this instance may make at once.
    pub(crate) concurrency: Option<Arc<Concurrency>>,
    /// The addresses for results that come later.
    pub(crate) callbacks: Option<Callbacks>,
    /// Whether its host stops, so that no call may start (rule 25).
    pub(crate) stopping: Arc<AtomicBool>,
}

impl<F> Agent<F> {
    /// # Errors
    /// [`PolicyError`] if the name is empty or longer than [`NAME_CHARS_MAX`], or a value of the policy is out of its
    /// range.
    pub fn new(name: impl Into<Arc<str>>, policy: Policy, make_service: F) -> Result<Self, PolicyError> {
        let name = name.into();
        within("length of the agent's name", name.len() as u64, 1, NAME_CHARS_MAX as u64)?;
        policy.check()?;
        let health = Arc::new(SharedHealth::new(name.clone(), policy.health.clone()));
        let concurrency = policy.concurrency.map(Concurrency::new);
        Ok(Self { name, policy, make_service, health, concurrency, callbacks: None, stopping: Arc::default() })
    }

    /// The same agent. Its calls have an address for a result that comes later, where the step allows it.
    #[must_use]
    pub fn called_back(self, callbacks: Option<Callbacks>) -> Self {
        Self { callbacks, ..self }
    }

    /// The same agent. It starts no call once this is set: its requests go back to their queue.
    #[must_use]
    pub fn stopped_by(self, stopping: Arc<AtomicBool>) -> Self {
        Self { stopping, ..self }
    }

    /// Its name in workflows and for its queue.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its policy for its service.
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

/// Takes requests off the agent's queue. Calls the service for each until there is an answer or no time left, and
/// sends the answer to the scheduler.
///
/// A request is reported as failed, and delivered again, if it is parked or unreadable. The same holds if memos or
/// queue fail. A panic of the service counts as a call to repeat. A request is deferred if it was queued or parked for
/// too long, or if its wait for a failing service would exceed its deadline. Any other request without an answer in
/// time ends in silence (rule 6).
pub async fn handle<S, F>(ports: &impl AgentPorts, agent: &Agent<F>, batch: Vec<Delivery<Request>>) -> Failures
where
    S: Service,
    F: Fn() -> S + Sync,
{
    // The budget runs while a record waits for its neighbours, so one receipt time serves them all.
    let received_at = ports.environment().now();
    let span = |record: &Record<Request>| trace::handled(&agent.name, record.message.order_id, record);
    let failures = batch::each(batch, span, |record| {
        let Request { step, direction, attempt, .. } = &record.message;
        trace::is_about(step, *direction, *attempt);
        let span = span_of(&agent.name, &record);
        async move { Work::new(ports, agent, record, received_at).run().await }.instrument(span)
    })
    .await;
    agent.health.emit();
    failures
}

/// Takes messages off a shared queue that are for no agent, because they are unreadable or name none. All of them are
/// reported as failed, so that they become dead letters.
#[must_use]
pub fn refuse(batch: Vec<Delivery<Request>>) -> Failures {
    let refused = batch.into_iter().map(|Delivery { receipt, receive_count, body, .. }| {
        let cause = if body.is_err() { Cause::Unreadable } else { Cause::Lasting };
        let fault = body.err().map_or_else(|| "the request names no agent".to_owned(), |fault| fault.to_string());
        let message_id = &*receipt.message_id;
        tracing::error!(monotonic_counter.records_undecodable = 1, message_id, receive_count, "{fault}");
        Failure { receipt, cause }
    });
    Failures(refused.collect())
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
