//! The deadline of an order (rule 37).

use super::Workflow;
use super::waits::{NotATime, time_at};
use crate::limits::ORDER_WITHIN_MS_MAX;
use crate::located::{Reader, Table};
use crate::order::Order;
use crate::search::Pointer;
use crate::time::Timestamp;

/// The reserved member of a document with the deadline of its order.
const COMPLETE_BY: &str = "CompleteBy";
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

impl Workflow {
    /// The deadline of an order: the one that its document names, or else that of the workflow.
    ///
    /// # Errors
    /// [`NotATime`] if the member of the document is no time, or lies too far ahead of the acceptance.
    pub fn complete_by(&self, order: &Order) -> Result<Option<Timestamp>, NotATime> {
        let accepted = order.submitted_at;
        let own = time_at(&order.document, &Pointer::of_names(&[COMPLETE_BY.to_owned()]), accepted)?;
        // The document of an order that is posted again names the deadline of the earlier order.
        let own = own.filter(|&at| order.again_of.is_none() || accepted < at);
        Ok(own.or_else(|| self.deadline.within_ms.map(|within_ms| accepted.plus_ms(within_ms))))
    }
}

#[cfg(test)]
mod tests;
