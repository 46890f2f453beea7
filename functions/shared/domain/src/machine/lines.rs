//! The lines of an order: steps that go through an array, and a line that is dropped (rule 50).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::compensation::turn_round;
use super::decision::Refused;
use super::turn::Turn;
use crate::outputs::Outputs;
use crate::task::{Step, StepState, Task, What, shortened};
use crate::workflow::{DropMax, LINE, Remedy, StepRule, Workflow, step_of};

/// What the step of this rule reads of the steps before it and, for an undo, of its `own`.
pub(super) fn outputs_for(task: &Task, rule: &StepRule, own: Option<usize>) -> Outputs {
    let mut outputs = Outputs::default();
    let is_single = |index: &usize| rule.in_line.contains(index);
    for array in &rule.arrays {
        let elements =
            rule.ancestors.iter().filter(|index| !is_single(index)).filter_map(|&index| task.steps.get(index));
        let elements = elements.filter(|step| step_of(&step.name) == &**array);
        outputs.add_all(array, elements.map(|step| (&step.name, step.output.as_ref().filter(|_| !step.dropped))));
    }
    let singles = rule.ancestors.iter().copied().filter(|index| {
        let name = task.steps.get(*index).map_or("", |step| step_of(&step.name));
        is_single(index) || !rule.arrays.iter().any(|array| **array == *name)
    });
    for step in singles.chain(own).filter_map(|index| task.steps.get(index)) {
        if let Some(output) = &step.output {
            outputs.add(step_of(&step.name), output.clone());
        }
    }
    outputs
}

/// How many lines there are, and how many are dropped.
fn count(task: &Task, workflow: &Workflow) -> (usize, usize) {
    let (mut all, mut dropped) = (BTreeSet::new(), BTreeSet::new());
    let steps = task.steps.iter().zip(&workflow.steps);
    for (step, place) in steps.filter_map(|(step, other)| Some((step, other.line.as_ref()?.place))) {
        all.insert(place);
        if step.dropped {
            dropped.insert(place);
        }
    }
    (all.len(), dropped.len())
}

/// Why the line of this step cannot be dropped by hand; `None` if it can, as far as the task shows it.
pub(super) fn refusal(task: &Task, step: &Step) -> Option<Refused> {
    let Some((_, line)) = step.name.split_once(LINE) else { return Some(Refused::NoLine) };
    let is_of_it = |other: &Step| other.name.split_once(LINE).is_some_and(|(_, other)| other == line);
    let mut pivots = task.passed_pivots().map(|(_, pivot)| pivot);
    if let Some(pivot) = pivots.find(|pivot| is_of_it(pivot) && pivot.name != step.name) {
        return Some(Refused::PastPivot { step: pivot.name.clone() });
    }
    let [carried, _] = task.carried_lines();
    (carried.len() < 2).then_some(Refused::LastLine)
}

impl Turn<'_> {
    /// What is done about a step that failed for good: a line too many, or the last one, is not dropped.
    pub(super) fn remedy_of_line(&self, index: usize, given: Remedy) -> Remedy {
        let rule = &self.workflow.steps[index];
        let Some(each) = rule.for_each.as_ref().filter(|_| given == Remedy::Drop) else { return given };
        let (all, dropped) = count(&self.task, self.workflow);
        let may_be_dropped = each.drop_max.is_none_or(|most| DropMax::allows(most, dropped + 1, all));
        if dropped + 1 < all && may_be_dropped { Remedy::Drop } else { Remedy::Compensate }
    }

    /// Undoes the steps of the line of this step, and goes on with the others.
    pub(super) fn drop_line(&mut self, index: usize, words: &str) {
        self.record(What::Dropped(self.attempt(index)), Some(shortened(words)));
        self.turn_line(index);
        self.finish_if_done();
    }

    /// A step that has begun after all lines: it has sent what it knew of the line of this step.
    pub(super) fn begun_with_line(&self, index: usize) -> Option<Arc<str>> {
        let rules = &self.workflow.steps;
        let uses_line = |other: &StepRule| {
            let is_used = |of: &usize| rules[*of].is_of_line(&rules[index]) && !other.in_line.contains(of);
            other.ancestors.iter().any(is_used)
        };
        let mut steps = self.task.steps.iter().zip(rules);
        steps.find(|(step, other)| step.was_claimed() && uses_line(other)).map(|(step, _)| step.name.clone())
    }

    /// Turns the steps of the line of this step round.
    pub(super) fn turn_line(&mut self, index: usize) {
        let (now, workflow) = (self.moment.now, self.workflow);
        for (place, (step, rule)) in self.task.steps.iter_mut().zip(&workflow.steps).enumerate() {
            if !rule.is_of_line(&workflow.steps[index]) {
                continue;
            }
            step.dropped = true;
            if step.was_claimed() {
                turn_round(step, rule, now);
            } else {
                step.process_state = StepState::Skipped;
                (step.not_before, step.waits_until) = (None, None);
            }
            // The wakes in flight are those of its other direction.
            self.waiting_before.retain(|waiting| *waiting != place);
        }
        self.changed = true;
    }
}

impl Task {
    /// The lines of the order that it carries, and those that were dropped. Both are empty if it has no lines.
    #[must_use]
    pub fn carried_lines(&self) -> [Vec<Arc<str>>; 2] {
        let mut found = [Vec::new(), Vec::new()];
        let mut seen = BTreeSet::new();
        for step in &self.steps {
            let Some((_, id)) = step.name.split_once(LINE) else { continue };
            if seen.insert(id) {
                let is_of_it = |other: &Step| other.name.split_once(LINE).is_some_and(|(_, other)| other == id);
                let dropped = self.steps.iter().any(|other| other.dropped && is_of_it(other));
                found[usize::from(dropped)].push(id.into());
            }
        }
        found
    }
}
