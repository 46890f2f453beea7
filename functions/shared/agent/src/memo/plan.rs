//! What the memos say about a request. Pure.

use domain::message::{Failure, Outcome};
use domain::ports::{Memo, MemoState};
use domain::time::Timestamp;

use crate::memo::UNDONE;
use crate::output::{self, OUTPUT_TOO_LARGE};

/// What the memos say about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The answer is known.
    Answer(Outcome),
    /// A call is under way elsewhere, until then at most.
    Wait { until: Timestamp },
    /// Nothing was ever tried: mark the forward key, and nothing more is to be done.
    MarkOnly,
    /// The service is to be called.
    Call,
}

/// Since when and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) now: Timestamp,
    /// When the request was sent.
    pub(crate) sent_at: Timestamp,
    pub(crate) retention_ms: u64,
}

/// For a forward request, by the memo of its key. `held`: the version of the claim that this request holds itself.
pub(crate) fn forward(own: Option<&Memo>, held: Option<u64>, times: Times) -> Plan {
    of_own(own, held, times).unwrap_or(Plan::Call)
}

/// For an undo, by the memo of its key and that of the forward key.
pub(crate) fn undo(own: Option<&Memo>, forward: Option<&Memo>, held: Option<u64>, times: Times) -> Plan {
    if let Some(plan) = of_own(own, held, times) {
        return plan;
    }
    match forward.map(|memo| &memo.state) {
        None => Plan::MarkOnly,
        // Before a key with a trace is marked, the undo claims its own.
        Some(MemoState::Undone) if own.is_none() => Plan::Answer(nothing_to_undo()),
        Some(MemoState::InProgress(until)) if times.now < *until => Plan::Wait { until: *until },
        Some(MemoState::InProgress(_) | MemoState::Completed(_) | MemoState::Undone) => Plan::Call,
    }
}

/// What an undo answers that finds that nothing was done.
pub(crate) fn nothing_to_undo() -> Outcome {
    Outcome::Done(output::empty())
}

fn of_own(own: Option<&Memo>, held: Option<u64>, times: Times) -> Option<Plan> {
    let own = own?;
    match &own.state {
        MemoState::InProgress(_) if held == Some(own.version) => None,
        MemoState::InProgress(until) if times.now < *until => Some(Plan::Wait { until: *until }),
        MemoState::InProgress(_) => None,
        MemoState::Completed(Outcome::Failed(failure)) if !has_effect(failure) && is_older(own, times) => None,
        MemoState::Completed(outcome) => Some(Plan::Answer(outcome.clone())),
        MemoState::Undone => Some(Plan::Answer(undone())),
    }
}

/// Whether the call was a success, and only its output could not be kept: to make it again would be a second effect.
fn has_effect(failure: &Failure) -> bool {
    *failure.code == *OUTPUT_TOO_LARGE
}

/// Whether it was written before the request was sent.
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
        let times = Times { now: sent_at.plus_ms(50), sent_at, retention_ms: 10_000 };
        let refused = Outcome::Failed(Failure { code: "no".into(), message: "no".into() });
        let remembered_at = |at: Timestamp| {
            let state = MemoState::Completed(refused.clone());
            forward(Some(&Memo { key: "k".into(), version: 1, state, expires_at: at.plus_ms(10_000) }), None, times)
        };
        assert_eq!(remembered_at(sent_at.minus_ms(1)), Plan::Call);
        assert_eq!(remembered_at(sent_at), Plan::Answer(refused.clone()));
    }
}
