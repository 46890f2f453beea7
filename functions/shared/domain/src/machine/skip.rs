//! Steps that need no call: those that do not apply, those that were rejected and are optional (rule 33), and undos of
//! steps that have none.

use std::collections::VecDeque;

use super::decision::Happened;
use super::lines::outputs_for;
use super::turn::{Turn, release};
use crate::message::Failure;
use crate::order::Order;
use crate::task::{Attempt, Direction, ProcessState, StepState, Task, Transition, What, shortened};
use crate::workflow::Workflow;

impl Task {
    /// Skips the steps that do not apply, by the document (rule 33). The others wait for the outputs that they compare.
    pub(crate) fn skip_inapplicable(&mut self, order: &Order, workflow: &Workflow) {
        for (index, rule) in workflow.steps.iter().enumerate() {
            if let Some(unmet) = rule.unmet_by_document(&order.document) {
                let step = &mut self.steps[index];
                step.process_state = StepState::Skipped;
                step.waits_until = None;
                let what = What::Skipped(Attempt::current(index, step));
                let why = Some(shortened(&format!("it does not apply: {unmet}")));
                let (at, who) = (order.submitted_at, order.submitter.clone());
                self.record(Transition { at, who, what, why, command_id: None, bulk: None });
            }
        }
    }
}

impl Turn<'_> {
    /// Ends every step that could be claimed and needs no call. Each may be the last one before the next. Then the order
    /// may be over.
    pub(super) fn end_without_calls(&mut self) {
        let mut open: VecDeque<usize> = (0..self.task.steps.len()).collect();
        while let Some(index) = open.pop_front() {
            let (rule, direction) = (&self.workflow.steps[index], self.task.steps[index].direction);
            let steps = &self.workflow.steps;
            match direction {
                // A step between may be skipped already, so it is not enough to look at the next ones.
                Direction::Forward if self.skip_if_inapplicable(index) => {
                    open.extend((0..steps.len()).filter(|&later| steps[later].ancestors.contains(&index)));
                }
                Direction::Undo if self.end_undo_if_none(index) => open.extend(&rule.ancestors),
                Direction::Forward | Direction::Undo => {}
            }
        }
        self.finish_if_done();
    }

    /// Skips a step that does not apply, by the outputs of the steps before it. It is decided once: before its first
    /// claim.
    fn skip_if_inapplicable(&mut self, index: usize) -> bool {
        if self.task.steps[index].was_claimed() || !self.is_ready(index) {
            return false;
        }
        let rule = &self.workflow.steps[index];
        if rule.when.is_empty() {
            return false;
        }
        let Some(unmet) = rule.unmet_by_outputs(&outputs_for(&self.task, rule, None)) else { return false };
        let step = &mut self.task.steps[index];
        step.process_state = StepState::Skipped;
        (step.not_before, step.waits_until) = (None, None);
        let why = shortened(&format!("it does not apply: {unmet}"));
        self.record(What::Skipped(self.attempt(index)), Some(why));
        self.has_skipped = true;
        true
    }

    /// Ends the undo of a step that has none, once no call of the step may have its effect any more (rule 16).
    fn end_undo_if_none(&mut self, index: usize) -> bool {
        if !self.workflow.steps[index].has_no_undo(self.task.steps[index].dropped) || !self.is_claimable(index) {
            return false;
        }
        let step = &mut self.task.steps[index];
        step.process_state = StepState::Processed;
        step.finished_at = Some(self.moment.now);
        release(step);
        self.record(What::Skipped(self.attempt(index)), Some("it has no undo".into()));
        self.has_skipped = true;
        true
    }

    /// The order goes on past an optional step that was rejected. Its failure is counted already.
    pub(super) fn skip_rejected(&mut self, index: usize, failure: &Failure) {
        let rejected = What::Rejected(self.attempt(index));
        let why = shortened(&format!("{} ({}), and it is optional", failure.message, failure.code));
        self.end_skipped(index);
        self.record(What::Skipped(self.attempt(index)), Some(why));
        self.note(Happened::What(rejected));
        self.finish_if_done();
    }

    /// The step ends, and the order goes on without it.
    pub(super) fn end_skipped(&mut self, index: usize) {
        let step = &mut self.task.steps[index];
        step.process_state = StepState::Skipped;
        step.finished_at = Some(self.moment.now);
        release(step);
    }

    /// Whether the next wake ends the order, since none of its steps is to be called.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.task.process_state, ProcessState::Pending | ProcessState::Processing) && all_over(&self.task)
    }
}

/// Whether each step is done or skipped.
pub(super) fn all_over(task: &Task) -> bool {
    task.steps.iter().all(|step| step.process_state.is_over())
}
