//! The key of the index `watch`, by which a supervisor finds the tasks that are due.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The actor that has to look at a task: the key of the sparse index `watch`. Written `due#NN`, `wait#NN` and
/// `error#NN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watch {
    /// The supervisor, in this shard.
    Due(u8),
    /// The supervisor, in this shard, and only when a long wait of the task is over (rule 35).
    Wait(u8),
    /// The operator, in this shard.
    Error(u8),
}

impl Watch {
    /// Whether the supervisor looks at the task, soon or after a long wait.
    #[must_use]
    pub const fn is_of_supervisor(self) -> bool {
        match self {
            Self::Due(_) | Self::Wait(_) => true,
            Self::Error(_) => false,
        }
    }

    /// The shard.
    #[must_use]
    pub const fn shard(self) -> u8 {
        match self {
            Self::Due(shard) | Self::Wait(shard) | Self::Error(shard) => shard,
        }
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Due(shard) => write!(f, "due#{shard:02}"),
            Self::Wait(shard) => write!(f, "wait#{shard:02}"),
            Self::Error(shard) => write!(f, "error#{shard:02}"),
        }
    }
}

impl Serialize for Watch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Watch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let (kind, shard) = text.split_once('#').ok_or_else(|| de::Error::custom("watch without a shard"))?;
        let shard = shard.parse().map_err(de::Error::custom)?;
        match kind {
            "due" => Ok(Self::Due(shard)),
            "wait" => Ok(Self::Wait(shard)),
            "error" => Ok(Self::Error(shard)),
            _ => Err(de::Error::custom("watch is none of due, wait and error")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_written_as_its_key_and_read_back() {
        for (watch, text) in
            [(Watch::Due(7), "\"due#07\""), (Watch::Wait(0), "\"wait#00\""), (Watch::Error(98), "\"error#98\"")]
        {
            assert_eq!(serde_json::to_string(&watch).unwrap(), text);
            assert_eq!(serde_json::from_str::<Watch>(text).unwrap(), watch);
        }
        assert_eq!((Watch::Due(7).shard(), Watch::Error(98).shard()), (7, 98));
        for text in ["\"due\"", "\"due#x\"", "\"done#07\""] {
            assert!(serde_json::from_str::<Watch>(text).is_err(), "{text}");
        }
    }
}
