//! The handler of an agent's requests.

use domain::batch::{self, Cause, Failure, Failures, Record};
use domain::message::{Delivery, Request};
use domain::ports::Environment;
use domain::trace;
use tracing::Instrument;

use crate::agent::Agent;
use crate::ports::AgentPorts;
use crate::service::Service;
use crate::work::Work;

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
