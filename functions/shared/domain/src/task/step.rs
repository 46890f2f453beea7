//! The record of one step.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::Json;
use crate::limits::TEXT_CHARS_MAX;
use crate::state::Direction;
use crate::text::cut;
use crate::time::Timestamp;
use crate::workflow::{Approval, StepRule};

/// The state of a step in its present direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum StepState {
    /// Not claimed yet.
    Pending,
    /// Claimed; an attempt is in flight until `CompleteBy`.
    Processing,
    /// Done (or undone, when the direction is `Undo`).
    Processed,
    /// Given up until an operator resubmits it.
    Error,
    /// It does not apply to the order, or is optional and was rejected (rule 33). The order goes on without it.
    Skipped,
}

impl StepState {
    /// Whether the steps after it may start.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            Self::Processed | Self::Skipped => true,
            Self::Pending | Self::Processing | Self::Error => false,
        }
    }
}

/// The last failure of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct StepError {
    /// The agent's code, or `expired` if no answer came in time. A service's code is unchanged: nothing in it is
    /// redacted.
    pub code: Arc<str>,
    /// A message for people. A service's message is unchanged: nothing in it is redacted, and services should not quote
    /// documents.
    pub message: Arc<str>,
    /// The attempt that failed.
    pub attempt: u32,
    /// The time at which the failure was noticed.
    pub at: Timestamp,
}

/// The record of one step: the pattern's five fields, and the fields for fencing and undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Step {
    /// Its name in the workflow.
    pub name: Arc<str>,
    /// The agent that carries it out.
    pub agent: Arc<str>,
    /// Its state.
    pub process_state: StepState,
    /// The instance of submission or scheduler that claimed it.
    pub locked_by: Option<Arc<str>>,
    /// The time by which the attempt must be done.
    pub complete_by: Option<Timestamp>,
    /// Attempts that expired or failed since the step last started afresh.
    pub failure_count: u32,
    /// Fencing token: +1 at every claim, never reset.
    pub attempt: u32,
    /// Carried out, or undone.
    pub direction: Direction,
    /// Whether the order goes on past it if it is rejected. From the workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the order only goes forward once it has begun (rule 34). From the workflow.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pivot: bool,
    /// Its line was dropped: it is undone, or was skipped, and the order goes on (rule 50).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// Present if people decide on it (rule 40). From the workflow and the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approvers>,
    /// When a supervisor found the attempt expired so late that it doubted its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubted_at: Option<Timestamp>,
    /// No claim before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// A long wait (rules 35 and 39): no claim before this time; of an attempt in flight, its result is awaited until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// `WaitsUntil` is a time that the order gives, and the wait of the workflow is still to begin (rule 35).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait_to_come: bool,
    /// How the state is asked of the call that was taken on (rule 36).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<Poll>,
    /// The latest time at which a call of this step that had no answer may still have its effect (rule 16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_run_until: Option<Timestamp>,
    /// The attempts up to this one were declined: no call was made for them, and none will be (rule 21).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub declined: u32,
    /// The agents that are still to be asked if `agent` declines too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Arc<str>>,
    /// The agent's answer, kept for the steps after it and for its undo. `null` is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "answered")]
    pub output: Option<Json>,
    /// The last failure, in either direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<StepError>,
    /// How long the call took that brought the last success or rejection, in milliseconds, if the agent reported it. `None`
    /// if the step then ended without a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<u64>,
    /// When the present direction was first claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the present direction was done or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// How the state is asked of a call that was taken on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Poll {
    /// Where, as the agent said.
    pub path: Arc<str>,
    /// When next. `None`: the last look was made, at the end of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// Who decides on a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Approvers {
    /// Their role, for people: nothing checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Arc<str>>,
    /// A person who may not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_by: Option<Arc<str>>,
    /// The version in which they were last asked; 0 before that. It identifies a decision on an earlier question.
    #[serde(default, skip_serializing_if = "is_not_asked")]
    pub since_version: u64,
}

impl StepError {
    /// The code of an attempt that had no answer in time.
    pub const EXPIRED: &str = "expired";
    /// The code of a failed call of an attempt that goes on (rule 32).
    pub const RETRYING: &str = "retrying";
    /// The code of a decision against the order (rule 40).
    pub const NOT_APPROVED: &str = "not-approved";
}

impl Step {
    /// Whether the remote service may have been called. Only then there is something to undo (rule 9).
    #[must_use]
    pub const fn was_claimed(&self) -> bool {
        self.attempt >= 1
    }

    /// Whether no attempt before the present one may have called a service, since each was declined. Only then may
    /// another agent be chosen (rule 21).
    #[must_use]
    pub fn is_uncalled(&self) -> bool {
        self.direction == Direction::Forward && self.attempt.checked_sub(1) == Some(self.declined)
    }

    /// What went wrong with the last call of the present attempt, if its agent said so while it went on (rule 32).
    #[must_use]
    pub fn trouble_of_attempt(&self) -> Option<&str> {
        let is_present = |error: &&StepError| *error.code == *StepError::RETRYING && error.attempt == self.attempt;
        self.last_error.as_ref().filter(is_present).map(|error| &*error.message)
    }

    /// Whether the service took the call of the present attempt on, and tells the result later (rule 36).
    #[must_use]
    pub const fn is_awaited(&self) -> bool {
        matches!((self.process_state, self.waits_until), (StepState::Processing, Some(_)))
    }

    /// Whether its undo waits for calls that the order's turn left under way (rule 16).
    #[must_use]
    pub const fn waits_for_calls(&self) -> bool {
        matches!((self.direction, self.process_state), (Direction::Undo, StepState::Pending))
            && self.started_at.is_none()
    }

    /// Whether people are asked to decide on it now (rule 40).
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.approval.is_some() && self.is_awaited()
    }

    /// Whether it waits longer after too many failures (rule 39).
    #[must_use]
    pub const fn waits_longer(&self) -> bool {
        matches!((self.process_state, self.waits_until), (StepState::Pending, Some(_))) && self.was_claimed()
    }

    /// Whether its undo is confirmed.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        self.direction == Direction::Undo && self.process_state == StepState::Processed
    }
}

impl Step {
    pub(super) fn new(rule: &StepRule) -> Self {
        Self {
            name: rule.name.clone(),
            agent: rule.agent.clone(),
            process_state: StepState::Pending,
            locked_by: None,
            complete_by: None,
            failure_count: 0,
            attempt: 0,
            direction: Direction::Forward,
            optional: rule.optional,
            pivot: rule.pivot,
            dropped: false,
            approval: None,
            doubted_at: None,
            not_before: None,
            waits_until: None,
            wait_to_come: false,
            poll: None,
            may_run_until: None,
            call_ms: None,
            declined: 0,
            fallback: Vec::new(),
            output: None,
            last_error: None,
            started_at: None,
            finished_at: None,
        }
    }
}

impl Approval {
    /// Who decides on an order with this document.
    #[must_use]
    pub fn approvers(&self, document: &Json) -> Approvers {
        let name = self.not_by.as_ref().and_then(|place| place.of(document.raw()));
        let name = name.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
        Approvers {
            role: self.role.clone(),
            not_by: name.map(|name| cut(name.trim(), TEXT_CHARS_MAX).into()),
            since_version: 0,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(attempt: &u32) -> bool {
    *attempt == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_not_asked(version: &u64) -> bool {
    *version == 0
}

/// An output that is present was answered, even if it is `null`.
fn answered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_neither_optional_nor_a_pivot_takes_no_room_for_that() {
        let case =
            crate::machine::testing::Case::new(&[("a", &[], ""), ("b", &[], "optional = true\npivot = true")], false);
        let texts = case.task.steps.iter().map(|step| serde_json::to_string(step).unwrap());
        let stored = texts.map(|text| (text.contains("Optional"), text.contains("Pivot")));
        assert_eq!(stored.collect::<Vec<_>>(), [(false, false), (true, true)]);
        let read: Vec<Step> = serde_json::from_str(&serde_json::to_string(&case.task.steps).unwrap()).unwrap();
        assert_eq!(read, case.task.steps);
    }
}
