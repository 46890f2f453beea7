//! What an agent remembers of calls to a service that does not recognise repeats itself.

use std::future::Future;
use std::sync::Arc;

use super::{Commit, PortError};
use crate::message::Outcome;
use crate::time::Timestamp;

/// Memos by idempotency key.
pub trait Memos: Send + Sync {
    /// The memo of this key; nothing if there is none or its `expires_at` is over.
    ///
    /// # Errors
    /// [`PortError`] when the record cannot be read.
    fn memo(&self, key: &str, now: Timestamp) -> impl Future<Output = Result<Option<Memo>, PortError>> + Send;

    /// Writes a memo, if the stored version is still `version_before` (0: there is none, or none that [`memo`] would
    /// still give at `now`). Answers only once it cannot be lost any more.
    ///
    /// [`memo`]: Memos::memo
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether the write happened; read again.
    fn set_memo(
        &self,
        version_before: u64,
        memo: Memo,
        now: Timestamp,
    ) -> impl Future<Output = Result<Commit, PortError>> + Send;
}

/// What is remembered of the calls under one idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Memo {
    /// The idempotency key.
    pub key: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// What is known.
    pub state: MemoState,
    /// When the store may forget it.
    pub expires_at: Timestamp,
}

/// What is known of the calls under one idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MemoState {
    /// A call is under way until this time at most; after it the memo is an orphan, and the call may be made again.
    InProgress(Timestamp),
    /// The call ended so; a repeat is answered with it.
    Completed(Outcome),
    /// It was undone, or its undo was begun: a forward call that comes after it is refused.
    Undone,
}
