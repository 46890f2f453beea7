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
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Health<'a> {
    /// More values may come.
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["ok"])))]
    pub status: Cow<'a, str>,
    /// The version of the program.
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["0.1.0"])))]
    pub version: Cow<'a, str>,
    /// Present and true if no order goes on (`serve --paused`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Present and true if stand-ins play the services without a URL: their calls have no real effects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stand_ins: bool,
}

/// `GET /services`: the remote services, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct ServiceList<'a> {
    /// All of them.
    pub services: Vec<Service<'a>>,
}

/// The circuit breaker of a remote service. A service that never failed has only a name and a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Service<'a> {
    /// The name of its agent.
    pub service: Cow<'a, str>,
    /// The circuit breaker. Closed: requests go through. Open: requests are parked. HalfOpen: one request probes. More
    /// values may come.
    pub state: OpenEnum<Breaker>,
    /// The time of the last change of state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// While open: the time of the next probe. While half-open: the deadline of the probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Failures since the last success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_in_a_row: Option<u32>,
    /// When the present outage began. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_since: Option<Timestamp>,
    /// The orders that wait for it: an attempt is in flight, or waits for its time. Of 1,000 orders under way in each
    /// direction at most. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders_waiting: Option<OrdersWaiting>,
    /// Why requests wait. failing: it fails or does not answer. misconfigured: it refuses every call because of its own
    /// configuration or the agent's. rejections: it rejects most steps. Missing while requests go through. More values
    /// may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<OpenEnum<OutageReason>>,
    /// The last problem. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Cow<'a, str>>,
    /// The operator's word that its rejections are right, while it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejections_accepted: Option<Acceptance>,
    /// What the outage means for orders, in words. Missing while requests go through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// What an operator does about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<Cow<'a, str>>,
}

/// Number of orders that wait for a service: an attempt is in flight, or waits for its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct OrdersWaiting {
    /// The number.
    pub count: usize,
    /// Whether there may be more.
    pub at_least: bool,
}

/// `GET /leases`: the leases of supervisors, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct LeaseList<'a> {
    /// All of them.
    pub leases: Vec<Lease<'a>>,
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Lease<'a> {
    /// The purpose, such as supervisor/00, the first shard.
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["supervisor/00"])))]
    pub name: Cow<'a, str>,
    /// The present or last holder.
    pub owner: Cow<'a, str>,
    /// +1 at every change of holder.
    pub epoch: u64,
    /// The end of its term; absent if it was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The last renewal: the end of the owner's last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed_at: Option<Timestamp>,
    /// The owner's last report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Cow<'a, str>>,
    /// Whether the lease is held now.
    pub held: bool,
}

/// `GET /workflows`: all versions of all workflows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct WorkflowList<'a> {
    /// All of them.
    pub workflows: Vec<Workflow<'a>>,
}

/// A version of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Workflow<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The version, from 1.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: u32,
    /// Whether new orders of this workflow begin with this version. With a share, those outside of it.
    pub current: bool,
    /// Whether orders that name no workflow begin with this one. Absent: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// The share of new orders that begin with this version, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1, max = 99)))]
    pub share_percent: Option<u8>,
    /// When it was retired: no new order begins with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
    /// Priority of orders that have none of their own.
    pub priority: OpenEnum<Priority>,
    /// Time that an order has, from its acceptance. Absent: no deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub complete_within_ms: Option<u64>,
    /// The policy if an order is not finished at its deadline. Absent if the workflow says nothing about it. More
    /// values may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["alert", "compensate", "hold"])))]
    pub on_late: Option<Cow<'a, str>>,
    /// Its steps.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = domain::limits::STEPS_MAX)))]
    pub steps: Vec<WorkflowStep<'a>>,
}

/// A step of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct WorkflowStep<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The agent that carries it out.
    pub agent: Cow<'a, str>,
    /// Present if people decide on it: no service is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<WorkflowApproval<'a>>,
    /// The workflow of the order that it makes, if it makes one: no service is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Cow<'a, str>>,
    /// Steps that must be processed or skipped first.
    pub after: Vec<Cow<'a, str>>,
    /// The time-out of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1), extend("x-always" = true)))]
    pub complete_within_ms: Option<u64>,
    /// The number of failures at which the step is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1), extend("x-always" = true)))]
    pub max_failures: Option<u32>,
    /// The action after a rejection. More values may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["compensate", "hold"]), extend("x-always" = true)))]
    pub on_rejected: Option<Cow<'a, str>>,
    /// The action when max_failures or the horizon is exhausted. More values may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["compensate", "hold"]), extend("x-always" = true)))]
    pub on_exhausted: Option<Cow<'a, str>>,
    /// The wait after each failure from `MaxFailures` on, in milliseconds. Missing: the step is given up at
    /// `MaxFailures`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1, max = domain::limits::WAIT_MS_MAX)))]
    pub longer_wait_ms: Option<u64>,
    /// How often the step waits so before it is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1, max = domain::limits::FAILURES_MAX)))]
    pub longer_waits: Option<u32>,
    /// The place of the array for each of whose elements the step is carried out. Absent: it is carried out once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["/Order/Lines"])))]
    pub for_each: Option<Cow<'a, str>>,
    /// Comparisons that must all hold; otherwise the step is skipped. Absent: it always applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = domain::limits::WHEN_MAX)))]
    pub when: Vec<Cow<'a, str>>,
    /// Whether the order goes on past the step if it is rejected. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the order only goes forward once the step has begun. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pivot: bool,
    /// Whether the step counts as undone without a call. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_undo: bool,
    /// The longest time for which a step is tried in one direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1), extend("x-always" = true)))]
    pub horizon_ms: Option<u64>,
    /// The wait before the first attempt, from the moment at which the step is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub wait_ms: Option<u64>,
    /// The place in the order of the time before which the step does not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["/Order/DeliverOn"])))]
    pub not_before: Option<Cow<'a, str>>,
    /// How long a result that comes later is awaited. Absent: the service must answer at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub wait_within_ms: Option<u64>,
}

/// Who decides on a step of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct AlertList<'a> {
    /// One for each cause.
    pub alerts: Vec<Alert<'a>>,
}

/// A cause that makes orders wait, or needs an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Alert<'a> {
    /// `order/CODE/STEP`, `service/NAME/REASON`, `late/WORKFLOW`, `contradicted/WORKFLOW`, `approval/WORKFLOW`,
    /// `schedule/NAME` or `dead-letter/OUTCOME`.
    pub cause: Cow<'a, str>,
    /// When it began.
    pub since: Timestamp,
    /// Since when its cause is not found any more. It ends a minute later, unless the cause comes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<Timestamp>,
    /// When it ended. Missing while it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What happened, in words.
    pub text: Cow<'a, str>,
    /// The operator's remedy.
    pub to_do: Cow<'a, str>,
    /// Orders that waited because of it at the supervisor's last look; 0 if it is not about orders.
    pub count: u64,
    /// Whether there may be more.
    pub at_least: bool,
    /// The sinks that did not take the last message. They are tried again. Missing if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_told: Vec<Cow<'a, str>>,
    /// One of them.
    #[serde(rename = "OrderID", skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
}

/// `GET /dead-letters`: a page of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "DeadLetterList"))]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetterList<Item> {
    /// The last settled first.
    #[cfg_attr(feature = "contract", schemars(length(max = domain::limits::PAGE_MAX)))]
    pub dead_letters: Vec<Item>,
    /// Opaque: pass it to the next call unchanged, with the same other parameters. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = 2_048), extend("examples" = ["c2VhbGVkLWN1cnNvcg"])))]
    pub next_cursor: Option<String>,
}

/// A dead letter and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct DeadLetter<'a> {
    /// The message ID on its queue.
    #[serde(rename = "MessageID")]
    pub message_id: Cow<'a, str>,
    /// The queue; absent if unknown. More values may come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("examples" = ["Submission", "Scheduler", "Agent"])))]
    pub queue: Option<Cow<'a, str>>,
    /// The consumer of the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    /// The order that the message was about.
    #[serde(rename = "OrderID", skip_serializing_if = "Option::is_none")]
    pub order_id: Option<OrderId>,
    /// The number of deliveries.
    pub receive_count: u32,
    /// The time at which the queue gave up the message.
    pub at: Timestamp,
    /// The time of settlement.
    pub settled_at: Timestamp,
    /// The outcome. Stored or Held: the order is in Error and waits for an operator. Stale: the order no longer needs
    /// the message. NoOrder: the order does not exist. LostCommand: an operator's command was not carried out.
    /// Unreadable: the message is not valid. Refused: the sender may not send the message, and nothing changed. More
    /// values may come.
    #[cfg_attr(
        feature = "contract",
        schemars(extend("examples" = ["Stored", "Held", "Stale", "NoOrder", "LostCommand", "Unreadable", "Refused"]))
    )]
    pub outcome: Cow<'a, str>,
    /// A message for people.
    pub message: Cow<'a, str>,
    /// The size of the stored body of an unreadable message. The body is not shown: its content is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<usize>,
}
