//! The messages between the functions. JSON; readers ignore additions, since two versions may run side by side.

mod look;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

pub use crate::id::idempotency_key;
use crate::id::{CommandId, OrderId};
use crate::json::Json;
use crate::limits::SETTLES_WITHIN_MS_DEFAULT;
use crate::state::Direction;
use crate::template::{PollPath, Template};
use crate::time::Timestamp;
use crate::workflow::{Encoding, Method};

pub use self::look::{Acceptance, Look, is_poll};
pub use crate::child_request::ChildRequest;
pub use crate::delivery::{Delivery, Receipt, Undecodable, decode};
pub use crate::priority::Priority;
pub use crate::settlement::{Settled, Settlement};

/// A message on the scheduler queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum SchedulerMessage {
    /// To the scheduler: look at the task and claim its ready steps.
    Wake(Wake),
    /// To the scheduler: an agent's answer to a request. A success counts from any attempt of the step in its present
    /// direction. A failure counts only from the current attempt. The scheduler drops late and repeated replies, and
    /// those of an unknown step.
    Reply(Reply),
    /// To the scheduler: an operator's command. The scheduler drops a command that the task's state no longer allows.
    Command(Command),
    /// To the scheduler: make or undo the child order of a step (rule 49).
    Child(ChildRequest),
}

impl SchedulerMessage {
    /// The order that the message is about.
    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        match self {
            Self::Wake(wake) => wake.order_id,
            Self::Reply(reply) => reply.order_id,
            Self::Command(command) => command.order_id,
            Self::Child(request) => request.order_id,
        }
    }

    /// Whether it follows from stored state or from a request, and so comes again if it is lost. A command does not, nor
    /// does a result that no request asked for (rule 36).
    #[must_use]
    pub const fn comes_again(&self) -> bool {
        match self {
            Self::Wake(_) | Self::Child(_) => true,
            Self::Reply(reply) => reply.hops > 0,
            Self::Command(_) => false,
        }
    }

    /// The kind of message, in words.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Wake(_) => "a wake",
            Self::Reply(_) => "a reply",
            Self::Command(_) => "a command",
            Self::Child(_) => "a request for a child order",
        }
    }
}

/// Whether the body of a stored message or entry is about this order. A body that is no JSON is, if it names the order.
#[must_use]
pub fn is_about(body: &str, order_id: OrderId) -> bool {
    const PLACES: [&str; 5] = ["/OrderID", "/Wake/OrderID", "/Reply/OrderID", "/Command/OrderID", "/Child/OrderID"];
    let id = order_id.to_string();
    let is_named = || {
        serde_json::from_str::<serde_json::Value>(body).map_or(true, |body| {
            PLACES.iter().any(|place| body.pointer(place).and_then(serde_json::Value::as_str) == Some(&*id))
        })
    };
    body.contains(&*id) && is_named()
}

/// Look at the task and claim the steps that are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Wake {
    /// The order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// Messages in the chain so far. An answer carries one more than its message. A limit ends a chain that runs in
    /// circles (rule 15).
    #[serde(default)]
    pub hops: u32,
}

/// An agent's answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Reply {
    /// From the request.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// From the request.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::StepName"))]
    pub step: Arc<str>,
    /// From the request.
    pub direction: Direction,
    /// From the request.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub attempt: u32,
    /// The outcome of an attempt: exactly one of four members. For an attempt without an answer, the agent sends no
    /// outcome.
    pub outcome: Outcome,
    /// One more than in the request.
    #[serde(default)]
    pub hops: u32,
    /// Until then a call of this attempt that had no answer may still have its effect, by the agent's clock: its start
    /// plus `SettlesWithinMs`. No undo is sent before. Absent: every call was answered (rule 16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_run_until: Option<Timestamp>,
    /// How long the call took that brought the success or the rejection, in milliseconds. It is counted and shown, and
    /// nothing else follows from it. Absent: no call did, or the agent does not report it (rule 36).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "call_ms")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<f64>", range(min = 0)))]
    pub call_ms: Option<u64>,
}

/// The outcome of an attempt. An attempt without an answer has none: the agent stays silent (rule 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum Outcome {
    /// The service carried out the call, now or earlier. The step's output: any JSON value of up to 16384 bytes and 64
    /// levels. Later steps and the undo get it. The output of an undo is not used.
    Done(Json),
    /// The service rejected the call, and a retry would not help. By the workflow, the order is compensated or waits for an
    /// operator.
    Failed(Failure),
    /// The service is known to fail. The agent gives the attempt back: it is tried again later, and no failure is counted.
    Deferred(Deferral),
    /// The attempt goes on, and its last call failed (rule 32). Operators see why. An outcome may follow.
    Retrying(Trouble),
    /// The service took the call on, and tells the result later (rule 36). The step waits for it, and no message does. Sent
    /// again, it extends the wait. For a request with `WaitWithinMs`; for any other the wait is an hour.
    Accepted(Acceptance),
}

/// What went wrong with the last call of an attempt that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Trouble {
    /// What went wrong, for people. Cut to 400 characters when stored.
    #[cfg_attr(feature = "contract", schemars(length(max = crate::limits::ERROR_CHARS_MAX + 1)))]
    pub problem: Arc<str>,
}

/// When an attempt that was given back may be made again, and by which agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Deferral {
    /// The shortest wait, in milliseconds.
    #[cfg_attr(feature = "contract", schemars(range(max = crate::limits::DEFERRAL_MS_MAX)))]
    pub wait_ms: u64,
    /// The agent declines the step: for this attempt and all earlier ones it made no call, and will make none, not even
    /// for a copy of a request. The agents to ask instead, in this order; none: the workflow's agent is asked again.
    /// Only for a forward request that may be declined. Absent: the step stays with this agent (rule 21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "contract",
        schemars(with = "Option<Vec<crate::contract::AgentName>>", length(max = crate::limits::FALLBACKS_MAX))
    )]
    pub fallback: Option<Vec<Arc<str>>>,
}

impl Deferral {
    /// Again after this time, in milliseconds.
    #[must_use]
    pub const fn after(wait_ms: u64) -> Self {
        Self { wait_ms, fallback: None }
    }
}

/// A permanent failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Failure {
    /// Stable, for programs. `output-too-large` is reserved for an output over its limit. Cut to 64 characters when
    /// stored.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::ERROR_CHARS_MAX + 1)))]
    pub code: Arc<str>,
    /// A message for people. Cut to 400 characters when stored.
    #[cfg_attr(feature = "contract", schemars(length(max = crate::limits::ERROR_CHARS_MAX + 1)))]
    pub message: Arc<str>,
}

/// An operator's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Command {
    /// The order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// What to do.
    pub action: Action,
    /// The operator.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::TEXT_CHARS_MAX)))]
    pub by: Arc<str>,
    /// The reason.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::TEXT_CHARS_MAX)))]
    pub reason: Arc<str>,
    /// Its id, by which the sender finds it in the history of the order.
    #[serde(rename = "CommandID")]
    pub command_id: CommandId,
    /// The task's version that the operator saw. The command is refused if a newer error or pause exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: Option<u64>,
    /// The bulk job that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Arc<str>>,
    /// Of the action Settle: the step, and what became of it by the operator's word (rule 27).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settlement>,
    /// Of the action Note: whether the operator takes the order on, or lets it go. Absent: neither (rule 30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take: Option<bool>,
    /// Of the actions Approve and Reject: the step. Absent: the only one that waits for people (rule 40).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::StepName>"))]
    pub step: Option<Arc<str>>,
}

/// The actions of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum Action {
    /// Take the failed steps of a task in `Error` back to `Pending`.
    Resubmit,
    /// Compensate a task that is not finished.
    Cancel,
    /// Start no step of a task until it is resumed.
    Pause,
    /// Go on with a paused task.
    Resume,
    /// End a step in `Error` as if its agent had replied `Done` (rule 27).
    Settle,
    /// Write a note on the order, and nothing else (rule 30).
    Note,
    /// End a task in `Error` with its steps as they are (rule 31).
    Close,
    /// Decide for an order that waits for people (rule 40).
    Approve,
    /// Decide against it.
    Reject,
    /// Take all personal data out of an order that has ended (rule 46).
    Erase,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 10] = [
        Self::Resubmit,
        Self::Cancel,
        Self::Pause,
        Self::Resume,
        Self::Settle,
        Self::Note,
        Self::Close,
        Self::Approve,
        Self::Reject,
        Self::Erase,
    ];

    /// The word used in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resubmit => "Resubmit",
            Self::Cancel => "Cancel",
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::Settle => "Settle",
            Self::Note => "Note",
            Self::Close => "Close",
            Self::Approve => "Approve",
            Self::Reject => "Reject",
            Self::Erase => "Erase",
        }
    }

    /// The last segment of its path in the API.
    #[must_use]
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Resubmit => "resubmit",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Settle => "settle",
            Self::Note => "note",
            Self::Close => "close",
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Erase => "erase",
        }
    }
}

/// To an agent: carry out or undo one step. Duplicates are possible, also after the answer. An attempt may come after a
/// later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    /// The order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// Name of a step in its workflow.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::StepName"))]
    pub step: Arc<str>,
    /// The agent that the request is for, since one queue may serve several.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::AgentName"))]
    pub agent: Arc<str>,
    /// Forward: carry out the step. Undo: compensate it.
    pub direction: Direction,
    /// Fencing token; the reply repeats it.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub attempt: u32,
    /// For the remote service: `{OrderID}/{Step}` forward, `{OrderID}/{Step}/undo` backward. The same over all
    /// attempts, redeliveries and retries (rule 4).
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::IDEMPOTENCY_KEY_CHARS_MAX)))]
    pub idempotency_key: Arc<str>,
    /// No answer after this time, by the agent's clock.
    pub complete_by: Timestamp,
    /// The time left until `CompleteBy` when its sender last knew that the call is wanted, in milliseconds. It counts from
    /// the receipt. The agent uses the earlier deadline of the two (rule 6).
    #[cfg_attr(feature = "contract", schemars(range(max = crate::limits::COMPLETE_WITHIN_MS_MAX)))]
    pub budget_ms: u64,
    /// The time for which a call without an answer may still have its effect, in milliseconds, from its start (rule
    /// 16).
    #[serde(default = "settles_within_default", skip_serializing_if = "is_settles_within_default")]
    #[cfg_attr(feature = "contract", schemars(range(max = crate::limits::SETTLES_WITHIN_MS_MAX)))]
    pub settles_within_ms: u64,
    /// Until then a call of an earlier attempt may still have its effect. Absent: there is no such call (rule 16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_run_until: Option<Timestamp>,
    /// For how long the result is awaited, in milliseconds, if the service takes the call on and tells it later: then reply
    /// `Accepted`. Absent: the service must answer at once (rule 36).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1, max = crate::limits::WAIT_MS_MAX)))]
    pub wait_within_ms: Option<u64>,
    /// Every earlier attempt was declined, so this one may be declined too: see `Fallback` of the reply. Absent: only a
    /// first attempt may be declined (rule 21).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_decline: bool,
    /// Of an undo: the step was done, by its agent or by an operator's hand. An agent that remembers its calls then
    /// calls its service also where it finds no trace of one (rule 27).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_done: bool,
    /// The reply carries one more.
    #[serde(default)]
    pub hops: u32,
    /// The priority queue of the reply: `high` means the scheduler's high queue. Absent: normal.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// The order's document. With `Body`, and without a body, it is `{}`.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Document"))]
    pub order: Json,
    /// Outputs by step name: of the steps before this one and, for an undo, its own output if it has one. The same over
    /// all attempts; 262144 bytes at most. With `Body` it is `{}`.
    #[serde(default)]
    #[cfg_attr(feature = "contract", schemars(with = "BTreeMap<crate::contract::StepName, Json>"))]
    pub outputs: BTreeMap<Arc<str>, Json>,
    /// The method of the call. Absent: POST.
    #[serde(default, skip_serializing_if = "Method::is_post")]
    pub method: Method,
    /// The whole body of the call, if the workflow maps what the service gets. The same over all attempts; 131072 bytes
    /// at most. Absent: the body has `OrderID`, `Order` and `Outputs` (rule 19); a GET or DELETE then has no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::Body>"))]
    pub body: Option<Json>,
    /// The encoding of `Body`: JSON, or a form with brackets for what is nested (`a[b]=c`, `a[0]=b`). None: the call has
    /// no body, whatever its method.
    #[serde(default, skip_serializing_if = "Encoding::is_json")]
    pub encode: Encoding,
    /// The path of the call below the URL of the operation, with its query, percent-encoded. Absent: the URL itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::PATH_CHARS_MAX)))]
    pub path: Option<Arc<str>>,
    /// Headers of the call, by name. The same over all attempts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<Arc<str>, Arc<str>>,
    /// The output to reply with: a template whose texts that begin with a slash are JSON pointers into the service's
    /// answer, as behind `answer:`. A `header:NAME`, `answer:status` or `answer:text` in it is a header of the response, its
    /// status, or its body as a text. What ends with a question mark may be missing. Absent: the whole answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Template>,
    /// Where the state is asked if the service takes the call on: the `Poll` of the reply, with `{/pointers}` into the answer,
    /// or one header of it. Absent: nowhere (rule 36).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<PollPath>,
    /// Make no call: ask for the state of the one that was taken on. The body, `Order` and `Outputs` are left out. Absent: it is
    /// a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
}

impl Request {
    /// The answer to this request.
    #[must_use]
    pub fn reply(&self, outcome: Outcome) -> Reply {
        Reply {
            order_id: self.order_id,
            step: self.step.clone(),
            direction: self.direction,
            attempt: self.attempt,
            outcome,
            hops: self.hops.saturating_add(1),
            may_run_until: None,
            call_ms: None,
        }
    }
}

/// It is only counted and shown, so it costs no reply if it is no duration.
fn call_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is not negative, and saturates")]
    let rounded = || value.as_f64().filter(|ms| *ms >= 0.0).map(|ms| ms.round() as u64);
    Ok(value.as_u64().or_else(rounded))
}

const fn settles_within_default() -> u64 {
    SETTLES_WITHIN_MS_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_settles_within_default(ms: &u64) -> bool {
    *ms == SETTLES_WITHIN_MS_DEFAULT
}

/// An event on a reply channel or on the event bus: CloudEvents 1.0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub struct CloudEvent {
    /// The version of CloudEvents.
    #[cfg_attr(feature = "contract", schemars(extend("const" = "1.0")))]
    pub specversion: Arc<str>,
    /// The same for every sending of one event, so that a receiver can detect duplicates.
    #[cfg_attr(feature = "contract", schemars(length(min = 1)))]
    pub id: Arc<str>,
    /// The sender.
    #[cfg_attr(feature = "contract", schemars(extend("const" = "stepwarden")))]
    pub source: Arc<str>,
    /// The kind of event.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// The order, the service, the cause or the message that it is about.
    #[cfg_attr(feature = "contract", schemars(length(min = 1)))]
    pub subject: Arc<str>,
    /// The time of sending; it differs in a repeat.
    pub time: Timestamp,
    /// The media type of `data`.
    #[cfg_attr(feature = "contract", schemars(extend("const" = "application/json")))]
    pub datacontenttype: Arc<str>,
    /// The content of the event.
    pub data: Json,
}

#[cfg(test)]
mod tests;
