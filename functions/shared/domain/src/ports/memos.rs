//! An agent's memory of calls to a service that does not recognise repeats itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Record, RecordKind};
use crate::id::OrderId;
use crate::json::Json;
use crate::message::{Failure, Outcome};
use crate::order::ERASED;
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
    /// The latest attempt that wrote it. A later one asks again after a refusal. 0: of the version before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// When the store may delete it.
    pub expires_at: Timestamp,
}

impl Memo {
    /// The beginning of the keys of all memos of an order.
    #[must_use]
    pub fn keys_of(order_id: OrderId) -> String {
        format!("{order_id}/")
    }

    /// The same without what the service answered (rule 46). A repeat is still answered, and makes no call.
    #[must_use]
    pub fn erased(self) -> Self {
        let state = match self.state {
            MemoState::Completed(Outcome::Done(_)) => {
                MemoState::Completed(Outcome::Done(Json::of(&BTreeMap::<&str, ()>::new())))
            }
            MemoState::Completed(Outcome::Failed(failure)) => {
                MemoState::Completed(Outcome::Failed(Failure { message: ERASED.into(), ..failure }))
            }
            state @ (MemoState::InProgress(_) | MemoState::Completed(_) | MemoState::Declined | MemoState::Undone) => {
                state
            }
        };
        Self { state, ..self }
    }
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
