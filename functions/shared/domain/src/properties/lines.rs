//! What holds for the lines of an order (rule 50).

use super::walker::Walker;
use crate::task::{Direction, Task};
use crate::workflow::StepRule;

impl Walker {
    /// A line is dropped as a whole and for good, within what its workflow allows, and never the last one (rule 50).
    pub(super) fn check_lines(&self, before: &Task, after: &Task) {
        let rules = &self.workflow.steps;
        for (index, (b, a)) in before.steps.iter().zip(&after.steps).enumerate() {
            assert!(a.dropped || !b.dropped, "a line comes back");
            let mut of_line = after.steps.iter().zip(rules).filter(|(_, rule)| rule.is_of_line(&rules[index]));
            assert!(of_line.all(|(step, _)| step.dropped == a.dropped), "half of a line is dropped");
            assert!(!a.dropped || a.direction == Direction::Undo || !a.was_claimed(), "{a:?} is not undone");
            let uses = |other: &StepRule| other.ancestors.contains(&index) && !other.in_line.contains(&index);
            let is_used = before.steps.iter().zip(rules).any(|(step, rule)| step.was_claimed() && uses(rule));
            assert!(b.dropped || !a.dropped || !is_used, "a step that waits for all lines has begun with {b:?}");
        }
        assert!(after.carried_lines()[1].is_empty() || !after.carried_lines()[0].is_empty(), "no line is left");
    }
}
