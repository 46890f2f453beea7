//! What an operator can do (rule 12).

use super::turn::Turn;
use super::{Refused, Verdict};
use crate::message::Command;
use crate::task::{Direction, NoticeKind, Pause, ProcessState, StepState, reason};

impl Turn<'_> {
    /// Takes the failed steps back to `Pending` with no failures counted, and goes on in the direction it had.
    pub(super) fn resubmit(&mut self, command: &Command) -> Verdict {
        if self.is_stale(command) {
            return Verdict::Refused(Refused::Stale);
        }
        for step in &mut self.task.steps {
            // Whoever resubmits vouches for the services: the horizons of all open steps begin anew.
            step.started_at = match step.process_state {
                StepState::Pending | StepState::Error => None,
                StepState::Processing => Some(self.moment.now),
                StepState::Processed => step.started_at,
            };
            if step.process_state == StepState::Error {
                step.process_state = StepState::Pending;
                step.failure_count = 0;
                step.not_before = None;
                step.finished_at = None;
            }
        }
        let undoing = self.task.steps.iter().any(|step| step.direction == Direction::Undo);
        self.task.process_state = if undoing { ProcessState::Compensating } else { ProcessState::Processing };
        // An order that is undone further is undone for the reason it had before its undo failed.
        let earlier = self.task.reason.take().and_then(|reason| reason.earlier);
        self.task.reason = earlier.map(|reason| *reason).filter(|_| undoing);
        self.go_on(command, "resubmitted");
        // What was still under way may have ended while the task stood in `Error`.
        self.finish_if_done();
        Verdict::Taken
    }

    /// Undoes a task that is not finished. A command that comes late, or again, does not touch an error that came up since.
    pub(super) fn cancel(&mut self, command: &Command) -> Verdict {
        if self.task.process_state == ProcessState::Error && self.is_stale(command) {
            return Verdict::Refused(Refused::Stale);
        }
        self.compensate(reason::CANCELLED, &format!("cancelled by {}: {}", command.by, command.reason), None);
        self.go_on(command, "cancelled");
        Verdict::Taken
    }

    /// Whether the operator looked before the present reason came up.
    fn is_stale(&self, command: &Command) -> bool {
        let since = self.task.reason.as_ref().map_or(0, |reason| reason.since_version);
        command.version.is_some_and(|seen| seen < since)
    }

    /// Keeps new steps from starting. Attempts under way end as they will. The write is conditional on the version like
    /// any claim, so of a pause and a claim at the same time one wins and the other decides again.
    pub(super) fn pause(&mut self, command: &Command) -> Verdict {
        if command.version.is_some_and(|seen| seen < self.task.resumed) {
            return Verdict::Refused(Refused::Stale);
        }
        if self.task.paused.is_some() {
            return Verdict::Refused(Refused::AlreadyPaused);
        }
        self.task.paused = Some(Pause {
            by: command.by.clone(),
            reason: command.reason.clone(),
            since: self.moment.now,
            version: self.task.version + 1,
        });
        self.record_by(&command.by, "paused", Some(command.reason.clone()));
        Verdict::Taken
    }

    /// Goes on with a paused task.
    pub(super) fn resume(&mut self, command: &Command) -> Verdict {
        let Some(pause) = &self.task.paused else { return Verdict::Refused(Refused::NotPaused) };
        if command.version.is_some_and(|seen| seen < pause.version) {
            return Verdict::Refused(Refused::Stale);
        }
        self.go_on(command, "resumed");
        Verdict::Taken
    }

    fn go_on(&mut self, command: &Command, what: &str) {
        self.record_by(&command.by, what, Some(command.reason.clone()));
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
