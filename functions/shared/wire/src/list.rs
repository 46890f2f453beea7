//! The other lists for operators: services, leases, workflows and dead letters. The health check is here, too.

use std::borrow::Cow;

use domain::id::OrderId;
use domain::message::Priority;
use domain::ports::{Acceptance, Breaker, OutageReason};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// `GET /health`: the process answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Health<'a> {
    /// `ok`.
    pub status: Cow<'a, str>,
    /// Version of the program.
    pub version: Cow<'a, str>,
    /// Whether no order goes on (`serve --paused`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Whether stand-ins play the services without a URL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stand_ins: bool,
}

/// `GET /services`: the remote services, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceList<'a> {
    /// All of them.
    pub services: Vec<Service<'a>>,
}

/// The circuit breaker of a remote service. A service that never failed has only a name and a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Service<'a> {
    /// Its name.
    pub service: Cow<'a, str>,
    /// State of the circuit breaker.
    pub state: OpenEnum<Breaker>,
    /// When it came into this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When it is probed next; missing while the service works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Number of failures since the last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_in_a_row: Option<u32>,
    /// When the present outage began. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_since: Option<Timestamp>,
    /// The orders that wait for it. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders_waiting: Option<OrdersWaiting>,
    /// Why requests wait. Missing while they go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<OpenEnum<OutageReason>>,
    /// The last problem. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Cow<'a, str>>,
    /// The operator's word that its rejections are right, while it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejections_accepted: Option<Acceptance>,
    /// The effect of its failure on orders, in words. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// The operator's remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<Cow<'a, str>>,
}

/// Number of orders that wait for a service: an attempt is in flight, or waits for its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct OrdersWaiting {
    /// The number.
    pub count: usize,
    /// Whether there may be more.
    pub at_least: bool,
}

/// `GET /leases`: the leases of supervisors, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LeaseList<'a> {
    /// All of them.
    pub leases: Vec<Lease<'a>>,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Lease<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The present owner, or the last one.
    #[serde(default)]
    pub owner: Cow<'a, str>,
    /// Increases with every new owner.
    #[serde(default)]
    pub epoch: u64,
    /// When it expires. Missing once it was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When the owner last renewed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed_at: Option<Timestamp>,
    /// The owner's last report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Cow<'a, str>>,
    /// Whether it is held now.
    #[serde(default)]
    pub held: bool,
}

/// `GET /workflows`: all versions of all workflows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WorkflowList<'a> {
    /// All of them.
    pub workflows: Vec<Workflow<'a>>,
}

/// A version of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Workflow<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its version.
    pub version: u32,
    /// Whether new orders of this workflow begin with this version. With a share, those outside of it.
    #[serde(default)]
    pub current: bool,
    /// Whether orders that name no workflow begin with this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// The share of new orders that begin with this version, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<u8>,
    /// When it was retired: no new order begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
    /// Priority of orders that have none of their own.
    #[serde(default)]
    pub priority: OpenEnum<Priority>,
    /// Time that an order has, from its acceptance, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_within_ms: Option<u64>,
    /// The policy if an order is not finished at its deadline. Missing if the workflow says nothing about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_late: Option<Cow<'a, str>>,
    /// Its steps.
    #[serde(default)]
    pub steps: Vec<WorkflowStep<'a>>,
}

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct WorkflowStep<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The agent that carries it out.
    pub agent: Cow<'a, str>,
    /// Present if people decide on it, and no service is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<WorkflowApproval<'a>>,
    /// Names of the steps that must be done first.
    #[serde(default)]
    pub after: Vec<Cow<'a, str>>,
    /// Time that an attempt has, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_within_ms: Option<u64>,
    /// Failures after which the step is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u32>,
    /// The policy if the agent rejects the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_rejected: Option<Cow<'a, str>>,
    /// The policy if the step is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exhausted: Option<Cow<'a, str>>,
    /// The longer wait after each failure from `max_failures` on, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer_wait_ms: Option<u64>,
    /// How often it waits so before it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longer_waits: Option<u32>,
    /// Comparisons that must all hold; otherwise the step is skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Cow<'a, str>>,
    /// Whether the order goes on past it if it is rejected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the order only goes forward once it has begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pivot: bool,
    /// Whether it counts as undone without a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_undo: bool,
    /// Time after which a deferred step is given up, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon_ms: Option<u64>,
    /// The wait before its first attempt, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// The place in the order of the time before which it does not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Cow<'a, str>>,
    /// How long a result that comes later is awaited, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_within_ms: Option<u64>,
}

/// Who decides on a step of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct WorkflowApproval<'a> {
    /// Their role, for people: nothing checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
    /// The place in the order of the name of a person who may not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_by: Option<Cow<'a, str>>,
}

/// `GET /alerts`: those that are on, then the last ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AlertList<'a> {
    /// One for each cause.
    pub alerts: Vec<Alert<'a>>,
}

/// A cause that makes orders wait, or needs an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Alert<'a> {
    /// `order/CODE/STEP`, `service/NAME/REASON`, `late/WORKFLOW`, `contradicted/WORKFLOW`, `approval/WORKFLOW` or
    /// `dead-letter/OUTCOME`.
    pub cause: Cow<'a, str>,
    /// When it began.
    pub since: Timestamp,
    /// Since when its cause is not found any more. It ends a minute later, unless the cause comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<Timestamp>,
    /// When it ended. Missing while it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What happened.
    pub text: Cow<'a, str>,
    /// The operator's remedy.
    pub to_do: Cow<'a, str>,
    /// Orders that waited because of it at the supervisor's last look.
    #[serde(default)]
    pub count: u64,
    /// Whether there may be more.
    #[serde(default)]
    pub at_least: bool,
    /// The sinks that did not take the last message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_told: Vec<Cow<'a, str>>,
    /// One of them.
    #[serde(rename = "OrderID", default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
}

/// `GET /dead-letters`: a page of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetterList<Item> {
    /// The last settled first.
    pub dead_letters: Vec<Item>,
    /// The start of the next page. Missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A dead letter and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetter<'a> {
    /// Id of the message.
    #[serde(rename = "MessageID")]
    pub message_id: Cow<'a, str>,
    /// The queue that gave it up: `Submission`, `Scheduler` or `Agent`. Missing if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Cow<'a, str>>,
    /// The agent, if the queue belongs to an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    /// The order that the message was about.
    #[serde(rename = "OrderID", skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
    /// Number of deliveries.
    pub receive_count: u32,
    /// When the queue gave it up.
    #[serde(default)]
    pub at: Timestamp,
    /// When it was settled.
    pub settled_at: Timestamp,
    /// Its outcome.
    pub outcome: Cow<'a, str>,
    /// The outcome in words.
    pub message: Cow<'a, str>,
    /// Size of the stored body of an unreadable message. The body may contain any data and is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<usize>,
}
