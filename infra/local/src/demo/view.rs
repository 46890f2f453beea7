//! An order as the API shows it, as far as the demo looks at it.

use domain::id::OrderId;
use domain::task::{Direction, ProcessState, StepState};
use domain::time::Timestamp;
use serde::Deserialize;

use crate::step::words;

/// The answer to a post.
#[derive(Debug, Deserialize)]
pub(super) struct Accepted {
    #[serde(rename = "OrderID")]
    pub(super) order_id: OrderId,
}

/// The answer to `GET /orders/{id}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Shown {
    pub(super) version: u64,
    pub(super) process_state: ProcessState,
    pub(super) reason: Option<ShownReason>,
    pub(super) steps: Vec<ShownStep>,
}

/// Why an order is in `Error` or was compensated.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ShownReason {
    pub(super) message: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ShownStep {
    pub(super) name: String,
    pub(super) agent: String,
    process_state: StepState,
    pub(super) attempt: u32,
    direction: Direction,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

impl ShownStep {
    /// How long its present direction took, in milliseconds; nothing as long as it is under way.
    pub(super) fn took_ms(&self) -> Option<u64> {
        Some(self.started_at?.ms_until(self.finished_at?))
    }

    /// Where the step is, in a word or two.
    pub(super) fn words(&self) -> String {
        words(self.direction, self.process_state, self.attempt)
    }
}
