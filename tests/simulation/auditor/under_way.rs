//! Calls without an answer, and what an answer means: rules 16 and 17.

use std::sync::Arc;

use super::dossier::{Dossier, OpenCall};
use super::reasons::OWN;
use super::{Auditor, Finding, Invariant, must};
use rehearsal::manner::IN_USE;
use rehearsal::seen::{Ending, Heard, Try, Way};

impl Auditor {
    /// A request is in the hands of an agent.
    pub(super) fn handed_as(&mut self, of: Try, message: &Arc<str>, overlaps: bool, is_copied: bool) {
        let dossier = self.dossier(of.order);
        if is_copied || overlaps {
            dossier.doubled.insert((of.step, of.attempt));
        }
        let first = dossier.messages.entry((of.step, of.attempt)).or_insert_with(|| message.clone());
        if overlaps || first != message {
            dossier.copied.insert((of.step, of.attempt));
        }
    }

    /// A call starts.
    pub(super) fn begins(&mut self, of: Try, call: u64, agent: usize) -> &mut Self {
        let (started_ms, jumped_until_ms) = (self.at_ms, self.jumped_until_ms);
        let settled_ms = started_ms + self.rules.settled_ms.get(agent).copied().unwrap_or(0);
        let is_careless = self.rules.are_careless.get(agent).copied().unwrap_or(false);
        let is_taken_on = self.dossier(of.order).taken_on.contains(&(of.step, of.attempt));
        if of.way == Way::Forward && !is_taken_on {
            let open = OpenCall { attempt: of.attempt, started_ms, settled_ms, is_careless };
            let dossier = self.dossier(of.order);
            dossier.open_calls.insert((of.step, call), open);
            // By a wrong clock, or with a deadline that one wrote, the request of before the undo is in time.
            let is_wrong = dossier.is_by_a_wrong_clock(of.step, &open, jumped_until_ms);
            if is_careless && is_wrong && dossier.is_being_undone(of.step) {
                dossier.raced.insert(of.step);
            }
        }
        self
    }

    /// Its agent hears from the service.
    pub(super) fn answered(&mut self, of: Try, call: u64, heard: &Heard) {
        let dossier = self.dossier(of.order);
        if let Heard::No(code) = heard {
            dossier.noes.insert((of.step, of.way, code.clone()));
        }
        if *heard != Heard::Open {
            dossier.open_calls.remove(&(of.step, call));
        }
    }

    /// An undo is sent only after every call of its step has settled (rule 16). Nobody can promise that for a call that
    /// started, or was claimed, before the last jump of a clock was over. A careful service keeps its books even then,
    /// and a careless one does not.
    pub(super) fn undo_has_waited(&mut self, of: Try) -> Finding {
        let (now_ms, jumped_until_ms) = (self.at_ms, self.jumped_until_ms);
        if of.way == Way::Forward {
            return Ok(());
        }
        let dossier = self.dossier(of.order);
        let calls = dossier.open_calls.range((of.step, 0)..=(of.step, u64::MAX)).map(|(_, call)| *call);
        let (raced, early): (Vec<_>, Vec<_>) = calls
            .filter(|call| now_ms < call.settled_ms)
            .partition(|call| dossier.is_by_a_wrong_clock(of.step, call, jumped_until_ms));
        if raced.iter().any(|call| call.is_careless) {
            dossier.raced.insert(of.step);
        }
        let early = early.iter().find(|call| !dossier.is_by_a_copy(of.step, call));
        must(early.is_none(), Invariant::UnderWay, || {
            let (ms, attempt) = early.map_or((0, 0), |call| (call.settled_ms - now_ms, call.attempt));
            format!("{of} is requested, but a call of attempt {attempt} may have its effect for {ms} ms")
        })
    }

    /// A service tells later that a step is done. No other call of the key has an effect of its own.
    pub(super) fn is_told_done(&mut self, of: Try) {
        self.dossier(of.order).open_calls.retain(|(step, _), _| *step != of.step);
    }

    /// A rejection is a service's: it said no, and no call of the key was at work then (rule 17).
    pub(super) fn was_rejected(&mut self, of: Try, ending: Ending, code: Option<&Arc<str>>) -> Finding {
        let (now_ms, jumped_until_ms) = (self.at_ms, self.jumped_until_ms);
        let dossier = self.dossier(of.order);
        if !matches!(ending, Ending::Deferred | Ending::Retrying | Ending::Accepted) {
            dossier.ended_ms.entry((of.step, of.attempt)).or_insert(now_ms);
        }
        if ending == Ending::Accepted {
            dossier.taken_on.insert((of.step, of.attempt));
        }
        let Some(code) = code else { return Ok(()) };
        self.takes_for_a_no(of, code);
        let dossier = self.dossier(of.order);
        let is_said = OWN.contains(&&**code) || dossier.noes.contains(&(of.step, of.way, code.clone()));
        // A copy of the request may be at work. Nobody else can know.
        let has_copy = dossier.copied.iter().any(|(step, _)| *step == of.step);
        // By a clock that jumped, the time for which a 409 means a call under way is over too early.
        let is_misread = **code == *IN_USE && dossier.was_claimed_before(of, jumped_until_ms);
        // Nobody told the agent of a later attempt, and the reply is dropped (rule 5).
        let is_late =
            **code == *IN_USE && dossier.claims.range((of.step, of.attempt + 1)..=(of.step, u32::MAX)).next().is_some();
        must(is_said || has_copy || is_misread || is_late, Invariant::Rejected, || {
            format!("{of} is rejected ({code}), and its service never said no")
        })
    }
}

impl Dossier {
    /// Whether an attempt of the step, in this direction, was claimed before a time.
    pub(super) fn was_claimed_before(&self, of: Try, at_ms: i64) -> bool {
        let mut claims = self.claims.range((of.step, 0)..=(of.step, of.attempt));
        claims.any(|(_, claim)| claim.way == of.way && claim.at_ms < at_ms)
    }

    /// Whether a call started, or its attempt was claimed, before the last jump of a clock was over.
    fn is_by_a_wrong_clock(&self, step: usize, call: &OpenCall, jumped_until_ms: i64) -> bool {
        let claim = self.claims.get(&(step, call.attempt));
        call.started_ms < jumped_until_ms || claim.is_some_and(|claim| claim.at_ms < jumped_until_ms)
    }

    /// Whether an undo of the step was claimed.
    fn is_being_undone(&self, step: usize) -> bool {
        self.claims.range((step, 0)..=(step, u32::MAX)).any(|(_, claim)| claim.way == Way::Undo)
    }

    /// Whether a call is by a second handling of the request of an attempt that has answered. The answer says nothing about
    /// such a call: its sender does not know of it.
    fn is_by_a_copy(&self, step: usize, call: &OpenCall) -> bool {
        let attempt = (step, call.attempt);
        self.ended_ms
            .get(&attempt)
            .is_some_and(|ended_ms| self.copied.contains(&attempt) || call.started_ms >= *ended_ms)
    }
}
