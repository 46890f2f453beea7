//! The long waits that people are shown (rules 35, 36 and 39).

use super::{Direction, ProcessState, Step, StepState, Task, What};
use crate::time::Timestamp;

impl Task {
    /// The end of the long wait of a step, for people: of one whose result is awaited, or of one that is ready and waits
    /// for its time.
    ///
    /// The task has neither a clock nor the graph of its workflow. So a time that was past at the last change is no wait,
    /// and a step is ready once its wait is in the history, or all steps listed before it are over.
    #[must_use]
    pub fn wait_of(&self, step: &Step) -> Option<Timestamp> {
        let until = step.waits_until?;
        let is_open = match step.direction {
            Direction::Forward => matches!(self.process_state, ProcessState::Pending | ProcessState::Processing),
            Direction::Undo => self.process_state == ProcessState::Compensating,
        };
        let lies_ahead = self.updated_at().is_none_or(|at| at < until);
        let waits = step.process_state == StepState::Pending && is_open && lies_ahead && self.is_ready_to_wait(step);
        (step.is_awaited() || waits).then_some(until)
    }

    fn is_ready_to_wait(&self, step: &Step) -> bool {
        if step.waits_longer() {
            return true;
        }
        let is_its_wait =
            |what: &What| matches!(what, What::Waiting(attempt) if attempt.name(&self.steps) == &*step.name);
        let mut before = self.steps.iter().take_while(|other| other.name != step.name);
        self.history.iter().any(|line| is_its_wait(&line.what)) || before.all(|other| other.process_state.is_over())
    }
}
