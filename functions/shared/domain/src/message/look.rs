//! A call that a service took on, and the look at its state (rule 36).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::limits::PATH_CHARS_MAX;
use crate::workflow::PollAnswer;

/// That a service took a call on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, Json>", rename_all = "PascalCase")]
pub struct Acceptance {
    /// Where its state is asked: a path of the service's host if it begins with a slash, else below the URL of the agent.
    /// `None`: it is not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<Arc<str>>,
}

impl From<BTreeMap<String, Json>> for Acceptance {
    /// An object, and no list.
    fn from(members: BTreeMap<String, Json>) -> Self {
        let poll = members.get("Poll").and_then(|poll| serde_json::from_str::<String>(poll.text()).ok());
        Self { poll: poll.filter(|path| is_poll(path)).map(Arc::from) }
    }
}

/// Whether a path may be kept and called.
#[must_use]
pub fn is_poll(path: &str) -> bool {
    (1..=PATH_CHARS_MAX).contains(&path.len()) && path.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A look at the state of a call that was taken on. It is no attempt, and has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Look {
    /// The `Poll` of the reply `Accepted`. A GET asks there.
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = PATH_CHARS_MAX)))]
    pub path: Arc<str>,
    /// What the answers mean, the first that fits. Any other says nothing. Absent: 200 with what `Keep` needs is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<PollAnswer>,
}
