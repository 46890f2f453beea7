//! `GET /numbers`: what happened in the last minutes, hours or days, in numbers.

use std::borrow::Cow;

use domain::task::{Direction, ProcessState};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// What happened in a span of time.
///
/// `GET /numbers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Numbers<'a> {
    /// The API's clock.
    pub at: Timestamp,
    /// Since when everything is counted. Absent: nothing happened yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The beginning of the first point.
    pub from: Timestamp,
    /// The length of a point.
    pub point_seconds: u64,
    /// The orders in each state now; exact.
    #[cfg_attr(feature = "contract", schemars(length(min = 7, max = 7)))]
    pub counts: Vec<Count>,
    /// All since From.
    pub orders: OrderNumbers,
    /// Oldest first.
    pub points: Vec<Point>,
    /// By workflow.
    pub workflows: Vec<WorkflowNumbers<'a>>,
    /// By workflow, step, service and direction.
    pub steps: Vec<StepNumbers<'a>>,
    /// By service and direction, over all steps that ask it.
    pub services: Vec<ServiceNumbers<'a>>,
}

/// Number of orders in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Count {
    /// The state.
    pub state: OpenEnum<ProcessState>,
    /// The count. Without CountedSince, of 1,000 tasks read at most.
    pub count: usize,
    /// Whether there may be more.
    pub at_least: bool,
    /// Only orders submitted since this time are counted. Present for final states without CountedSince.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the oldest of them was accepted, on one machine. Absent for final states, and if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Timestamp>,
}

/// What happened to orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct OrderNumbers {
    /// Stored.
    pub accepted: u64,
    /// Came to Processed.
    pub processed: u64,
    /// Came to Compensated.
    pub compensated: u64,
    /// Came to Closed.
    pub closed: u64,
    /// Came to Error, each time.
    pub failed: u64,
    /// From acceptance to Processed. Absent if no order was processed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
}

/// Percentiles of durations in milliseconds, each at most an eighth too high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Took {
    /// The median, in milliseconds.
    pub p50_ms: u64,
    /// The 95th percentile, in milliseconds.
    pub p95_ms: u64,
    /// The 99th percentile, in milliseconds.
    pub p99_ms: u64,
}

/// The orders of a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Point {
    /// Its beginning.
    pub at: Timestamp,
    /// What happened in it.
    pub orders: OrderNumbers,
    /// Neither ended nor in Error at its end.
    pub under_way: u64,
    /// The attempts of the workflow, step or service that is asked for, carried out. Absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<AttemptNumbers>,
    /// The same, undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<AttemptNumbers>,
}

/// The orders of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct WorkflowNumbers<'a> {
    /// Its name.
    pub workflow: Cow<'a, str>,
    /// What happened to them.
    pub orders: OrderNumbers,
}

/// What happened to the attempts of steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct AttemptNumbers {
    /// Claimed.
    pub begun: u64,
    /// Ended with success.
    pub done: u64,
    /// Had no answer in time.
    pub expired: u64,
    /// Were rejected for good.
    pub rejected: u64,
    /// Were given back without a failure of the step: the service was failing, busy, or at work on the call. Absent if
    /// there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred: u64,
    /// Steps that were skipped: the order went on without them. Absent if there were none.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// From the first claim to the success. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
    /// The calls that brought a success or a rejection. Calls without an answer, and those that were repeated, are not
    /// in it. Absent if the agents reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Took>,
}

/// The attempts of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct StepNumbers<'a> {
    /// The workflow.
    pub workflow: Cow<'a, str>,
    /// The step.
    pub step: Cow<'a, str>,
    /// The service that was asked.
    pub service: Cow<'a, str>,
    /// Forward, or compensation.
    #[cfg_attr(feature = "contract", schemars(with = "Direction"))]
    pub direction: OpenEnum<Direction>,
    /// What happened to them.
    pub attempts: AttemptNumbers,
}

/// The attempts at a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ServiceNumbers<'a> {
    /// The service.
    pub service: Cow<'a, str>,
    /// Forward, or compensation.
    #[cfg_attr(feature = "contract", schemars(with = "Direction"))]
    pub direction: OpenEnum<Direction>,
    /// What happened to them.
    pub attempts: AttemptNumbers,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
