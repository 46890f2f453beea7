//! An order that an operator ends as it is (rule 31).

use super::turn::Turn;
use crate::limits::{COMPLETE_WITHIN_MS_MAX, SETTLES_WITHIN_MS_MAX};
use crate::message::Command;
use crate::task::{NoticeKind, ProcessState, Step, StepState, reason};
use crate::time::Timestamp;

/// Until when a call of the step may still have its effect, if that is not over (rule 16). The attempt in flight of an
/// order in `Error` has no other end.
pub(super) fn busy_until(step: &Step, now: Timestamp) -> Option<Timestamp> {
    // A right clock writes no later time (rule 23).
    let longest_ms = COMPLETE_WITHIN_MS_MAX + SETTLES_WITHIN_MS_MAX;
    let in_flight = step
        .complete_by
        .filter(|_| step.process_state == StepState::Processing && step.approval.is_none())
        .map(|at| at.plus_ms(SETTLES_WITHIN_MS_MAX));
    let is_to_come = |until: &Timestamp| now < *until && !until.is_beyond(now, longest_ms);
    [step.may_run_until, in_flight].into_iter().flatten().filter(is_to_come).max()
}

impl Turn<'_> {
    /// Ends the order. Nobody is called, no step is undone, and all steps stay as they are.
    pub(super) fn close(&mut self, command: &Command) {
        let earlier = self.task.reason.take().map(Box::new);
        self.set_reason(reason::CLOSED, &format!("closed by {}: {}", command.by, command.reason), None);
        if let Some(reason) = &mut self.task.reason {
            reason.earlier = earlier;
        }
        self.forget_alert();
        self.end_order(ProcessState::Closed, NoticeKind::OrderClosed, Some(command));
    }
}
