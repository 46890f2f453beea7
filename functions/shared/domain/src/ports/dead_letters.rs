//! Dead letters and their outcomes.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Listed, Record, RecordKind, Shown};
use crate::id::OrderId;
use crate::time::Timestamp;

/// Newest records of dead letters that a store keeps. It may delete others.
pub const DEAD_LETTERS_KEPT: usize = 1_000;
/// Longest kept body of an unreadable dead letter, in bytes of JSON text: an order with the largest document fits, also
/// if every second character of it is a quotation mark.
pub const DEAD_LETTER_BYTES_MAX: usize = 320 * 1024;
/// The retention time of a record, in milliseconds: 90 days.
const KEPT_MS: u64 = 90 * 24 * 60 * 60 * 1_000;

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

/// The outcome of a dead letter, for operators. It is written once: what a redelivery finds is no news.
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

impl Record for DeadLetterRecord {
    const KIND: RecordKind = RecordKind::DeadLetter;
    const OVER_KEPT: usize = DEAD_LETTERS_KEPT;

    fn key(&self) -> &str {
        &self.message_id
    }

    fn version(&self) -> u64 {
        1
    }

    fn expires_at(&self) -> Option<Timestamp> {
        Some(self.settled_at.plus_ms(KEPT_MS))
    }

    fn is_over(&self) -> bool {
        true
    }

    /// The last settled comes first.
    fn compare(&self, other: &Self) -> Ordering {
        (other.settled_at, &other.message_id).cmp(&(self.settled_at, &self.message_id))
    }

    fn shown(&self) -> Vec<(&'static str, Shown)> {
        vec![("SettledAt", Shown::Time(self.settled_at))]
    }
}

impl Listed for DeadLetterRecord {}

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
        // The body contains the document as it is. A quarter more is enough for the member names around it. As JSON text it
        // is twice as long at most: an order has no other characters to escape than quotation marks and backslashes.
        assert_eq!(DEAD_LETTER_BYTES_MAX, 2 * (DOCUMENT_BYTES_MAX + DOCUMENT_BYTES_MAX / 4));
    }
}
