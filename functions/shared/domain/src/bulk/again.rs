//! The progress of an order that a job posts again.

use super::job::{Entry, Job};
use super::step::{EntryState, open_state};
use crate::order::AgainOf;
use crate::task::{ProcessState, Task, bulk_mark, reason};

/// The progress of an order that the job posts again. `again` is the present task of the new order, and `task` that of the
/// order itself.
#[must_use]
pub fn again_state(job: &Job, again: Option<&Task>, task: Option<&Task>) -> EntryState {
    let Some(again) = again else {
        // It may be posted again until it is erased or deleted.
        return match task.is_some_and(Task::may_be_posted_again) {
            true => EntryState::Untouched,
            false => EntryState::PassedOver,
        };
    };
    if !job.has_posted(again) {
        return EntryState::PassedOver;
    }
    let was_cancelled = again.reason.as_ref().is_some_and(|reason| &*reason.code == reason::CANCELLED);
    match again.process_state {
        ProcessState::Processed => EntryState::Recovered,
        ProcessState::Compensating | ProcessState::Compensated if was_cancelled => EntryState::PassedOver,
        ProcessState::Compensated | ProcessState::Error => EntryState::FailedAgain,
        ProcessState::Closed => EntryState::PassedOver,
        ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => {
            let state = open_state(again);
            // It begins with the first step, and may wait as its workflow says. The time-out of the canaries judges it.
            let only_waits = state == EntryState::PassedOver && again.paused.is_none();
            if only_waits { EntryState::OnItsWay } else { state }
        }
    }
}

impl Job {
    /// Whether this job posted the order, as the first line of its history says. That line is never dropped.
    pub(super) fn has_posted(&self, task: &Task) -> bool {
        let by_and_mark = format!("{}: {}", self.spec.by, bulk_mark(&self.id));
        let words = task.history.first().and_then(|line| line.why.as_deref());
        words.and_then(AgainOf::by_and_reason).is_some_and(|words| words.starts_with(&by_and_mark))
    }

    /// The origin of the new order.
    pub(super) fn origin(&self, entry: &Entry) -> AgainOf {
        AgainOf { order_id: entry.order_id, by: self.spec.by.clone(), reason: self.reason() }
    }
}
