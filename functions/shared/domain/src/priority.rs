//! The priority of an order's messages.

use serde::{Deserialize, Serialize};

/// The priority of an order's messages: those of high priority overtake the others at every queue, and of four batches one
/// is left to the others, so that nobody starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// After the others.
    #[default]
    Normal,
    /// Before the others.
    High,
}

impl Priority {
    /// Both priorities.
    pub const ALL: [Self; 2] = [Self::Normal, Self::High];

    /// Whether this is the priority that nobody has to name.
    #[must_use]
    pub const fn is_normal(&self) -> bool {
        match self {
            Self::Normal => true,
            Self::High => false,
        }
    }
}
