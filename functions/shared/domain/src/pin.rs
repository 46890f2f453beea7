//! The name and version of a workflow, as one value.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A workflow in a version. As a text: `order/2`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Pin {
    /// The name.
    #[cfg_attr(feature = "contract", schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$")))]
    pub name: Arc<str>,
    /// The version, from 1.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    pub version: u32,
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.version)
    }
}

/// The text is not the name and version of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a workflow and its version, such as order/2")]
pub struct NotAPin;

impl FromStr for Pin {
    type Err = NotAPin;

    fn from_str(text: &str) -> Result<Self, NotAPin> {
        let (name, version) = text.split_once('/').ok_or(NotAPin)?;
        // One spelling for each version: no sign, no zero before it.
        let version = version.parse().ok().filter(|number: &u32| number.to_string() == version).ok_or(NotAPin)?;
        Ok(Self { name: name.into(), version })
    }
}
