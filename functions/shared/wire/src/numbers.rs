//! `GET /numbers`: what happened in the last minutes, hours or days, in numbers.

use std::borrow::Cow;

use domain::task::Direction;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Count, OpenEnum};

/// `GET /numbers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Numbers<'a> {
    /// When it was made.
    pub at: Timestamp,
    /// Since when everything is counted. Absent: nothing happened yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The beginning of the first point.
    pub from: Timestamp,
    /// The length of a point, in seconds.
    pub point_seconds: u64,
    /// The orders in each state now.
    pub counts: Vec<Count>,
    /// All orders since `from`.
    pub orders: OrderNumbers,
    /// The same, point by point, oldest first.
    pub points: Vec<Point>,
    /// By workflow.
    pub workflows: Vec<WorkflowNumbers<'a>>,
    /// By workflow, step, service and direction.
    pub steps: Vec<StepNumbers<'a>>,
    /// By service and direction, over all steps that ask it.
    pub services: Vec<ServiceNumbers<'a>>,
}

/// What happened to orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct OrderNumbers {
    /// Stored.
    pub accepted: u64,
    /// Came to `Processed`.
    pub processed: u64,
    /// Came to `Compensated`.
    pub compensated: u64,
    /// Came to `Closed`.
    pub closed: u64,
    /// Came to `Error`, each time.
    pub failed: u64,
    /// From acceptance to `Processed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
}

/// Percentiles of durations in milliseconds, each at most an eighth too high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Took {
    /// The median.
    pub p50_ms: u64,
    /// The 95th percentile.
    pub p95_ms: u64,
    /// The 99th percentile.
    pub p99_ms: u64,
}

/// The orders of a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Point {
    /// Its beginning.
    pub at: Timestamp,
    /// What happened in it.
    pub orders: OrderNumbers,
    /// Neither ended nor in `Error` at its end.
    pub under_way: u64,
    /// The attempts that were asked for, carried out. Missing if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<AttemptNumbers>,
    /// The attempts that were asked for, undone. Missing if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<AttemptNumbers>,
}

/// The orders of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WorkflowNumbers<'a> {
    /// Its name.
    pub workflow: Cow<'a, str>,
    /// What happened to them.
    pub orders: OrderNumbers,
}

/// What happened to attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Were given back without a failure of the step.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred: u64,
    /// Steps that were skipped.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// From the first claim to the success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
    /// The calls that brought a success or a rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Took>,
}

/// The attempts of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StepNumbers<'a> {
    /// The workflow.
    pub workflow: Cow<'a, str>,
    /// The step.
    pub step: Cow<'a, str>,
    /// The service that was asked.
    pub service: Cow<'a, str>,
    /// Carried out, or undone.
    pub direction: OpenEnum<Direction>,
    /// What happened to them.
    pub attempts: AttemptNumbers,
}

/// The attempts at a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceNumbers<'a> {
    /// The service.
    pub service: Cow<'a, str>,
    /// Carried out, or undone.
    pub direction: OpenEnum<Direction>,
    /// What happened to them.
    pub attempts: AttemptNumbers,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
