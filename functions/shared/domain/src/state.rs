//! The words for where an order stands: the state of its task, and the direction of its steps.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The state of an order. An order in Error waits for an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum ProcessState {
    /// Stored; no step has ever been claimed.
    Pending,
    /// Its steps are in progress.
    Processing,
    /// Every step is done. Final.
    Processed,
    /// It waits for an operator.
    Error,
    /// Its steps are being compensated.
    Compensating,
    /// Every claimed step is undone. Final.
    Compensated,
    /// An operator ended it, with its steps as they were. Final.
    Closed,
}

impl ProcessState {
    /// All states, in the order in which an order may enter them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Processing,
        Self::Processed,
        Self::Error,
        Self::Compensating,
        Self::Compensated,
        Self::Closed,
    ];

    /// The word used in records, messages and queries.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Processing => "Processing",
            Self::Processed => "Processed",
            Self::Error => "Error",
            Self::Compensating => "Compensating",
            Self::Compensated => "Compensated",
            Self::Closed => "Closed",
        }
    }

    /// Whether the state is final: no event changes the task any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::Processed | Self::Compensated | Self::Closed => true,
            Self::Pending | Self::Processing | Self::Error | Self::Compensating => false,
        }
    }

    /// Whether only an operator can move the task on. `Prefer: wait` waits for these states.
    #[must_use]
    pub const fn is_settled(self) -> bool {
        match self {
            Self::Processed | Self::Compensated | Self::Closed | Self::Error => true,
            Self::Pending | Self::Processing | Self::Compensating => false,
        }
    }
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text is not the name of a [`ProcessState`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a state: expected one of Pending, Processing, Processed, Error, Compensating, Compensated, Closed")]
pub struct NotAState;

impl FromStr for ProcessState {
    type Err = NotAState;

    fn from_str(text: &str) -> Result<Self, NotAState> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or(NotAState)
    }
}

/// Whether a step is carried out or undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
pub enum Direction {
    /// Carry it out.
    Forward,
    /// Undo it.
    Undo,
}

impl Direction {
    /// The word used in records and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "Forward",
            Self::Undo => "Undo",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_has_one_word_everywhere() {
        for direction in [Direction::Forward, Direction::Undo] {
            assert_eq!(serde_json::to_string(&direction).unwrap(), format!("\"{}\"", direction.name()));
        }
    }
}
