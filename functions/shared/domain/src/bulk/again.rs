//! The progress of an order that a job posts again.

use super::job::{Entry, Job, Spec};
use super::step::{EntryState, open_state};
use crate::order::AgainOf;
use crate::task::{ProcessState, Task, reason};

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
    if !job.has_handled(again) {
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
    /// The origin of the new order.
    pub(super) fn origin(&self, entry: &Entry) -> AgainOf {
        let Spec { by, reason, .. } = &self.spec;
        AgainOf { order_id: entry.order_id, by: by.clone(), reason: reason.clone(), bulk: Some(self.id.clone()) }
    }
}
