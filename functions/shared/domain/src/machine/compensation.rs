//! The start of compensation (rule 9).

use super::turn::Turn;
use crate::task::{Direction, ProcessState, StepState, What, shortened};

impl Turn<'_> {
    /// Turns every claimed step to `Undo`, whether or not its effect is known to have happened. A step whose attempt
    /// may still run waits for the `CompleteBy` of that attempt. Undos that were given up start afresh.
    pub(super) fn compensate(&mut self, code: &str, message: &str, index: Option<usize>) {
        self.task.process_state = ProcessState::Compensating;
        self.set_reason(code, message, index);
        self.record(What::Entered { state: ProcessState::Compensating }, Some(shortened(message)));
        for step in self.task.steps.iter_mut().filter(|step| step.was_claimed()) {
            let starts_afresh = match (step.direction, step.process_state) {
                (Direction::Forward, StepState::Processing) => {
                    step.not_before = step.complete_by;
                    true
                }
                (Direction::Forward, StepState::Pending | StepState::Processed) => {
                    step.not_before = None;
                    true
                }
                // If a dead letter stopped the step, `not_before` is already the end of its attempt.
                (Direction::Forward | Direction::Undo, StepState::Error) => true,
                (Direction::Undo, StepState::Pending | StepState::Processing | StepState::Processed) => false,
            };
            if starts_afresh {
                step.direction = Direction::Undo;
                step.process_state = StepState::Pending;
                step.locked_by = None;
                step.complete_by = None;
                step.doubted_at = None;
                step.failure_count = 0;
                step.started_at = None;
                step.finished_at = None;
            }
        }
        self.finish_if_done();
    }
}
