//! What the steps of an order would send, without a call.

use std::borrow::Cow;
use std::collections::BTreeMap;

use domain::id::OrderId;
use domain::json::Json;
use serde::{Deserialize, Serialize};

/// The body of `POST /workflows/{name}/{version}/try`: an order, and what is supposed of its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Try<'a> {
    /// The document, as a post has it. Its Workflow counts for nothing here.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Document"))]
    pub order: Json,
    /// The supposed outputs of steps, by their names. Those of no step count for nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<Cow<'a, str>, Json>,
}

impl Try<'_> {
    /// The members.
    pub const MEMBERS: [&'static str; 2] = ["Order", "Outputs"];
}

/// What the steps of an order would send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Tried<'a> {
    /// Stands for the id of the order.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// All of them, as the workflow lists them.
    pub steps: Vec<TriedStep<'a>>,
}

/// A step that is not carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct TriedStep<'a> {
    /// Its name.
    pub step: Cow<'a, str>,
    /// Its agent.
    pub agent: Cow<'a, str>,
    /// Why it does not run. Absent: it runs, or may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_runs: Option<Cow<'a, str>>,
    /// The pointers to the outputs on which it depends whether it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_if: Vec<Cow<'a, str>>,
    /// Its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<TriedCall<'a>>,
    /// The call that undoes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<TriedCall<'a>>,
}

/// A call that is not made, or why there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct TriedCall<'a> {
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Cow<'a, str>>,
    /// The whole URL. Without one in the settings of the agent, its host is the agent's name and `.invalid`.
    #[serde(rename = "URL", skip_serializing_if = "Option::is_none")]
    pub url: Option<Cow<'a, str>>,
    /// The headers. A secret, or what only a call has, is described in square brackets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<TriedHeader<'a>>,
    /// The body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Cow<'a, str>>,
    /// The size of the body or document in bytes, if it is shown in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole_bytes: Option<usize>,
    /// The workflow of the order that it makes in place of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Cow<'a, str>>,
    /// The document of that order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<Cow<'a, str>>,
    /// Why the step fails before a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsendable: Option<Cow<'a, str>>,
    /// The pointers to the outputs that it sends, and that are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Cow<'a, str>>,
    /// Why there is no call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_call: Option<Cow<'a, str>>,
}

/// A header of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct TriedHeader<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its value.
    pub value: Cow<'a, str>,
}
