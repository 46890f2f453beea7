//! What ended in a dead-letter queue, and what became of it.

use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::PortError;
use crate::id::OrderId;
use crate::time::Timestamp;

/// Records that a store of dead letters keeps at least, unless they are older than 90 days; older ones may be forgotten.
pub const DEAD_LETTERS_KEPT: usize = 1_000;
/// Longest body kept of a dead letter that nobody can read, in bytes: an order with the largest document fits.
pub const DEAD_LETTER_BYTES_MAX: usize = 160 * 1024;

/// What became of the dead letters, for operators.
pub trait DeadLetterRecords: Send + Sync {
    /// Writes down what became of a dead letter. The same `MessageID` again replaces the record. Answers only once it cannot be
    /// lost any more.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether the write happened; the dead letter then stays where it is.
    fn record(&self, settled: DeadLetterRecord) -> impl Future<Output = Result<(), PortError>> + Send;

    /// The records, the last settled first, at most `limit`.
    ///
    /// # Errors
    /// [`PortError`] when they cannot be read.
    fn newest(&self, limit: usize) -> impl Future<Output = Result<Vec<DeadLetterRecord>, PortError>> + Send;
}

/// A message that was delivered too often without success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetter {
    /// The queue that gave it up.
    pub queue: SourceQueue,
    /// The message's id on that queue.
    #[serde(rename = "MessageID")]
    pub message_id: Arc<str>,
    /// The message's body as it was sent.
    pub body: Arc<str>,
    /// How often it was delivered.
    pub receive_count: u32,
    /// When it was given up (or sent, where the queue knows only that).
    pub at: Timestamp,
}

/// A queue that gives up messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SourceQueue {
    /// Accepted orders.
    Submission,
    /// Wakes, replies and commands, of either priority.
    Scheduler,
    /// The requests of this agent, of either priority.
    Agent(Arc<str>),
}

/// What became of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetterRecord {
    /// The message's id.
    #[serde(rename = "MessageID")]
    pub message_id: Arc<str>,
    /// The queue that gave it up; not known where even the dead letter's frame could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<SourceQueue>,
    /// The order that it was about.
    #[serde(rename = "OrderID", default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
    /// How often it was delivered.
    pub receive_count: u32,
    /// When it was given up.
    pub at: Timestamp,
    /// When this was written.
    pub settled_at: Timestamp,
    /// What became of it.
    #[serde(rename = "Fate")]
    pub outcome: DeadLetterOutcome,
    /// The same for people.
    pub message: Arc<str>,
    /// The body, where nobody could read it; cut to [`DEAD_LETTER_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Arc<str>>,
}

/// What became of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeadLetterOutcome {
    /// Its order was not stored: it is now, in `Error`, and an operator is called.
    Stored,
    /// Its order still needed it: it is in `Error`, and an operator is called.
    Held,
    /// Its order does not need it any more.
    Stale,
    /// There is no such order.
    NoOrder,
    /// An operator's command that was not carried out.
    #[serde(rename = "LostWish")]
    LostCommand,
    /// Nobody can read it.
    Unreadable,
}

impl DeadLetterOutcome {
    /// The word in records, metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stored => "Stored",
            Self::Held => "Held",
            Self::Stale => "Stale",
            Self::NoOrder => "NoOrder",
            Self::LostCommand => "LostWish",
            Self::Unreadable => "Unreadable",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DOCUMENT_BYTES_MAX;

    #[test]
    fn an_outcome_is_stored_under_its_name() {
        use DeadLetterOutcome::{Held, LostCommand, NoOrder, Stale, Stored, Unreadable};
        for outcome in [Stored, Held, Stale, NoOrder, LostCommand, Unreadable] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
    }

    #[test]
    fn the_body_of_an_order_with_the_largest_document_is_kept_whole() {
        // The document goes into the body as it is; a quarter more is enough for the names around it.
        assert_eq!(DEAD_LETTER_BYTES_MAX, DOCUMENT_BYTES_MAX + DOCUMENT_BYTES_MAX / 4);
    }
}
