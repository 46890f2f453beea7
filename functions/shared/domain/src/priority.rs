//! The priority of an order's messages.

use serde::{Deserialize, Serialize};

/// The priority queue of an order's messages. High priority overtakes at every queue. At least one of four batches is of
/// normal priority, so that no order starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
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

    /// Its name in messages, records and workflows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// The priority of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.name() == name)
    }

    /// Whether this is the default priority.
    #[must_use]
    pub const fn is_normal(&self) -> bool {
        match self {
            Self::Normal => true,
            Self::High => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_found_by_its_name_which_is_that_of_messages() {
        for priority in Priority::ALL {
            assert_eq!(Priority::named(priority.name()), Some(priority));
            assert_eq!(serde_json::to_value(priority).unwrap(), priority.name());
        }
        assert_eq!(Priority::named("High"), None);
    }
}
