//! What is remembered of a schedule.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::OrderId;
use crate::ports::{Listed, Record, RecordKind};
use crate::time::Timestamp;

/// The mark of a schedule, and its last order. It stays when its schedule is gone, so no due time comes twice if the
/// schedule comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScheduleRecord {
    /// The name of the schedule.
    pub name: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// The last due time that was decided: posted, refused, or passed over. It never goes back.
    pub through: Timestamp,
    /// The last order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
    /// Why the last due time has no order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

/// An order of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Posted {
    /// Its due time.
    pub due_at: Timestamp,
    /// Its id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// When it was posted.
    pub at: Timestamp,
}

/// A due time without an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Refused {
    /// The due time.
    pub due_at: Timestamp,
    /// When it was refused.
    pub at: Timestamp,
    /// Why.
    pub problem: Arc<str>,
}

impl ScheduleRecord {
    /// The next record, with the mark at `through`, or where it is if that is later. `outcomes` are those of the due times
    /// that were decided, in their order.
    #[must_use]
    pub fn next(
        stored: Option<&Self>,
        name: &Arc<str>,
        through: Timestamp,
        outcomes: Vec<Result<Posted, Refused>>,
    ) -> Self {
        let refused = match outcomes.last() {
            Some(last) => last.as_ref().err().cloned(),
            None => stored.and_then(|stored| stored.refused.clone()),
        };
        let posted = outcomes.into_iter().rev().find_map(Result::ok);
        Self {
            name: name.clone(),
            version: stored.map_or(0, |stored| stored.version) + 1,
            through: stored.map_or(through, |stored| stored.through.max(through)),
            posted: posted.or_else(|| stored.and_then(|stored| stored.posted.clone())),
            refused,
        }
    }
}

impl Record for ScheduleRecord {
    const KIND: RecordKind = RecordKind::Schedule;

    fn key(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Listed for ScheduleRecord {}
