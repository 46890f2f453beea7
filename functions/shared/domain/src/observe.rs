//! The events of a task, as metrics and as log lines.
//!
//! Metrics are no proof. If the answer of a commit is lost, the repeat finds the change made and changes nothing, so
//! the transition may stay uncounted. The task and its history are authoritative.

use crate::id::OrderId;
use crate::machine::Happened;
use crate::task::{Attempt, Direction, ProcessState, Reason, Task, What};

/// The target of events that are only metrics. They have the level `DEBUG`.
pub const METRICS: &str = "stepwarden_metrics";
/// The target of events that log an order's progress: accepted, each step claimed and done, the end. They have the
/// level `INFO`, and are metrics too.
pub const ORDERS: &str = "orders";

/// Logs that an order was accepted: from here on it cannot be lost.
pub fn accepted(order_id: OrderId, caller: &str) {
    tracing::info!(target: ORDERS, %order_id, monotonic_counter.orders_accepted = 1, caller, "order accepted");
}

/// Counts and logs the events of a task, with its state after them. Costs next to nothing without a subscriber.
pub fn tell(after: &Task, happened: &[Happened]) {
    let is_counted = tracing::enabled!(target: METRICS, tracing::Level::DEBUG);
    if is_counted || tracing::enabled!(target: ORDERS, tracing::Level::INFO) {
        for happened in happened {
            emit(after, happened);
        }
    }
}

/// An event for the metrics. The name of the field is the metric's name.
macro_rules! count {
    ($task:ident, $($fields:tt)*) => {
        tracing::debug!(target: METRICS, order_id = %$task.order_id, $($fields)*)
    };
}

/// The same, for events that matter to a person.
macro_rules! say {
    ($task:ident, $($fields:tt)*) => {
        tracing::info!(target: ORDERS, order_id = %$task.order_id, $($fields)*)
    };
}

fn emit(task: &Task, happened: &Happened) {
    let workflow = &*task.workflow;
    let of = happened.attempt();
    let step = of.map_or("", |of| of.name(&task.steps));
    let (attempt, direction) = of.map_or((0, ""), |of| (of.number, of.direction.name()));
    match happened {
        Happened::ExpiredLast(_) => expired(task, step, attempt),
        Happened::Exhausted(_) => {
            say!(task, monotonic_counter.steps_exhausted = 1, %step, attempt, "step exhausted");
        }
        Happened::Doubted(_) => {
            count!(task, monotonic_counter.clocks_doubted = 1, %step, attempt, "attempt expired implausibly late");
        }
        Happened::What(what) => match what {
            What::Claimed(_) => {
                say!(task, monotonic_counter.attempts_claimed = 1, %step, attempt, direction, "step claimed");
            }
            What::Deferred(_) => {
                count!(task, monotonic_counter.attempts_put_off = 1, %step, attempt, "put off");
            }
            What::Expired(_) => {
                expired(task, step, attempt);
                count!(task, monotonic_counter.attempts_repended = 1, %step, attempt, "failed, to be tried again");
            }
            What::Rejected(_) => {
                say!(task, monotonic_counter.steps_rejected = 1, %step, attempt, "step rejected");
            }
            What::Processed(of) => done(task, step, of),
            What::Settled(_) => {
                say!(task, monotonic_counter.steps_settled = 1, workflow, %step, attempt, direction, "step settled by hand");
            }
            What::Approved(_) => {
                say!(task, monotonic_counter.steps_approved = 1, workflow, %step, attempt, "step approved");
            }
            What::Accepted(_) => {
                count!(task, monotonic_counter.results_awaited = 1, %step, attempt, "taken on, its result is awaited");
            }
            What::Waiting(_) => count!(task, monotonic_counter.steps_waiting = 1, %step, "step waits"),
            What::Skipped(_) => {
                say!(task, monotonic_counter.steps_skipped = 1, workflow, %step, direction, "step skipped");
            }
            What::Dropped(_) => {
                say!(task, monotonic_counter.lines_dropped = 1, workflow, %step, attempt, "line dropped");
            }
            What::Contradicted(_) => {
                tracing::warn!(
                    target: ORDERS, order_id = %task.order_id, monotonic_counter.orders_contradicted = 1, workflow, %step,
                    direction, "a result contradicts the end"
                );
            }
            What::Entered(state) => entered(task, *state),
            What::Resubmitted => say!(task, monotonic_counter.orders_resubmitted = 1, workflow, "order resubmitted"),
            What::Paused => say!(task, monotonic_counter.orders_paused = 1, workflow, "order paused"),
            What::Resumed => say!(task, monotonic_counter.orders_resumed = 1, workflow, "order resumed"),
            What::Late => say!(task, monotonic_counter.orders_late = 1, workflow, "order late"),
            // Acceptance, the failure of the step and the start of the compensation count these.
            What::Submitted | What::GivenUp(_) | What::Cancelled => {}
            // The first two change nothing about the order, and no decision produces the last.
            What::Noted(_) | What::Erased | What::Other(_) => {}
        },
    }
}

fn entered(task: &Task, state: ProcessState) {
    let workflow = &*task.workflow;
    match state {
        ProcessState::Processed => {
            say!(
                task,
                monotonic_counter.orders_processed = 1,
                histogram.order_latency_ms = order_latency_ms(task),
                workflow,
                "order processed"
            );
        }
        ProcessState::Compensating => {
            let reason = reason_of_undo(task);
            say!(task, monotonic_counter.orders_compensating = 1, workflow, reason, "order to be undone");
        }
        ProcessState::Compensated => {
            let reason = reason_of_undo(task);
            say!(task, monotonic_counter.orders_compensated = 1, workflow, reason, "order undone");
        }
        ProcessState::Closed => {
            let reason = task.reason.as_ref().and_then(|reason| reason.earlier.as_deref());
            let reason = reason.map_or("", |reason| &*reason.code);
            say!(task, monotonic_counter.orders_closed = 1, workflow, reason, "order closed by hand");
        }
        ProcessState::Error => {
            let reason = task.reason.as_ref().map_or("", |reason| &*reason.code);
            say!(task, monotonic_counter.orders_held = 1, workflow, reason, "order waits for an operator");
        }
        // A claim enters these without a line of its own.
        ProcessState::Pending | ProcessState::Processing => {}
    }
}

fn expired(task: &Task, step: &str, attempt: u32) {
    say!(task, monotonic_counter.attempts_expired = 1, %step, attempt, "step expired");
}

/// A step that is done, and its duration: from the first claim in its direction, or from an operator's resubmit.
fn done(task: &Task, step: &str, of: &Attempt) {
    let (Some(latency_ms), attempt) = (step_latency_ms(task, of.step), of.number) else { return };
    match of.direction {
        Direction::Forward => say!(task, histogram.step_latency_ms = latency_ms, %step, attempt, "step done"),
        Direction::Undo => say!(task, histogram.undo_latency_ms = latency_ms, %step, attempt, "step undone"),
    }
}

/// `None` if the same decision started the compensation, which resets the step.
fn step_latency_ms(task: &Task, index: usize) -> Option<u64> {
    let step = task.steps.get(index)?;
    step.started_at.zip(step.finished_at).map(|(from, to)| from.ms_until(to))
}

/// From the first claim that is still known to the last result.
fn order_latency_ms(task: &Task) -> u64 {
    let first = task.steps.iter().filter_map(|step| step.started_at).min();
    let last = task.steps.iter().filter_map(|step| step.finished_at).max();
    first.zip(last).map_or(0, |(first, last)| first.ms_until(last))
}

/// The code of the compensation's reason, even if an undo has failed since.
fn reason_of_undo(task: &Task) -> &str {
    let reason = task.reason.as_ref();
    let earlier = reason.and_then(|reason| reason.earlier.as_deref());
    earlier.or(reason).map_or("", |Reason { code, .. }| code)
}

#[cfg(test)]
mod tests;
