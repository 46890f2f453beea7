//! The personal data of an order that has ended (rule 46).

use super::decision::Refused;
use super::turn::Turn;
use crate::message::Command;
use crate::task::{Task, What};

/// Why the task is not erased; `None` if it is.
pub(super) const fn refusal(task: &Task) -> Option<Refused> {
    if task.erased_at.is_some() {
        return Some(Refused::AlreadyErased);
    }
    if task.process_state.is_final() && task.unsent.is_empty() { None } else { Some(Refused::NotOver) }
}

impl Turn<'_> {
    /// Removes what people and services wrote, and marks the task: the store removes the rest with the same write.
    pub(super) fn erase(&mut self, command: &Command) {
        self.task.erase();
        self.task.erased_at = Some(self.moment.now);
        self.record_by(Some(command), What::Erased);
    }
}
