//! The answer to a refused or failed request.

use std::borrow::Cow;

use domain::task::ProcessState;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// A problem document (RFC 9457). The API always writes `type`, `title`, `status` and `detail`. What stands before it
/// need not: a gateway, a proxy, or a webhook, whose `type` is `about:blank`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Problem<'a> {
    /// The kind of problem: a stable reference to a page about it, relative to this API. More values may come.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "contract", schemars(extend("format" = "uri-reference")))]
    pub kind: Cow<'a, str>,
    /// A message for people.
    pub title: Cow<'a, str>,
    /// The HTTP status.
    #[cfg_attr(feature = "contract", schemars(range(min = 400, max = 599)))]
    pub status: u16,
    /// The error in this request.
    pub detail: Cow<'a, str>,
    /// The path of the order or job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(extend("format" = "uri-reference")))]
    pub instance: Option<Cow<'a, str>>,
    /// The wrong member, header or parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Cow<'a, str>>,
    /// Each fault or reason by itself, where there may be several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Cow<'a, str>>,
    /// State of the order that forbids the command.
    #[serde(rename = "ProcessState", skip_serializing_if = "Option::is_none")]
    pub process_state: Option<OpenEnum<ProcessState>>,
}
