//! Words from a list that may grow.

use std::fmt;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A known word, or an unknown word from a newer server. An unknown word does not invalidate the whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenEnum<T> {
    /// The word is known.
    Known(T),
    /// The word as it was sent.
    Unknown(Box<str>),
}

impl<T: Copy> OpenEnum<T> {
    /// The meaning of the word, if it is known.
    pub const fn known(&self) -> Option<T> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> From<T> for OpenEnum<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Default> Default for OpenEnum<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

impl<T: PartialEq> PartialEq<T> for OpenEnum<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(value) if value == other)
    }
}

impl<T: fmt::Display> fmt::Display for OpenEnum<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown(word) => word.fmt(f),
        }
    }
}

impl<T: Serialize> Serialize for OpenEnum<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Unknown(word) => word.serialize(serializer),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OpenEnum<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Box::<str>::deserialize(deserializer)?;
        let reader: StrDeserializer<'_, Error> = (*word).into_deserializer();
        Ok(T::deserialize(reader).map_or_else(|_| Self::Unknown(word.clone()), Self::Known))
    }
}

#[cfg(test)]
mod tests {
    use domain::task::{ProcessState, Watch};

    use super::*;

    #[test]
    fn a_known_word_has_its_meaning_and_an_unknown_one_is_kept() {
        for (text, expected) in [
            ("\"Error\"", OpenEnum::Known(ProcessState::Error)),
            ("\"Archived\"", OpenEnum::Unknown("Archived".into())),
        ] {
            let read: OpenEnum<ProcessState> = serde_json::from_str(text).unwrap();
            assert_eq!(read, expected);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
            assert_eq!(format!("\"{read}\""), text);
        }
        let watch: OpenEnum<Watch> = serde_json::from_str("\"due#07\"").unwrap();
        assert_eq!(watch, Watch::Due(7));
        assert!(serde_json::from_str::<OpenEnum<ProcessState>>("7").is_err());
    }
}
