//! What an operator can do (rule 12).

use std::sync::Arc;

use super::turn::Turn;
use super::{Refused, Verdict};
use crate::task::{Direction, NoticeKind, Pause, ProcessState, StepState, reason};

impl Turn<'_> {
    /// Takes the failed steps back to `Pending` with no failures counted, and goes on in the direction it had.
    pub(super) fn resubmit(&mut self, by: &Arc<str>, why: &Arc<str>, seen: Option<u64>) -> Verdict {
        if self.is_stale(seen) {
            return Verdict::Refused(Refused::Stale);
        }
        for step in self.task.steps.iter_mut().filter(|step| step.process_state == StepState::Error) {
            step.process_state = StepState::Pending;
            step.failure_count = 0;
            step.not_before = None;
            // Whoever resubmits vouches for the service: its horizon begins anew.
            step.started_at = None;
            step.finished_at = None;
        }
        let undoing = self.task.steps.iter().any(|step| step.direction == Direction::Undo);
        self.task.process_state = if undoing { ProcessState::Compensating } else { ProcessState::Processing };
        // An order that is undone further is undone for the reason it had before its undo failed.
        let earlier = self.task.reason.take().and_then(|reason| reason.earlier);
        self.task.reason = earlier.map(|reason| *reason).filter(|_| undoing);
        self.go_on(by, "resubmitted", why);
        // What was still under way may have ended while the task stood in `Error`.
        self.finish_if_done();
        Verdict::Taken
    }

    /// Undoes a task that is not finished. A wish that comes late, or again, does not touch an error that came up since.
    pub(super) fn cancel(&mut self, by: &Arc<str>, why: &Arc<str>, seen: Option<u64>) -> Verdict {
        if self.task.process_state == ProcessState::Error && self.is_stale(seen) {
            return Verdict::Refused(Refused::Stale);
        }
        self.compensate(reason::CANCELLED, &format!("cancelled by {by}: {why}"), None);
        self.go_on(by, "cancelled", why);
        Verdict::Taken
    }

    /// Whether the operator looked before the present reason came up.
    fn is_stale(&self, seen: Option<u64>) -> bool {
        let since = self.task.reason.as_ref().map_or(0, |reason| reason.since_version);
        seen.is_some_and(|seen| seen < since)
    }

    /// Keeps new steps from starting. Attempts under way end as they will. The write is conditional on the version like
    /// any claim, so of a pause and a claim at the same time one wins and the other decides again.
    pub(super) fn pause(&mut self, by: &Arc<str>, why: &Arc<str>, seen: Option<u64>) -> Verdict {
        if seen.is_some_and(|seen| seen < self.task.resumed) {
            return Verdict::Refused(Refused::Stale);
        }
        if self.task.paused.is_some() {
            return Verdict::Refused(Refused::AlreadyPaused);
        }
        self.task.paused =
            Some(Pause { by: by.clone(), reason: why.clone(), since: self.moment.now, version: self.task.version + 1 });
        self.record_by(by, "paused", Some(why.clone()));
        Verdict::Taken
    }

    /// Goes on with a paused task.
    pub(super) fn resume(&mut self, by: &Arc<str>, why: &Arc<str>, seen: Option<u64>) -> Verdict {
        let Some(pause) = &self.task.paused else { return Verdict::Refused(Refused::NotPaused) };
        if seen.is_some_and(|seen| seen < pause.version) {
            return Verdict::Refused(Refused::Stale);
        }
        self.go_on(by, "resumed", why);
        Verdict::Taken
    }

    fn go_on(&mut self, by: &Arc<str>, what: &str, why: &Arc<str>) {
        self.record_by(by, what, Some(why.clone()));
        // Whoever wants the order to go on does not want it paused.
        if self.task.paused.take().is_some() {
            self.task.resumed = self.task.version + 1;
        }
        // Nobody needs to be called any more for what the operator has just seen to.
        self.task.unsent.retain(|notice| notice.kind != NoticeKind::OrderNeedsOperator);
        self.claim_ready(0);
        self.wake_for_all_waiting(0);
        self.repeat_requests(0);
    }
}
