//! Orders: an order's state and its document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::Priority;
use domain::task::{Direction, ProcessState, StepState, Watch};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// The state of an order and of its steps: `GET /orders/{id}`, and an entry of [`OrderList`]. It is also the answer to
/// `POST /orders` once the order is settled.
///
/// A reader gets `History` as a list. The API writes it from the task, without a list of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Task<'a, History = Vec<Transition<'a>>> {
    /// The order's id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// Increases with every change. It is also the `ETag`.
    pub version: u64,
    /// Name of the workflow.
    #[serde(default)]
    pub workflow: Cow<'a, str>,
    /// Version of the workflow.
    #[serde(default)]
    pub workflow_version: u32,
    /// State of the order.
    pub process_state: OpenEnum<ProcessState>,
    /// Why it is in `Error` or was compensated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason<'a>>,
    /// In the order of the workflow.
    #[serde(default)]
    pub steps: Vec<Step<'a>>,
    /// The index of the task: the supervisor's or the operator's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<OpenEnum<Watch>>,
    /// When the supervisor looks, or since when the order waits for an operator. Epoch milliseconds, since it is a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch_at: Option<i64>,
    /// Its deadline. Missing if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_by: Option<Timestamp>,
    /// When it was found late: after its deadline and not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_since: Option<Timestamp>,
    /// When the order is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When its personal data were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erased_at: Option<Timestamp>,
    /// The priority of its messages.
    #[serde(default)]
    pub priority: OpenEnum<Priority>,
    /// The pause that keeps new steps from starting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause<'a>>,
    /// The operator who has taken it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken<'a>>,
    /// When the order was accepted. Missing if only the order document has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Timestamp>,
    /// When the task last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// The commands that are allowed now, as last path segments of the API.
    #[serde(default)]
    pub actions: Vec<Cow<'a, str>>,
    /// The order's wait and the operator's remedy.
    #[serde(default)]
    pub situation: Situation<'a>,
    /// The texts by which it is found, by their positions in the document (rule 28). Only in a list that is asked for
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<BTreeMap<String, String>>,
    /// The last changes, oldest first. Missing in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

/// Why an order is in `Error` or was compensated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Reason<'a> {
    /// One of the codes of [`domain::task::reason`].
    pub code: Cow<'a, str>,
    /// The reason in words.
    pub message: Cow<'a, str>,
    /// The step that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// Why the order was being compensated when its compensation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Box<Self>>,
}

/// A step of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Step<'a> {
    /// Its name in the workflow.
    pub name: Cow<'a, str>,
    /// The agent that carries it out.
    pub agent: Cow<'a, str>,
    /// State of the step in its present direction.
    pub process_state: OpenEnum<StepState>,
    /// The instance of submission or scheduler that claimed it. Null while it is not claimed.
    pub locked_by: Option<Cow<'a, str>>,
    /// The time by which the attempt must be done. Null while there is no attempt.
    pub complete_by: Option<Timestamp>,
    /// Attempts that failed since the step's last fresh start.
    #[serde(default)]
    pub failure_count: u32,
    /// Number of the attempt, counted over the whole life of the order.
    #[serde(default)]
    pub attempt: u32,
    /// Carried out, or compensated.
    pub direction: OpenEnum<Direction>,
    /// Whether the order goes on past it if it is rejected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// Whether the order only goes forward once it has begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pivot: bool,
    /// Who decides on it. Only of an approval: no service is called for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approvers<'a>>,
    /// When a supervisor doubted its own clock about this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubted_at: Option<Timestamp>,
    /// The next attempt does not begin before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The end of a long wait: of the step before its first attempt, or of an attempt whose result comes later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// The latest time at which a call of this step that had no answer may still have its effect. The undo waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_run_until: Option<Timestamp>,
    /// The agent's output, without its redacted values. Missing in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Cow<'a, Json>>,
    /// The last failure, in either direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<StepError<'a>>,
    /// How long the call took that ended the present direction, in milliseconds, if the agent reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<u64>,
    /// When the present direction was first claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the present direction was completed or given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// Who decides on a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Approvers<'a> {
    /// Their role, for people: nothing checks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
    /// A person who may not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_by: Option<Cow<'a, str>>,
}

/// A failure of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct StepError<'a> {
    /// The code from the agent or the scheduler.
    pub code: Cow<'a, str>,
    /// The failure in words.
    pub message: Cow<'a, str>,
    /// The attempt that failed.
    pub attempt: u32,
    /// When it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// A pause of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Pause<'a> {
    /// The operator.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// When it began.
    pub since: Timestamp,
    /// The version of the task that began it.
    #[serde(default)]
    pub version: u64,
}

/// Who has taken an order on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Taken<'a> {
    /// The operator.
    pub by: Cow<'a, str>,
    /// Since when.
    pub since: Timestamp,
}

/// The situation of an order, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Situation<'a> {
    /// One sentence.
    pub head: Cow<'a, str>,
    /// Reasons and details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// The operator's remedy. Missing once the order is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_do: Option<Cow<'a, str>>,
    /// Whether the order waits.
    #[serde(default)]
    pub waits: bool,
}

/// A line of an order's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Transition<'a> {
    /// When it happened.
    pub at: Timestamp,
    /// An instance, or an operator's name.
    pub who: Cow<'a, str>,
    /// The authenticated caller of that operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<Cow<'a, str>>,
    /// The change, in a few words.
    pub what: Cow<'a, str>,
    /// The reason, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'a, str>>,
    /// The name of the change, as in [`domain::task::What::kind`].
    pub kind: Cow<'a, str>,
    /// The step of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// The direction of that step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<OpenEnum<Direction>>,
    /// The attempt of the change.
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
#[serde(rename_all = "PascalCase")]
pub struct OrderList<Item> {
    /// The newest first.
    pub orders: Vec<Item>,
    /// The start of the next page. Missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Of a search: the number of orders that were examined for this page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examined: Option<usize>,
    /// Of a search: when the last of them was submitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched_back_to: Option<Timestamp>,
    /// Of a search: whether this page is from an index. The next page goes on with the orders that are in none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_index: bool,
}

/// The answer to `POST /orders` while the order is not settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[serde(rename_all = "PascalCase")]
pub struct Order<'a> {
    /// The order's id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// The caller that posted the order.
    pub submitter: Cow<'a, str>,
    /// The caller's own name for the order.
    #[serde(rename = "CorrelationID", skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Cow<'a, str>>,
    /// The channel for its status messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_channel: Option<Cow<'a, str>>,
    /// The priority, if the order names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<OpenEnum<Priority>>,
    /// The compensated order that was posted again as this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_of: Option<AgainOf<'a>>,
    /// The order that this one was posted again as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<OrderId>,
    /// The body.
    pub document: Cow<'a, Json>,
}

/// The origin of an order that was posted again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AgainOf<'a> {
    /// The compensated order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The operator.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// The bulk job that posted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Cow<'a, str>>,
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
