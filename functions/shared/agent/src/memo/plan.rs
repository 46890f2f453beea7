//! The meaning of the memos for a request. Pure.

use domain::json::Json;
use domain::message::{Failure, Outcome};
use domain::output::OUTPUT_TOO_LARGE;
use domain::ports::{Memo, MemoState};
use domain::time::Timestamp;

use crate::memo::UNDONE;

/// The meaning of the memos for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The answer is known.
    Answer(Outcome),
    /// Another call is in flight, until then at most.
    Wait { until: Timestamp },
    /// No call was ever tried: mark the forward key; no call is needed.
    MarkOnly,
    /// This attempt was declined: no call.
    Declined,
    /// Call the service.
    Call,
}

/// The times of a request, and its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) now: Timestamp,
    /// When the request was sent.
    pub(crate) sent_at: Timestamp,
    pub(crate) retention_ms: u64,
    /// The attempt.
    pub(crate) attempt: u32,
    /// Of an undo: whether the step was done, with or without a trace here (rule 27).
    pub(crate) was_done: bool,
}

/// For a forward request, by the memo of its key. `held`: the version of the claim that this request holds.
pub(crate) fn forward(own: Option<&Memo>, held: Option<u64>, times: Times) -> Plan {
    of_own(own, held, times).unwrap_or(Plan::Call)
}

/// For an undo, by the memos of its own key and of the forward key.
pub(crate) fn undo(own: Option<&Memo>, forward: Option<&Memo>, held: Option<u64>, times: Times) -> Plan {
    if let Some(plan) = of_own(own, held, times) {
        return plan;
    }
    match forward.map(|memo| &memo.state) {
        None | Some(MemoState::Declined) if times.was_done => Plan::Call,
        None => Plan::MarkOnly,
        // Every attempt before the undo was declined. Otherwise an agent without memos may have called.
        Some(MemoState::Declined) if forward.is_some_and(|memo| times.attempt == memo.declined + 1) => Plan::MarkOnly,
        Some(MemoState::Declined) => Plan::Call,
        // The undo claims its own key before it marks a key with a trace.
        Some(MemoState::Undone) if own.is_none() && !times.was_done => Plan::Answer(nothing_to_undo()),
        Some(MemoState::InProgress(until)) if times.now < *until => Plan::Wait { until: *until },
        Some(MemoState::InProgress(_) | MemoState::Completed(_) | MemoState::Undone) => Plan::Call,
    }
}

/// The answer of an undo that finds nothing to undo.
pub(crate) fn nothing_to_undo() -> Outcome {
    Outcome::Done(Json::empty())
}

fn of_own(own: Option<&Memo>, held: Option<u64>, times: Times) -> Option<Plan> {
    let own = own?;
    if times.attempt <= own.declined {
        return Some(Plan::Declined);
    }
    match &own.state {
        MemoState::InProgress(_) if held == Some(own.version) => None,
        MemoState::InProgress(until) if times.now < *until => Some(Plan::Wait { until: *until }),
        MemoState::InProgress(_) => None,
        MemoState::Completed(Outcome::Failed(failure)) if !has_effect(failure) && is_older(own, times) => None,
        MemoState::Completed(outcome) => Some(Plan::Answer(outcome.clone())),
        MemoState::Undone => Some(Plan::Answer(undone())),
        MemoState::Declined => None,
    }
}

/// Whether the call succeeded and only its output could not be kept: a repeat would be a second effect.
fn has_effect(failure: &Failure) -> bool {
    *failure.code == *OUTPUT_TOO_LARGE
}

/// Whether the memo was written before the request was sent.
fn is_older(memo: &Memo, times: Times) -> bool {
    memo.expires_at.minus_ms(times.retention_ms) < times.sent_at
}

fn undone() -> Outcome {
    Outcome::Failed(Failure { code: UNDONE.into(), message: "the step was undone before this request came".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_was_remembered_before_the_request_was_sent_is_asked_for_again_and_no_later_one() {
        let sent_at = Timestamp::from_epoch_ms(1_000_000);
        let times = Times { now: sent_at.plus_ms(50), sent_at, retention_ms: 10_000, attempt: 1, was_done: false };
        let refused = Outcome::Failed(Failure { code: "no".into(), message: "no".into() });
        let remembered_at = |at: Timestamp| {
            let state = MemoState::Completed(refused.clone());
            let memo = Memo { key: "k".into(), version: 1, state, declined: 0, expires_at: at.plus_ms(10_000) };
            forward(Some(&memo), None, times)
        };
        assert_eq!(remembered_at(sent_at.minus_ms(1)), Plan::Call);
        assert_eq!(remembered_at(sent_at), Plan::Answer(refused.clone()));
    }

    #[test]
    fn an_undo_makes_a_call_unless_every_attempt_before_it_was_declined() {
        let now = Timestamp::from_epoch_ms(1_000_000);
        let of_attempt = |attempt, was_done| {
            let state = MemoState::Declined;
            let memo = Memo { key: "k".into(), version: 1, state, declined: 1, expires_at: now.plus_ms(10_000) };
            undo(None, Some(&memo), None, Times { now, sent_at: now, retention_ms: 10_000, attempt, was_done })
        };
        assert_eq!(of_attempt(2, false), Plan::MarkOnly);
        assert_eq!(of_attempt(3, false), Plan::Call, "the second may have been made by an agent without memos");
        assert_eq!(of_attempt(2, true), Plan::Call, "an operator did it by hand");
    }
}
