//! What an operator can do (rule 12).

use std::sync::Arc;

use super::turn::Turn;
use super::{Refused, Verdict};
use crate::task::{Direction, NoticeKind, ProcessState, StepState, reason};

impl Turn<'_> {
    /// Takes the failed steps back to `Pending` with no failures counted, and goes on in the direction it had.
    pub(super) fn resubmit(&mut self, by: &Arc<str>, why: &Arc<str>, seen: Option<u64>) -> Verdict {
        let since = self.task.reason.as_ref().map_or(0, |reason| reason.since_version);
        if seen.is_some_and(|seen| seen < since) {
            return Verdict::Refused(Refused::Stale);
        }
        for step in self.task.steps.iter_mut().filter(|step| step.process_state == StepState::Error) {
            step.process_state = StepState::Pending;
            step.failure_count = 0;
            step.not_before = None;
            step.finished_at = None;
        }
        let undoing = self.task.steps.iter().any(|step| step.direction == Direction::Undo);
        self.task.process_state = if undoing { ProcessState::Compensating } else { ProcessState::Processing };
        // An order that is undone further is undone for the reason it had before its undo failed.
        let earlier = self.task.reason.take().and_then(|reason| reason.earlier);
        self.task.reason = earlier.map(|reason| *reason).filter(|_| undoing);
        self.go_on(by, "resubmitted", why);
        Verdict::Taken
    }

    /// Undoes a task that is not finished.
    pub(super) fn cancel(&mut self, by: &Arc<str>, why: &Arc<str>) -> Verdict {
        self.compensate(reason::CANCELLED, &format!("cancelled by {by}: {why}"), None);
        self.go_on(by, "cancelled", why);
        Verdict::Taken
    }

    fn go_on(&mut self, by: &Arc<str>, what: &str, why: &Arc<str>) {
        self.record_by(by, what, Some(why.clone()));
        // Nobody needs to be called any more for what the operator has just seen to.
        self.task.unsent.retain(|notice| notice.kind != NoticeKind::OrderNeedsOperator);
        self.claim_ready(0);
        self.wake_for_all_waiting(0);
        self.repeat_requests(0);
    }
}
