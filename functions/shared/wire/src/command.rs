//! The commands of operators about an order, the results of services that come later, and the answers to both.

use std::borrow::Cow;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Action, Settled};
use domain::task::ProcessState;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// The body of a command about an order or a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Command<'a> {
    /// The operator.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// Its id, for the sender to find it in the history. The API makes one if it is missing.
    #[serde(rename = "CommandID", default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<Cow<'a, str>>,
}

impl Command<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 3] = ["By", "Reason", "CommandID"];
}

/// The body of a settle: an operator's word that a step has had its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Settle<'a> {
    /// The step.
    pub step: Cow<'a, str>,
    /// The effect.
    pub outcome: OpenEnum<Settled>,
    /// The step's output, if it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The operator.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// Its id, for the sender to find it in the history. The API makes one if it is missing.
    #[serde(rename = "CommandID", default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<Cow<'a, str>>,
}

impl Settle<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 6] = ["Step", "Outcome", "Output", "By", "Reason", "CommandID"];
}

/// The body of a callback: the result of a call that a service took on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Callback<'a> {
    /// `Done` or `No`.
    pub outcome: Cow<'a, str>,
    /// The step's output, if it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Why not: stable, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
}

impl Callback<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 4] = ["Outcome", "Output", "Code", "Message"];
}

/// The answer to a callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CalledBack<'a> {
    /// Whether it may change something.
    pub taken: bool,
    /// Why it changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Cow<'a, str>>,
}

/// The body of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Note<'a> {
    /// The operator.
    pub by: Cow<'a, str>,
    /// The note.
    pub reason: Cow<'a, str>,
    /// Whether the operator takes the order on, or lets it go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take: Option<bool>,
    /// Its id, for the sender to find it in the history. The API makes one if it is missing.
    #[serde(rename = "CommandID", default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<Cow<'a, str>>,
}

impl Note<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 4] = ["By", "Reason", "Take", "CommandID"];
}

/// The body of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Decision<'a> {
    /// Who decides.
    pub by: Cow<'a, str>,
    /// The reason.
    pub reason: Cow<'a, str>,
    /// The step, where several wait for an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Cow<'a, str>>,
    /// Its id, for the sender to find it in the history. The API makes one if it is missing.
    #[serde(rename = "CommandID", default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<Cow<'a, str>>,
}

impl Decision<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 4] = ["By", "Reason", "Step", "CommandID"];
}

/// The answer to a command about an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Queued<'a> {
    /// The order's id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The command.
    pub action: OpenEnum<Action>,
    /// Its id. The line of the history that it makes has it.
    #[serde(rename = "CommandID")]
    pub command_id: Cow<'a, str>,
    /// State of the order when the command was queued.
    pub process_state: OpenEnum<ProcessState>,
}
