//! `GET /overview`: the state of the whole system in one answer.

use std::borrow::Cow;

use domain::id::OrderId;
use domain::task::StepError;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Count, Lease, Service, Took};

/// `GET /overview`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Overview<'a> {
    /// The API's clock.
    pub at: Timestamp,
    /// Present and true if no order goes on (`serve --paused`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Why the server cannot do its work now, such as a full disk. Missing where it can, and where the host does not
    /// say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready: Option<Cow<'a, str>>,
    /// One count for each state.
    #[cfg_attr(feature = "contract", schemars(length(min = 7, max = 7)))]
    pub counts: Vec<Count>,
    /// Present where orders are counted as they change: since then. Then all counts are exact, and a count of Minutes
    /// is of what happened in the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_since: Option<Timestamp>,
    /// The last 30 minutes, oldest first. Without CountedSince, counted from the newest 1,000 orders.
    #[cfg_attr(feature = "contract", schemars(length(min = 30, max = 30)))]
    pub minutes: Vec<Minute>,
    /// Whether Minutes and the counts of the final states cover all orders of their time.
    pub minutes_complete: bool,
    /// How long the orders took that were processed in these minutes: from acceptance to `Processed`. Missing without
    /// any, and where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
    /// Approvals that people are asked for now. Missing where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<u64>,
    /// Failed orders by cause, largest group first.
    pub failures: Vec<Failure<'a>>,
    /// The remote services.
    pub services: Vec<Service<'a>>,
    /// The leases of supervisors.
    pub leases: Vec<Lease<'a>>,
    /// The dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("x-always" = true)))]
    pub dead_letters: Option<DeadLetterCount>,
}

/// The orders of one minute: without CountedSince those submitted in it, by their present state; with it, what happened
/// in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Minute {
    /// The beginning of the minute.
    pub at: Timestamp,
    /// All orders submitted in this minute.
    pub accepted: u32,
    /// In `Processed`.
    pub processed: u32,
    /// In `Compensated`.
    pub compensated: u32,
    /// In `Closed`.
    pub closed: u32,
    /// In `Error`.
    pub error: u32,
    /// Pending, Processing or Compensating: now, or with CountedSince at the end of the minute.
    pub under_way: u32,
}

/// Orders in `Error` for the same reason at the same step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Failure<'a> {
    /// The code of Reason.
    pub code: Cow<'a, str>,
    /// The step that was given up, or that Reason names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// Number of orders.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub count: usize,
    /// Whether there may be more.
    pub at_least: bool,
    /// The time of the oldest failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("x-always" = true)))]
    pub oldest_at: Option<Timestamp>,
    /// The time of the newest failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("x-always" = true)))]
    pub newest_at: Option<Timestamp>,
    /// The last error of that step in the newest order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<StepError>,
    /// The newest orders.
    #[serde(rename = "OrderIDs")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = 5)))]
    pub order_ids: Vec<OrderId>,
    /// What the code means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// What an operator does about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<Cow<'a, str>>,
}

/// Number of dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetterCount {
    /// The count, at most 100.
    pub count: usize,
    /// Whether there may be more.
    pub at_least: bool,
    /// The time of the last settlement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_at: Option<Timestamp>,
}
