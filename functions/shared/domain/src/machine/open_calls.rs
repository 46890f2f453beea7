//! Until when the calls of a step may have their effects (rule 16).

use crate::limits::SETTLES_WITHIN_MS_MAX;
use crate::task::Step;
use crate::time::Timestamp;
use crate::workflow::StepRule;

/// The time from which on no call of the present attempt has an effect any more. Each starts before `CompleteBy`. An
/// approval makes none, and what makes a child order finds its undo (rule 49).
pub(super) fn settled_at(step: &Step, rule: &StepRule) -> Option<Timestamp> {
    step.complete_by.filter(|_| rule.service().is_some()).map(|at| at.plus_ms(rule.settles_within_ms))
}

/// Until when a call of the step may have its effect, if its present attempt ends without an answer. What was taken on is
/// called no more.
pub(super) fn open_until(step: &Step, rule: &StepRule) -> Option<Timestamp> {
    if step.is_awaited() { step.may_run_until } else { step.may_run_until.max(settled_at(step, rule)) }
}

/// Such a time, if it can be right. No call that started by `now` has an effect later than this after it, with whatever
/// setting: a wrong clock wrote what lies further ahead (rule 23).
pub(super) fn believed_settled(at: Timestamp, rule: &StepRule, now: Timestamp) -> Timestamp {
    let longest_ms = rule.complete_within_ms.saturating_add(SETTLES_WITHIN_MS_MAX);
    if at.is_beyond(now, longest_ms) { now.plus_ms(longest_ms) } else { at }
}
