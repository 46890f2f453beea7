//! Notes of operators on an order, and who has taken it on (rule 30). They change nothing else.

use super::decision::Refused;
use super::turn::Turn;
use crate::message::Command;
use crate::task::{Taken, Task, What};

impl Command {
    /// The reason why this note is not written; `None` if it is.
    pub(super) fn note_refusal(&self, task: &Task) -> Option<Refused> {
        (self.take == Some(false) && task.taken.is_none()).then_some(Refused::NotTaken)
    }
}

impl Turn<'_> {
    pub(super) fn write_note(&mut self, command: &Command) {
        if let Some(take) = command.take {
            self.task.taken = take.then(|| Taken { by: command.by.clone(), since: self.moment.now });
            self.task.taken_version = self.task.version + 1;
        }
        self.record_by(Some(command), What::Noted(command.take));
    }
}
