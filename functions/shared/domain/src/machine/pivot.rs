//! The point of no return (rule 34).

use std::sync::Arc;

use super::turn::Turn;
use crate::task::{Direction, ProcessState, Step, StepState, Task};
use crate::workflow::Remedy;

impl Task {
    /// The pivot past which the order only goes forward; `None` while it may turn round.
    #[must_use]
    pub fn past_pivot(&self) -> Option<&Arc<str>> {
        self.passed_pivots().map(|(_, step)| &step.name).next()
    }

    /// The pivots that have begun and were not given up, with their indexes.
    pub(super) fn passed_pivots(&self) -> impl Iterator<Item = (usize, &Step)> {
        let is_passed = |(_, step): &(usize, &Step)| {
            let has_begun = step.pivot && step.was_claimed() && step.direction == Direction::Forward;
            has_begun
                && match step.process_state {
                    StepState::Pending | StepState::Processing | StepState::Processed => true,
                    StepState::Skipped => false,
                    // In the turn that gives it up, only its own remedy turns the order round.
                    StepState::Error => self.process_state != ProcessState::Error,
                }
        };
        self.steps.iter().enumerate().filter(is_passed)
    }
}

impl Turn<'_> {
    /// The remedy for a step that was given up. Past the pivot of another step, nothing turns the order round.
    pub(super) fn remedy(&self, index: usize, given: Remedy) -> Remedy {
        let remedy = self.remedy_of_line(index, given);
        let is_past = self.task.passed_pivots().any(|(pivot, _)| pivot != index);
        if is_past && remedy == Remedy::Compensate { Remedy::Hold } else { remedy }
    }
}
