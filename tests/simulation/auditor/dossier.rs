//! The auditor's memory of one order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Flow;
use super::wanted::Look;
use super::ways::Ways;
use rehearsal::seen::{Body, Element, Ending, Kind, OrderState, Record, Try, Way};

/// The observations of one order.
#[derive(Debug, Default)]
pub(super) struct Dossier {
    /// A customer got its acceptance.
    pub(super) accepted: bool,
    /// Documents that were posted under its ID.
    pub(super) posted: Vec<Posted>,
    /// Hash of the stored document.
    pub(super) document: Option<u64>,
    /// The fingerprint of the stored document, and the time of storage in milliseconds.
    pub(super) stored: Option<(Arc<str>, i64)>,
    /// The reply channel of the stored document.
    pub(super) channel: Option<Arc<str>>,
    /// The elements of its array.
    pub(super) elements: Vec<Element>,
    /// The workflow of the order.
    pub(super) flow: Option<Arc<Flow>>,
    /// Whether it was ever undone.
    pub(super) is_undoing: bool,
    /// The steps of lines that are dropped.
    pub(super) dropped: BTreeSet<usize>,
    /// Steps whose line an operator dropped.
    pub(super) drops: BTreeSet<usize>,
    /// Its last start, in milliseconds: acceptance, storage, turn, resubmission or pause.
    pub(super) going_since_ms: i64,
    /// Its last start from `Error`, in milliseconds.
    pub(super) left_error_ms: Option<i64>,
    /// Its messages on the submission queue and its dead-letter queue.
    pub(super) kept: i64,
    /// Its record as last written.
    pub(super) last: Option<Record>,
    /// Whether it was found late.
    pub(super) is_late: bool,
    /// Its state in each version.
    pub(super) past: BTreeMap<u64, Past>,
    /// By step and attempt.
    pub(super) claims: BTreeMap<(usize, u32), Claimed>,
    /// By step: the end of a forward attempt that was in flight at the turn.
    pub(super) running_until_ms: BTreeMap<usize, i64>,
    /// By step, attempt and agent instance: the deadline of the last delivery, and the smallest budget.
    pub(super) handed: BTreeMap<(usize, u32, Arc<str>), (i64, u64)>,
    /// By step and attempt: the first message with its request.
    pub(super) messages: BTreeMap<(usize, u32), Arc<str>>,
    /// Attempts of which a reply says that a service took the call on: no other call of the key counts (rule 16).
    pub(super) taken_on: BTreeSet<(usize, u32)>,
    /// By step, attempt and instance: until when its service asks not to be called, in milliseconds since the start of
    /// the world.
    pub(super) asked_ms: BTreeMap<(usize, u32, Arc<str>), i64>,
    /// Attempts that two agents may work on at once: a request came twice, or again while the first was at work.
    pub(super) copied: BTreeSet<(usize, u32)>,
    /// Steps of careless services that were called and undone side by side, by a clock that jumped.
    pub(super) raced: BTreeSet<usize>,
    /// Forward calls that may still have their effect, by step and number.
    pub(super) open_calls: BTreeMap<(usize, u64), OpenCall>,
    /// By step and attempt: the time of the first own answer of the attempt, in milliseconds since the start of the world.
    pub(super) ended_ms: BTreeMap<(usize, u32), i64>,
    /// By step and direction: the codes with which its service said no.
    pub(super) noes: BTreeSet<(usize, Way, Arc<str>)>,
    /// By step and attempt: since when no call for it is wanted, in milliseconds since the start of the world.
    pub(super) over_ms: BTreeMap<(usize, u32), i64>,
    /// By step, attempt and agent instance.
    pub(super) looks: BTreeMap<(usize, u32, Arc<str>), Look>,
    /// Steps against which a service decided, each with its direction.
    pub(super) refused: BTreeSet<(usize, Way)>,
    /// Attempts whose request the queue delivered as two messages, or again while an instance was at work on it.
    pub(super) doubled: BTreeSet<(usize, u32)>,
    /// Until when something went wrong somewhere, as of the last write, in milliseconds since the start of the world.
    pub(super) troubled_until_ms: i64,
    /// Rejected attempts that no service decided against.
    pub(super) misread: BTreeSet<(usize, u32)>,
    /// The time at which it was processed or compensated, in milliseconds since the start of the world.
    pub(super) final_since_ms: Option<i64>,
    /// Attempts whose failure was counted.
    pub(super) counted: BTreeSet<(usize, u32)>,
    /// Replies that agents tried to send.
    pub(super) replies: Vec<(Try, Ending)>,
    /// By step: hashes of the agents' outputs.
    pub(super) outputs: BTreeSet<(usize, u64)>,
    /// By step, attempt and agent invocation: replies that failed to send.
    pub(super) unsent: BTreeMap<(usize, u32, u32), usize>,
    /// Attempts with a dead letter.
    pub(super) dead_letters: Vec<Try>,
    /// Commands of operators that were queued.
    pub(super) commands: BTreeSet<&'static str>,
    /// Notes of operators that were queued, each with whether it takes the order on or lets it go.
    pub(super) notes: BTreeMap<Arc<str>, Option<bool>>,
    /// For each step whether it applies, may be missed, and turns round.
    pub(super) ways: Vec<Ways>,
    /// Steps that were skipped at some time.
    pub(super) skipped: BTreeSet<usize>,
    /// Steps that an operator settled as skipped.
    pub(super) skips: BTreeSet<usize>,
    /// Steps that an operator settled as done, each with its direction.
    pub(super) settled: BTreeSet<(usize, Way)>,
    /// Steps on which people decided, each with whether they approved (rule 40).
    pub(super) decided: BTreeSet<(usize, bool)>,
    /// By step: the attempt in which people were asked when they decided last. A later one is another question.
    pub(super) questions: BTreeMap<usize, u32>,
    /// By step: the index of the only agent that called for it.
    pub(super) agents: BTreeMap<usize, usize>,
    /// By step: the effects, at all services together.
    pub(super) effects: BTreeMap<usize, Effects>,
    /// By step and direction: the key and the body of the first call.
    pub(super) keys: BTreeMap<(usize, bool), (Arc<str>, Body)>,
    /// Arrived status messages and alerts.
    pub(super) told: BTreeSet<(Kind, u64)>,
}

/// One posted document.
#[derive(Debug, Clone)]
pub(super) struct Posted {
    pub(super) fingerprint: Arc<str>,
    /// Its hash.
    pub(super) document: u64,
    /// The named channel.
    pub(super) channel: Option<Arc<str>>,
    /// The elements of its array.
    pub(super) elements: Vec<Element>,
    /// The version of the workflow that the API chose, if it chose one.
    pub(super) pinned: Option<u32>,
}

/// The state of an order in one version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    pub(super) state: OrderState,
    /// The version of its reason; 0 without one.
    pub(super) since: u64,
    pub(super) paused: bool,
    /// Whether it only goes forward.
    pub(super) past_pivot: bool,
    /// Whether the result of a step, or a decision on it, is awaited in this version.
    pub(super) is_awaiting: bool,
    /// Whether it was found late in this version.
    pub(super) is_found_late: bool,
    /// Whether a result contradicted it in this version.
    pub(super) is_contradicted: bool,
}

/// One claim, as it was written.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) way: Way,
    pub(super) complete_by_ms: i64,
    /// The invocation that wrote it.
    pub(super) by: u32,
    /// The time of the write, in milliseconds since the start of the world.
    pub(super) at_ms: i64,
    /// Whether its request was queued.
    pub(super) requested: bool,
}

/// A call that may still have its effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenCall {
    pub(super) attempt: u32,
    /// Its start, in milliseconds since the start of the world.
    pub(super) started_ms: i64,
    /// From then on it has no effect, in milliseconds since the start of the world.
    pub(super) settled_ms: i64,
    /// Its service does not refuse it after the undo.
    pub(super) is_careless: bool,
}

/// The effects of one step, at all services together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effects {
    pub(super) forward: u32,
    pub(super) undo: u32,
    pub(super) confirmed: bool,
    /// The service confirmed the undo, or had nothing to undo.
    pub(super) undo_confirmed: bool,
}

impl Dossier {
    /// The end of an agent instance's attempt, by its clock: the earlier of the deadline and the end of the budget.
    pub(super) fn limit_ms(&self, of: Try, by: &Arc<str>) -> Option<i64> {
        let claim = self.claims.get(&(of.step, of.attempt))?;
        let handed = self.handed.get(&(of.step, of.attempt, by.clone()));
        Some(claim.complete_by_ms.min(handed.map_or(i64::MAX, |(until_ms, _)| *until_ms)))
    }

    /// A margin of an agent instance's attempt: at most a fifth of the time that its request was sent with.
    pub(super) fn margin_ms(&self, of: Try, by: &Arc<str>, margin_ms: i64) -> i64 {
        let handed = self.handed.get(&(of.step, of.attempt, by.clone()));
        let budget_ms = handed.and_then(|(_, budget_ms)| i64::try_from(*budget_ms).ok());
        budget_ms.map_or(margin_ms, |budget_ms| margin_ms.min(budget_ms / 5))
    }

    /// What its workflow says about the ways of a step.
    pub(super) fn ways(&self, step: usize) -> &Ways {
        static USUAL: Ways = Ways { when: Vec::new(), optional: false, pivot: false, no_undo: false, approval: false };
        self.ways.get(step).unwrap_or(&USUAL)
    }

    /// Whether a step counts as undone without a call. One of a dropped line may have another undo.
    pub(super) fn has_no_undo(&self, step: usize) -> bool {
        let each = self.flow.as_ref().and_then(|flow| flow.each.get(step)?.as_ref());
        let has_own = each.is_some_and(|each| each.drop.is_some()) && self.dropped.contains(&step);
        self.ways(step).no_undo && !has_own
    }

    pub(super) fn effects(&self, step: usize) -> Effects {
        self.effects.get(&step).copied().unwrap_or_default()
    }

    /// Whether the service confirmed the undo, or was never called for the step, so that no undo is needed.
    pub(super) fn is_taken_back(&self, step: usize) -> bool {
        self.effects(step).undo_confirmed || !self.keys.contains_key(&(step, false))
    }

    /// Whether each effect of a step was taken back. A careless service that was called and undone side by side may say
    /// otherwise. What has no undo stays.
    pub(super) fn is_even(&self, step: usize) -> bool {
        let effects = self.effects(step);
        let is_kept = self.has_no_undo(step) && effects.undo == 0;
        effects.forward == effects.undo || is_kept || self.raced.contains(&step)
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
