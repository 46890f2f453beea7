//! Bulk jobs: the plan that an operator posts, and the resulting job.

use std::borrow::Cow;

use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// The body of `POST /bulk`. The API has a default for each member that is missing, but not for the selector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Plan<'a> {
    /// The operator.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// What is done with each order; absent: a resubmit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Cow<'a, str>>,
    /// The selected orders.
    pub selector: Selector<'a>,
    /// Number of orders that go first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<u32>,
    /// Time in which a canary has to be settled, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary_timeout_ms: Option<u64>,
    /// Orders handled in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_per_second: Option<u32>,
    /// The job stops at a larger share of orders that failed again, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_at_failed_percent: Option<u8>,
}

impl Plan<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 8] =
        ["By", "Reason", "Action", "Selector", "Canary", "CanaryTimeoutMs", "RatePerSecond", "StopAtFailedPercent"];
}

/// The orders that a job covers, in `Error` or, to be posted again, `Compensated`. A missing member matches every order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Selector<'a> {
    /// State of the order; only the one that the action is for is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Cow<'a, str>>,
    /// Code of the order's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<Cow<'a, str>>,
    /// Step of the order's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// The order entered its state at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_since: Option<Timestamp>,
    /// The order entered its state at this time or earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_until: Option<Timestamp>,
}

impl Selector<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 5] = ["State", "ReasonCode", "Step", "FailedSince", "FailedUntil"];
}

/// `GET /bulk/{id}`, the answers to a plan and to a command about a job, and an entry of [`JobList`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Job<'a> {
    /// The job's id.
    #[serde(rename = "JobID")]
    pub id: Cow<'a, str>,
    /// Increases with every change. It is also the `ETag`.
    pub version: u64,
    /// State of the job.
    pub state: OpenEnum<JobState>,
    /// Why it stopped or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'a, str>>,
    /// The operator that planned it.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// What is done with each order.
    pub action: Cow<'a, str>,
    /// The selected orders.
    #[serde(default)]
    pub selector: Selector<'a>,
    /// Number of orders that go first.
    #[serde(default)]
    pub canary: u32,
    /// Time in which a canary has to be settled, in milliseconds.
    #[serde(default)]
    pub canary_timeout_ms: u64,
    /// Orders handled in a second.
    #[serde(default)]
    pub rate_per_second: u32,
    /// The job stops at a larger share of orders that failed again, in percent.
    #[serde(default)]
    pub stop_at_failed_percent: u8,
    /// Result of the dry run.
    pub dry_run: DryRun<'a>,
    /// The operator that started it, and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_by: Option<Cow<'a, str>>,
    /// When it was planned.
    pub planned_at: Timestamp,
    /// When it entered its state.
    #[serde(default)]
    pub since: Timestamp,
    /// Outcomes so far.
    #[serde(default)]
    pub tally: Tally,
    /// Number of orders that were handled and are not settled yet.
    #[serde(default)]
    pub under_way: usize,
    /// Number of orders that were found and wait for their turn.
    #[serde(default)]
    pub waiting: usize,
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// Counted. The job waits for its start.
    Planned,
    /// The canaries are in flight.
    Canary,
    /// The other orders are in flight.
    Running,
    /// Every order is settled.
    Done,
    /// The job stopped itself.
    Stopped,
    /// An operator stopped the job.
    Cancelled,
}

impl JobState {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Planned => "Planned",
            Self::Canary => "Canary",
            Self::Running => "Running",
            Self::Done => "Done",
            Self::Stopped => "Stopped",
            Self::Cancelled => "Cancelled",
        }
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Result of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DryRun<'a> {
    /// Number of orders that match.
    pub matching: u64,
    /// Whether all orders in the state were examined.
    pub complete: bool,
    /// The result in words.
    #[serde(default)]
    pub message: Cow<'a, str>,
}

/// Outcomes of a job's orders so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Tally {
    /// Orders that were handled.
    pub begun: u64,
    /// Orders that came to the end that the action is for.
    pub recovered: u64,
    /// Orders that failed again, or were not settled in time.
    pub failed_again: u64,
    /// Those of `failed_again` that were not settled in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Orders that changed in another way before their turn.
    pub passed_over: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// `GET /bulk`: the newest jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct JobList<Item> {
    /// The newest first.
    pub jobs: Vec<Item>,
}
