//! `GET /schedules`: the orders that are posted at times (rule 48).

use std::borrow::Cow;

use domain::id::OrderId;
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// `GET /schedules`: the schedules that apply, as `stepwarden.toml` has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ScheduleList<'a> {
    /// All of them.
    pub schedules: Vec<Schedule<'a>>,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Schedule<'a> {
    /// Its name. The submitter of its orders is schedule/ and the name.
    pub name: Cow<'a, str>,
    /// The workflow of its orders; absent: the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Cow<'a, str>>,
    /// When it is due, in UTC: minute, hour, day of the month, month, day of the week.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<Cow<'a, str>>,
    /// The time between two due times, in milliseconds, if it has no cron.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// No due time is before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// Every due time is before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// What is posted of missed due times: latest, all, none.
    pub catch_up: Cow<'a, str>,
    /// The next due time; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_due_at: Option<Timestamp>,
    /// The last order; absent: none was posted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
    /// Why the last due time has no order, if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused<'a>>,
}

/// The last order of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "ScheduledOrder"))]
#[serde(rename_all = "PascalCase")]
pub struct Posted {
    /// Its due time, which its document has as DueAt.
    pub due_at: Timestamp,
    /// Its id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// When it was posted.
    pub at: Timestamp,
}

/// A due time without an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "RefusedDueTime"))]
#[serde(rename_all = "PascalCase")]
pub struct Refused<'a> {
    /// The due time.
    pub due_at: Timestamp,
    /// When it was refused.
    pub at: Timestamp,
    /// Why.
    pub problem: Cow<'a, str>,
}
