//! The search for orders by the content of their documents.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{Json, key_text};
use crate::redaction::Redaction;
use crate::tokens::{Token, Tokens, literal_text};

/// Longest pointer and longest value of a search, in characters.
pub const FIND_CHARS_MAX: usize = 256;

/// A position in a document: an RFC 6901 JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

/// The text is no pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAPointer {
    /// Not empty, and without a slash at its start.
    #[error("must be a JSON pointer: it begins with a slash")]
    NoSlash,
    /// A tilde that is neither `~0` nor `~1`.
    #[error("must have ~0 for a tilde and ~1 for a slash within a name")]
    Tilde,
    /// A question mark at its end, as in a template.
    #[error("has a ? at its end, which is for pointers of `send` and `keep`")]
    Optional,
    /// Two question marks at its end.
    #[error("has more than one ? at its end: write one, or an expression such as \"= /Order/Note ?? 'none'\"")]
    Optionals,
}

/// A condition on a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finder {
    /// There is a value at this position.
    Has(Pointer),
    /// The value at this position has this text.
    Equals(Pointer, String),
    /// A value anywhere has this text.
    Anywhere(String),
}

impl Pointer {
    /// Reads a pointer; the empty one names the whole document.
    ///
    /// # Errors
    /// [`NotAPointer`], which describes the form of a pointer.
    pub fn parse(text: &str) -> Result<Self, NotAPointer> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        if text.ends_with('?') {
            return Err(if text.ends_with("??") { NotAPointer::Optionals } else { NotAPointer::Optional });
        }
        let names = text.strip_prefix('/').ok_or(NotAPointer::NoSlash)?.split('/');
        names.map(|name| unescaped(name).ok_or(NotAPointer::Tilde)).collect::<Result<_, _>>().map(Self)
    }

    /// The first of its names whose value is redacted, and so must not be searched.
    #[must_use]
    pub fn hidden_by(&self, redaction: &Redaction) -> Option<&str> {
        self.0.iter().find(|name| redaction.hides(name)).map(String::as_str)
    }

    /// The position at the end of these names.
    pub(crate) fn of_names(names: &[String]) -> Self {
        Self(names.to_vec())
    }

    /// The place in the document that a pointer below `/Order` names, as all else of a workflow writes it.
    pub(crate) fn in_order(&self) -> Option<Self> {
        let (root, names) = self.0.split_first()?;
        (root == "Order" && !names.is_empty()).then(|| Self(names.to_vec()))
    }

    /// The names on the way.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The text, as [`Pointer::parse`] reads it.
    pub fn text(&self) -> String {
        self.0.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
    }

    /// The value at this position; the last one of repeated members.
    pub(crate) fn of<'a>(&self, document: &'a RawValue) -> Option<&'a RawValue> {
        Self::walk(&self.0, document)
    }

    /// How many values are at this position: more than one if a member on the way is repeated.
    pub(crate) fn times_in(&self, document: &RawValue) -> usize {
        fn times(names: &[String], tokens: &mut Tokens<'_>) -> usize {
            let mut found = usize::from(names.is_empty());
            each_named(names, tokens, |rest, tokens| found += times(rest, tokens));
            found
        }
        times(&self.0, &mut Tokens::of(document.get()))
    }

    /// The value at this position, as it is written.
    #[must_use]
    pub fn value_in(&self, document: &Json) -> Option<Json> {
        self.of(document.raw()).map(|value| Json::of_raw(value.to_owned()))
    }

    /// The text of the string, number or boolean at this position.
    #[must_use]
    pub fn text_in(&self, document: &Json) -> Option<String> {
        self.of(document.raw()).and_then(plain_text)
    }

    /// The value at this position of a text that may be JSON in parts alone.
    pub(crate) fn within<'a>(&self, text: &'a str) -> Option<&'a RawValue> {
        Self::walk_text(&self.0, text)
    }

    /// The value at the end of these names.
    pub(crate) fn walk<'a>(names: &[String], document: &'a RawValue) -> Option<&'a RawValue> {
        Self::walk_text(names, document.get())
    }

    fn walk_text<'a>(names: &[String], text: &'a str) -> Option<&'a RawValue> {
        fn last<'a>(names: &[String], tokens: &mut Tokens<'a>) -> Option<&'a str> {
            if names.is_empty() {
                return Some(tokens.value());
            }
            let mut found = None;
            each_named(names, tokens, |rest, tokens| found = last(rest, tokens));
            found
        }
        last(names, &mut Tokens::of(text)).and_then(|text| serde_json::from_str(text).ok())
    }
}

/// Passes over the next value. Calls `visit` with the other names for each part of it that has the first name, where
/// the part begins; `visit` passes over the part.
fn each_named<'a>(names: &[String], tokens: &mut Tokens<'a>, mut visit: impl FnMut(&[String], &mut Tokens<'a>)) {
    let Some((name, rest)) = names.split_first() else {
        tokens.value();
        return;
    };
    match tokens.first() {
        Some(b'{') => tokens.members(|tokens, key| match literal_text(key).as_deref() == Some(name) {
            true => visit(rest, tokens),
            false => _ = tokens.value(),
        }),
        Some(b'[') => {
            let wanted = index(name);
            tokens.elements(|tokens, place| match Some(place) == wanted {
                true => visit(rest, tokens),
                false => _ = tokens.value(),
            });
        }
        _ => _ = tokens.value(),
    }
}

impl Finder {
    /// Whether a document meets the condition. The text of a string has no quotes and escapes; that of a number is as
    /// written. `true`, `false` and `null` have theirs; an object or an array has none. Redacted values are never
    /// found.
    #[must_use]
    pub fn finds(&self, document: &Json, redaction: &Redaction) -> bool {
        match self {
            Self::Has(place) => place.of(document.raw()).is_some(),
            Self::Equals(place, text) => place.of(document.raw()).is_some_and(|value| has_text(value.get(), text)),
            Self::Anywhere(text) => is_within(document.raw(), text, redaction),
        }
    }
}

fn is_within(document: &RawValue, text: &str, redaction: &Redaction) -> bool {
    let mut tokens = Tokens::of(document.get());
    while let Some(token) = tokens.next() {
        match token {
            Token::Key(key) if literal_text(key).is_some_and(|name| redaction.hides(&name)) => _ = tokens.value(),
            Token::Scalar(literal) if has_text(literal, text) => return true,
            Token::Open(_) | Token::Close(_) | Token::Comma | Token::Key(_) | Token::Scalar(_) => {}
        }
    }
    false
}

fn has_text(literal: &str, text: &str) -> bool {
    match literal.as_bytes().first() {
        Some(b'"') => literal_text(literal).as_deref() == Some(text),
        Some(b'{' | b'[') => false,
        _ => literal == text,
    }
}

/// The text of a string, a number or a boolean.
pub(crate) fn plain_text(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first() {
        Some(b'"') => key_text(value).map(Cow::into_owned),
        Some(b'{' | b'[' | b'n') | None => None,
        Some(_) => Some(value.get().to_owned()),
    }
}

fn unescaped(name: &str) -> Option<String> {
    let mut parts = name.split('~');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        plain.push(match part.as_bytes().first()? {
            b'0' => '~',
            b'1' => '/',
            _ => return None,
        });
        plain.push_str(&part[1..]);
    }
    Some(plain)
}

/// The array index that a name stands for: digits without leading zeros.
fn index(name: &str) -> Option<usize> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
    name.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"Total": 12.50, "a/b": {"~": [true, "caf\u00e9", null]}, "": {"x": {}}, "n": 1, "n": 2,
        "Card": {"Cvc": "123"}}"#;

    fn document() -> Json {
        Json::parse(DOCUMENT.as_bytes(), 10_000).unwrap()
    }

    fn equals(pointer: &str, text: &str) -> bool {
        let finder = Finder::Equals(Pointer::parse(pointer).unwrap(), text.to_owned());
        finder.finds(&document(), &Redaction::default())
    }

    #[test]
    fn a_value_is_found_at_its_place_by_its_text() {
        for (pointer, text) in
            [("/Total", "12.50"), ("/a~1b/~0/0", "true"), ("/a~1b/~0/1", "café"), ("/a~1b/~0/2", "null"), ("/n", "2")]
        {
            assert!(equals(pointer, text), "{pointer} {text}");
        }
        for (pointer, text) in [
            ("/Total", "12.5"),
            ("/total", "12.50"),
            ("/Total/0", "12.50"),
            ("/a~1b/~0/3", "true"),
            ("/a~1b/~0/00", "true"),
            ("/a~1b/~0/+0", "true"),
            ("/a~1b/~0/", "true"),
            ("/a~1b/~0/-", "true"),
            ("/n", "1"),
            ("/", "{}"),
            ("", DOCUMENT),
        ] {
            assert!(!equals(pointer, text), "{pointer} {text}");
        }
    }

    #[test]
    fn a_place_may_be_asked_for_and_a_text_anywhere() {
        let has = |pointer| Finder::Has(Pointer::parse(pointer).unwrap()).finds(&document(), &Redaction::default());
        assert!(has("") && has("/") && has("//x") && has("/a~1b/~0/2"));
        assert!(!has("/b") && !has("//y"));
        let anywhere = |text: &str| Finder::Anywhere(text.to_owned()).finds(&document(), &Redaction::of(["cvc"]));
        assert!(anywhere("café") && anywhere("12.50") && anywhere("1") && anywhere("true"));
        assert!(!anywhere("Total") && !anywhere("caf") && !anywhere(""));
    }

    #[test]
    fn a_value_has_a_text_unless_it_is_null_or_has_values_itself() {
        let text = |pointer: &str| Pointer::parse(pointer).unwrap().text_in(&document());
        assert_eq!(text("/Total").as_deref(), Some("12.50"));
        assert_eq!(text("/a~1b/~0/0").as_deref(), Some("true"));
        assert_eq!(text("/a~1b/~0/1").as_deref(), Some("café"));
        assert_eq!((text("/a~1b/~0/2"), text("/Card"), text("/nothing")), (None, None, None));
    }

    #[test]
    fn what_is_hidden_is_not_found() {
        let hidden = Redaction::of(["CVC"]);
        assert!(!Finder::Anywhere("123".to_owned()).finds(&document(), &hidden));
        assert!(Finder::Anywhere("123".to_owned()).finds(&document(), &Redaction::default()));
        assert_eq!(Pointer::parse("/Card/Cvc").unwrap().hidden_by(&hidden), Some("Cvc"));
        assert_eq!(Pointer::parse("/Card").unwrap().hidden_by(&hidden), None);
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        assert_eq!(Pointer::parse("Total"), Err(NotAPointer::NoSlash));
        for text in ["/~", "/~2", "/a~", "/a/~x/b"] {
            assert_eq!(Pointer::parse(text), Err(NotAPointer::Tilde), "{text}");
        }
    }
}
