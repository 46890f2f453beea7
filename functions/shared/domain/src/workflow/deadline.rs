//! The deadline of an order (rule 37).

use crate::located::Table;

/// The reserved member of a document with the deadline of its order.
pub(super) const COMPLETE_BY: &str = "CompleteBy";
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
    /// All of them, in the order of their words.
    pub(super) const ALL: [Self; 3] = [Self::Alert, Self::Compensate, Self::Hold];

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
    pub(super) fn read(root: &Table<'_>) -> Self {
        let on_late = root.word("on_late", &OnLate::ALL).unwrap_or_default();
        Self { within_ms: root.time_ms("complete_within"), on_late }
    }
}

#[cfg(test)]
mod tests;
