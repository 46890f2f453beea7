//! An order and its steps.

use domain::task::{Direction, ProcessState, StepState};
use domain::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// `GET /orders/{id}`, and an entry of a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Task {
    #[serde(rename = "OrderID")]
    pub(crate) order_id: String,
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) workflow: String,
    #[serde(default)]
    pub(crate) workflow_version: u32,
    pub(crate) process_state: ProcessState,
    pub(crate) reason: Option<Reason>,
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    pub(crate) priority: Option<String>,
    pub(crate) paused: Option<Paused>,
    pub(crate) submitted_at: Option<Timestamp>,
    pub(crate) updated_at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) history: Vec<Transition>,
}

/// Why an order is in `Error` or was compensated.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Reason {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) step: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) agent: String,
    pub(crate) process_state: StepState,
    pub(crate) direction: Direction,
    #[serde(default)]
    pub(crate) attempt: u32,
    #[serde(default)]
    pub(crate) failure_count: u32,
    pub(crate) complete_by: Option<Timestamp>,
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) last_error: Option<LastError>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct LastError {
    pub(crate) code: String,
    pub(crate) message: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Paused {
    pub(crate) by: String,
    pub(crate) reason: String,
    pub(crate) since: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Transition {
    pub(crate) at: Timestamp,
    pub(crate) who: String,
    pub(crate) what: String,
    pub(crate) why: Option<String>,
}

/// The answer to `POST /orders`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Accepted {
    #[serde(rename = "OrderID")]
    pub(crate) order_id: String,
    pub(crate) process_state: ProcessState,
}

/// A page of `GET /orders`, each order as it was sent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Page {
    pub(crate) orders: Vec<Box<RawValue>>,
    pub(crate) next_cursor: Option<String>,
}

impl Task {
    /// Whether it is being undone, or was.
    pub(crate) fn is_undoing(&self) -> bool {
        self.steps.iter().any(|step| step.direction == Direction::Undo)
    }

    /// The step that tells most of where the order is: the one that failed, else one under way, else the next.
    pub(crate) fn step_to_show(&self) -> Option<&Step> {
        let in_state = |state| self.steps.iter().find(|step| step.process_state == state);
        in_state(StepState::Error).or_else(|| in_state(StepState::Processing)).or_else(|| in_state(StepState::Pending))
    }
}

impl Step {
    /// How long its present direction took, in milliseconds; nothing as long as it is under way.
    pub(crate) fn took_ms(&self) -> Option<u64> {
        Some(self.started_at?.ms_until(self.finished_at?))
    }
}
