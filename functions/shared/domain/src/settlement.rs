//! What an operator says about a step that was mended by hand (rule 27).

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::Json;
use crate::state::Direction;

/// An operator's word about the effect of a step (rule 27).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub struct Settlement {
    /// Name of a step in its workflow.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::StepName"))]
    pub step: Arc<str>,
    /// Done: a step that ran forward is carried out. Undone: a step that was being undone is undone. Skipped: the order
    /// goes on without a step that is optional. Dropped: the steps of its line are undone, and the order goes on.
    pub outcome: Settled,
    /// The step's output, if it is done: any JSON value, 16384 bytes at most. Absent: `{}`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Json>,
}

/// What an operator says about a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(inline))]
pub enum Settled {
    /// The step is carried out.
    Done,
    /// The step is undone.
    Undone,
    /// The order goes on without the step, which is optional (rule 33). It says nothing about an effect.
    Skipped,
    /// The line of the step is undone, and the order goes on with the others (rule 50).
    Dropped,
}

impl Settled {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Done, Self::Undone, Self::Skipped, Self::Dropped];

    /// The word used in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "Done",
            Self::Undone => "Undone",
            Self::Skipped => "Skipped",
            Self::Dropped => "Dropped",
        }
    }

    /// The direction of the step that it ends.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Done | Self::Skipped | Self::Dropped => Direction::Forward,
            Self::Undone => Direction::Undo,
        }
    }
}

/// A value that is present is one, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}
