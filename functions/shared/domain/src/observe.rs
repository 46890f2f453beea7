//! What a committed change of a task was, for whoever counts: every transition once, read off the task before and after.
//!
//! Metrics are no proof. A commit whose answer was lost is found made when its message comes again, and that repeat
//! changes nothing, so such a transition may be counted by nobody. What is true stands in the task and its history.

use std::iter::zip;

use crate::id::OrderId;
use crate::task::{Direction, ProcessState, Step, StepError, StepState, Task, reason};

/// The target of the events that are nothing but metrics. They have the level `DEBUG`.
pub const METRICS: &str = "stepwarden_metrics";
/// The target of the events that tell a person the way of an order: accepted, each step claimed and done, how it ended.
/// They have the level `INFO`, and are metrics besides.
pub const ORDERS: &str = "orders";

/// One transition. Steps are shown as they are after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation<'a> {
    /// An attempt began.
    Claimed(&'a Step),
    /// An attempt was given back because its service is failing.
    PutOff(&'a Step),
    /// An attempt had no answer in time.
    Expired(&'a Step, &'a StepError),
    /// The supervisor asked for another attempt.
    Repended(&'a Step),
    /// Time and again no answer: the step is given up.
    Exhausted(&'a Step),
    /// The service said no for good.
    Rejected(&'a Step, &'a StepError),
    /// A supervisor found an attempt expired so late that it doubted its own clock.
    Doubted(&'a Step),
    /// A step is done, in its direction.
    Done {
        /// Which.
        step: &'a Step,
        /// From the first claim in this direction, or since an operator resubmitted it.
        latency_ms: u64,
    },
    /// The order is done.
    Processed {
        /// From the first claim that is still known to the last result.
        latency_ms: u64,
    },
    /// The order is to be undone.
    Compensating(&'a str),
    /// The order is undone.
    Compensated(&'a str),
    /// The order waits for an operator.
    Held(&'a str),
    /// An operator had it go on.
    Resubmitted,
    /// An operator keeps new steps from starting.
    Paused,
    /// An operator lets them start again.
    Resumed,
}

/// The transitions between a task and the next version of it.
///
/// An expiry and a refusal are told apart by the code of the step's last error, so an agent that gives the code
/// [`StepError::EXPIRED`] for a refusal has it counted as an expiry. Where several steps are exhausted at once and the
/// order is undone for one of them, that one is counted.
pub fn observe<'a>(before: &'a Task, after: &'a Task) -> impl Iterator<Item = Observation<'a>> {
    let steps = zip(&before.steps, &after.steps).flat_map(|(step, next)| of_step(step, next, after));
    steps.chain(of_order(before, after).into_iter().flatten())
}

/// Tells that an order was accepted: from here on it cannot be lost.
pub fn accepted(order_id: OrderId, caller: &str) {
    tracing::info!(target: ORDERS, %order_id, monotonic_counter.orders_accepted = 1, caller, "order accepted");
}

/// Counts and tells the transitions between a task and the next version of it. Costs nothing where nobody listens.
pub fn tell(before: &Task, after: &Task) {
    let is_counted = tracing::enabled!(target: METRICS, tracing::Level::DEBUG);
    if is_counted || tracing::enabled!(target: ORDERS, tracing::Level::INFO) {
        for observation in observe(before, after) {
            emit(after, observation);
        }
    }
}

fn of_step<'a>(before: &'a Step, after: &'a Step, task: &'a Task) -> impl Iterator<Item = Observation<'a>> {
    let is_claimed = after.attempt > before.attempt;
    let goes_on = after.direction == before.direction;
    let failure = after.last_error.as_ref().filter(|_| after.last_error != before.last_error);
    let expired = failure.filter(|error| *error.code == *StepError::EXPIRED);
    let rejected = failure.filter(|error| ![StepError::EXPIRED, reason::DEAD_LETTER].contains(&&*error.code));

    let was_under_way = before.process_state == StepState::Processing;
    let put_off = was_under_way
        && goes_on
        && failure.is_none()
        && match after.process_state {
            StepState::Pending => true,
            // It was claimed again in the same write.
            StepState::Processing => is_claimed,
            StepState::Processed | StepState::Error => false,
        };
    let repended = expired.is_some() && goes_on && after.process_state == StepState::Pending;
    let given_up = before.process_state != StepState::Error && after.process_state == StepState::Error;
    // The step of an order that is undone for it is taken back at once, and is not seen to be given up.
    let exhausted_order = new_reason(task)
        .is_some_and(|(code, step)| code == reason::EXHAUSTED && step.is_some_and(|name| *name == *after.name));
    let exhausted = (given_up || exhausted_order) && (expired.is_some() || failure.is_none());
    let doubted = after.doubted_at.is_some() && after.doubted_at != before.doubted_at;
    let is_done = before.process_state != StepState::Processed && after.process_state == StepState::Processed;
    let done = after.started_at.zip(after.finished_at).filter(|_| is_done);
    [
        expired.map(|error| Observation::Expired(after, error)),
        rejected.map(|error| Observation::Rejected(after, error)),
        put_off.then_some(Observation::PutOff(after)),
        repended.then_some(Observation::Repended(after)),
        exhausted.then_some(Observation::Exhausted(after)),
        doubted.then_some(Observation::Doubted(after)),
        done.map(|(from, to)| Observation::Done { step: after, latency_ms: from.ms_until(to) }),
        is_claimed.then_some(Observation::Claimed(after)),
    ]
    .into_iter()
    .flatten()
}

fn of_order<'a>(before: &'a Task, after: &'a Task) -> [Option<Observation<'a>>; 5] {
    use ProcessState::{Compensated, Compensating, Error, Pending, Processed, Processing};

    let reason = after.reason.as_ref().map_or("", |reason| &*reason.code);
    let is_new = |state: ProcessState| after.process_state == state && before.process_state != state;
    let ended = match after.process_state {
        Processed if is_new(Processed) => Some(Observation::Processed { latency_ms: latency_ms(after) }),
        Compensated if is_new(Compensated) => Some(Observation::Compensated(reason)),
        Error if is_new(Error) => Some(Observation::Held(reason)),
        Pending | Processing | Processed | Error | Compensating | Compensated => None,
    };
    let is_turned = matches!(after.process_state, Compensating | Compensated) && new_reason(after).is_some();
    let resubmitted = before.process_state == Error && after.process_state != Error && !is_turned;
    [
        resubmitted.then_some(Observation::Resubmitted),
        is_turned.then_some(Observation::Compensating(reason)),
        ended,
        (before.paused.is_none() && after.paused.is_some()).then_some(Observation::Paused),
        (before.resumed != after.resumed).then_some(Observation::Resumed),
    ]
}

/// The reason and its step, if it came up in this version.
fn new_reason(task: &Task) -> Option<(&str, Option<&str>)> {
    let reason = task.reason.as_ref().filter(|reason| reason.since_version == task.version)?;
    Some((&reason.code, reason.step.as_deref()))
}

fn latency_ms(task: &Task) -> u64 {
    let first = task.steps.iter().filter_map(|step| step.started_at).min();
    let last = task.steps.iter().filter_map(|step| step.finished_at).max();
    first.zip(last).map_or(0, |(first, last)| first.ms_until(last))
}

/// One event for each observation. What it is called here is the metric's name.
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

fn emit(task: &Task, observation: Observation<'_>) {
    let workflow = &*task.workflow;
    match observation {
        Observation::Claimed(Step { name, attempt, direction, .. }) => {
            say!(task, monotonic_counter.attempts_claimed = 1, step = %name, attempt, direction = direction.name(), "step claimed");
        }
        Observation::PutOff(Step { name, attempt, .. }) => {
            count!(task, monotonic_counter.attempts_put_off = 1, step = %name, attempt, "put off");
        }
        Observation::Expired(Step { name, .. }, StepError { attempt, .. }) => {
            say!(task, monotonic_counter.attempts_expired = 1, step = %name, attempt, "step expired");
        }
        Observation::Repended(Step { name, attempt, .. }) => {
            count!(task, monotonic_counter.attempts_repended = 1, step = %name, attempt, "re-pended");
        }
        Observation::Exhausted(Step { name, attempt, .. }) => {
            say!(task, monotonic_counter.steps_exhausted = 1, step = %name, attempt, "step exhausted");
        }
        Observation::Rejected(Step { name, .. }, StepError { attempt, .. }) => {
            say!(task, monotonic_counter.steps_rejected = 1, step = %name, attempt, "step rejected");
        }
        Observation::Doubted(Step { name, attempt, .. }) => {
            count!(task, monotonic_counter.clocks_doubted = 1, step = %name, attempt, "late beyond belief");
        }
        Observation::Done { step: Step { name, attempt, direction, .. }, latency_ms } => match direction {
            Direction::Forward => {
                say!(task, histogram.step_latency_ms = latency_ms, step = %name, attempt, "step done");
            }
            Direction::Undo => {
                say!(task, histogram.undo_latency_ms = latency_ms, step = %name, attempt, "step undone");
            }
        },
        Observation::Processed { latency_ms } => {
            say!(
                task,
                monotonic_counter.orders_processed = 1,
                histogram.order_latency_ms = latency_ms,
                workflow,
                "order processed"
            );
        }
        Observation::Compensating(reason) => {
            say!(task, monotonic_counter.orders_compensating = 1, workflow, reason, "order to be undone");
        }
        Observation::Compensated(reason) => {
            say!(task, monotonic_counter.orders_compensated = 1, workflow, reason, "order undone");
        }
        Observation::Held(reason) => {
            say!(task, monotonic_counter.orders_held = 1, workflow, reason, "order waits for an operator");
        }
        Observation::Resubmitted => {
            say!(task, monotonic_counter.orders_resubmitted = 1, workflow, "order resubmitted");
        }
        Observation::Paused => say!(task, monotonic_counter.orders_paused = 1, workflow, "order paused"),
        Observation::Resumed => say!(task, monotonic_counter.orders_resumed = 1, workflow, "order resumed"),
    }
}

#[cfg(test)]
mod tests;
