//! The configuration: workflows and the settings of agents.

use std::borrow::Cow;

use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The body of `POST /configuration`: the files of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Configure<'a> {
    /// The operator.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// `stepwarden.toml`, and `workflows/NAME.toml`.
    pub files: Vec<ConfigurationFile<'a>>,
    /// The share of new orders that begin with the new versions, in percent. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<u8>,
    /// Only tells what would change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The version of the configuration that the operator saw: another one is not replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Makes a new key of callback addresses. Those of the earlier keys count for this long, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_callback_key_ms: Option<u64>,
}

impl Configure<'_> {
    /// The members.
    pub const MEMBERS: [&'static str; 7] =
        ["By", "Reason", "Files", "SharePercent", "DryRun", "Version", "EarlierCallbackKeyMs"];
}

/// A file of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ConfigurationFile<'a> {
    /// Its name relative to the folder, with slashes.
    pub name: Cow<'a, str>,
    /// Its text.
    pub text: Cow<'a, str>,
}

/// The answer to `POST /configuration`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Configured<'a> {
    /// Whether it applies now. `false` after a dry run.
    pub applied: bool,
    /// The changes in words. Empty: there are none.
    pub changes: Vec<Cow<'a, str>>,
    /// What the folder has and this does not change, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Cow<'a, str>>,
    /// The version of the configuration that applies now, for the next call.
    pub version: u64,
}

/// The body of `POST /workflows/{name}/choose`: the version that new orders begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Choose<'a> {
    /// The operator.
    pub by: Cow<'a, str>,
    /// The operator's reason.
    pub reason: Cow<'a, str>,
    /// The version.
    pub version: u32,
    /// The share of new orders that begin with it, in percent. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<u8>,
    /// Whether orders that name no workflow begin with this one from now on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

impl Choose<'_> {
    /// The members.
    pub const MEMBERS: [&'static str; 5] = ["By", "Reason", "Version", "SharePercent", "Default"];
}

/// `GET /workflows/{name}/{version}`: a version of a workflow, as it was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Definition<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Its version.
    pub version: u32,
    /// Its text, in TOML.
    pub text: Cow<'a, str>,
    /// The hash of its content.
    pub hash: Cow<'a, str>,
    /// When it was applied. Absent: it is compiled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Timestamp>,
    /// The operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<Cow<'a, str>>,
    /// When it was retired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
}

/// `GET /configuration`: what new orders begin with, and the settings of the agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Configuration<'a> {
    /// +1 at every change; 0 if none was applied.
    pub version: u64,
    /// The workflow of orders that name none.
    pub default: Cow<'a, str>,
    /// The text of `stepwarden.toml`, in which secrets are references.
    pub settings: Cow<'a, str>,
    /// When it was changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Timestamp>,
    /// The operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<Cow<'a, str>>,
}
