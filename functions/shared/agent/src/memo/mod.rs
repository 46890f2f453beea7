//! What an agent remembers, for a service that does not recognise a repeated idempotency key.
//!
//! There is one memo for each key, so one for the forward direction of a step and one for its undo. All writes are
//! conditional on the version that was read.
//!
//! **One call at a time.** Before a call its key is claimed: `InProgress` until the call's own time-out. Who meets a claim
//! of somebody else waits on the queue (F32). A claim whose call is never heard of is over at that time, and the call is
//! made again (F33): whoever made it may have died before the call or after it, which nobody can know without the help of
//! the service. A call that ended without a result gives its claim back early.
//!
//! **One result.** `Completed` is written before the reply is sent, so a repeat after a lost reply is answered without a
//! call. It is kept even when the deadline is over and no reply is allowed any more: the effect is there all the same. If
//! it cannot be written, after some tries the reply is sent without: otherwise the call would surely be made again, and
//! so only perhaps. A refusal is repeated only to repeats of the request that got it. A request that was sent later asks
//! anew, since an operator resubmits a refused step in order to have it asked again, and a refusal has no effect.
//! An output that exceeds the limits is a failure too, but its effect is there: it is repeated for good.
//!
//! **Undo.** The undo marks the forward key `Undone`, and after that no forward call is made: it is answered with the
//! failure [`UNDONE`] (F45). The forward claim and the mark are conditional writes on one record, so one is first:
//!
//! - the mark: the forward call finds it and is refused.
//! - the claim: the undo finds a call under way and waits until it has ended or its time-out is over, and only then marks.
//!   Were it to mark and call at once, the forward call might take effect after the undo, and nobody would undo it again.
//!   It need not wait for long: no forward request is sent any more for a step that is being undone.
//!
//! What remains is a forward call that its agent gave up and that the service carries out later still. That cannot be
//! told apart from one that never happened; the scheduler's rule 9 makes it unlikely by waiting for `CompleteBy`.
//!
//! An undo that finds no memo of the forward key knows that no call was ever made: it marks the key, and answers `Done`
//! without a call (F44). If there is any trace, also that of a refusal or an orphan, the service is called (F48). A repeat
//! finds `Undone` in both cases and must tell them apart, so before it marks a key of which there is a trace, the undo
//! claims its own key. Hence: a mark without a memo of the undo means that there was nothing to undo.
//!
//! Claims and their ends go by the clocks of the instances. Clocks that differ by more than a call may last let two of them
//! call at once; nothing here can prevent that, and platforms keep clocks within milliseconds.
//!
//! When memos cannot be read or claimed no call is made (fail closed): here nothing else keeps an effect from happening
//! twice. The message comes back.

mod keeper;
mod plan;

use domain::limits::COMPLETE_WITHIN_MS_MAX;
pub(crate) use keeper::{Claim, Keeper};
pub(crate) use plan::Plan;

use crate::policy::{PolicyError, within};

/// Code of the failure of a forward request that comes after its undo.
pub const UNDONE: &str = "undone";

/// Ten years: more than anybody will want, and far from the end of time.
const RETENTION_MS_MAX: u64 = 10 * 366 * 24 * 60 * 60 * 1_000;

/// That results are remembered, and for how long.
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
    /// [`PolicyError`] when it is shorter than a step may take, so that a memo could be gone when it is needed.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        within("memo.retention_ms", self.retention_ms, COMPLETE_WITHIN_MS_MAX, RETENTION_MS_MAX)
    }
}
