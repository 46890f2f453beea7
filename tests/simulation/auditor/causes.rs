//! The causes of errors and compensations: invariant 3 and rules 7, 8, 9 and 12.

use domain::limits::SETTLES_WITHIN_MS_MAX;

use super::dossier::Dossier;
use super::late;
use super::lines::dropped_well;
use super::ways::{is_past_pivot, turns_well};
use super::{Finding, Flow, Invariant, must};
use rehearsal::seen::{Ending, OrderState, Record, StepSeen, StepState, Try, Way};

/// One order's change, for the check of its cause.
pub(super) struct Causes<'a> {
    pub(super) flow: &'a Flow,
    pub(super) dossier: &'a Dossier,
    pub(super) before: &'a Record,
    pub(super) after: &'a Record,
    /// The writer's clock.
    clock_ms: i64,
}

/// An order that enters `Error` or `Compensating` names its reason in the same version, and the reason was observed.
pub(super) fn has_cause(flow: &Flow, dossier: &Dossier, records: [&Record; 2], clock_ms: i64) -> Finding {
    let [before, after] = records;
    let was_forward = matches!(before.state, OrderState::Pending | OrderState::Processing);
    let stops = after.state == OrderState::Error && before.state != OrderState::Error;
    let turns = was_forward && matches!(after.state, OrderState::Compensating | OrderState::Compensated);
    let code = after.reason.as_ref().filter(|(_, since)| *since == after.version).map(|(code, _)| &**code);
    let closes = after.state == OrderState::Closed && before.state != OrderState::Closed;
    must(code.is_some() || !(stops || turns || closes), Invariant::Movers, || {
        format!("it stops or turns round without a reason of its own: {after}")
    })?;
    let causes = Causes { flow, dossier, before, after, clock_ms };
    let holds = after.state == OrderState::Error;
    let is_so = match code {
        Some("cancelled") => dossier.commands.contains("Cancel"),
        Some("closed") => closes && dossier.commands.contains("Close") && causes.may_close(after),
        Some("late") => late::is_cause(flow, records),
        Some("exhausted") => causes.any(Way::Forward, |step| {
            let drops = causes.drops(step, |each| each.drops_exhausted);
            causes.is_exhausted(step) && causes.holds(&flow.holds_exhausted, step, drops) == Some(holds)
        }),
        Some("rejected") => causes.any(Way::Forward, |step| {
            let is_optional = dossier.ways(step).optional;
            let drops = causes.drops(step, |each| each.drops_rejected);
            !is_optional && causes.is_rejected(step) && causes.holds(&flow.holds_rejected, step, drops) == Some(holds)
        }),
        Some("compensation-failed") => {
            causes.any(Way::Undo, |step| causes.is_exhausted(step) || causes.is_rejected(step))
        }
        // Dead wakes are not observable. A dead letter about an attempt is checked when its failure is counted.
        Some("dead-letter") | None => true,
        // No chain of messages here is longer than a workflow allows.
        Some(_) => false,
    };
    dropped_well(&causes, after)?;
    turns_well(&causes, after)?;
    must(is_so, Invariant::Movers, || {
        format!("nothing happened that is a reason for this: {before}; and now: {after}")
    })?;
    is_meant(&causes, code)
}

/// What is a reason by the record is one at the services, too (invariant 17).
fn is_meant(causes: &Causes<'_>, code: Option<&str>) -> Finding {
    let is_meant = match code {
        Some("rejected") => causes.any(Way::Forward, |step| causes.is_rejected(step) && causes.is_refusal(step)),
        Some("exhausted") => causes.any(Way::Forward, |step| causes.is_exhausted(step) && causes.is_failure(step)),
        Some("compensation-failed") => causes.any(Way::Undo, |step| {
            (causes.is_exhausted(step) && causes.is_failure(step))
                || (causes.is_rejected(step) && causes.is_refusal(step))
        }),
        // People, a limit or a dead letter.
        Some(_) | None => true,
    };
    must(is_meant, Invariant::Reason, || {
        format!("nothing that a service said or that went wrong is a reason for this: {}", causes.after)
    })
}

impl Causes<'_> {
    fn any(&self, way: Way, is_cause: impl Fn(usize) -> bool) -> bool {
        (0..self.before.steps.len()).any(|step| self.before.steps[step].way == way && is_cause(step))
    }

    /// Whether the step that was given up holds the order, by its workflow or past a pivot. `None` if its line is dropped
    /// instead.
    fn holds(&self, holds: &[bool], step: usize, drops: bool) -> Option<bool> {
        if drops && self.flow.may_drop(step, self.after) {
            return None;
        }
        // A pivot of a line that is dropped in the same write is none any more.
        let mut before = self.before.clone();
        let steps = before.steps.iter_mut().zip(&self.after.steps);
        steps.filter(|(_, after)| after.dropped).for_each(|(before, _)| before.way = Way::Undo);
        let is_past = is_past_pivot(self.dossier, &before, Some(step)) || self.settles_pivot(step);
        Some(*holds.get(step)? || is_past)
    }

    /// Whether an operator ends a pivot other than this step in the same write, so that the order is past it.
    fn settles_pivot(&self, but: usize) -> bool {
        let steps = self.before.steps.iter().zip(&self.after.steps).enumerate();
        steps.filter(|(index, _)| *index != but && self.dossier.ways(*index).pivot).any(|(_, (before, after))| {
            (before.state, after.state, after.way) == (StepState::Error, StepState::Processed, Way::Forward)
        })
    }

    /// It waited for an operator, its steps stay as they were, and no call can have its effect any more.
    fn may_close(&self, after: &Record) -> bool {
        let now_ms = self.clock_ms;
        let is_over = |(index, step): (usize, &StepSeen)| {
            let longest_ms = self.flow.within_ms[index].saturating_add_unsigned(SETTLES_WITHIN_MS_MAX);
            let ends_ms = step.runs_until_ms.max(step.complete_by_ms);
            // A wrong clock wrote what lies further ahead (rule 23).
            let ends_ms = ends_ms.filter(|_| !self.dossier.ways(index).approval);
            ends_ms.is_none_or(|ends_ms| ends_ms <= now_ms || ends_ms > now_ms + longest_ms)
        };
        self.before.state == OrderState::Error
            && self.before.steps == after.steps
            && self.before.steps.iter().enumerate().all(is_over)
    }

    /// The step's horizon is over, or its last allowed attempt expired.
    pub(super) fn is_exhausted(&self, index: usize) -> bool {
        let step = &self.before.steps[index];
        let is_last = step.state == StepState::Processing && step.failures + 1 >= self.flow.max_failures[index];
        let has_expired = self.flow.expires_ms(index, step, self.clock_ms).is_some_and(|at_ms| at_ms <= self.clock_ms);
        let is_open = matches!(step.state, StepState::Pending | StepState::Processing);
        let over_ms = step.started_ms.map(|started_ms| started_ms.saturating_add(self.flow.horizons_ms[index]));
        // No longer wait ends after the horizon.
        let longer_ms = if has_expired { self.flow.longer_ms(index, step.failures + 1) } else { 0 };
        let is_over = over_ms.is_some_and(|over_ms| over_ms <= self.clock_ms + longer_ms);
        is_open && ((is_last && has_expired) || is_over)
    }

    /// The current attempt was rejected, or its output is too large.
    pub(super) fn is_rejected(&self, index: usize) -> bool {
        let step = &self.before.steps[index];
        let of = Try { order: self.before.order, step: index, way: step.way, attempt: step.attempt };
        let endings = [Ending::Failed, Ending::TooLarge];
        if self.dossier.decided.contains(&(index, false)) {
            return step.state == StepState::Processing;
        }
        step.state == StepState::Processing && endings.iter().any(|ending| self.dossier.has_reply(of, *ending))
    }
}
