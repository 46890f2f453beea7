//! The deadline of an order (rule 37).

use super::turn::Turn;
use crate::task::{NoticeKind, ProcessState, Task, What, reason};
use crate::time::Timestamp;
use crate::workflow::OnLate;

impl Task {
    /// The deadline that is still to be met: that of an order which is not finished, and not known to be late.
    #[must_use]
    pub fn deadline_ahead(&self) -> Option<Timestamp> {
        self.complete_by.filter(|_| self.late_since.is_none() && !self.process_state.is_final())
    }
}

impl Turn<'_> {
    /// Marks an order that is not finished after its deadline, once, and does what its workflow says. An order that
    /// waits for an operator, is being undone or is past a pivot is marked alone.
    pub(super) fn look_at_deadline(&mut self) {
        let Some(at) = self.task.deadline_ahead().filter(|&at| at <= self.moment.now) else { return };
        let words = format!("not finished by {at}");
        self.task.late_since = Some(self.moment.now);
        self.record(What::Late, Some(words.as_str().into()));
        self.owe(NoticeKind::OrderLate);
        self.owe_status(NoticeKind::OrderLateStatus);
        let is_forward = matches!(self.task.process_state, ProcessState::Pending | ProcessState::Processing);
        match self.workflow.deadline.on_late {
            OnLate::Compensate if is_forward && self.task.past_pivot().is_none() => {
                self.compensate(reason::LATE, &words, None);
                // The wakes in flight are those of the steps' other direction.
                self.waiting_before.clear();
            }
            OnLate::Hold if is_forward => self.hold(reason::LATE, &words, None),
            OnLate::Alert | OnLate::Compensate | OnLate::Hold => {}
        }
    }
}
