//! What an agent remembers of calls to a service that does not recognise repeats itself.

use std::sync::Arc;

use super::{Record, RecordKind};
use crate::message::Outcome;
use crate::time::Timestamp;

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

impl Record for Memo {
    const KIND: RecordKind = RecordKind::Memo;

    fn key(&self) -> &str {
        &self.key
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn expires_at(&self) -> Option<Timestamp> {
        Some(self.expires_at)
    }
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
