//! The path under which a service tells how far it is with a call that it took on (rule 36).
//!
//! Two look at it: the scheduler fills in what is of the order, and the agent what is of the answer.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use super::path::{Piece, closed, encode, ends_open, has_escapes, has_only, is_path, piece_of, split};
use super::{BadTemplate, PathTemplate, Place, Unfilled};
use crate::header;
use crate::json::Json;
use crate::limits::PATH_CHARS_MAX;
use crate::search::{Pointer, plain_text};

/// What a place begins with that names a header of the answer.
const HEADER: &str = "header:";
/// What a place begins with that is of the answer in any case.
const ANSWER: &str = "answer:";
/// What a place of the order begins with. Any other is of the answer.
const OF_ORDER: [&str; 6] = ["OrderID", "Order", "Item", "IdempotencyKey", "SubmittedAt", "Outputs"];

/// A path with places of the order and of the answer, such as `transfers/{/id}` or `{header:Location}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollPath {
    /// Whether it begins at the host, and not at the URL of the agent.
    is_rooted: bool,
    path: Vec<Part>,
    query: Vec<Vec<Part>>,
    /// As it is written.
    text: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    OfOrder(Place),
    OfBody(Place),
    /// The name of a header, and whether there may be none.
    OfHeader(String, bool),
}

/// Where an answer leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Led {
    /// To this path: of the host if it begins with a slash, else below the URL of the agent.
    Path(Arc<str>),
    /// To what this header says: a reference to a URL.
    Reference(Arc<str>),
}

impl PollPath {
    /// Reads a path of a workflow.
    ///
    /// # Errors
    /// [`BadTemplate`], which says what is wrong.
    pub fn parse(text: &str) -> Result<Self, BadTemplate> {
        let poll = Self::read(text)?;
        let may_lack = |part: &Part| match part {
            Part::Text(_) => false,
            Part::OfOrder(place) | Part::OfBody(place) => place.is_optional,
            Part::OfHeader(_, is_optional) => *is_optional,
        };
        if poll.path.iter().any(may_lack) {
            return Err(BadTemplate::Braces);
        }
        let pieces = |parts: &[Part]| -> Vec<Piece> { parts.iter().map(Part::piece).collect() };
        let is_parameter = |parameter: &Vec<Part>| {
            matches!(parameter.first(), Some(Part::Text(name)) if !name.is_empty() && !name.starts_with('='))
                && has_only(&pieces(parameter), b"!$'()*+,;=:@/?[]%")
                && has_escapes(&pieces(parameter), true)
        };
        let example: String =
            poll.path.iter().map(|part| if let Part::Text(text) = part { text } else { "x" }).collect();
        let path = pieces(&poll.path);
        let has_path = is_path(closed(&example, ends_open(&path)))
            && has_only(&path, b"!$&'()*+,;=:@/%")
            && has_escapes(&path, false);
        let is_good = (has_path || (poll.path.is_empty() && !poll.query.is_empty() && !poll.is_rooted))
            && poll.query.iter().all(is_parameter);
        if is_good && text.len() <= PATH_CHARS_MAX { Ok(poll) } else { Err(BadTemplate::Poll) }
    }

    /// Reads one whose places of the order are filled in.
    fn read(text: &str) -> Result<Self, BadTemplate> {
        let (is_rooted, rest) = text.strip_prefix('/').map_or((false, text), |rest| (true, rest));
        let (path, query) = match split(rest, '?').first() {
            Some(path) if path.len() < rest.len() => (*path, Some(&rest[path.len() + 1..])),
            Some(_) | None => (rest, None),
        };
        let query = query.map_or_else(Vec::new, |query| split(query, '&')).into_iter().map(parts);
        Ok(Self { is_rooted, path: parts(path)?, query: query.collect::<Result<_, _>>()?, text: text.into() })
    }

    /// The header that it is the whole of.
    fn header(&self) -> Option<&str> {
        match (self.is_rooted, &*self.path, &*self.query) {
            (false, [Part::OfHeader(name, _)], []) => Some(name),
            _ => None,
        }
    }

    /// Its places of the order, in a path that has nothing of the answer.
    pub(crate) fn of_order(&self) -> PathTemplate {
        let pieces = |parts: &Vec<Part>| parts.iter().map(Part::piece).collect();
        PathTemplate { path: pieces(&self.path), query: self.query.iter().map(pieces).collect() }
    }

    /// The path for the agent, with the percent-encoded text of what `find` finds of the order.
    ///
    /// # Errors
    /// [`Unfilled`] if a pointer that must find a text, number or boolean finds none, or if the result is no path.
    pub(crate) fn for_agent<'a>(&self, find: &impl Fn(&Pointer) -> Option<&'a RawValue>) -> Result<Self, Unfilled> {
        let text = self.write(&mut |part, into| match part {
            Part::OfOrder(place) => write(place, find(&place.pointer), into),
            Part::OfBody(_) | Part::OfHeader(..) => {
                into.push('{');
                into.push_str(&part.name());
                into.push('}');
                Ok(true)
            }
            Part::Text(_) => Ok(true),
        })?;
        Self::read(&text).map_err(|_| Unfilled::Path)
    }

    /// Where this answer leads. Its header `name` is `header(name)`, its body is a text that may be JSON in parts alone.
    ///
    /// # Errors
    /// [`Unfilled`] if the answer lacks what must be there, or if the result is no path.
    pub fn after(&self, header: impl Fn(&str) -> Option<String>, body: &str) -> Result<Led, Unfilled> {
        if let Some(name) = self.header() {
            let value = header(name).ok_or_else(|| Unfilled::NoText(format!("{HEADER}{name}").into()))?;
            return Ok(Led::Reference(value.into()));
        }
        let text = self.write(&mut |part, into| match part {
            Part::OfBody(place) | Part::OfOrder(place) => write(place, place.pointer.within(body), into),
            Part::OfHeader(name, is_optional) => match header(name) {
                Some(value) => {
                    encode(&value, into);
                    Ok(true)
                }
                None if *is_optional => Ok(false),
                None => Err(Unfilled::NoText(part.name().into())),
            },
            Part::Text(_) => Ok(true),
        })?;
        let path = text.strip_prefix('/').unwrap_or(&text);
        let path = split(path, '?').first().copied().unwrap_or_default();
        let is_open = matches!(self.path.last(), Some(Part::Text(text)) if text.ends_with('/'));
        if is_path(closed(path, is_open)) || (path.is_empty() && text.starts_with('?')) {
            Ok(Led::Path(text.into()))
        } else {
            Err(Unfilled::Path)
        }
    }

    /// Whether the agent has to read the body of the answer.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.path.iter().chain(self.query.iter().flatten()).any(|part| matches!(part, Part::OfBody(_)))
    }

    /// Writes its parts, of which one that may be without a value takes its parameter with it.
    fn write(&self, fill: &mut impl FnMut(&Part, &mut String) -> Result<bool, Unfilled>) -> Result<String, Unfilled> {
        let mut text = if self.is_rooted { "/".to_owned() } else { String::new() };
        let mut all = |parts: &[Part], text: &mut String| {
            for part in parts {
                match part {
                    Part::Text(literal) => literal.chars().for_each(|sign| match sign {
                        '[' => text.push_str("%5B"),
                        ']' => text.push_str("%5D"),
                        sign => text.push(sign),
                    }),
                    Part::OfOrder(_) | Part::OfBody(_) | Part::OfHeader(..) => {
                        if !fill(part, text)? {
                            return Ok(false);
                        }
                    }
                }
            }
            Ok(true)
        };
        all(&self.path, &mut text)?;
        let mut mark = '?';
        for parameter in &self.query {
            let before = text.len();
            text.push(mark);
            if all(parameter, &mut text)? { mark = '&' } else { text.truncate(before) }
        }
        if text.len() <= PATH_CHARS_MAX { Ok(text) } else { Err(Unfilled::Path) }
    }
}

impl Part {
    fn parse(text: &str) -> Result<Self, BadTemplate> {
        let name = text.strip_suffix('?').unwrap_or(text);
        if let Some(header) = name.strip_prefix(HEADER) {
            let is_optional = name.len() < text.len();
            return match header::is_name(header) {
                true => Ok(Self::OfHeader(header.to_owned(), is_optional)),
                false => Err(BadTemplate::Poll),
            };
        }
        // A member of the body, also one with a name that the order has.
        if let Some(pointer) = text.strip_prefix(ANSWER).filter(|pointer| pointer.starts_with('/')) {
            let place = Place::parse(pointer)?;
            return Ok(Self::OfBody(Place { shown: Some(name.into()), ..place }));
        }
        let place = Place::parse(text)?;
        let is_of_order = place.pointer.names().first().is_some_and(|root| OF_ORDER.contains(&&**root));
        Ok(if is_of_order { Self::OfOrder(place) } else { Self::OfBody(place) })
    }

    /// Its text between braces.
    fn name(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::OfOrder(place) | Self::OfBody(place) => place.text(),
            Self::OfHeader(name, is_optional) => format!("{HEADER}{name}{}", if *is_optional { "?" } else { "" }),
        }
    }

    fn piece(&self) -> Piece {
        match self {
            Self::Text(text) => Piece::Text(text.clone()),
            Self::OfOrder(place) => Piece::Place(place.clone()),
            // Any text that may stand there.
            Self::OfBody(_) | Self::OfHeader(..) => Piece::Text("x".to_owned()),
        }
    }
}

fn parts(text: &str) -> Result<Vec<Part>, BadTemplate> {
    let texts = piece_of(text)?;
    texts
        .into_iter()
        .map(|(is_place, text)| if is_place { Part::parse(text) } else { Ok(Part::Text(text.into())) })
        .collect()
}

/// Whether the place has a value, or may not be without one.
fn write(place: &Place, found: Option<&RawValue>, into: &mut String) -> Result<bool, Unfilled> {
    match found {
        None if place.is_optional => return Ok(false),
        Some(found) if place.is_optional && found.get() == "null" => return Ok(false),
        found => {
            let text = found.and_then(plain_text);
            encode(&text.ok_or_else(|| Unfilled::NoText(place.pointer.text().into()))?, into);
        }
    }
    Ok(true)
}

impl Serialize for PollPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for PollPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Json::deserialize(deserializer)?;
        let text: String = serde_json::from_str(text.text()).map_err(de::Error::custom)?;
        Self::read(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = r#"{"Order":{"ref":"a/b"},"OrderID":"o-1","IdempotencyKey":"o-1/pay"}"#;

    /// Where an answer with this body and this `Location` leads.
    fn led(path: &str, body: &str, location: Option<&str>) -> Result<Led, Unfilled> {
        let order = Json::document(ORDER.as_bytes()).unwrap();
        let of_agent = PollPath::parse(path).unwrap().for_agent(&|pointer| pointer.of(order.raw()))?;
        let sent: PollPath = serde_json::from_str(&serde_json::to_string(&of_agent).unwrap()).unwrap();
        assert_eq!(sent, of_agent);
        let header = |name: &str| location.filter(|_| name.eq_ignore_ascii_case("location")).map(str::to_owned);
        sent.after(header, body)
    }

    #[test]
    fn rule_36_a_poll_has_places_of_the_order_and_of_the_answer() {
        let body = r#"{"id":"t 7","n":7,"o":null,"OrderID":"b-1","cut":"x"#;
        for (path, expected) in [
            ("/v1/transfers/{/id}", "/v1/transfers/t%207"),
            ("transfers/{/n}/state", "transfers/7/state"),
            ("payments?reference={/IdempotencyKey}", "payments?reference=o-1%2Fpay"),
            ("jobs/{header:Location}", "jobs/j%2F7"),
            ("transfers/{/n}/", "transfers/7/"),
            ("a%20b?x={answer:/OrderID}&y={answer:/none?}", "a%20b?x=b-1"),
            ("?id={/n}&ref={/Order/ref}&of={/o?}&none={/Order/none?}&x[]=1", "?id=7&ref=a%2Fb&x%5B%5D=1"),
        ] {
            assert_eq!(led(path, body, Some("j/7")), Ok(Led::Path(expected.into())), "{path}");
        }
        let reference = Ok(Led::Reference("../there?x=1".into()));
        assert_eq!(led("{header:Location}", "", Some("../there?x=1")), reference);
        for (path, body, missing) in [
            ("a/{/id}", "<html>", Unfilled::NoText("/id".into())),
            ("a/{/cut}", r#"{"cut":"x"#, Unfilled::NoText("/cut".into())),
            ("a/{/Order/none}", "{}", Unfilled::NoText("/Order/none".into())),
            ("a/{/id}", r#"{"id":".."}"#, Unfilled::Path),
            ("/{/id}", r#"{"id":""}"#, Unfilled::Path),
            ("a/{/id}", r#"{"id":""}"#, Unfilled::Path),
            ("a/{/id}/", r#"{"id":""}"#, Unfilled::Path),
            ("{header:Location}", "{}", Unfilled::NoText("header:Location".into())),
        ] {
            assert_eq!(led(path, body, None), Err(missing), "{path}");
        }
        assert_eq!(
            led("a/{/id}", &format!("{{\"id\":\"{}\"}}", "x".repeat(PATH_CHARS_MAX)), None),
            Err(Unfilled::Path)
        );
    }

    #[test]
    fn what_is_no_path_of_a_poll_is_refused() {
        for text in
            ["", "/", "//a", "https://bank.example/a", "a b", "{header:a b}", "/?a=1", "a#b", "a//", "a%2F", "a?x=%"]
        {
            assert_eq!(PollPath::parse(text), Err(BadTemplate::Poll), "{text}");
        }
        for text in ["a/{/id?}", "{header:Location?}", "a/{", "a/{id}", "a/{= /id}"] {
            assert!(PollPath::parse(text).is_err(), "{text}");
        }
    }
}
