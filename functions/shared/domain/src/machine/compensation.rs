//! The start of compensation (rule 9).

use super::open_calls::{believed_settled, open_until};
use super::turn::Turn;
use crate::task::{Direction, ProcessState, Step, StepState, What, shortened};
use crate::time::Timestamp;
use crate::workflow::StepRule;

impl Turn<'_> {
    /// Turns every claimed step to `Undo`, whether or not its effect is known to have happened. A step with a call that
    /// may still have its effect waits until that is over (rule 16). Undos that were given up start afresh.
    pub(super) fn compensate(&mut self, code: &str, message: &str, index: Option<usize>) {
        self.task.process_state = ProcessState::Compensating;
        self.set_reason(code, message, index);
        self.record(What::Entered(ProcessState::Compensating), Some(shortened(message)));
        let now = self.moment.now;
        for (step, rule) in self.task.steps.iter_mut().zip(&self.workflow.steps).filter(|(step, _)| step.was_claimed())
        {
            turn_round(step, rule, now);
        }
        self.finish_if_done();
    }
}

/// Turns a claimed step to `Undo`. One that is being undone already goes on.
pub(super) fn turn_round(step: &mut Step, rule: &StepRule, now: Timestamp) {
    let starts_afresh = match (step.direction, step.process_state) {
        // Only the attempt in flight has a `CompleteBy`.
        (Direction::Forward, _) => {
            step.may_run_until = open_until(step, rule).map(|at| believed_settled(at, rule, now));
            step.not_before = step.may_run_until.filter(|&at| now < at);
            true
        }
        (Direction::Undo, StepState::Error) => true,
        (Direction::Undo, StepState::Pending | StepState::Processing | StepState::Processed | StepState::Skipped) => {
            false
        }
    };
    if starts_afresh {
        step.direction = Direction::Undo;
        step.process_state = StepState::Pending;
        step.locked_by = None;
        step.complete_by = None;
        step.doubted_at = None;
        step.waits_until = None;
        step.poll = None;
        step.failure_count = 0;
        step.started_at = None;
        step.finished_at = None;
    }
}
