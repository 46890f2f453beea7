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

/// Whether the memo is of an earlier attempt, or was written before the request was sent: the attempts of an order that
/// is posted anew after its retention begin at 1 again.
fn is_older(memo: &Memo, times: Times) -> bool {
    (1..times.attempt).contains(&memo.attempt) || memo.expires_at.minus_ms(times.retention_ms) < times.sent_at
}

fn undone() -> Outcome {
    Outcome::Failed(Failure { code: UNDONE.into(), message: "the step was undone before this request came".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_asked_for_again_by_a_later_attempt_and_by_a_request_that_was_sent_after_it() {
        let sent_at = Timestamp::from_epoch_ms(1_000_000);
        let refused = Outcome::Failed(Failure { code: "no".into(), message: "no".into() });
        let asked = |written_at: Timestamp, by: u32, attempt| {
            let (key, state, expires_at) =
                ("k".into(), MemoState::Completed(refused.clone()), written_at.plus_ms(10_000));
            let memo = Memo { key, version: 1, state, declined: 0, attempt: by, expires_at };
            let now = sent_at.plus_ms(50);
            forward(Some(&memo), None, Times { now, sent_at, retention_ms: 10_000, attempt, was_done: false })
        };
        let answer = || Plan::Answer(refused.clone());
        assert_eq!([1, 2, 3].map(|attempt| asked(sent_at, 2, attempt)), [answer(), answer(), Plan::Call]);
        assert_eq!([0, 2].map(|by| asked(sent_at.minus_ms(1), by, 2)), [Plan::Call, Plan::Call]);
        assert_eq!(asked(sent_at, 0, 2), answer(), "of the version before");
    }

    #[test]
    fn an_undo_makes_a_call_unless_every_attempt_before_it_was_declined() {
        let now = Timestamp::from_epoch_ms(1_000_000);
        let of_attempt = |attempt, was_done| {
            let state = MemoState::Declined;
            let (key, expires_at) = ("k".into(), now.plus_ms(10_000));
            let memo = Memo { key, version: 1, state, declined: 1, attempt: 1, expires_at };
            undo(None, Some(&memo), None, Times { now, sent_at: now, retention_ms: 10_000, attempt, was_done })
        };
        assert_eq!(of_attempt(2, false), Plan::MarkOnly);
        assert_eq!(of_attempt(3, false), Plan::Call, "the second may have been made by an agent without memos");
        assert_eq!(of_attempt(2, true), Plan::Call, "an operator did it by hand");
    }
}
