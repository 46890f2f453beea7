//! A JSON value as a tree that borrows from its text. Numbers keep their digits.

use std::borrow::Cow;

use crate::decimal::Decimal;
use crate::json::lossy_text;
use crate::tokens::{Tokens, is_plain, literal_text};

/// An escape such as `\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// A value.
pub(super) struct Node<'a> {
    /// Where it begins in its text, in bytes.
    pub(super) at: usize,
    pub(super) value: Value<'a>,
}

pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    /// As it is written.
    Number(&'a str),
    Text(Text<'a>),
    Array(Vec<Node<'a>>),
    /// Sorted by name.
    Object(Vec<(Text<'a>, Node<'a>)>),
}

/// A string.
pub(super) struct Text<'a> {
    /// Where it begins in its text, in bytes.
    pub(super) at: usize,
    /// As it is written, with its quotes.
    pub(super) literal: &'a str,
    /// U+FFFD stands for a lone surrogate.
    pub(super) text: Cow<'a, str>,
}

impl<'a> Node<'a> {
    /// Reads a text that is known to be JSON, and to be nested no deeper than a document may be.
    pub(super) fn of(text: &'a str) -> Self {
        Self::next(&mut Tokens::of(text), text)
    }

    fn next(tokens: &mut Tokens<'a>, whole: &'a str) -> Self {
        let first = tokens.first();
        // It borrows from the text.
        let at = |part: &str| part.as_ptr().addr() - whole.as_ptr().addr();
        match first {
            Some(b'{') => {
                let mut members = Vec::new();
                let begin = tokens.clone().next().map_or(0, |token| at(token.text()));
                tokens.members(|tokens, key| members.push((Text::of(key, at(key)), Self::next(tokens, whole))));
                members.sort_unstable_by(|(one, _), (other, _)| one.text.cmp(&other.text));
                Self { at: begin, value: Value::Object(members) }
            }
            Some(b'[') => {
                let mut elements = Vec::new();
                let begin = tokens.clone().next().map_or(0, |token| at(token.text()));
                tokens.elements(|tokens, _| elements.push(Self::next(tokens, whole)));
                Self { at: begin, value: Value::Array(elements) }
            }
            _ => {
                let literal = tokens.value();
                let value = match first {
                    Some(b'"') => Value::Text(Text::of(literal, at(literal))),
                    Some(b't') => Value::Bool(true),
                    Some(b'f') => Value::Bool(false),
                    Some(b'-' | b'0'..=b'9') => Value::Number(literal),
                    _ => Value::Null,
                };
                Self { at: at(literal), value }
            }
        }
    }

    /// The value of a member; `None` also if this is no object.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let Value::Object(members) = &self.value else { return None };
        let place = members.binary_search_by(|(known, _)| (*known.text).cmp(name)).ok()?;
        members.get(place).map(|(_, value)| value)
    }

    /// The elements of an array.
    pub(super) fn elements(&self) -> Option<&[Self]> {
        if let Value::Array(elements) = &self.value { Some(elements) } else { None }
    }

    /// A number, and as it is written.
    pub(super) fn number(&self) -> Option<(Decimal, &'a str)> {
        if let Value::Number(digits) = self.value { Some((Decimal::of(digits), digits)) } else { None }
    }

    /// The text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(&text.text) } else { None }
    }

    /// Adds the one spelling of this value: two values are the same if they have the same.
    pub(super) fn spell(&self, into: &mut String) {
        match &self.value {
            Value::Null => into.push_str("null"),
            Value::Bool(is_true) => into.push_str(if *is_true { "true" } else { "false" }),
            Value::Number(digits) => Decimal::of(digits).spell(into),
            Value::Text(text) => text.spell(into),
            Value::Array(elements) => {
                into.push('[');
                for element in elements {
                    element.spell(into);
                    into.push(',');
                }
                close(into, ']');
            }
            Value::Object(members) => {
                into.push('{');
                for (name, value) in members {
                    name.spell(into);
                    into.push(':');
                    value.spell(into);
                    into.push(',');
                }
                close(into, '}');
            }
        }
    }

    /// The value for people, in one line.
    pub(super) fn shown(&self) -> String {
        if let Value::Number(literal) = self.value { literal.to_owned() } else { self.spelled().into_owned() }
    }

    /// The one spelling by itself.
    pub(super) fn spelled(&self) -> Cow<'a, str> {
        if let Value::Text(Text { literal, .. }) = self.value
            && is_plain(literal)
        {
            return Cow::Borrowed(literal);
        }
        let mut spelled = String::new();
        self.spell(&mut spelled);
        spelled.into()
    }
}

impl<'a> Text<'a> {
    fn of(literal: &'a str, at: usize) -> Self {
        let text = literal_text(literal).unwrap_or_else(|| lossy_text(literal).unwrap_or_default().into());
        Self { at, literal, text }
    }

    fn spell(&self, into: &mut String) {
        // What has no escape is its only spelling.
        let spelled = match is_plain(self.literal) {
            true => None,
            false if self.text.contains('\u{fffd}') => Some(with_lone_surrogates(self.literal)),
            false => serde_json::to_string(&self.text).ok(),
        };
        into.push_str(spelled.as_deref().unwrap_or(self.literal));
    }
}

/// The one spelling of a text with escapes, which may have a surrogate without its other half: no text in Rust has one, so it
/// stays an escape.
fn with_lone_surrogates(literal: &str) -> String {
    let within = |literal: &str| literal.get(1..literal.len() - 1).unwrap_or_default().to_owned();
    let (mut spelled, inner) = (String::from('"'), within(literal));
    let mut rest = &*inner;
    loop {
        let lone = lone_surrogate(rest);
        let (before, after) = rest.split_at(lone.unwrap_or(rest.len()));
        let text = literal_text(&format!("\"{before}\"")).map(Cow::into_owned).unwrap_or_default();
        spelled.push_str(&within(&serde_json::to_string(&text).unwrap_or_default()));
        if lone.is_none() {
            spelled.push('"');
            return spelled;
        }
        let (lone, after) = after.split_at(ESCAPE_BYTES);
        spelled.push_str(&lone.to_ascii_lowercase());
        rest = after;
    }
}

/// Where the first escape of a surrogate without its other half begins.
fn lone_surrogate(text: &str) -> Option<usize> {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?, 16).ok();
    let mut at = 0;
    while at < text.len() {
        at += match (unit(at), unit(at + ESCAPE_BYTES)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE_BYTES,
            (Some(0xd800..=0xdfff), _) => return Some(at),
            (Some(_), _) => ESCAPE_BYTES,
            (None, _) if text.as_bytes()[at] == b'\\' => 2,
            (None, _) => 1,
        };
    }
    None
}

/// Ends an object or array, in the place of the comma after its last part.
fn close(into: &mut String, bracket: char) {
    if into.ends_with(',') {
        into.pop();
    }
    into.push(bracket);
}
