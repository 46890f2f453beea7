//! Judges the lines of an order: each is carried or dropped as a whole, for a reason of its own, and the order says which.

use std::collections::BTreeMap;

use domain::task::{Direction, ProcessState, StepState, What};
use domain::workflow::{DropMax, LINE, Remedy, StepRule};

use super::{Kind, Of, Violation};
use crate::day::Day;

impl Of<'_> {
    /// What is wrong with its lines.
    pub(super) fn lines(&self) -> Vec<Violation> {
        let mut lines: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, rule) in self.workflow.steps.iter().enumerate() {
            if let Some(line) = &rule.line {
                lines.entry(line.place).or_default().push(index);
            }
        }
        let [carried, dropped] = if lines.is_empty() { Default::default() } else { self.task.carried_lines() };
        let mut found = Vec::new();
        for steps in lines.into_values() {
            let Some(name) = self.workflow.steps[steps[0]].name.split_once(LINE).map(|(_, name)| name) else {
                continue;
            };
            let said = [&carried, &dropped].map(|lines| lines.iter().any(|line| **line == *name));
            let is_dropped = steps.iter().any(|&index| self.task.steps[index].dropped);
            if said != [!is_dropped, is_dropped] || !self.is_whole(&steps, is_dropped) {
                found.push(self.violation(Kind::LineUndecided, Some(steps[0])));
            }
            if is_dropped {
                found.extend(self.dropped_for_nothing(&steps));
            }
        }
        found
    }

    /// Whether each step of a line of a processed order is done, or does not apply; if the line is dropped, undone or never
    /// begun.
    fn is_whole(&self, steps: &[usize], is_dropped: bool) -> bool {
        self.task.process_state != ProcessState::Processed
            || steps.iter().map(|&index| &self.task.steps[index]).all(|step| {
                let is_undone = step.direction == Direction::Undo;
                let is_over = match step.process_state {
                    StepState::Processed => is_undone == is_dropped,
                    StepState::Skipped => !is_undone,
                    StepState::Pending | StepState::Processing | StepState::Error => false,
                };
                step.dropped == is_dropped && is_over
            })
    }

    /// A line that was dropped though no service said no, and each was there.
    fn dropped_for_nothing(&self, steps: &[usize]) -> Option<Violation> {
        if steps.iter().any(|&index| self.is_refused(index) || self.is_unsendable(index)) {
            return None;
        }
        let rejected = self.task.history.iter().find_map(|line| {
            let What::Rejected(attempt) = &line.what else { return None };
            (attempt.direction == Direction::Forward && steps.contains(&attempt.step)).then_some(attempt.step)
        });
        match rejected {
            // A queue may give a call to two instances at once, and one is told that the key is in use (rule 16).
            Some(index) => (self.day != Day::Wild).then(|| self.violation(Kind::TurnedForNothing, Some(index))),
            None => self.given_up(*steps.iter().find(|&&index| self.task.steps[index].last_error.is_some())?),
        }
    }

    /// Whether a line that failed stopped others though it need not have: no key says what a no past a pivot means, or a share
    /// of the lines may be dropped that is none in orders as they were given.
    pub(super) fn stops_other_lines(&self, index: usize) -> bool {
        let rule = &self.workflow.steps[index];
        let (Some(each), Some(_)) = (&rule.for_each, &rule.line) else { return false };
        if !self.is_refused(index) {
            return false;
        }
        let all = self.workflow.steps.iter().filter(|other| other.base() == rule.base()).count();
        let mut steps = self.workflow.steps.iter().zip(&self.task.steps);
        let is_past_pivot = steps.any(|(other, step)| other.pivot && step.attempt > 0 && !other.is_of_line(rule));
        let is_other = |(other, one): (usize, &StepRule)| {
            one.base() == rule.base() && other != index && !self.is_refused(other) && !self.task.steps[other].dropped
        };
        let has_others = self.workflow.steps.iter().enumerate().any(is_other);
        let is_held = is_past_pivot && rule.on_rejected == Remedy::Hold && !self.folder.says_on_rejected(rule.base());
        let given = self.folder.lines_max[0].max(all);
        let drops_none =
            rule.on_rejected == Remedy::Drop && each.drop_max.is_some_and(|most| !DropMax::allows(most, 1, given));
        has_others && (is_held || drops_none)
    }
}
