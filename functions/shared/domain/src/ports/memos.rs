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
    /// The attempts up to this one were declined: no agent makes a call for them any more (rule 21).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub declined: u32,
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
    /// No call was made: every attempt so far was declined.
    Declined,
    /// It was undone, or its undo was begun: a later forward call is refused.
    Undone,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(attempt: &u32) -> bool {
    *attempt == 0
}
