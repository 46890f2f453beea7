//! Orders: an order's state and its document.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::Priority;
use domain::order::{AgainOf, Parent};
use domain::situation::Situation;
use domain::task::{Direction, Pause, ProcessState, StepError, StepState, Taken, Watch};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// The state of an order in its workflow.
///
/// The state of an order and of its steps: `GET /orders/{id}`, and an entry of [`OrderList`]. It is also the answer to
/// `POST /orders` once the order is settled.
///
/// A reader gets `History` as a list. The API writes it from the task, without a list of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "Task"))]
#[serde(rename_all = "PascalCase")]
pub struct Task<'a, History = Vec<Transition<'a>>> {
    /// The order's id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// +1 at every change; also the ETag.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: u64,
    /// Pinned at submission.
    pub workflow: Cow<'a, str>,
    /// Pinned at submission.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub workflow_version: u32,
    /// State of the order.
    pub process_state: OpenEnum<ProcessState>,
    /// Why it is in `Error` or was compensated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason<'a>>,
    /// In the order of the workflow. A step for each element of an array is named by both, as `reserve/0001`.
    #[cfg_attr(feature = "contract", schemars(length(max = domain::limits::RECORDS_MAX)))]
    pub steps: Vec<Step<'a>>,
    /// Who has to look at the order: `due#NN` the supervisor of that shard, `wait#NN` the same after a long wait or at
    /// the deadline, `error#NN` the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<OpenEnum<Watch>>,
    /// With `due#NN` the time at which the supervisor looks, with `error#NN` the time of the error, in epoch
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_at: Option<i64>,
    /// The step of another order that made this one. Absent: it was posted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The deadline of the order. Absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_by: Option<Timestamp>,
    /// When it was found late: after its deadline and not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_since: Option<Timestamp>,
    /// When the order is deleted. Missing: it has not ended, or is kept for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When its personal data were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<Timestamp>,
    /// The priority of its messages.
    pub priority: OpenEnum<Priority>,
    /// The pause that keeps new steps from starting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// The operator who has taken it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// The time of acceptance. Absent if the task no longer has it; the order has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Timestamp>,
    /// The time of the last change of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("x-always" = true)))]
    pub updated_at: Option<Timestamp>,
    /// The commands that are allowed now: last segments of paths of this API.
    pub actions: Vec<Cow<'a, str>>,
    /// The elements of the array that its steps go through. Absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<CarriedLines>,
    /// The order's wait and the operator's remedy.
    pub situation: Situation,
    /// With `with=index`: the texts by which the order is found, by their positions in the document: `/CorrelationID`,
    /// and the members that its workflow declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "contract",
        schemars(extend("examples" = [{"/CorrelationID": "cart-7", "/Customer/Email": "ann@example.org"}]))
    )]
    pub index: Option<BTreeMap<String, String>>,
    /// The last 50 changes, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(max = domain::limits::HISTORY_MAX), extend("x-always" = true)))]
    pub history: Option<History>,
}

/// The lines of an order, by the names of their elements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct CarriedLines {
    /// Those that the order carries.
    pub carried: Vec<Arc<str>>,
    /// Those that were dropped.
    pub dropped: Vec<Arc<str>>,
}

/// Why an order is in `Error` or was compensated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Reason<'a> {
    /// Stable: rejected, exhausted, late, cancelled, closed, compensation-failed, hop-limit, dead-letter.
    pub code: Cow<'a, str>,
    /// A message for people. It may contain a service's message, in which nothing is redacted.
    pub message: Cow<'a, str>,
    /// The step that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// The reason of the compensation during which an undo failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<Self>>,
}

/// A step of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Step<'a> {
    /// The name in the workflow.
    pub name: Cow<'a, str>,
    /// The agent that calls the service.
    pub agent: Cow<'a, str>,
    /// The state of the step in its direction. More values may come.
    pub process_state: OpenEnum<StepState>,
    /// The instance of submission or scheduler that claimed the step.
    pub locked_by: Option<Cow<'a, str>>,
    /// The deadline of the attempt.
    pub complete_by: Option<Timestamp>,
    /// Attempts that expired or failed since the step last started afresh.
    pub failure_count: u32,
    /// The number of claims; the fencing token.
    pub attempt: u32,
    /// Forward, or compensation.
    #[cfg_attr(feature = "contract", schemars(with = "Direction"))]
    pub direction: OpenEnum<Direction>,
    /// Whether the order goes on past the step if it is rejected. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the order only goes forward once the step has begun. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pivot: bool,
    /// Whether the line of the step was dropped: the step is undone, and the order goes on. Absent: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
    /// Present if people decide on it: no service is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approvers<'a>>,
    /// The id of the order that the step made, and waits for. Absent: it makes none, or has not made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<OrderId>,
    /// The time at which a supervisor found the attempt expired implausibly late, and doubted its own clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubted_at: Option<Timestamp>,
    /// Back-off: the step is not claimed before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The end of a long wait: of the step before its first attempt, or of an attempt whose result comes later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Until then a call of this step that had no answer may still have its effect. The undo waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_run_until: Option<Timestamp>,
    /// The agent's result, any JSON; marked members are redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Cow<'a, Json>>,
    /// The last failure, in either direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<StepError>,
    /// How long the call took that brought the last success or rejection, in milliseconds. Present once its present
    /// direction has ended, if the agent reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<u64>,
    /// The time of the first claim in this direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// The end of this direction: processed or given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// Who decides on a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", default)]
pub struct Approvers<'a> {
    /// Their role, for people: nothing checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
    /// The name of a person who may not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_by: Option<Cow<'a, str>>,
}

/// A line of an order's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Transition<'a> {
    /// The time.
    pub at: Timestamp,
    /// The instance or the operator.
    pub who: Cow<'a, str>,
    /// The authenticated caller of that operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Cow<'a, str>>,
    /// The change, for people.
    pub what: Cow<'a, str>,
    /// The reason of an operator or a service. Nothing in a service's reason is redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'a, str>>,
    /// The kind of change, for programs: Submitted, Claimed, Processed, Deferred (given back without a failure),
    /// Expired (no answer in time; another attempt follows), Approved and Rejected (by the service or by people), GivenUp,
    /// Entered (a state), Resubmitted, Cancelled, Paused, Resumed, Settled (by an operator), Skipped (a step or an undo
    /// that needs no call), Dropped (a line, which is undone), Waiting (before its first attempt), Accepted (by the service, which tells the result later),
    /// Contradicted (a result came against the end of a step or an order), Noted (by an operator), Late, Erased. Other is
    /// an unknown line of an earlier version. More kinds may be added.
    pub kind: Cow<'a, str>,
    /// The step that changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// Forward, or compensation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<Direction>"))]
    pub direction: Option<OpenEnum<Direction>>,
    /// The attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The state that the order entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<OpenEnum<ProcessState>>,
    /// Of a note: whether the operator took the order on, or let it go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<bool>,
    /// The command that did it.
    #[serde(rename = "CommandID", skip_serializing_if = "Option::is_none")]
    pub command_id: Option<Cow<'a, str>>,
    /// The bulk job that did it: that sent this command, or posted the order again as this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Cow<'a, str>>,
}

/// `GET /orders`: a page of orders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "OrderList"))]
#[serde(rename_all = "PascalCase")]
pub struct OrderList<Item> {
    /// The newest first.
    #[cfg_attr(feature = "contract", schemars(length(max = domain::limits::PAGE_MAX)))]
    pub orders: Vec<Item>,
    /// Opaque: pass it to the next call unchanged, with the same other parameters. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = 2_048), extend("examples" = ["c2VhbGVkLWN1cnNvcg"])))]
    pub next_cursor: Option<String>,
    /// Of a search: the number of orders that were read for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examined: Option<usize>,
    /// Of a search: the submission time of the last order read, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched_back_to: Option<Timestamp>,
    /// Of a search: true if this page is from an index. Absent: it is not. The next page goes on in the index, or with
    /// orders that are not in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_index: bool,
}

/// The answer to `POST /orders` while the order is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Accepted {
    /// The order's id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// State of the order.
    pub process_state: OpenEnum<ProcessState>,
}

/// `GET /orders/{id}/document`: the order as it was posted, without its redacted values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Order<'a> {
    /// The order's id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The time of acceptance.
    pub submitted_at: Timestamp,
    /// The authenticated caller.
    pub submitter: Cow<'a, str>,
    /// Copied from the document.
    #[serde(rename = "CorrelationID", skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// Copied from the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_channel: Option<Cow<'a, str>>,
    /// The priority, if the order names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<OpenEnum<Priority>>,
    /// The compensated order that an operator posted again as this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_of: Option<AgainOf>,
    /// The order that this one was posted again as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<OrderId>,
    /// The document; marked members are redacted.
    #[cfg_attr(feature = "contract", schemars(with = "BTreeMap<String, Json>"))]
    pub document: Cow<'a, Json>,
}

impl<History> Task<'_, History> {
    /// Whether the order changes only after an operator's command. An unknown state is not settled.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.process_state.known().is_some_and(ProcessState::is_settled)
    }
}

impl<'a> Task<'a> {
    /// The last changes, oldest first. Empty in lists.
    #[must_use]
    pub fn history(&self) -> &[Transition<'a>] {
        self.history.as_deref().unwrap_or_default()
    }
}

impl Step<'_> {
    /// Duration of its present direction in milliseconds. `None` before it is finished.
    #[must_use]
    pub fn took_ms(&self) -> Option<u64> {
        Some(self.started_at?.ms_until(self.finished_at?))
    }
}
