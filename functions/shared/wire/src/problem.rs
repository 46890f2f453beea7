//! The answer to a refused or failed request.

use std::borrow::Cow;

use domain::task::ProcessState;
use serde::{Deserialize, Serialize};

use crate::OpenEnum;

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem<'a> {
    /// Path of the page about this kind of problem.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The kind in words.
    pub title: Cow<'a, str>,
    /// The HTTP status.
    pub status: u16,
    /// The problem in words.
    pub detail: Cow<'a, str>,
    /// Path of the order or job of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Cow<'a, str>>,
    /// The member, header or parameter at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Cow<'a, str>>,
    /// Each fault or reason by itself, if there may be several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Cow<'a, str>>,
    /// State of the order that forbids the command.
    #[serde(rename = "ProcessState", skip_serializing_if = "Option::is_none")]
    pub process_state: Option<OpenEnum<ProcessState>>,
}
