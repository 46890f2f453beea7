//! `GET /overview`: the state of the whole system in one answer.

use std::borrow::Cow;

use domain::id::OrderId;
use domain::task::ProcessState;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Lease, OpenEnum, Service, StepError, Took};

/// `GET /overview`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Overview<'a> {
    /// When it was made.
    pub at: Timestamp,
    /// Whether no order goes on (`serve --paused`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Why the server cannot do its work now. Missing where it can, and where the host does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready: Option<Cow<'a, str>>,
    /// Orders by state.
    pub counts: Vec<Count>,
    /// Since when the counts and the minutes are counted with the orders. Such counts are exact. In such minutes,
    /// `processed`, `compensated` and `error` are the orders that came to this state in the minute, and `under_way` those
    /// under way at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_since: Option<Timestamp>,
    /// Orders by the minute in which they were submitted, oldest first.
    pub minutes: Vec<Minute>,
    /// Whether `minutes` and the counts of finished orders cover all orders of their time.
    pub minutes_complete: bool,
    /// How long the orders took that were processed in these minutes. Missing without any, and where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Took>,
    /// Approvals that people are asked for now. Missing where they are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<u64>,
    /// Orders in `Error`, by cause.
    pub failures: Vec<Failure<'a>>,
    /// The remote services.
    pub services: Vec<Service<'a>>,
    /// The leases of supervisors.
    pub leases: Vec<Lease<'a>>,
    /// The dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<DeadLetterCount>,
}

/// Number of orders in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Count {
    /// The state.
    pub state: OpenEnum<ProcessState>,
    /// The number.
    pub count: usize,
    /// Whether there may be more.
    #[serde(default)]
    pub at_least: bool,
    /// Only orders submitted since then are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the oldest of them was accepted. Absent for an end, without such an order, and where the store does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Timestamp>,
}

/// The orders that were submitted in one minute, by their present state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Minute {
    /// Its beginning.
    pub at: Timestamp,
    /// All orders of the minute. Each one is also counted by its state.
    pub accepted: u32,
    /// In `Processed`.
    pub processed: u32,
    /// In `Compensated`.
    pub compensated: u32,
    /// In `Closed`.
    pub closed: u32,
    /// In `Error`.
    pub error: u32,
    /// In any other state.
    pub under_way: u32,
}

/// Orders in `Error` for the same reason at the same step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Failure<'a> {
    /// Code of their reason.
    pub code: Cow<'a, str>,
    /// The step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// Number of orders.
    pub count: usize,
    /// Whether there may be more.
    #[serde(default)]
    pub at_least: bool,
    /// When the first of them entered `Error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_at: Option<Timestamp>,
    /// When the last of them entered `Error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_at: Option<Timestamp>,
    /// The last error of that step in the newest of these orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<StepError<'a>>,
    /// The newest of these orders.
    #[serde(rename = "OrderIDs", default)]
    pub order_ids: Vec<OrderId>,
    /// The meaning of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// The operator's remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<Cow<'a, str>>,
}

/// Number of dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetterCount {
    /// The number.
    pub count: usize,
    /// Whether there are more.
    #[serde(default)]
    pub at_least: bool,
    /// When the last of them was settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_at: Option<Timestamp>,
}
