//! The messages between the functions. JSON; readers ignore additions, since two versions may run side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::id::{CommandId, OrderId};
use crate::json::Json;
use crate::limits::SETTLES_WITHIN_MS_DEFAULT;
use crate::state::Direction;
use crate::template::Template;
use crate::time::Timestamp;
use crate::workflow::Encoding;

pub use crate::delivery::{Delivery, Receipt, Undecodable, decode};
pub use crate::priority::Priority;
pub use crate::settlement::{Settled, Settlement};

/// A message on the scheduler queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulerMessage {
    /// Look at the task and claim the steps that are ready.
    Wake(Wake),
    /// An agent's answer.
    Reply(Reply),
    /// An operator's command.
    Command(Command),
}

impl SchedulerMessage {
    /// The order that the message is about.
    #[must_use]
    pub const fn order_id(&self) -> OrderId {
        match self {
            Self::Wake(wake) => wake.order_id,
            Self::Reply(reply) => reply.order_id,
            Self::Command(command) => command.order_id,
        }
    }

    /// The kind of message, in words.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Wake(_) => "a wake",
            Self::Reply(_) => "a reply",
            Self::Command(_) => "a command",
        }
    }
}

/// Whether the body of a stored message or entry is about this order. A body that is no JSON is, if it names the order.
#[must_use]
pub fn is_about(body: &str, order_id: OrderId) -> bool {
    const PLACES: [&str; 4] = ["/OrderID", "/Wake/OrderID", "/Reply/OrderID", "/Command/OrderID"];
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
#[serde(rename_all = "PascalCase")]
pub struct Wake {
    /// The order to look at.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// Messages in the chain that led here (rule 15).
    #[serde(default)]
    pub hops: u32,
}

/// An agent's answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Reply {
    /// From the request.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// From the request.
    pub step: Arc<str>,
    /// From the request.
    pub direction: Direction,
    /// From the request.
    pub attempt: u32,
    /// The outcome of the attempt.
    pub outcome: Outcome,
    /// From the request.
    #[serde(default)]
    pub hops: u32,
    /// The latest time at which a call of the step that had no answer may still have its effect, by the agent's clock
    /// (rule 16). Absent if there is no such call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_run_until: Option<Timestamp>,
    /// How long the call took that brought the success or the rejection, in milliseconds. Absent if none did: a memo knew
    /// the outcome, or it came by callback (rule 36).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "call_ms")]
    pub call_ms: Option<u64>,
}

/// The outcome of an attempt. An attempt without an answer has none: the agent stays silent (rule 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The service did the work, now or earlier.
    Done(Json),
    /// The service rejected the step for good.
    Failed(Failure),
    /// The attempt was given back, since the service is known to fail. There was no call, or none that could count.
    /// The step is tried again later, and no failure is counted.
    Deferred(Deferral),
    /// The attempt goes on, and its last call failed (rule 32). More outcomes may follow.
    Retrying(Trouble),
    /// The service took the call on, and tells the result later (rule 36). Repeated, it extends the wait for the result.
    Accepted(Acceptance),
}

/// That a service took a call on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, IgnoredAny>")]
pub struct Acceptance {}

impl From<BTreeMap<String, IgnoredAny>> for Acceptance {
    /// An object, and no list.
    fn from(_: BTreeMap<String, IgnoredAny>) -> Self {
        Self {}
    }
}

/// What went wrong with the last call of an attempt that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Trouble {
    /// For people.
    pub problem: Arc<str>,
}

/// When an attempt that was given back may be made again, and by which agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Deferral {
    /// The time to wait, in milliseconds, cut to [`DEFERRAL_MS_MAX`](crate::limits::DEFERRAL_MS_MAX).
    pub wait_ms: u64,
    /// Present if the agent declined the step (rule 21): for this attempt and those before it no call was made, and
    /// none will be. The agents to ask instead, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
#[serde(rename_all = "PascalCase")]
pub struct Failure {
    /// Stable, for programs.
    pub code: Arc<str>,
    /// The same for people.
    pub message: Arc<str>,
}

/// An operator's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Command {
    /// The order to act on.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// What to do.
    pub action: Action,
    /// The operator.
    pub by: Arc<str>,
    /// The operator's reason.
    pub reason: Arc<str>,
    /// Its id, by which the sender finds it in the history of the order.
    #[serde(rename = "CommandID")]
    pub command_id: CommandId,
    /// The task's version that the operator saw. A resubmit that was meant for an earlier error is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The bulk job that sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk: Option<Arc<str>>,
    /// What a settle says about which step (rule 27).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settlement>,
    /// Of a note: whether the operator takes the order on, or lets it go (rule 30).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take: Option<bool>,
    /// Of a decision: the step. Absent: the only one that is asked for (rule 40).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Arc<str>>,
}

/// The actions of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// A message on an agent's queue: carry out, or undo, one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    /// The order of the step.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The step's name.
    pub step: Arc<str>,
    /// The agent that the request is for, since one queue may serve several.
    pub agent: Arc<str>,
    /// Carry out, or undo.
    pub direction: Direction,
    /// Fencing token, to be repeated in the reply.
    pub attempt: u32,
    /// The same over all attempts of the step in this direction (rule 4).
    pub idempotency_key: Arc<str>,
    /// The agent sends no answer after this time, by its own clock.
    pub complete_by: Timestamp,
    /// The time left until `CompleteBy` when the request was sent, in milliseconds. The agent takes the earlier (rule
    /// 6).
    pub budget_ms: u64,
    /// The time for which a call without an answer may still have its effect, in milliseconds, from its start (rule 16).
    #[serde(default = "settles_within_default", skip_serializing_if = "is_settles_within_default")]
    pub settles_within_ms: u64,
    /// The latest time at which a call of an earlier attempt may still have its effect (rule 16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may_run_until: Option<Timestamp>,
    /// How long the result is awaited after the service took the call on, in milliseconds (rule 36). Absent: it must
    /// answer at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_within_ms: Option<u64>,
    /// Whether every earlier attempt was declined, so that this one may be declined too (rule 21). Nothing forbids to
    /// decline the first attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_decline: bool,
    /// Of an undo: whether the step was done, by its agent or by an operator's hand. Its service is then called also
    /// where an agent finds no trace of a call (rule 27).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_done: bool,
    /// Messages in the chain that led here, to be repeated in the reply.
    #[serde(default)]
    pub hops: u32,
    /// The priority of the reply.
    #[serde(default, skip_serializing_if = "Priority::is_normal")]
    pub priority: Priority,
    /// The order's document. With `Body` it is `{}`.
    pub order: Json,
    /// Outputs of the steps that this one comes after and, for an undo, its own. The same over all attempts. With
    /// `Body` there are none.
    #[serde(default)]
    pub outputs: BTreeMap<Arc<str>, Json>,
    /// The body of the call, if the workflow says what the service gets (rule 19). The same over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Json>,
    /// The encoding of this body.
    #[serde(default, skip_serializing_if = "Encoding::is_json")]
    pub encode: Encoding,
    /// The path of the call below the URL of the operation, percent-encoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Arc<str>>,
    /// What the reply has of the service's answer, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<Template>,
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

/// The key under which a remote service recognises a call: `{OrderID}/{step}`, and `/undo` backward (rule 4).
#[must_use]
pub fn idempotency_key(order_id: OrderId, step: &str, direction: Direction) -> Arc<str> {
    let undo = match direction {
        Direction::Forward => "",
        Direction::Undo => "/undo",
    };
    [&*order_id.to_string(), "/", step, undo].concat().into()
}

/// An event on a reply channel or on the event bus: CloudEvents 1.0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudEvent {
    /// Always `1.0`.
    pub specversion: Arc<str>,
    /// The same for every sending of the same event, so that a receiver recognises repeats.
    pub id: Arc<str>,
    /// Always `stepwarden`.
    pub source: Arc<str>,
    /// `OrderReceived`, `OrderWaiting`, `OrderLate`, `OrderProcessed`, `OrderFailed`, `OrderCompensated`, `OrderClosed`,
    /// `OrderNeedsOperator`, `OrderNeedsApproval`, `ReplyChannelFailing` or `DeadLetterUnreadable`.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// The OrderID.
    pub subject: Arc<str>,
    /// When it was sent.
    pub time: Timestamp,
    /// Always `application/json`.
    pub datacontenttype: Arc<str>,
    /// The payload of the event.
    pub data: Json,
}

#[cfg(test)]
mod tests;
