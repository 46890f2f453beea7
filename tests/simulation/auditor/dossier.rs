//! What the auditor remembers of one order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::seen::{Body, Ending, Kind, OrderState, Record, Try, Way};

/// What is known of one order.
#[derive(Debug, Default)]
pub(super) struct Dossier {
    /// A customer was told that it is accepted.
    pub(super) accepted: bool,
    /// Documents that were posted under its name.
    pub(super) posted: Vec<Posted>,
    /// Hash of the document that is stored.
    pub(super) document: Option<u64>,
    /// The fingerprint of the document that is stored, and since when, in milliseconds.
    pub(super) stored: Option<(Arc<str>, i64)>,
    /// The channel of the document that is stored.
    pub(super) channel: Option<Arc<str>>,
    /// When it was last set going: accepted, stored, turned round, taken up again or paused, in milliseconds.
    pub(super) going_since_ms: i64,
    /// When it was last set going from `Error`, in milliseconds.
    pub(super) left_error_ms: Option<i64>,
    /// Messages with it on the submission queue and among its dead letters.
    pub(super) kept: i64,
    /// Wakes that were queued for it.
    pub(super) wakes: u64,
    /// Its record as last written.
    pub(super) last: Option<Record>,
    /// What it was in each version.
    pub(super) past: BTreeMap<u64, Past>,
    /// By step and attempt.
    pub(super) claims: BTreeMap<(usize, u32), Claimed>,
    /// By step: until when its forward attempt may still run, where it was turned round in the middle of one.
    pub(super) running_until_ms: BTreeMap<usize, i64>,
    /// By step, attempt and instance of the agent: until when what it was given last may be worked on.
    pub(super) handed: BTreeMap<(usize, u32, Arc<str>), i64>,
    /// Attempts whose failure was counted.
    pub(super) counted: BTreeSet<(usize, u32)>,
    /// Replies that agents tried to send.
    pub(super) replies: Vec<(Try, Ending)>,
    /// By step: hashes of what came of it, as agents said.
    pub(super) outputs: BTreeSet<(usize, u64)>,
    /// By step, attempt and invocation of the agent: replies that could not be sent, as it was told.
    pub(super) unsent: BTreeMap<(usize, u32, u32), usize>,
    /// Attempts that dead letters were about.
    pub(super) dead_letters: Vec<Try>,
    /// Commands of operators that were queued.
    pub(super) commands: BTreeSet<&'static str>,
    /// By step: what happened at its service.
    pub(super) effects: BTreeMap<usize, Effects>,
    /// By step and direction: the key and the body of the first call.
    pub(super) keys: BTreeMap<(usize, bool), (Arc<str>, Body)>,
    /// What arrived outside.
    pub(super) told: BTreeSet<(Kind, u64)>,
}

/// One document, as it was posted.
#[derive(Debug, Clone)]
pub(super) struct Posted {
    pub(super) fingerprint: Arc<str>,
    /// Its hash.
    pub(super) document: u64,
    /// The channel that it names.
    pub(super) channel: Option<Arc<str>>,
}

/// What an order was in one version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    pub(super) state: OrderState,
    /// The version in which its reason came up; 0 without one.
    pub(super) since: u64,
    pub(super) paused: bool,
}

/// One claim, as it was written.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) way: Way,
    pub(super) complete_by_ms: i64,
    /// The invocation that wrote it.
    pub(super) by: u32,
    /// When it was written, in milliseconds since the world began.
    pub(super) at_ms: i64,
    /// Its request was queued.
    pub(super) requested: bool,
}

/// What happened at the service of one step.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effects {
    pub(super) forward: u32,
    pub(super) undo: u32,
    pub(super) confirmed: bool,
    /// The service said that it is undone, or that there was nothing to undo.
    pub(super) undo_confirmed: bool,
}

impl Dossier {
    /// Until when an agent's instance may work on an attempt, by its clock: the earlier of the deadline and of what it was
    /// told is left.
    pub(super) fn limit_ms(&self, of: Try, by: &Arc<str>) -> Option<i64> {
        let claim = self.claims.get(&(of.step, of.attempt))?;
        let until_ms = self.handed.get(&(of.step, of.attempt, by.clone())).copied();
        Some(claim.complete_by_ms.min(until_ms.unwrap_or(i64::MAX)))
    }

    pub(super) fn effects(&self, step: usize) -> Effects {
        self.effects.get(&step).copied().unwrap_or_default()
    }

    /// Whether the service of a step said that it is undone, or was never called to do it: who knows that need not ask.
    pub(super) fn is_taken_back(&self, step: usize) -> bool {
        self.effects(step).undo_confirmed || !self.keys.contains_key(&(step, false))
    }

    /// Whether an agent sent such a reply from this attempt.
    pub(super) fn has_reply(&self, of: Try, ending: Ending) -> bool {
        self.replies.iter().any(|(reply, how)| *reply == of && *how == ending)
    }

    /// Whether an agent sent a success from this attempt or an earlier one.
    pub(super) fn has_success(&self, of: Try) -> bool {
        self.replies.iter().any(|(reply, how)| {
            (reply.step, reply.way) == (of.step, of.way) && reply.attempt <= of.attempt && *how == Ending::Done
        })
    }
}
