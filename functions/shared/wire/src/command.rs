//! The commands of operators about an order, the results of services that come later, and the answers to both.

use std::borrow::Cow;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Action, Settled};
use domain::task::ProcessState;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// An operator's command.
///
/// The body of a command about an order or a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "OperatorCommand"))]
#[serde(rename_all = "PascalCase")]
pub struct Command<'a> {
    /// The operator, kept in the history, with the authenticated caller in brackets beside it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Operator"))]
    pub by: Cow<'a, str>,
    /// The reason, kept in the history.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub reason: Cow<'a, str>,
    /// Its id, by which the sender finds it in the history. Default: the API makes one.
    #[serde(rename = "CommandID", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<domain::id::CommandId>"))]
    pub command_id: Option<Cow<'a, str>>,
}

impl Command<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 3] = ["By", "Reason", "CommandID"];
}

/// A settle of a step.
///
/// The body of a settle: an operator's word that a step has had its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Settle<'a> {
    /// The name of a step in Error.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub step: Cow<'a, str>,
    /// Done: the step, which ran forward, is carried out. Undone: the step, which was being undone, is undone. Skipped:
    /// the order goes on without the step, which is optional. Dropped: the line of the step is undone, and the order goes on.
    #[cfg_attr(feature = "contract", schemars(with = "Settled"))]
    pub outcome: OpenEnum<Settled>,
    /// Of a step that is Done: its output, any JSON value of at most 16 KiB. Default: {}. The steps after it get it,
    /// and its undo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// The operator, kept in the history, with the authenticated caller in brackets beside it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Operator"))]
    pub by: Cow<'a, str>,
    /// The reason, kept in the history.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub reason: Cow<'a, str>,
    /// Its id, by which the sender finds it in the history. Default: the API makes one.
    #[serde(rename = "CommandID", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<domain::id::CommandId>"))]
    pub command_id: Option<Cow<'a, str>>,
}

impl Settle<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 6] = ["Step", "Outcome", "Output", "By", "Reason", "CommandID"];
}

/// The result of a call.
///
/// The body of a callback: the result of a call that a service took on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Callback<'a> {
    /// Done: the service did the work. No: it rejects the step for good.
    #[cfg_attr(feature = "contract", schemars(extend("enum" = ["Done", "No"])))]
    pub outcome: Cow<'a, str>,
    /// Of a result Done: its output, any JSON value. Default: {}. The workflow's keep applies to it, as to an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Of a result No, where it is required: the reason, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::Text>"))]
    pub code: Option<Cow<'a, str>>,
    /// Of a result No: the same for people. Default: Code. At most 400 characters are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
}

impl Callback<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 4] = ["Outcome", "Output", "Code", "Message"];
}

/// The answer to a callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct CalledBack<'a> {
    /// Whether it may change something.
    pub taken: bool,
    /// Why it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Cow<'a, str>>,
}

/// A note on an order.
///
/// The body of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Note<'a> {
    /// The operator, kept in the history, with the authenticated caller in brackets beside it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Operator"))]
    pub by: Cow<'a, str>,
    /// The note, kept in the history.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub reason: Cow<'a, str>,
    /// true: the operator takes the order on. false: it is let go, for somebody else. Default: neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<bool>,
    /// Its id, by which the sender finds it in the history. Default: the API makes one.
    #[serde(rename = "CommandID", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<domain::id::CommandId>"))]
    pub command_id: Option<Cow<'a, str>>,
}

impl Note<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 4] = ["By", "Reason", "Take", "CommandID"];
}

/// A decision on a step that waits for people.
///
/// The body of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Decision<'a> {
    /// Who decides, kept in the history, with the authenticated caller in brackets beside it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Operator"))]
    pub by: Cow<'a, str>,
    /// The reason, kept in the history and in the output of an approved step.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub reason: Cow<'a, str>,
    /// The step, where several wait for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<crate::contract::Text>"))]
    pub step: Option<Cow<'a, str>>,
    /// Its id, by which the sender finds it in the history. Default: the API makes one.
    #[serde(rename = "CommandID", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(with = "Option<domain::id::CommandId>"))]
    pub command_id: Option<Cow<'a, str>>,
}

impl Decision<'_> {
    /// The names of its members.
    pub const MEMBERS: [&'static str; 4] = ["By", "Reason", "Step", "CommandID"];
}

/// The answer to a command about an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Queued<'a> {
    /// The order's id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// The queued command. More values may come.
    pub action: OpenEnum<Action>,
    /// The command's id. The line of the history that it makes has it.
    #[serde(rename = "CommandID")]
    #[cfg_attr(feature = "contract", schemars(with = "domain::id::CommandId"))]
    pub command_id: Cow<'a, str>,
    /// The state of the order when the command was queued.
    pub process_state: OpenEnum<ProcessState>,
}
