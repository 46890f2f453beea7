//! What a job does with each order.

use serde::{Deserialize, Serialize};

use crate::message::Action;
use crate::state::ProcessState;

/// What a job does with each order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(inline))]
pub enum BulkAction {
    /// Resubmits orders in `Error`.
    #[default]
    Resubmit,
    /// Cancels orders in `Error`.
    Cancel,
    /// Settles one step of orders in `Error` (rule 27).
    Settle,
    /// Closes orders in `Error` (rule 31).
    Close,
    /// Posts `Compensated` orders again, each as a new order (rule 12).
    Again,
}

impl BulkAction {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Resubmit, Self::Cancel, Self::Settle, Self::Close, Self::Again];

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    pub(super) const fn is_resubmit(&self) -> bool {
        matches!(self, Self::Resubmit)
    }

    /// The word in records and on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.command() {
            Some(action) => action.name(),
            None => "Again",
        }
    }

    /// The word on the command line, which is also the last segment of the same action's path in the API.
    #[must_use]
    pub const fn segment(self) -> &'static str {
        match self.command() {
            Some(action) => action.segment(),
            None => "again",
        }
    }

    /// The command that each order gets. `None`: it gets none, and is posted again.
    #[must_use]
    pub const fn command(self) -> Option<Action> {
        match self {
            Self::Resubmit => Some(Action::Resubmit),
            Self::Cancel => Some(Action::Cancel),
            Self::Settle => Some(Action::Settle),
            Self::Close => Some(Action::Close),
            Self::Again => None,
        }
    }

    /// The state of the orders that it is for.
    #[must_use]
    pub const fn state(self) -> ProcessState {
        match self {
            Self::Resubmit | Self::Cancel | Self::Settle | Self::Close => ProcessState::Error,
            Self::Again => ProcessState::Compensated,
        }
    }
}
