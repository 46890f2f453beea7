//! Steps that do not apply or may be missed, and the way back: rules 33 and 34.

use std::sync::Arc;

use super::causes::Causes;
use super::dossier::Dossier;
use super::records::Change;
use super::{Finding, Flow, Invariant, must};
use rehearsal::seen::{Element, OrderState, Record, StepSeen, StepState, Way};

/// What a version of a workflow says about the ways of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ways {
    /// It applies only if all of these hold.
    pub when: Vec<Condition>,
    /// A rejection does not turn the order round.
    pub optional: bool,
    /// Once it has begun, the order only goes forward.
    pub pivot: bool,
    /// It counts as undone without a call.
    pub no_undo: bool,
    /// People decide on it, and no service is called (rule 40).
    pub approval: bool,
}

/// A condition of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Whether the document names a reply channel.
    HasChannel(bool),
    /// Whether the document names this reply channel.
    IsChannel(Arc<str>, bool),
    /// Whether this step has an output.
    HasOutput(usize, bool),
    /// Whether the number of its element is above this one.
    IsAbove(u64, bool),
}

impl Condition {
    fn of_document(&self, channel: Option<&Arc<str>>, element: Option<&Element>) -> bool {
        match self {
            Self::HasChannel(has) => channel.is_some() == *has,
            Self::IsChannel(name, is) => (channel == Some(name)) == *is,
            Self::HasOutput(..) => true,
            Self::IsAbove(number, is) => element.is_some_and(|element| (element.number > *number) == *is),
        }
    }

    fn of_outputs(&self, flow: &Flow, step: usize, record: &Record) -> bool {
        match self {
            Self::HasChannel(_) | Self::IsChannel(..) | Self::IsAbove(..) => true,
            Self::HasOutput(earlier, has) => flow.output(step, *earlier, record).is_some() == *has,
        }
    }
}

/// Whether the steps after it may start.
pub(super) const fn is_over(step: &StepSeen) -> bool {
    matches!((step.way, step.state), (Way::Forward, StepState::Processed | StepState::Skipped))
}

/// Whether nothing of it is left to undo.
pub(super) const fn is_gone(step: &StepSeen) -> bool {
    step.attempt == 0 || matches!((step.way, step.state), (Way::Undo, StepState::Processed))
}

/// Whether a pivot other than this step has begun, and was not given up.
pub(super) fn is_past_pivot(dossier: &Dossier, record: &Record, but: Option<usize>) -> bool {
    record.steps.iter().enumerate().any(|(index, step)| {
        let is_open = matches!(step.state, StepState::Pending | StepState::Processing | StepState::Processed);
        but != Some(index) && dossier.ways(index).pivot && step.way == Way::Forward && step.attempt > 0 && is_open
    })
}

/// Whether the document has the order need the step.
pub(super) fn applies(dossier: &Dossier, index: usize) -> bool {
    let channel = dossier.channel.as_ref();
    let line = dossier.flow.as_ref().and_then(|flow| flow.line(index));
    let element = line.and_then(|line| dossier.elements.get(line));
    dossier.ways(index).when.iter().all(|condition| condition.of_document(channel, element))
}

/// A new order: the steps that do not apply by its document are skipped.
pub(super) fn begins_well(dossier: &Dossier, record: &Record) -> Finding {
    for (index, step) in record.steps.iter().enumerate() {
        let begins_well = applies(dossier, index) || step.state == StepState::Skipped;
        must(begins_well, Invariant::Applies, || {
            format!("step {index} does not apply, and begins as {:?}", step.state)
        })?;
    }
    Ok(())
}

/// Nothing turns an order round past a pivot but the pivot itself.
pub(super) fn turns_well(causes: &Causes<'_>, after: &Record) -> Finding {
    let before = causes.before;
    let has_turned = |index: usize| before.steps[index].way == Way::Forward && after.steps[index].way == Way::Undo;
    let is_pivot = |index: &usize| causes.dossier.ways(*index).pivot && before.steps[*index].attempt > 0;
    let is_forward = before.state != OrderState::Error || is_past_pivot(causes.dossier, before, None);
    for index in (0..before.steps.len()).filter(|index| is_forward && has_turned(*index)).filter(is_pivot) {
        let is_own = match before.steps[index].state {
            StepState::Pending | StepState::Processing => causes.is_exhausted(index) || causes.is_rejected(index),
            StepState::Error | StepState::Skipped => true,
            StepState::Processed => false,
        };
        must(is_own, Invariant::Pivot, || {
            format!("it turns round past its pivot {index}: {before}; and now: {after}")
        })?;
    }
    Ok(())
}

impl Change<'_> {
    fn is_inapplicable(&self) -> bool {
        let when = &self.dossier.ways(self.index).when;
        when.iter().any(|condition| !condition.of_outputs(self.flow, self.index, self.after))
    }

    /// A claim is of a step that applies, and of no undo that there is not.
    pub(super) fn needs_a_call(&self) -> Finding {
        let (_, a) = self.steps();
        let index = self.index;
        match a.way {
            Way::Forward => must(!self.is_inapplicable(), Invariant::Applies, || {
                format!("step {index} is claimed, and does not apply: {}", self.after)
            }),
            Way::Undo => must(!self.dossier.has_no_undo(index), Invariant::Applies, || {
                format!("the undo of step {index} is claimed, and it has none")
            }),
        }
    }

    /// A step is skipped before its first claim, once the steps before it are over; by a rejection; or by an operator.
    pub(super) fn may_be_skipped(&self) -> Finding {
        let (b, a) = self.steps();
        let index = self.index;
        let optional = self.dossier.ways(index).optional;
        let is_so = match b.state {
            StepState::Pending if a.dropped => b.attempt == 0,
            StepState::Pending => b.attempt == 0 && self.is_inapplicable() && self.sequence().is_ok(),
            StepState::Error => optional && self.dossier.skips.contains(&index),
            StepState::Processing | StepState::Processed | StepState::Skipped => false,
        };
        must(is_so, Invariant::Applies, || format!("step {index} is skipped without a reason: {}", self.after))
    }

    /// A rejection skips an optional step, and no other one.
    pub(super) fn rejection_ends_well(&self) -> Finding {
        let (_, a) = self.steps();
        let optional = self.dossier.ways(self.index).optional && a.way == Way::Forward;
        must(optional == (a.state == StepState::Skipped) || self.has_turned(), Invariant::Applies, || {
            format!("step {} is rejected, and is {:?} now", self.index, a.state)
        })
    }

    /// A step without an undo counts as undone in its turn, once its calls are over.
    pub(super) fn may_be_undone_without_call(&self) -> Finding {
        let index = self.index;
        must(self.dossier.has_no_undo(index), Invariant::Applies, || {
            format!("step {index} is undone without a call, and has an undo")
        })?;
        self.calls_are_over()?;
        self.sequence()
    }
}
