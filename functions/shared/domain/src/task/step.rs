//! The record of one step.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::Json;
use crate::time::Timestamp;

/// Where a step is on its way, in its present direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StepState {
    /// To be claimed when its turn comes.
    Pending,
    /// Claimed; an attempt is under way until `CompleteBy`.
    Processing,
    /// Done (or undone, when the direction is `Undo`).
    Processed,
    /// Given up until an operator resubmits it.
    Error,
}

/// Whether a step is carried out or taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// Carry it out.
    Forward,
    /// Take it back.
    Undo,
}

impl Direction {
    /// The word used in records and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "Forward",
            Self::Undo => "Undo",
        }
    }
}

/// The last failure of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StepError {
    /// The agent's code, or [`StepError::EXPIRED`], or that of a dead letter.
    pub code: Arc<str>,
    /// The same for people.
    pub message: Arc<str>,
    /// The attempt that failed.
    pub attempt: u32,
    /// When it was noticed.
    pub at: Timestamp,
}

/// The record of one step: the pattern's five fields and what fencing and undo need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Step {
    /// Its name in the workflow.
    pub name: Arc<str>,
    /// The agent that carries it out.
    pub agent: Arc<str>,
    /// Where it is on its way.
    pub process_state: StepState,
    /// The scheduler instance that claimed it.
    pub locked_by: Option<Arc<str>>,
    /// The time by which the attempt must be done.
    pub complete_by: Option<Timestamp>,
    /// Attempts that expired or failed since the step last started afresh.
    pub failure_count: u32,
    /// Fencing token: +1 at every claim, never reset.
    pub attempt: u32,
    /// Carried out, or taken back.
    pub direction: Direction,
    /// When a supervisor found the attempt expired so late that it doubted its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubted_at: Option<Timestamp>,
    /// Not to be claimed earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// What the agent answered; kept for the steps after it and for its undo. `null` is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "answered")]
    pub output: Option<Json>,
    /// The last failure, in either direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<StepError>,
    /// When the present direction was first claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the present direction was done or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

impl StepError {
    /// The code of an attempt that had no answer in time.
    pub const EXPIRED: &str = "expired";
}

impl Step {
    /// Whether anything may have happened at the remote service: only then there is something to undo (rule 9).
    #[must_use]
    pub const fn was_claimed(&self) -> bool {
        self.attempt >= 1
    }

    /// Whether its undo is confirmed.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        self.direction == Direction::Undo && self.process_state == StepState::Processed
    }
}

impl Step {
    pub(super) fn new(name: &Arc<str>, agent: &Arc<str>) -> Self {
        Self {
            name: name.clone(),
            agent: agent.clone(),
            process_state: StepState::Pending,
            locked_by: None,
            complete_by: None,
            failure_count: 0,
            attempt: 0,
            direction: Direction::Forward,
            doubted_at: None,
            not_before: None,
            output: None,
            last_error: None,
            started_at: None,
            finished_at: None,
        }
    }
}

/// What stands there was answered, even where it is `null`.
fn answered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_one_word_everywhere() {
        for direction in [Direction::Forward, Direction::Undo] {
            assert_eq!(serde_json::to_string(&direction).unwrap(), format!("\"{}\"", direction.name()));
        }
    }
}
