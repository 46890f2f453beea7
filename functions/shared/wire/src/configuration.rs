//! The configuration: workflows and the settings of agents.

use std::borrow::Cow;

use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The files of a configuration folder, of at most 124 KiB together, as they are written in the request.
///
/// The body of `POST /configuration`: the files of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Configure<'a> {
    /// The operator, kept with the configuration, with the authenticated caller in brackets beside it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Operator"))]
    pub by: Cow<'a, str>,
    /// The reason, kept in the log.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub reason: Cow<'a, str>,
    /// `stepwarden.toml`, and `workflows/NAME.toml`.
    #[cfg_attr(feature = "contract", schemars(length(max = 100)))]
    pub files: Vec<ConfigurationFile<'a>>,
    /// The share of new orders that begin with the new versions, in percent. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1, max = 99)))]
    pub share_percent: Option<u8>,
    /// Only tells what would change. Absent: no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The version of the configuration that the operator saw. Refused if another one applies now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Makes a new key of callback addresses, which signs after a minute. The addresses that the earlier keys signed
    /// count for this long, in milliseconds; with 0 they end at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(max = domain::limits::WAIT_MS_MAX)))]
    pub earlier_callback_key_ms: Option<u64>,
}

impl Configure<'_> {
    /// The members.
    pub const MEMBERS: [&'static str; 7] =
        ["By", "Reason", "Files", "SharePercent", "DryRun", "Version", "EarlierCallbackKeyMs"];
}

/// A file of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ConfigurationFile<'a> {
    /// Its name relative to the folder: `stepwarden.toml`, or `workflows/NAME.toml`.
    pub name: Cow<'a, str>,
    /// Its text, in TOML.
    pub text: Cow<'a, str>,
}

/// The answer to `POST /configuration`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Configured<'a> {
    /// Whether it applies now; no after a dry run.
    pub applied: bool,
    /// The changes in words. Empty: there are none.
    pub changes: Vec<Cow<'a, str>>,
    /// What the folder has and this does not change, in words. Absent: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Cow<'a, str>>,
    /// The version of the configuration that applies now; 0 if none was applied.
    pub version: u64,
}

/// The body of `POST /workflows/{name}/choose`: the version that new orders begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Choose<'a> {
    /// The operator, kept in the history, with the authenticated caller in brackets beside it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Operator"))]
    pub by: Cow<'a, str>,
    /// The reason, kept in the history.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::Text"))]
    pub reason: Cow<'a, str>,
    /// The version.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: u32,
    /// The share of new orders that begin with it, in percent. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(range(min = 1, max = 99)))]
    pub share_percent: Option<u8>,
    /// Whether orders that name no workflow begin with this one from now on. Absent: as before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

impl Choose<'_> {
    /// The members.
    pub const MEMBERS: [&'static str; 5] = ["By", "Reason", "Version", "SharePercent", "Default"];
}

/// `GET /workflows/{name}/{version}`: a version of a workflow, as it was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Definition<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its version.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: u32,
    /// Its text, in TOML.
    pub text: Cow<'a, str>,
    /// The SHA-256 of its content, in hexadecimal.
    pub hash: Cow<'a, str>,
    /// When it was applied. Missing: it is compiled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Timestamp>,
    /// The operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<Cow<'a, str>>,
    /// When it was retired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
}

/// `GET /configuration`: what new orders begin with, and the settings of the agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Configuration<'a> {
    /// +1 at every change; 0 if none was applied.
    pub version: u64,
    /// The workflow of orders that name none.
    pub default: Cow<'a, str>,
    /// The text of `stepwarden.toml`. Secrets are references.
    pub settings: Cow<'a, str>,
    /// When it was changed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Timestamp>,
    /// The operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<Cow<'a, str>>,
}
