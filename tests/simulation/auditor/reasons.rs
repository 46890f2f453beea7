//! The reasons for which orders turn round, are given up or wait for an operator: invariant 17.

use std::sync::Arc;

use super::causes::Causes;
use super::dossier::Dossier;
use super::records::Change;
use super::{Auditor, Finding, Flow, Invariant, must};
use rehearsal::manner::IN_USE;
use rehearsal::seen::{StepSeen, StepState, Try};

/// Codes of rejections that an agent gives by itself.
pub(super) const OWN: [&str; 2] = ["undone", "output-too-large"];

/// What went wrong may show so much later, in milliseconds: an instance decides by what it read before.
const AFTERMATH_MS: i64 = 10_000;
/// An attempt that lasts so long needs no luck, in milliseconds.
const LONG_MS: i64 = 10_000;

impl Auditor {
    /// A service says no to a step, for good.
    pub(super) fn refuses(&mut self, of: Try) {
        self.dossier(of.order).refused.insert((of.step, of.way));
    }

    /// An agent takes the service's answer for a rejection.
    pub(super) fn takes_for_a_no(&mut self, of: Try, code: &Arc<str>) {
        let jumped_until_ms = self.jumped_until_ms;
        let dossier = self.dossier(of.order);
        // Two messages of one request look alike, and may be at work side by side; so may an instance that outlives the
        // time for which its message is hidden. And by a clock that jumped, the time for which a 409 means a call under
        // way is over too early.
        let is_excused = **code == *IN_USE
            && (dossier.doubled.contains(&(of.step, of.attempt)) || dossier.was_claimed_before(of, jumped_until_ms));
        if !is_excused && !OWN.contains(&&**code) && !dossier.refused.contains(&(of.step, of.way)) {
            dossier.misread.insert((of.step, of.attempt));
        }
    }
}

impl Dossier {
    /// Whether the service of an attempt decided against it.
    fn was_refused(&self, of: Try) -> bool {
        !self.misread.contains(&(of.step, of.attempt))
    }

    /// Whether something went wrong somewhere since the attempt was claimed. A short attempt may end for want of time, and
    /// a decision or a result that comes later may never come.
    fn met_trouble(&self, flow: &Flow, step: &StepSeen, of: Try) -> bool {
        let is_awaited = step.waits_until_ms.is_some() || self.ways(of.step).approval;
        let claim = self.claims.get(&(of.step, of.attempt)).filter(|_| flow.within_ms[of.step] >= LONG_MS);
        is_awaited || claim.is_none_or(|claim| claim.at_ms <= self.troubled_until_ms.saturating_add(AFTERMATH_MS))
    }
}

impl Change<'_> {
    /// The rejection of an attempt is its service's.
    pub(super) fn rejection_is_meant(&self, of: Try) -> Finding {
        must(self.dossier.was_refused(of), Invariant::Reason, || {
            format!("{of} counts as rejected, and its service never said no: {}", self.after)
        })
    }

    /// An attempt without an answer met something that went wrong: at the service, on the way, or at an instance.
    pub(super) fn expiry_is_meant(&self, of: Try) -> Finding {
        let (b, _) = self.steps();
        must(self.dossier.met_trouble(self.flow, b, of), Invariant::Reason, || {
            format!("{of} counts as expired, and nothing was wrong: {}", self.after)
        })
    }
}

impl Causes<'_> {
    /// Whether the service of the present attempt decided against it.
    pub(super) fn is_refusal(&self, index: usize) -> bool {
        self.dossier.was_refused(self.of(index))
    }

    /// Whether the present attempt met something that went wrong. Without one in flight, only time ran out.
    pub(super) fn is_failure(&self, index: usize) -> bool {
        let step = &self.before.steps[index];
        step.state != StepState::Processing || self.dossier.met_trouble(self.flow, step, self.of(index))
    }

    fn of(&self, index: usize) -> Try {
        let step = &self.before.steps[index];
        Try { order: self.before.order, step: index, way: step.way, attempt: step.attempt }
    }
}
