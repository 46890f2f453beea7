//! Bulk jobs: the plan that an operator posts, and the resulting job.

use std::borrow::Cow;

#[cfg(feature = "contract")]
use domain::bulk::{BulkAction, Spec};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// The body of `POST /bulk`. The API has a default for each member that is missing, but not for the selector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "JobPlan"))]
#[serde(rename_all = "PascalCase")]
pub struct Plan<'a> {
    /// The operator, kept in the history of each order, with the authenticated caller in brackets beside it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Operator"))]
    pub by: Cow<'a, str>,
    /// The reason, kept in the history of each order.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub reason: Cow<'a, str>,
    /// What is done with each order. Settle ends the step of the Selector, which must name one, as done, or as undone
    /// if the order was being undone. Again posts compensated orders again, each as one new order at most; the other
    /// actions are for orders in Error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<BulkAction>", extend("default" = "Resubmit")))]
    pub action: Option<Cow<'a, str>>,
    /// The selected orders.
    pub selector: Selector<'a>,
    /// The number of canary orders. They go first; the others wait for their outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "contract",
        schemars(range(min = 1, max = Spec::CANARY_MAX), extend("default" = Spec::default_canary()))
    )]
    pub canary: Option<u32>,
    /// The time-out of a canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "contract",
        schemars(
            range(min = Spec::CANARY_TIMEOUT_MS.0, max = Spec::CANARY_TIMEOUT_MS.1),
            extend("default" = Spec::default_canary_timeout_ms())
        )
    )]
    pub canary_timeout_ms: Option<u64>,
    /// Orders handled per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "contract",
        schemars(range(min = 1, max = Spec::RATE_MAX), extend("default" = Spec::default_rate()))
    )]
    pub rate_per_second: Option<u32>,
    /// The job stops when a larger share of its settled orders fails again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "contract",
        schemars(range(max = 100), extend("default" = Spec::default_stop_at_failed_percent()))
    )]
    pub stop_at_failed_percent: Option<u8>,
}

impl Plan<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 8] =
        ["By", "Reason", "Action", "Selector", "Canary", "CanaryTimeoutMs", "RatePerSecond", "StopAtFailedPercent"];
}

/// The orders to handle; `{}` means all of the state that the action is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Selector<'a> {
    /// Compensated if the action is Again, else Error; may be absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("enum" = ["Error", "Compensated"])))]
    pub state: Option<Cow<'a, str>>,
    /// The code of Reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::Name>"))]
    pub reason_code: Option<Cow<'a, str>>,
    /// The step that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::Name>"))]
    pub step: Option<Cow<'a, str>>,
    /// Only orders that failed, or were compensated, at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::DateTime>"))]
    pub failed_since: Option<Timestamp>,
    /// Only orders that failed, or were compensated, at this time or earlier. It is not before FailedSince.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::DateTime>"))]
    pub failed_until: Option<Timestamp>,
}

impl Selector<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 5] = ["State", "ReasonCode", "Step", "FailedSince", "FailedUntil"];
}

/// A bulk job: the same action on many orders.
///
/// `GET /bulk/{id}`, the answers to a plan and to a command about a job, and an entry of [`JobList`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Job<'a> {
    /// Job ID; sorts by the time of planning.
    #[serde(rename = "JobID")]
    #[cfg_attr(feature = "contract", schemars(regex(pattern = r"^[0-9a-f]{12}-[0-9a-f]{16}$")))]
    pub id: Cow<'a, str>,
    /// +1 at every change; also the ETag.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: u64,
    /// Done, Stopped and Cancelled are final. More values may come.
    pub state: OpenEnum<JobState>,
    /// The reason of the stop or the cancellation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'a, str>>,
    /// The operator that planned the job, and in brackets the authenticated caller.
    pub by: Cow<'a, str>,
    /// The reason.
    pub reason: Cow<'a, str>,
    /// What is done with each order. More values may come.
    #[cfg_attr(feature = "contract", schemars(with = "OpenEnum<BulkAction>"))]
    pub action: Cow<'a, str>,
    /// The selected orders.
    pub selector: Selector<'a>,
    /// Number of orders that go first.
    pub canary: u32,
    /// Time in which a canary has to be settled, in milliseconds.
    pub canary_timeout_ms: u64,
    /// Orders handled in a second.
    pub rate_per_second: u32,
    /// The job stops at a larger share of orders that failed again, in percent.
    pub stop_at_failed_percent: u8,
    /// Result of the dry run.
    pub dry_run: DryRun<'a>,
    /// The operator that started the job, and the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_by: Option<Cow<'a, str>>,
    /// The time of planning.
    pub planned_at: Timestamp,
    /// The time of the last change of state.
    pub since: Timestamp,
    /// Outcomes so far.
    pub tally: Tally,
    /// Orders handled and not settled yet.
    pub under_way: usize,
    /// Orders found and not yet handled.
    pub waiting: usize,
}

/// State of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct DryRun<'a> {
    /// The number of matching orders.
    pub matching: u64,
    /// Whether all orders in the state were read. If false, more orders may match.
    pub complete: bool,
    /// The result, for people.
    pub message: Cow<'a, str>,
}

/// Outcomes of a job's orders so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Tally {
    /// Orders begun.
    pub begun: u64,
    /// Orders that came to the end that the action is for. Of an order that is posted again: its new order was
    /// processed.
    pub recovered: u64,
    /// Orders in Error again, compensated, or not settled in time.
    pub failed_again: u64,
    /// Orders that were not settled in time.
    #[serde(skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Orders that an operator had already acted on.
    pub passed_over: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// `GET /bulk`: the newest jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "JobList"))]
#[serde(rename_all = "PascalCase")]
pub struct JobList<Item> {
    /// The newest first.
    #[cfg_attr(feature = "contract", schemars(length(max = domain::limits::PAGE_MAX)))]
    pub jobs: Vec<Item>,
}
