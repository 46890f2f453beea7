//! An agent's memory of calls to a service that does not recognise repeats itself.

use std::sync::Arc;

use super::{Record, RecordKind};
use crate::message::Outcome;
use crate::time::Timestamp;

/// The memo of the calls under one idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Memo {
    /// The idempotency key.
    pub key: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// The state of the calls.
    pub state: MemoState,
    /// When the store may delete it.
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

/// The state of the calls under one idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MemoState {
    /// A call is in flight, until this time at most. After it the memo is an orphan, and the call may be made again.
    InProgress(Timestamp),
    /// The call ended with this outcome; a repeat is answered with it.
    Completed(Outcome),
    /// It was undone, or its undo was begun: a later forward call is refused.
    Undone,
}
