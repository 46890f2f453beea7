//! Dead letters and their outcomes.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::PortError;
use crate::id::OrderId;
use crate::time::Timestamp;

/// Newest records that a store of dead letters keeps. It may delete others, and records older than 90 days.
pub const DEAD_LETTERS_KEPT: usize = 1_000;
/// Longest kept body of an unreadable dead letter, in bytes: an order with the largest document fits.
pub const DEAD_LETTER_BYTES_MAX: usize = 160 * 1024;

/// The outcomes of dead letters, for operators.
pub trait DeadLetterRecords: Send + Sync {
    /// Stores the outcome of a dead letter. The same `MessageID` again replaces the record. Returns only once the
    /// record is durable.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether the write happened; the dead letter then stays on its queue.
    fn record(&self, settled: DeadLetterRecord) -> impl Future<Output = Result<(), PortError>> + Send;

    /// The records, at most `limit`, the last settled first.
    ///
    /// # Errors
    /// [`PortError`] if they cannot be read.
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
    /// When it was given up, or sent if the queue knows only that.
    pub at: Timestamp,
}

/// A queue that has dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum SourceQueue {
    /// Accepted orders.
    Submission,
    /// Wakes, replies and commands, of either priority.
    Scheduler,
    /// The requests of this agent, of either priority.
    Agent(Arc<str>),
}

impl fmt::Display for SourceQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submission => f.write_str("submission"),
            Self::Scheduler => f.write_str("scheduler"),
            Self::Agent(name) => write!(f, "agent {name}"),
        }
    }
}

/// The outcome of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetterRecord {
    /// The message's id.
    #[serde(rename = "MessageID")]
    pub message_id: Arc<str>,
    /// The queue that gave it up; `None` if not even the dead letter's frame was readable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<SourceQueue>,
    /// The order of the message.
    #[serde(rename = "OrderID", default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
    /// How often it was delivered.
    pub receive_count: u32,
    /// When it was given up.
    pub at: Timestamp,
    /// When this record was written.
    pub settled_at: Timestamp,
    /// The outcome.
    pub outcome: DeadLetterOutcome,
    /// The same for people.
    pub message: Arc<str>,
    /// The body, if it was unreadable; cut to [`DEAD_LETTER_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Arc<str>>,
}

/// The outcome of a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeadLetterOutcome {
    /// Its order was not stored: it now is, in `Error`, and an operator is alerted.
    Stored,
    /// Its order still needed it: the order is in `Error`, and an operator is alerted.
    Held,
    /// Its order does not need it any more.
    Stale,
    /// There is no such order.
    NoOrder,
    /// An operator's command that was not carried out.
    LostCommand,
    /// The body is unreadable.
    Unreadable,
    /// It was no dead letter: its sender may not send it (rule 45).
    Refused,
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
            Self::LostCommand => "LostCommand",
            Self::Unreadable => "Unreadable",
            Self::Refused => "Refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DOCUMENT_BYTES_MAX;

    #[test]
    fn an_outcome_is_stored_under_its_name() {
        use DeadLetterOutcome::{Held, LostCommand, NoOrder, Refused, Stale, Stored, Unreadable};
        for outcome in [Stored, Held, Stale, NoOrder, LostCommand, Unreadable, Refused] {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
        }
    }

    #[test]
    fn the_body_of_an_order_with_the_largest_document_is_kept_whole() {
        // The body contains the document as it is. A quarter more is enough for the member names around it.
        assert_eq!(DEAD_LETTER_BYTES_MAX, DOCUMENT_BYTES_MAX + DOCUMENT_BYTES_MAX / 4);
    }
}
