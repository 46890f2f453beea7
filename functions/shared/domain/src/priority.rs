//! The priority of an order's messages.

use serde::{Deserialize, Serialize};

/// The priority of an order's messages. High priority overtakes at every queue. At least one of four batches is of
/// normal priority, so that no order starves.
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

    /// Whether this is the default priority.
    #[must_use]
    pub const fn is_normal(&self) -> bool {
        match self {
            Self::Normal => true,
            Self::High => false,
        }
    }
}
