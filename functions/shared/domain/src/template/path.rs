//! The path of a call below the URL of its operation, with its query.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::expression::{BEGINNING, Expression};
use super::{BadTemplate, Place, Unfilled};
use crate::limits::PATH_CHARS_MAX;
use crate::search::{Pointer, plain_text};

/// A template of a path, perhaps with a query: text, with pointers in braces. In a query, a pointer may end with a question
/// mark: where it finds nothing, its parameter is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate {
    pub(super) path: Vec<Piece>,
    pub(super) query: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Place(Place),
    Computed(Expression),
}

impl PathTemplate {
    /// Reads a template such as `v1/refunds/{/Outputs/charge/ID}?expand=fees`.
    ///
    /// # Errors
    /// [`BadTemplate`], which says what is wrong.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let (path, query) = match split(text, '?').first() {
            Some(path) if path.len() < text.len() => (*path, Some(&text[path.len() + 1..])),
            Some(_) | None => (text, None),
        };
        let (path, parameters) = (pieces(path)?, query.map_or_else(Vec::new, |query| split(query, '&')));
        let query = parameters.into_iter().map(pieces).collect::<Result<Vec<_>, _>>()?;
        let example: String = path.iter().map(|piece| if let Piece::Text(text) = piece { text } else { "x" }).collect();
        let may_lack = |piece: &Piece| matches!(piece, Piece::Place(Place { is_optional: true, .. }));
        if path.iter().any(may_lack) {
            return Err(BadTemplate::Braces);
        }
        if text.starts_with('/') {
            return Err(BadTemplate::Rooted);
        }
        let has_path = is_path(closed(&example, ends_open(&path))) && has_only(&path, b"!$&'()*+,;=:@/%");
        let is_parameter = |parameter: &Vec<Piece>| {
            let name = parameter.first();
            matches!(name, Some(Piece::Text(name)) if !name.is_empty() && !name.starts_with('='))
                && has_only(parameter, b"!$'()*+,;=:@/?[]%")
        };
        let has_escapes = has_escapes(&path, false) && query.iter().all(|parameter| has_escapes(parameter, true));
        let is_good =
            has_escapes && (has_path || (path.is_empty() && !query.is_empty())) && query.iter().all(is_parameter);
        match is_good && text.len() <= PATH_CHARS_MAX {
            true => Ok(Self { path, query }),
            false => Err(BadTemplate::Path),
        }
    }

    /// All places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let pieces = self.path.iter().chain(self.query.iter().flatten());
        pieces.flat_map(|piece| match piece {
            Piece::Text(_) => Vec::new(),
            Piece::Place(place) => vec![place],
            Piece::Computed(expression) => expression.places(),
        })
    }

    /// All expressions.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let pieces = self.path.iter().chain(self.query.iter().flatten());
        pieces.filter_map(|piece| if let Piece::Computed(expression) = piece { Some(expression) } else { None })
    }

    /// The path and its query, with the percent-encoded text of what `find` finds at each pointer.
    ///
    /// # Errors
    /// [`Unfilled`] if a pointer that must find a text, number or boolean finds none, or if the result is no path.
    pub fn fill<'a>(&self, find: &impl Fn(&Pointer) -> Option<&'a RawValue>) -> Result<Arc<str>, Unfilled> {
        let mut path = String::new();
        write(&self.path, find, &mut path)?;
        if !self.path.is_empty() && !is_path(closed(&path, ends_open(&self.path))) {
            return Err(Unfilled::Path);
        }
        let mut mark = '?';
        for parameter in &self.query {
            let before = path.len();
            path.push(mark);
            if write(parameter, find, &mut path)? {
                mark = '&';
            } else {
                path.truncate(before);
            }
        }
        if path.len() <= PATH_CHARS_MAX { Ok(path.into()) } else { Err(Unfilled::Path) }
    }
}

/// The parts of a text between these signs, without looking into braces.
pub(super) fn split(text: &str, sign: char) -> Vec<&str> {
    let mut is_inside = false;
    text.split(|c| {
        is_inside = (is_inside || c == '{') && c != '}';
        c == sign && !is_inside
    })
    .collect()
}

fn pieces(text: &str) -> Result<Vec<Piece>, BadTemplate> {
    let piece = |(is_place, text): (bool, &str)| {
        Ok(match (is_place, text.starts_with(BEGINNING)) {
            (false, _) => Piece::Text(text.to_owned()),
            (true, true) => Piece::Computed(Expression::read(text)?),
            (true, false) if text.starts_with('/') => Piece::Place(Place::parse(text)?),
            (true, false) => return Err(BadTemplate::Braces),
        })
    };
    piece_of(text)?.into_iter().map(piece).collect()
}

/// The texts of a path, and those within braces (`true`).
pub(super) fn piece_of(text: &str) -> Result<Vec<(bool, &str)>, BadTemplate> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((before, opened)) = rest.split_once('{') {
        let (inner, after) = opened.split_once('}').ok_or(BadTemplate::Braces)?;
        if inner.contains('{') {
            return Err(BadTemplate::Braces);
        }
        pieces.extend([(false, before), (true, inner)]);
        rest = after;
    }
    pieces.push((false, rest));
    if pieces.iter().any(|(is_place, text)| !is_place && text.contains('}')) {
        return Err(BadTemplate::Braces);
    }
    pieces.retain(|(is_place, text)| *is_place || !text.is_empty());
    Ok(pieces)
}

/// Whether its text has no other signs than unreserved ones and these.
pub(super) fn has_only(pieces: &[Piece], signs: &[u8]) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Text(text) => text.bytes().all(|byte| is_unreserved(byte) || signs.contains(&byte)),
        Piece::Place(_) | Piece::Computed(_) => true,
    })
}

/// Whether each `%` of its texts begins an escape. In a path, none stands for a sign that could lead elsewhere.
pub(super) fn has_escapes(pieces: &[Piece], is_query: bool) -> bool {
    let is_escape = |text: &str| {
        let sign = text.get(..2).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let sign = sign.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        sign.is_some_and(|sign| is_query || !(sign.is_ascii_control() || b"/\\.%".contains(&sign)))
    };
    pieces.iter().all(|piece| match piece {
        Piece::Text(text) => text.split('%').skip(1).all(is_escape),
        Piece::Place(_) | Piece::Computed(_) => true,
    })
}

/// Whether a slash ends it. A place that is empty makes no such end.
pub(super) fn ends_open(pieces: &[Piece]) -> bool {
    matches!(pieces.last(), Some(Piece::Text(text)) if text.ends_with('/'))
}

/// The path without the slash at its end, where it may have one.
pub(super) fn closed(path: &str, is_open: bool) -> &str {
    path.strip_suffix('/').filter(|_| is_open).unwrap_or(path)
}

/// Whether all places have a value, or may not be without one.
fn write<'a>(
    pieces: &[Piece],
    find: &impl Fn(&Pointer) -> Option<&'a RawValue>,
    into: &mut String,
) -> Result<bool, Unfilled> {
    for piece in pieces {
        match piece {
            Piece::Text(text) => text.chars().for_each(|sign| match sign {
                // RFC 3986 has no brackets in a query, and many services name their parameters with them.
                '[' => into.push_str("%5B"),
                ']' => into.push_str("%5D"),
                sign => into.push(sign),
            }),
            Piece::Computed(expression) => {
                let value = expression.value(find).map_err(|problem| expression.unfilled(problem))?;
                let text = serde_json::from_str(&value).ok().and_then(plain_text);
                encode(&text.ok_or_else(|| Unfilled::NoText(expression.text().into()))?, into);
            }
            Piece::Place(Place { pointer, is_optional, .. }) => match find(pointer) {
                None if *is_optional => return Ok(false),
                Some(found) if *is_optional && found.get() == "null" => return Ok(false),
                found => {
                    let text = found.and_then(plain_text);
                    encode(&text.ok_or_else(|| Unfilled::NoText(pointer.text().into()))?, into);
                }
            },
        }
    }
    Ok(true)
}

/// Whether a path stays below the URL that it is appended to.
pub(super) fn is_path(path: &str) -> bool {
    path.len() <= PATH_CHARS_MAX && path.split('/').all(|segment| !["", ".", ".."].contains(&segment))
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Percent-encodes a text (RFC 3986): all bytes except unreserved ones.
pub(super) fn encode(text: &str, into: &mut String) {
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
    use super::*;
    use crate::json::Json;

    const ORDER: &str = r#"{"id": 1.10, "n": null, "list": [7], "text": "caf\u00e9 /?&", "deep": {"x": true},
        "dots": "..", "empty": "", "long": "aaaaaaaaaa"}"#;

    fn path(text: &str) -> Result<String, Unfilled> {
        let order = Json::document(ORDER.as_bytes()).unwrap();
        let filled = PathTemplate::parse(text).unwrap().fill(&|pointer| pointer.of(order.raw()));
        filled.map(|path| path.to_string())
    }

    #[test]
    fn a_path_has_the_texts_that_its_pointers_find_percent_encoded() {
        assert_eq!(path("v1/refunds").as_deref(), Ok("v1/refunds"));
        assert_eq!(path("v1/{/id}/x{/list/0}:{/deep/x}").as_deref(), Ok("v1/1.10/x7:true"));
        assert_eq!(path("{/text}").as_deref(), Ok("caf%C3%A9%20%2F%3F%26"));
        for (text, nothing) in [("{/nothing}", "/nothing"), ("a/{/n}", "/n"), ("{/deep}", "/deep")] {
            assert_eq!(path(text), Err(Unfilled::NoText(nothing.into())));
        }
    }

    #[test]
    fn rule_19_a_query_has_its_parameters_and_leaves_out_those_that_may_be_missing() {
        for (text, filled) in [
            ("a?x={/id}", "a?x=1.10"),
            ("?x={/text}", "?x=caf%C3%A9%20%2F%3F%26"),
            ("a?expand[]=fees&x={/nothing?}&y={/n?}&z=1", "a?expand%5B%5D=fees&z=1"),
            ("a?x={/nothing?}", "a"),
            ("a?x={/id}-{/nothing?}&y={/empty}", "a?y="),
            ("a?flag&to=a/b?c", "a?flag&to=a/b?c"),
        ] {
            assert_eq!(path(text).as_deref(), Ok(filled), "{text}");
        }
        assert_eq!(path("a/{= /list/0 * 2}?x={= /nothing ?? \"a b\"}").as_deref(), Ok("a/14?x=a%20b"));
        assert!(matches!(path("a/{= /list/0 / 0}"), Err(Unfilled::NoValue(..))));
        assert_eq!(path("a/{= /list}"), Err(Unfilled::NoText("= /list".into())));
        assert!(matches!(PathTemplate::parse("a/{= 1 +}"), Err(BadTemplate::Expression(..))));
        for (text, nothing) in [("a?x={/nothing}", "/nothing"), ("a?x={/n}", "/n"), ("a?x={/deep?}", "/deep")] {
            assert_eq!(path(text), Err(Unfilled::NoText(nothing.into())), "{text}");
        }
        assert_eq!(path(&format!("a?x={}", "{/long}".repeat(110))), Err(Unfilled::Path));
    }

    #[test]
    fn a_path_that_could_leave_its_service_is_refused() {
        for text in [
            "",
            "a//",
            "{/id}//",
            "a//b",
            "../a",
            "a/./b",
            "a#b",
            "a b",
            "a%2F",
            "a%2e",
            "a%5c",
            "a%00",
            "a%252F",
            "a%",
            "a%4",
            "a%4g",
            "é",
            "a[0]",
            &"a".repeat(1_025),
        ] {
            assert_eq!(PathTemplate::parse(text), Err(BadTemplate::Path), "{text}");
        }
        for text in
            ["?", "a?", "a?&x=1", "a?x=1&", "a?=1", "a?{/id}", "a?x=a b", "a?x=%4", "a?x=%{/id}", "a?x=1#y", "../a?x=1"]
        {
            assert_eq!(PathTemplate::parse(text), Err(BadTemplate::Path), "{text}");
        }
        for text in ["{", "}", "{}", "{a}", "a{/b", "a/b}", "{/a{/b}}", "{/a?}", "{/a?}?x=1", "a?x={/b", "a?x=}"] {
            assert_eq!(PathTemplate::parse(text), Err(BadTemplate::Braces), "{text}");
        }
        for text in ["a/{/dots}", "{/empty}/a", "{/empty}?x=1", &"{/long}".repeat(110)] {
            assert_eq!(path(text), Err(Unfilled::Path), "{text}");
        }
        assert_eq!(path("a{/dots}{/empty}").as_deref(), Ok("a.."));
        for text in ["a/{/empty}", "a/{/empty}/", "{/empty}/", "a/{/dots}/"] {
            assert_eq!(path(text), Err(Unfilled::Path), "{text}");
        }
        for text in ["/", "/a", "/{/id}"] {
            assert_eq!(PathTemplate::parse(text), Err(BadTemplate::Rooted), "{text}");
        }
    }

    #[test]
    fn rule_19_a_path_may_end_with_a_slash_and_have_escapes() {
        for (text, filled) in [
            ("a/", "a/"),
            ("a/{/id}/", "a/1.10/"),
            ("a/?x={/id}", "a/?x=1.10"),
            ("%40me/a%20b", "%40me/a%20b"),
            ("?$filter=x%20eq%201&p=%2Fa%252F", "?$filter=x%20eq%201&p=%2Fa%252F"),
        ] {
            assert_eq!(path(text).as_deref(), Ok(filled), "{text}");
        }
    }
}
