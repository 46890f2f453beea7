//! The deadline of an order (rule 37).

use crate::limits::ORDER_WITHIN_MS_MAX;
use crate::located::{Reader, Table};

/// The reserved member of a document with the deadline of its order.
pub(super) const COMPLETE_BY: &str = "CompleteBy";
const WORDS: [(&str, OnLate); 3] =
    [("alert", OnLate::Alert), ("compensate", OnLate::Compensate), ("hold", OnLate::Hold)];

/// The reaction to an order that is not finished at its deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLate {
    /// Say so, and go on.
    #[default]
    Alert,
    /// Compensate the order.
    Compensate,
    /// Stop and ask an operator.
    Hold,
}

impl OnLate {
    /// Its word in a workflow's file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alert => "alert",
            Self::Compensate => "compensate",
            Self::Hold => "hold",
        }
    }
}

/// The deadline of the orders of a workflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deadline {
    /// How long after its acceptance an order is late, in milliseconds. `None`: only an order that names its own
    /// deadline has one.
    pub within_ms: Option<u64>,
    /// The reaction.
    pub on_late: OnLate,
}

impl Deadline {
    pub(super) fn take(reader: &mut Reader<'_>, root: &mut Table<'_>) -> Self {
        let within = root.take("complete_within");
        let within_ms = reader.time_ms(within, 1..=ORDER_WITHIN_MS_MAX);
        let on_late = root.take("on_late");
        Self { within_ms, on_late: reader.word(on_late, &WORDS).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests;
