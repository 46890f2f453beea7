//! The agent's memory, for a service that does not recognise a repeated idempotency key.
//!
//! There is one memo for each key, so one for the forward direction of a step and one for its undo. All writes are
//! conditional on the version that was read.
//!
//! **One call at a time.** Before a call its key is claimed: `InProgress` until the call's own time-out. A request
//! that meets another claim waits on the queue (F32). A claim without a result expires at that time, and the call is
//! made again (F33). The first caller may have died before the call or after it, and only the service could know. A
//! call that ends without a result releases its claim early.
//!
//! **One result.** `Completed` is written before the reply is sent, so a repeat after a lost reply is answered without
//! a call. The memo is written even after the deadline, when no reply is allowed any more: the effect is there all the
//! same. If it cannot be written after some tries, the reply is sent without it. Otherwise the call would certainly be
//! made again, and this way only perhaps. A refusal is repeated only to repeats of the request that got it. A later
//! request calls again: an operator resubmits a refused step to have it asked again, and a refusal has no effect. An
//! output that exceeds the limits is a failure too, but its effect is there: it is repeated for good.
//!
//! **Undo.** The undo marks the forward key `Undone`. After that no forward call is made: it is answered with the
//! failure [`UNDONE`] (F45). The forward claim and the mark are conditional writes on one record, so one is first:
//!
//! - the mark: the forward call finds it and is refused.
//! - the claim: the undo finds a call in flight, waits until it has ended or timed out, and only then marks. If it
//!   marked and called at once, the forward call could take effect after the undo, and would not be undone again. The
//!   wait is short: no forward request is sent any more for a step that is being undone.
//!
//! **Declined.** While the service is failing, a step may go to another agent instead (rule 21). Before that reply the
//! key is marked `Declined` with the attempt, if there is no trace of a call. A copy of a declined request is given
//! back again, whatever another agent wrote since: the number stays in the memo. For an undo, a key that is only
//! declined is one without a trace.
//!
//! One case is not the memo's: the agent gives up a forward call, and the service carries it out later still. The undo
//! waits for that (rule 16).
//!
//! If an undo finds no memo of the forward key, no call was ever made: it marks the key, and answers `Done` without a
//! call (F44). If there is any trace, even of a refusal or an orphan, the service is called (F48). A repeat finds
//! `Undone` in both cases and must distinguish them. So the undo claims its own key before it marks a key with a
//! trace. Hence a mark without a memo of the undo means that there was nothing to undo.
//!
//! The undo of a step that was done is called in any case: an operator may have done it by hand, which leaves no memo
//! (rule 27).
//!
//! Claims and their ends go by the clocks of the instances. If clocks differ by more than the time of a call, two
//! instances may call at once. Nothing here can prevent that, and platforms keep clocks within milliseconds. The same
//! holds where a clock is set back while its instance is stopped between its claim and its call.
//!
//! A claim that was given back is over by every clock (rule 23).
//!
//! When memos cannot be read or claimed, no call is made (fail closed): nothing else prevents a doubled effect here.
//! The message comes back.

mod keeper;
mod plan;

use domain::limits::COMPLETE_WITHIN_MS_MAX;
pub(crate) use keeper::{Claim, Keeper};
pub(crate) use plan::Plan;

use crate::bounds::{PolicyError, within};

/// Code of the failure of a forward request that comes after its undo.
pub const UNDONE: &str = "undone";

/// Ten years: longer than any use needs, and far from the end of time. Largest [`MemoPolicy::retention_ms`].
pub const MEMO_RETENTION_MS_MAX: u64 = 10 * 366 * 24 * 60 * 60 * 1_000;

/// The memory of results, and its retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoPolicy {
    /// How long a memo is kept after it was written, in milliseconds. No repeat and no undo may come later.
    pub retention_ms: u64,
}

impl Default for MemoPolicy {
    fn default() -> Self {
        Self { retention_ms: 7 * 24 * 60 * 60 * 1_000 }
    }
}

impl MemoPolicy {
    /// # Errors
    /// [`PolicyError`] if it is shorter than the longest step, so that a memo could be gone when it is needed.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        within("memo.retention_ms", self.retention_ms, COMPLETE_WITHIN_MS_MAX, MEMO_RETENTION_MS_MAX)
    }
}
