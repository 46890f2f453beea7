//! Reads attributes. It ignores unknown attributes, because a later version may have written them.

use std::str::FromStr;
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::time::Timestamp;

use super::Item;

/// The stored item has a form that this version does not know. A retry does not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} is stored in a form that cannot be read: {problem}")]
pub(crate) struct Unreadable {
    place: String,
    problem: String,
}

impl Unreadable {
    pub(in crate::dynamo) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

/// The attributes of an item, or of a map inside one. The reader takes them out one after the other.
#[derive(Debug)]
pub(in crate::dynamo) struct Reader {
    item: Item,
    /// The path of the map, with the dot before its members' names.
    place: String,
}

impl Reader {
    pub(in crate::dynamo) const fn new(item: Item) -> Self {
        Self { item, place: String::new() }
    }

    /// The reader of a map inside this item.
    pub(super) fn inside(value: AttributeValue, place: String) -> Result<Self, Unreadable> {
        let found = kind(&value);
        let AttributeValue::M(item) = value else {
            return Err(Unreadable::new(place, format!("expected a map, found {found}")));
        };
        Ok(Self { item, place: place + "." })
    }

    /// The attribute, if it exists. Null counts as missing.
    pub(super) fn value_if(&mut self, name: &str) -> Option<AttributeValue> {
        self.item.remove(name).filter(|value| !value.is_null())
    }

    pub(in crate::dynamo) fn text_if(&mut self, name: &str) -> Result<Option<String>, Unreadable> {
        match self.value_if(name) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(other) => Err(self.unlike(name, "text", &other)),
        }
    }

    pub(in crate::dynamo) fn number_if<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Unreadable> {
        match self.value_if(name) {
            None => Ok(None),
            Some(AttributeValue::N(digits)) => match digits.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(self.wrong(name, format!("the number {digits} is out of range"))),
            },
            Some(other) => Err(self.unlike(name, "a number", &other)),
        }
    }

    pub(in crate::dynamo) fn time_if(&mut self, name: &str) -> Result<Option<Timestamp>, Unreadable> {
        Ok(self.number_if(name)?.map(Timestamp::from_epoch_ms))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool, Unreadable> {
        match self.value_if(name) {
            None => Ok(false),
            Some(AttributeValue::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.unlike(name, "a flag", &other)),
        }
    }

    /// The elements of a list, each with its path. A missing list has no elements.
    pub(super) fn elements(&mut self, name: &str) -> Result<Vec<(String, AttributeValue)>, Unreadable> {
        match self.value_if(name) {
            None => Ok(Vec::new()),
            Some(AttributeValue::L(elements)) => {
                let elements = elements.into_iter().enumerate();
                Ok(elements.map(|(index, value)| (format!("{}{name}[{index}]", self.place), value)).collect())
            }
            Some(other) => Err(self.unlike(name, "a list", &other)),
        }
    }

    /// The texts of a list, which may be missing.
    pub(super) fn texts<T: FromIterator<Arc<str>>>(&mut self, name: &str) -> Result<T, Unreadable> {
        let text = |(place, value): (String, AttributeValue)| {
            value.as_s().map(|text| Arc::from(&**text)).map_err(|_| Unreadable::new(place, "expected text"))
        };
        self.elements(name)?.into_iter().map(text).collect()
    }

    pub(super) fn map_if(&mut self, name: &str) -> Result<Option<Self>, Unreadable> {
        let place = self.place_of(name);
        self.value_if(name).map(|value| Self::inside(value, place)).transpose()
    }

    pub(in crate::dynamo) fn text(&mut self, name: &str) -> Result<String, Unreadable> {
        self.text_if(name)?.ok_or_else(|| self.missing(name))
    }

    pub(in crate::dynamo) fn number<T: FromStr>(&mut self, name: &str) -> Result<T, Unreadable> {
        self.number_if(name)?.ok_or_else(|| self.missing(name))
    }

    pub(in crate::dynamo) fn time(&mut self, name: &str) -> Result<Timestamp, Unreadable> {
        self.time_if(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn bytes_if(&mut self, name: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        match self.value_if(name) {
            None => Ok(None),
            Some(AttributeValue::B(blob)) => Ok(Some(blob.into_inner())),
            Some(other) => Err(self.unlike(name, "bytes", &other)),
        }
    }

    /// A nonce, stored as eight bytes.
    pub(in crate::dynamo) fn nonce(&mut self, name: &str) -> Result<u64, Unreadable> {
        match self.value_if(name) {
            Some(AttributeValue::B(blob)) => match <[u8; 8]>::try_from(blob.as_ref()) {
                Ok(bytes) => Ok(u64::from_be_bytes(bytes)),
                Err(_) => Err(self.wrong(name, "expected 8 bytes")),
            },
            Some(other) => Err(self.unlike(name, "bytes", &other)),
            None => Err(self.missing(name)),
        }
    }

    /// A text that encodes a value.
    pub(in crate::dynamo) fn word<T>(
        &mut self,
        name: &str,
        meaning: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Unreadable> {
        let word = self.text(name)?;
        meaning(&word).ok_or_else(|| self.wrong(name, format!("{word:?} is unknown")))
    }

    /// Like `word`, for an attribute that may be missing.
    pub(super) fn word_if<T>(
        &mut self,
        name: &str,
        meaning: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Unreadable> {
        let word = self.text_if(name)?;
        let known = word.map(|word| meaning(&word).ok_or_else(|| self.wrong(name, format!("{word:?} is unknown"))));
        known.transpose()
    }

    pub(in crate::dynamo) fn wrong(&self, name: &str, problem: impl Into<String>) -> Unreadable {
        Unreadable::new(self.place_of(name), problem)
    }

    fn missing(&self, name: &str) -> Unreadable {
        self.wrong(name, "it is missing")
    }

    fn unlike(&self, name: &str, expected: &str, found: &AttributeValue) -> Unreadable {
        self.wrong(name, format!("expected {expected}, found {}", kind(found)))
    }

    fn place_of(&self, name: &str) -> String {
        format!("{}{name}", self.place)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add a kind")]
fn kind(value: &AttributeValue) -> &'static str {
    match value {
        AttributeValue::S(_) => "text",
        AttributeValue::N(_) => "a number",
        AttributeValue::B(_) => "bytes",
        AttributeValue::Bool(_) => "a flag",
        AttributeValue::Null(_) => "null",
        AttributeValue::L(_) => "a list",
        AttributeValue::M(_) => "a map",
        AttributeValue::Ss(_) | AttributeValue::Ns(_) | AttributeValue::Bs(_) => "a set",
        _ => "something unknown",
    }
}
