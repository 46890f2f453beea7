//! How a call is made over HTTP: its method, and the encoding of its body.

use serde::{Deserialize, Serialize};

/// The method of a call.
///
/// Like the encoding, it is a setting of the step and not of the agent: it is pinned with the workflow's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// The usual one.
    #[default]
    Post,
    /// Without a body, and without an effect.
    Get,
    /// With a body.
    Put,
    /// With a body.
    Patch,
    /// With a body only if the step sends one.
    Delete,
}

impl Method {
    /// All of them, in the order of their words.
    pub(super) const ALL: [Self; 5] = [Self::Post, Self::Get, Self::Put, Self::Patch, Self::Delete];

    /// Its word in a workflow's file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether it is the default, which messages leave out.
    #[must_use]
    pub fn is_post(&self) -> bool {
        *self == Self::Post
    }

    /// Whether a call with it has a body though the step does not say what it sends.
    #[must_use]
    pub const fn has_usual_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Delete => false,
        }
    }
}

/// The encoding of a body.
///
/// It is a setting of the step and not of the agent: with the template it makes the bytes of the call, which are pinned
/// with the workflow's version. And the operations of one agent may differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// `application/json`
    #[default]
    Json,
    /// `application/x-www-form-urlencoded`, with brackets for what is nested: `a[b]=c`, `a[0]=b`.
    Form,
    /// No body, whatever the method: some operations refuse one.
    #[serde(rename = "none")]
    Empty,
}

impl Encoding {
    /// Its word in a workflow's file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Form => "form",
            Self::Empty => "none",
        }
    }

    /// Whether it is the default, which messages leave out.
    #[must_use]
    pub fn is_json(&self) -> bool {
        *self == Self::Json
    }
}
