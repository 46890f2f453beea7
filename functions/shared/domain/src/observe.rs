//! What happened to a task, as metrics and as lines of the log.
//!
//! Metrics are no proof. A commit whose answer was lost is found made when its message comes again, and that repeat
//! changes nothing, so such a transition may be counted by nobody. What is true stands in the task and its history.

use crate::id::OrderId;
use crate::task::{Attempt, Direction, ProcessState, Reason, Task, What};

/// The target of the events that are nothing but metrics. They have the level `DEBUG`.
pub const METRICS: &str = "stepwarden_metrics";
/// The target of the events that tell a person the way of an order: accepted, each step claimed and done, how it ended.
/// They have the level `INFO`, and are metrics besides.
pub const ORDERS: &str = "orders";

/// Tells that an order was accepted: from here on it cannot be lost.
pub fn accepted(order_id: OrderId, caller: &str) {
    tracing::info!(target: ORDERS, %order_id, monotonic_counter.orders_accepted = 1, caller, "order accepted");
}

/// Counts and logs what happened to a task, which is shown as it is after it. Costs nothing where nobody listens.
pub fn tell(after: &Task, happened: &[What]) {
    let is_counted = tracing::enabled!(target: METRICS, tracing::Level::DEBUG);
    if is_counted || tracing::enabled!(target: ORDERS, tracing::Level::INFO) {
        for what in happened {
            emit(after, what);
        }
    }
}

/// An event for the metrics. What it is called here is the metric's name.
macro_rules! count {
    ($task:ident, $($fields:tt)*) => {
        tracing::debug!(target: METRICS, order_id = %$task.order_id, $($fields)*)
    };
}

/// The same for what matters to a person.
macro_rules! say {
    ($task:ident, $($fields:tt)*) => {
        tracing::info!(target: ORDERS, order_id = %$task.order_id, $($fields)*)
    };
}

fn emit(task: &Task, what: &What) {
    let workflow = &*task.workflow;
    match what {
        What::Claimed(Attempt { step, number: attempt, direction }) => {
            say!(task, monotonic_counter.attempts_claimed = 1, %step, attempt, direction = direction.name(), "step claimed");
        }
        What::Deferred(Attempt { step, number: attempt, .. }) => {
            count!(task, monotonic_counter.attempts_put_off = 1, %step, attempt, "put off");
        }
        What::Expired(attempt) => {
            expired(task, attempt);
            let Attempt { step, number: attempt, .. } = attempt;
            count!(task, monotonic_counter.attempts_repended = 1, %step, attempt, "re-pended");
        }
        What::ExpiredLast(attempt) => expired(task, attempt),
        What::Exhausted(Attempt { step, number: attempt, .. }) => {
            say!(task, monotonic_counter.steps_exhausted = 1, %step, attempt, "step exhausted");
        }
        What::Rejected(Attempt { step, number: attempt, .. }) => {
            say!(task, monotonic_counter.steps_rejected = 1, %step, attempt, "step rejected");
        }
        What::Doubted(Attempt { step, number: attempt, .. }) => {
            count!(task, monotonic_counter.clocks_doubted = 1, %step, attempt, "late beyond belief");
        }
        What::Processed(attempt) => done(task, attempt),
        What::Entered { state: ProcessState::Processed } => {
            say!(
                task,
                monotonic_counter.orders_processed = 1,
                histogram.order_latency_ms = order_latency_ms(task),
                workflow,
                "order processed"
            );
        }
        What::Entered { state: ProcessState::Compensating } => {
            let reason = reason_of_undo(task);
            say!(task, monotonic_counter.orders_compensating = 1, workflow, reason, "order to be undone");
        }
        What::Entered { state: ProcessState::Compensated } => {
            let reason = reason_of_undo(task);
            say!(task, monotonic_counter.orders_compensated = 1, workflow, reason, "order undone");
        }
        What::Entered { state: ProcessState::Error } => {
            let reason = task.reason.as_ref().map_or("", |reason| &*reason.code);
            say!(task, monotonic_counter.orders_held = 1, workflow, reason, "order waits for an operator");
        }
        What::Resubmitted { .. } => {
            say!(task, monotonic_counter.orders_resubmitted = 1, workflow, "order resubmitted");
        }
        What::Paused => say!(task, monotonic_counter.orders_paused = 1, workflow, "order paused"),
        What::Resumed => say!(task, monotonic_counter.orders_resumed = 1, workflow, "order resumed"),
        // Counted where the order is accepted, the step fails and the order turns round.
        What::Submitted | What::GivenUp(_) | What::Cancelled => {}
        // No claim enters these by a line, and no decision gives a text.
        What::Entered { state: ProcessState::Pending | ProcessState::Processing } | What::Other { .. } => {}
    }
}

fn expired(task: &Task, Attempt { step, number: attempt, .. }: &Attempt) {
    say!(task, monotonic_counter.attempts_expired = 1, %step, attempt, "step expired");
}

/// A step that is done, and how long it took: from the first claim in its direction, or since an operator resubmitted it.
fn done(task: &Task, Attempt { step: name, direction, number: attempt }: &Attempt) {
    let Some(latency_ms) = step_latency_ms(task, name) else { return };
    match direction {
        Direction::Forward => {
            say!(task, histogram.step_latency_ms = latency_ms, step = %name, attempt, "step done");
        }
        Direction::Undo => {
            say!(task, histogram.undo_latency_ms = latency_ms, step = %name, attempt, "step undone");
        }
    }
}

/// `None` where the same decision turned the order round, so that the step starts afresh.
fn step_latency_ms(task: &Task, name: &str) -> Option<u64> {
    let (_, step) = task.step(name)?;
    step.started_at.zip(step.finished_at).map(|(from, to)| from.ms_until(to))
}

/// From the first claim that is still known to the last result.
fn order_latency_ms(task: &Task) -> u64 {
    let first = task.steps.iter().filter_map(|step| step.started_at).min();
    let last = task.steps.iter().filter_map(|step| step.finished_at).max();
    first.zip(last).map_or(0, |(first, last)| first.ms_until(last))
}

/// The code for which an order is undone, also where its undo has failed since.
fn reason_of_undo(task: &Task) -> &str {
    let reason = task.reason.as_ref();
    let earlier = reason.and_then(|reason| reason.earlier.as_deref());
    earlier.or(reason).map_or("", |Reason { code, .. }| code)
}

#[cfg(test)]
mod tests;
