//! Values with places to fill: what a step sends to its service, and keeps of the answer.
//!
//! In a template, a text that begins with a slash is a JSON pointer. It must find a value, unless a question mark follows
//! it: then it leaves its member out. Any other value stands for itself, and so does the rest of a text that begins with a
//! backslash. What a pointer finds, and what stands for itself, is copied as it is written, numbers digit for digit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::json::{Json, JsonError, key_text};
use crate::limits::{ANSWER_BYTES_MAX, PATH_CHARS_MAX, TEMPLATE_NESTING_MAX, TEMPLATE_PARTS_MAX};
use crate::search::{NotAPointer, Pointer, plain_text};

/// A template of a JSON value: an object, or a pointer to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    root: Part,
    /// As it was read.
    source: Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Place(Place),
    /// The JSON text.
    Literal(Box<str>),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// A place whose value is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) pointer: Pointer,
    /// Whether there may be no value.
    pub(crate) is_optional: bool,
}

/// A template of a URL's path: text, with pointers in braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Pointer(Pointer),
}

/// Why a template is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// Neither an object nor a pointer.
    #[error("must be a table of members, or a pointer")]
    NotAnObject,
    /// A value that JSON does not have.
    #[error("must have texts, numbers, booleans, arrays and tables only")]
    NotJson,
    /// Too many values.
    #[error("has more than {TEMPLATE_PARTS_MAX} values")]
    TooLarge,
    /// Nested too deep.
    #[error("is nested deeper than {TEMPLATE_NESTING_MAX} levels")]
    TooDeep,
    /// A text that begins with a slash and is no pointer.
    #[error("{0:?} {1}")]
    Pointer(String, NotAPointer),
    /// A brace without its other, or braces within braces.
    #[error("must have a pointer between {{ and }}, which must find a value")]
    Braces,
    /// A path that no URL may have.
    #[error(
        "must be 1 to {PATH_CHARS_MAX} letters, digits and -._~!$&'()*+,;=:@, in segments that are neither empty nor dots"
    )]
    Path,
}

/// Why a template cannot be filled for an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// The result is too large or too deep.
    #[error("is {0}")]
    Unfit(JsonError),
    /// There is no value, and there must be.
    #[error("has nothing at {0}; a ? at the end of the pointer says that this may be")]
    Nothing(Arc<str>),
    /// A path needs every value.
    #[error("needs a text, a number or a boolean at {0}")]
    NoText(Arc<str>),
    /// A form has members.
    #[error("must give an object, to be sent as a form; it gives {0}")]
    NoForm(&'static str),
    /// The path is too long, or has a segment that is empty or dots.
    #[error("has a segment that is empty or dots, or more than {PATH_CHARS_MAX} characters")]
    Path,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// [`BadTemplate`], which says what is wrong.
    pub fn parse(source: Json) -> Result<Self, BadTemplate> {
        match Part::parse(source.raw(), 1, &mut 0)? {
            root @ (Part::Object(_) | Part::Place(_)) => Ok(Self { root, source }),
            Part::Literal(_) | Part::Array(_) => Err(BadTemplate::NotAnObject),
        }
    }

    /// All pointers.
    #[must_use]
    pub fn pointers(&self) -> Vec<&Pointer> {
        self.places().into_iter().map(|place| &place.pointer).collect()
    }

    /// All places.
    pub(crate) fn places(&self) -> Vec<&Place> {
        let (mut found, mut parts) = (Vec::new(), vec![&self.root]);
        while let Some(part) = parts.pop() {
            match part {
                Part::Place(place) => found.push(place),
                Part::Literal(_) => {}
                Part::Array(elements) => parts.extend(elements),
                Part::Object(members) => parts.extend(members.iter().map(|(_, part)| part)),
            }
        }
        found
    }

    /// Whether its value may have something at this place. What a pointer finds may have any shape.
    #[must_use]
    pub(crate) fn may_have(&self, names: &[String]) -> bool {
        self.part(names).is_some()
    }

    /// Whether its value may have nothing at this place, since a pointer may find nothing.
    #[must_use]
    pub(crate) fn may_lack(&self, names: &[String]) -> bool {
        matches!(self.part(names), Some(Part::Place(Place { is_optional: true, .. })))
    }

    /// What is at this place: a part, or a pointer to something that may have it.
    fn part(&self, names: &[String]) -> Option<&Part> {
        let mut part = &self.root;
        for name in names {
            part = match part {
                Part::Place(_) => return Some(part),
                Part::Literal(_) => return None,
                Part::Array(elements) => elements.get(name.parse::<usize>().ok()?)?,
                Part::Object(members) => members.iter().find(|(member, _)| member == name).map(|(_, part)| part)?,
            };
        }
        Some(part)
    }

    /// The names of its members. A pointer has none.
    #[must_use]
    pub(crate) fn members(&self) -> Vec<&str> {
        let Part::Object(members) = &self.root else { return Vec::new() };
        members.iter().map(|(name, _)| &**name).collect()
    }

    /// The value, with what `find` finds at each pointer. `{}` if the template is a pointer that may find nothing and does,
    /// or finds null.
    ///
    /// # Errors
    /// [`Unfilled::Nothing`] if there is no value where one must be, [`Unfilled::Unfit`] if the whole has more than
    /// `bytes_max` bytes, or is nested deeper than a document may be.
    pub fn fill<'a>(
        &self,
        find: &impl Fn(&Pointer) -> Option<&'a RawValue>,
        bytes_max: usize,
    ) -> Result<Json, Unfilled> {
        let mut text = String::new();
        // A message has no member for null, so null counts as nothing.
        if !self.root.write(find, bytes_max, &mut text)? || text == "null" {
            return Ok(Json::empty());
        }
        Json::parse(text.as_bytes(), bytes_max).map_err(Unfilled::Unfit)
    }

    /// What this template keeps of an answer; its pointers begin at the answer's root.
    ///
    /// # Errors
    /// As for [`fill`](Self::fill).
    pub fn keep(&self, answer: &Json, bytes_max: usize) -> Result<Json, Unfilled> {
        self.fill(&|pointer| pointer.of(answer.raw()), bytes_max)
    }
}

/// The end of the words for an answer without the values that `keep` takes.
pub(crate) const NOT_KEPT: &str = ", which `keep` needs";

impl Template {
    /// What this template lacks to keep something of an answer that has one reading. `None`: nothing.
    pub(crate) fn missing_in(&self, answer: &Json) -> Option<String> {
        let mut missing = Vec::new();
        for Place { pointer, is_optional } in self.places() {
            match pointer.times_in(answer.raw()) {
                0 if !is_optional => missing.push(pointer.text()),
                0 | 1 => {}
                _ => return Some(format!("{} is there twice", pointer.text())),
            }
        }
        if !missing.is_empty() {
            missing.sort();
            return Some(format!("it has nothing at {}{NOT_KEPT}", missing.join(" and ")));
        }
        // A limit is told as one.
        let kept = self.keep(answer, ANSWER_BYTES_MAX).ok()?;
        let ambiguous = kept.check_unique().err().filter(|error| matches!(error, JsonError::Repeated(_)))?;
        Some(format!("what `keep` takes is {ambiguous}"))
    }
}

/// What ends a pointer that may find nothing.
const OPTIONAL: char = '?';
/// What begins a text that stands for the rest of itself.
pub const LITERAL: char = '\\';

impl Place {
    /// As it is written.
    pub(crate) fn text(&self) -> String {
        let optional = if self.is_optional { OPTIONAL.into() } else { String::new() };
        self.pointer.text() + &optional
    }

    fn parse(text: &str) -> Result<Self, BadTemplate> {
        let pointer = text.strip_suffix(OPTIONAL);
        let parsed = Pointer::parse(pointer.unwrap_or(text));
        let parsed = parsed.map_err(|problem| BadTemplate::Pointer(text.to_owned(), problem))?;
        Ok(Self { pointer: parsed, is_optional: pointer.is_some() })
    }
}

impl Part {
    fn parse(value: &RawValue, depth: usize, parts: &mut usize) -> Result<Self, BadTemplate> {
        *parts += 1;
        if *parts > TEMPLATE_PARTS_MAX {
            return Err(BadTemplate::TooLarge);
        }
        if depth > TEMPLATE_NESTING_MAX {
            return Err(BadTemplate::TooDeep);
        }
        let json = value.get();
        Ok(match json.as_bytes().first() {
            Some(b'n') | None => return Err(BadTemplate::NotJson),
            Some(b'"') => match key_text(value).ok_or(BadTemplate::NotJson)? {
                text if text.starts_with('/') => Self::Place(Place::parse(&text)?),
                text => match text.strip_prefix(LITERAL) {
                    Some(literal) => Self::Literal(Json::of(&literal).text().into()),
                    None => Self::Literal(json.into()),
                },
            },
            Some(b'[') => {
                let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| BadTemplate::NotJson)?;
                let elements = elements.into_iter().map(|element| Self::parse(element, depth + 1, parts));
                Self::Array(elements.collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                // Sorted by name, so that the call of a key stays the same.
                let members: BTreeMap<String, &RawValue> =
                    serde_json::from_str(json).map_err(|_| BadTemplate::NotJson)?;
                let members = members.into_iter().map(|(name, part)| Ok((name, Self::parse(part, depth + 1, parts)?)));
                Self::Object(members.collect::<Result<_, _>>()?)
            }
            Some(_) => Self::Literal(json.into()),
        })
    }

    /// Whether there is a value. If there is none, `into` is unchanged.
    fn write<'a>(
        &self,
        find: &impl Fn(&Pointer) -> Option<&'a RawValue>,
        bytes_max: usize,
        into: &mut String,
    ) -> Result<bool, Unfilled> {
        match self {
            Self::Place(Place { pointer, is_optional }) => match find(pointer) {
                Some(found) => into.push_str(found.get()),
                None if *is_optional => return Ok(false),
                None => return Err(Unfilled::Nothing(pointer.text().into())),
            },
            Self::Literal(json) => into.push_str(json),
            Self::Array(elements) => {
                list(elements, ['[', ']'], into, |element, into| element.write(find, bytes_max, into))?;
            }
            Self::Object(members) => list(members, ['{', '}'], into, |(name, part), into| {
                into.push_str(Json::of(name).text());
                into.push(':');
                part.write(find, bytes_max, into)
            })?,
        }
        // Pointers may repeat a large value, so the bound is checked on the way.
        match into.len() > bytes_max {
            true => Err(Unfilled::Unfit(JsonError::TooLarge { bytes: into.len(), bytes_max })),
            false => Ok(true),
        }
    }
}

/// Writes the items that have a value, with commas between them.
fn list<T>(
    items: &[T],
    [open, close]: [char; 2],
    into: &mut String,
    write: impl Fn(&T, &mut String) -> Result<bool, Unfilled>,
) -> Result<(), Unfilled> {
    into.push(open);
    let mut is_first = true;
    for item in items {
        let before = into.len();
        if !is_first {
            into.push(',');
        }
        match write(item, into)? {
            true => is_first = false,
            false => into.truncate(before),
        }
    }
    into.push(close);
    Ok(())
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Json::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl PathTemplate {
    /// Reads a template such as `v1/refunds/{/Outputs/charge/ID}`.
    ///
    /// # Errors
    /// [`BadTemplate`], which says what is wrong.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, opened)) = rest.split_once('{') {
            let (pointer, after) = opened.split_once('}').ok_or(BadTemplate::Braces)?;
            if !pointer.starts_with('/') || pointer.contains('{') || pointer.ends_with(OPTIONAL) {
                return Err(BadTemplate::Braces);
            }
            let parsed = Pointer::parse(pointer);
            let parsed = parsed.map_err(|problem| BadTemplate::Pointer(pointer.to_owned(), problem))?;
            pieces.extend([Piece::Text(before.to_owned()), Piece::Pointer(parsed)]);
            rest = after;
        }
        if rest.contains('}') {
            return Err(BadTemplate::Braces);
        }
        pieces.push(Piece::Text(rest.to_owned()));
        let is_plain = |piece: &Piece| match piece {
            Piece::Text(text) => text.bytes().all(|byte| is_unreserved(byte) || b"!$&'()*+,;=:@/".contains(&byte)),
            Piece::Pointer(_) => true,
        };
        let example: String =
            pieces.iter().map(|piece| if let Piece::Text(text) = piece { text } else { "x" }).collect();
        match pieces.iter().all(is_plain) && is_path(&example) && text.len() <= PATH_CHARS_MAX {
            true => Ok(Self(pieces)),
            false => Err(BadTemplate::Path),
        }
    }

    /// All pointers.
    pub fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        self.0.iter().filter_map(|piece| if let Piece::Pointer(pointer) = piece { Some(pointer) } else { None })
    }

    /// The path, with the percent-encoded text of what `find` finds at each pointer.
    ///
    /// # Errors
    /// [`Unfilled`] if a pointer finds no text, number or boolean, or if the result is no path.
    pub fn fill<'a>(&self, find: &impl Fn(&Pointer) -> Option<&'a RawValue>) -> Result<Arc<str>, Unfilled> {
        let mut path = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => path.push_str(text),
                Piece::Pointer(pointer) => {
                    let text = find(pointer).and_then(plain_text);
                    encode(&text.ok_or_else(|| Unfilled::NoText(pointer.text().into()))?, &mut path);
                }
            }
        }
        if is_path(&path) { Ok(path.into()) } else { Err(Unfilled::Path) }
    }
}

/// Whether a path stays below the URL that it is appended to.
fn is_path(path: &str) -> bool {
    path.len() <= PATH_CHARS_MAX && path.split('/').all(|segment| !["", ".", ".."].contains(&segment))
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Percent-encodes a text (RFC 3986): all bytes except unreserved ones.
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        match is_unreserved(byte) {
            true => into.push(char::from(byte)),
            false => {
                let _ = write!(into, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ANSWER: &str =
        r#"{"id": 1.10, "n": null, "list": [{"a": 1E2}, 7], "text": "caf\u00e9 /?", "deep": {"x": true}}"#;

    fn kept(template: &Value) -> String {
        let answer = Json::document(ANSWER.as_bytes()).unwrap();
        Template::parse(Json::of(template)).unwrap().keep(&answer, 1_000).unwrap().text().to_owned()
    }

    fn refused(template: &Value) -> String {
        Template::parse(Json::of(template)).unwrap_err().to_string()
    }

    #[test]
    fn what_a_pointer_finds_is_copied_digit_for_digit_and_what_it_may_lack_is_left_out() {
        for (template, expected) in [
            (json!({"ID": "/id", "None": "/nothing?", "Null": "/n"}), r#"{"ID":1.10,"Null":null}"#),
            (json!({"a": ["/list/0/a", "/list/9?", "x", 5]}), r#"{"a":[1E2,"x",5]}"#),
            (json!({"in": {"none": "/nothing?"}, "text": "/text?"}), r#"{"in":{},"text":"caf\u00e9 /?"}"#),
            (json!({"quo\"te": "plain", "yes": true}), r#"{"quo\"te":"plain","yes":true}"#),
            (json!("/deep"), r#"{"x": true}"#),
            (json!("/nothing?"), "{}"),
            (json!({"a": "\\/id", "b": "\\\\x", "c": "x\\y"}), r#"{"a":"/id","b":"\\x","c":"x\\y"}"#),
            (json!("/n"), "{}"),
            (json!({}), "{}"),
        ] {
            assert_eq!(kept(&template), expected, "{template}");
        }
    }

    #[test]
    fn a_template_is_read_from_a_message_as_it_was_written() {
        let text = r#"{"a":["/list/0?",{"b":"/x~1y?"}],"c":1.50,"d":"\\t"}"#;
        let template: Template = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&template).unwrap(), text);
        assert_eq!(template.keep(&Json::empty(), 100).unwrap().text(), r#"{"a":[{}],"c":1.50,"d":"t"}"#);
        assert!(serde_json::from_str::<Template>("7").is_err());
    }

    #[test]
    fn rule_19_what_must_be_there_and_is_not_is_named() {
        for (template, place) in [(json!({"a": ["/list/9"]}), "/list/9"), (json!("/nothing"), "/nothing")] {
            let answer = Json::document(ANSWER.as_bytes()).unwrap();
            let kept = Template::parse(Json::of(&template)).unwrap().keep(&answer, 1_000);
            assert_eq!(kept, Err(Unfilled::Nothing(place.into())));
        }
    }

    #[test]
    fn a_template_has_limits() {
        let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
        assert!(Template::parse(Json::of(&nested(TEMPLATE_NESTING_MAX))).is_ok());
        assert!(refused(&nested(TEMPLATE_NESTING_MAX + 1)).contains("deeper than 16"));
        let wide = |parts: usize| json!({"a": vec![1; parts - 2]});
        assert!(Template::parse(Json::of(&wide(TEMPLATE_PARTS_MAX))).is_ok());
        assert!(refused(&wide(TEMPLATE_PARTS_MAX + 1)).contains("more than 256"));
        assert!(refused(&json!(["/a"])).contains("table"));
        assert!(refused(&json!("text")).contains("table"));
        assert!(refused(&json!({"a": null})).contains("texts, numbers"));
        assert!(refused(&json!({"a": "/b~2"})).contains("~0"));
    }

    #[test]
    fn a_large_value_is_not_copied_beyond_the_limit() {
        let answer = Json::document(format!("{{\"a\":\"{}\"}}", "x".repeat(1_000)).as_bytes()).unwrap();
        let many = Template::parse(Json::of(&json!({"a": vec!["/a"; 200]}))).unwrap();
        let Err(Unfilled::Unfit(JsonError::TooLarge { bytes, .. })) = many.keep(&answer, 2_000) else {
            panic!("too large")
        };
        assert!(bytes < 4_000, "{bytes}");
        let exact = Template::parse(Json::of(&json!({"b": "/a"}))).unwrap();
        assert!(exact.keep(&answer, 1_008).is_ok() && exact.keep(&answer, 1_007).is_err());
    }

    #[test]
    fn a_path_has_the_texts_that_its_pointers_find_percent_encoded() {
        let answer = Json::document(ANSWER.as_bytes()).unwrap();
        let path = |text: &str| PathTemplate::parse(text).unwrap().fill(&|pointer| pointer.of(answer.raw()));
        assert_eq!(path("v1/refunds").as_deref(), Ok("v1/refunds"));
        assert_eq!(path("v1/{/id}/x{/list/1}:{/deep/x}").as_deref(), Ok("v1/1.10/x7:true"));
        assert_eq!(path("{/text}").as_deref(), Ok("caf%C3%A9%20%2F%3F"));
        for (text, nothing) in [("{/nothing}", "/nothing"), ("a/{/n}", "/n"), ("{/deep}", "/deep")] {
            assert_eq!(path(text), Err(Unfilled::NoText(nothing.into())));
        }
    }

    #[test]
    fn a_path_that_could_leave_its_service_is_refused() {
        for text in ["", "/a", "a/", "a//b", "../a", "a/./b", "a?b", "a#b", "a b", "a%2F", "é", &"a".repeat(1_025)] {
            assert_eq!(PathTemplate::parse(text), Err(BadTemplate::Path), "{text}");
        }
        for text in ["{", "}", "{}", "{a}", "a{/b", "a/b}", "{/a{/b}}", "{/a?}"] {
            assert_eq!(PathTemplate::parse(text), Err(BadTemplate::Braces), "{text}");
        }
        let found = Json::document(br#"{"dots": "..", "empty": "", "long": "aaaaaaaaaa"}"#).unwrap();
        let fill = |text: &str| PathTemplate::parse(text).unwrap().fill(&|pointer| pointer.of(found.raw()));
        for text in ["a/{/dots}", "{/empty}/a", &"{/long}".repeat(110)] {
            assert_eq!(fill(text), Err(Unfilled::Path), "{text}");
        }
        assert_eq!(fill("a{/dots}{/empty}").as_deref(), Ok("a.."));
    }
}
