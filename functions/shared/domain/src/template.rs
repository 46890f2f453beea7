//! Values with places to fill: what a step sends to its service, and keeps of the answer.
//!
//! In a template, a text that begins with a slash is a JSON pointer. It must find a value, unless a question mark follows
//! it: then it leaves its member out. One that begins with `=` is an expression, in what is sent. Any other value stands for
//! itself, and so does the rest of a text that begins with a backslash. What a pointer finds, and what stands for itself, is copied as it is written, numbers digit for digit.

mod answer;
mod condition;
mod expression;
mod known;
mod path;
mod poll;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use condition::{BadCondition, BodyCondition};
pub(crate) use expression::Expression;
pub use expression::{BadExpression, NoValue, never_computed};
pub(crate) use known::Known;
pub use path::PathTemplate;
pub use poll::{Led, PollPath};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::json::{Json, JsonError, key_text};
use crate::limits::{ANSWER_BYTES_MAX, PATH_CHARS_MAX, TEMPLATE_NESTING_MAX, TEMPLATE_PARTS_MAX};
use crate::search::{NotAPointer, Pointer};
use crate::text::in_quotes;

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
    Computed(Expression),
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
    /// Whether it may not be looked at, in a branch of an expression.
    pub(crate) is_conditional: bool,
    /// As it is written, where that is not the pointer.
    shown: Option<Box<str>>,
    /// Whether it stands in an expression, where no question mark says that there may be no value.
    pub(crate) is_within: bool,
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
    /// A text that begins with `=` and is no expression.
    #[error("{0:?} {1}")]
    Expression(String, BadExpression),
    /// No part of an answer has this name.
    #[error("{0:?} is no part of an answer: those beside the body are header:NAME, answer:status and answer:text")]
    Answer(String),
    /// A brace without its other, or braces within braces.
    #[error("must have a pointer between {{ and }}, which must find a value; in a query it may end with ?")]
    Braces,
    /// A path of a poll that is none.
    #[error(
        "must be a path such as transfers/{{/id}} or {{header:Location}}: below the URL of the agent, or of its host if it \
         begins with a slash"
    )]
    Poll,
    /// A path that begins with a slash.
    #[error("is below the URL of the operation: leave the slash at the start out")]
    Rooted,
    /// A path that no URL may have.
    #[error(
        "must be 1 to {PATH_CHARS_MAX} letters, digits, escapes such as %20 and -._~!$&'()*+,;=:@, in segments that are \
         neither empty nor dots, or behind a ? parameters such as name={{/Order/Name}}"
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
    /// An expression has no value.
    #[error("cannot compute {0:?}: {1}")]
    NoValue(Arc<str>, NoValue),
    /// A path needs every value.
    #[error("needs a text, a number or a boolean at {0}")]
    NoText(Arc<str>),
    /// A header is a text in one line.
    #[error("needs a text of plain letters in one line, a number or a boolean for the header {0}")]
    NoHeader(Arc<str>),
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
        Self::parse_with(source, |text| {
            text.starts_with(expression::BEGINNING).then(|| Expression::read(text).map(Part::Computed))
        })
    }

    fn parse_with(source: Json, other: Other) -> Result<Self, BadTemplate> {
        match Part::parse(source.raw(), 1, &mut 0, other)? {
            root @ (Part::Object(_) | Part::Place(_) | Part::Computed(_)) => Ok(Self { root, source }),
            Part::Literal(_) | Part::Array(_) => Err(BadTemplate::NotAnObject),
        }
    }

    /// All places.
    pub(crate) fn places(&self) -> Vec<&Place> {
        let (mut found, mut parts) = (Vec::new(), vec![&self.root]);
        while let Some(part) = parts.pop() {
            match part {
                Part::Place(place) => found.push(place),
                Part::Computed(expression) => found.extend(expression.places()),
                Part::Literal(_) => {}
                Part::Array(elements) => parts.extend(elements),
                Part::Object(members) => parts.extend(members.iter().map(|(_, part)| part)),
            }
        }
        found
    }

    /// All expressions.
    pub(crate) fn expressions(&self) -> Vec<&Expression> {
        let (mut found, mut parts) = (Vec::new(), vec![&self.root]);
        while let Some(part) = parts.pop() {
            match part {
                Part::Computed(expression) => found.push(expression),
                Part::Place(_) | Part::Literal(_) => {}
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
                // What is kept is not computed.
                Part::Literal(_) | Part::Computed(_) => return None,
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
        for place in self.places() {
            match place.pointer.times_in(answer.raw()) {
                0 if !place.is_optional => missing.push(place.text()),
                0 | 1 => {}
                _ => return Some(format!("{} is there twice", place.text())),
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

/// What to write in a file for a text that means itself, where it would be filled in without that.
#[must_use]
pub fn if_meant(text: &str) -> String {
    format!(". If the text itself is meant, write {}", in_quotes(&format!("{LITERAL}{text}")))
}

impl Place {
    /// As it is written.
    pub(crate) fn text(&self) -> String {
        let optional = if self.is_optional && !self.is_within { OPTIONAL.into() } else { String::new() };
        self.shown.as_deref().map_or_else(|| self.pointer.text(), str::to_owned) + &optional
    }

    /// In an expression.
    const fn within(pointer: Pointer) -> Self {
        Self { pointer, is_optional: false, is_conditional: false, shown: None, is_within: true }
    }

    fn parse(text: &str) -> Result<Self, BadTemplate> {
        // Of two question marks, both are blamed.
        let pointer = text.strip_suffix(OPTIONAL).filter(|pointer| !pointer.ends_with(OPTIONAL));
        let parsed = Pointer::parse(pointer.unwrap_or(text));
        let parsed = parsed.map_err(|problem| BadTemplate::Pointer(text.to_owned(), problem))?;
        let is_optional = pointer.is_some();
        Ok(Self { pointer: parsed, is_optional, is_conditional: false, shown: None, is_within: false })
    }
}

/// Reads a text that stands for a value in another way than by a slash at its start; `None` for one that does not.
type Other = fn(&str) -> Option<Result<Part, BadTemplate>>;

impl Part {
    fn parse(value: &RawValue, depth: usize, parts: &mut usize, other: Other) -> Result<Self, BadTemplate> {
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
                text => match (other(&text), text.strip_prefix(LITERAL)) {
                    (Some(part), _) => {
                        let part = part?;
                        // Each of its pointers is looked up, as those of other parts are.
                        *parts += if let Self::Computed(expression) = &part { expression.places().len() } else { 0 };
                        if *parts > TEMPLATE_PARTS_MAX {
                            return Err(BadTemplate::TooLarge);
                        }
                        part
                    }
                    (None, Some(literal)) => Self::Literal(Json::of(&literal).text().into()),
                    (None, None) => Self::Literal(json.into()),
                },
            },
            Some(b'[') => {
                let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| BadTemplate::NotJson)?;
                let elements = elements.into_iter().map(|element| Self::parse(element, depth + 1, parts, other));
                Self::Array(elements.collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                // Sorted by name, so that the call of a key stays the same.
                let members: BTreeMap<String, &RawValue> =
                    serde_json::from_str(json).map_err(|_| BadTemplate::NotJson)?;
                let members =
                    members.into_iter().map(|(name, part)| Ok((name, Self::parse(part, depth + 1, parts, other)?)));
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
            Self::Place(place) => match find(&place.pointer) {
                Some(found) => into.push_str(found.get()),
                None if place.is_optional => return Ok(false),
                None => return Err(Unfilled::Nothing(place.text().into())),
            },
            Self::Computed(expression) => {
                let value = expression.value(find).map_err(|problem| expression.unfilled(problem))?;
                into.push_str(&value);
            }
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
        // A message has what is kept, and never what is sent.
        Self::parse_keep(Json::deserialize(deserializer)?).map_err(de::Error::custom)
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
}
