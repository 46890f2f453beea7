//! What a step keeps of an HTTP response beside the JSON of its body: a header, the status, a body that is text.
//!
//! A template with such a place is of a response, and filled from a document that has the parts of one. Without such a
//! place it is filled from the body itself.

use std::fmt::Write as _;

use super::{BadTemplate, OPTIONAL, Part, Place, Template};
use crate::header;
use crate::json::Json;
use crate::limits::OUTPUT_BYTES_MAX;
use crate::search::Pointer;

/// What a text begins with that names a header.
const HEADER: &str = "header:";
/// What a text begins with that names another part of the answer.
const ANSWER: &str = "answer:";
/// The members of the document of a response.
const HEADERS: &str = "Headers";
const STATUS: &str = "Status";
const TEXT: &str = "Text";
const BODY: &str = "Body";

impl Place {
    /// The place in a response that a text names; `None` if it names none.
    pub(super) fn of_response(text: &str) -> Option<Result<Part, BadTemplate>> {
        let name = text.strip_suffix(OPTIONAL).unwrap_or(text);
        let names = if let Some(header) = name.strip_prefix(HEADER) {
            header::is_name(header).then(|| vec![HEADERS.to_owned(), header.to_ascii_lowercase()])
        } else {
            match name.strip_prefix(ANSWER)? {
                // A member of the body, also one with a name that the order has.
                pointer if pointer.starts_with('/') => {
                    return Some(Self::parse(&text[ANSWER.len()..]).map(Part::Place));
                }
                "status" => Some(vec![STATUS.to_owned()]),
                "text" => Some(vec![TEXT.to_owned()]),
                _ => None,
            }
        };
        let place = |names: Vec<String>| Self {
            pointer: Pointer::of_names(&names),
            is_optional: name.len() < text.len(),
            is_conditional: false,
            shown: Some(name.into()),
            is_within: false,
        };
        Some(names.map(place).map(Part::Place).ok_or_else(|| BadTemplate::Answer(text.to_owned())))
    }

    /// Whether it names a part of a response beside the JSON of its body.
    fn is_of_response(&self) -> bool {
        self.shown.as_deref().is_some_and(|name| !name.starts_with('/'))
    }

    /// A place of the body, in the document of a response.
    fn below_body(&mut self) {
        if self.shown.is_none() {
            self.shown = Some(self.pointer.text().into());
            self.pointer = Pointer::of_names(&[&[BODY.to_owned()], self.pointer.names()].concat());
        }
    }
}

impl Template {
    /// Reads what a step keeps of an answer.
    ///
    /// # Errors
    /// [`BadTemplate`], which says what is wrong.
    pub fn parse_keep(source: Json) -> Result<Self, BadTemplate> {
        let mut template = Self::parse_with(source, Place::of_response)?;
        if template.is_of_response() {
            template.root.each_place(&mut Place::below_body);
        }
        Ok(template)
    }

    /// Whether it names a part of a response beside the JSON of its body. It is then filled from what
    /// [`response`](Self::response) makes.
    #[must_use]
    pub fn is_of_response(&self) -> bool {
        self.places().into_iter().any(Place::is_of_response)
    }

    /// Whether it takes the body as a text, which need not be JSON.
    #[must_use]
    pub fn takes_text(&self) -> bool {
        self.places().into_iter().any(|place| place.pointer.names() == [TEXT])
    }

    /// The parts of a response that must be there and that a result that comes later does not have.
    pub(crate) fn needed_of_response(&self) -> impl Iterator<Item = String> {
        let is_needed = |place: &&Place| place.is_of_response() && !place.is_optional;
        self.places().into_iter().filter(is_needed).map(Place::text)
    }

    /// Whether it lacks something in an answer without members: then it tells a result from any other answer.
    pub(crate) fn needs_members(&self) -> bool {
        let empty = Json::empty();
        let any = self.is_of_response().then(|| self.response(200, |_| Some("0".to_owned()), Some("{}"), Some(&empty)));
        self.keep(&any.unwrap_or(empty), OUTPUT_BYTES_MAX).is_err()
    }

    /// The document of a response, from which this template takes what it keeps: the headers that it names, in small
    /// letters, the status, the text of the body, and the body if that is JSON.
    #[must_use]
    pub fn response(
        &self,
        status: u16,
        header: impl Fn(&str) -> Option<String>,
        text: Option<&str>,
        body: Option<&Json>,
    ) -> Json {
        let mut headers = String::new();
        for place in self.places() {
            let [root, name] = place.pointer.names() else { continue };
            if root == HEADERS
                && place.is_of_response()
                && !headers.contains(&*member(name))
                && let Some(value) = header(name)
            {
                let comma = if headers.is_empty() { "" } else { "," };
                let _ = write!(headers, "{comma}{}{}", member(name), Json::of(&value).text());
            }
        }
        let mut document = format!("{{\"{STATUS}\":{status},\"{HEADERS}\":{{{headers}}}");
        if let Some(text) = text {
            let _ = write!(document, ",\"{TEXT}\":{}", Json::of(&text).text());
        }
        Self::with_body(document, body)
    }

    /// The document of a result that came without a response: a later one, which has a body alone.
    #[must_use]
    pub fn of_body(&self, body: Json) -> Json {
        if self.is_of_response() { Self::with_body(format!("{{\"{HEADERS}\":{{}}"), Some(&body)) } else { body }
    }

    fn with_body(mut document: String, body: Option<&Json>) -> Json {
        if let Some(body) = body {
            let _ = write!(document, ",\"{BODY}\":{}", body.text());
        }
        document.push('}');
        Json::of_any_depth(document.as_bytes(), usize::MAX).unwrap_or_else(|_| Json::empty())
    }
}

impl Part {
    fn each_place(&mut self, change: &mut impl FnMut(&mut Place)) {
        match self {
            Self::Place(place) => change(place),
            Self::Literal(_) | Self::Computed(_) => {}
            Self::Array(elements) => elements.iter_mut().for_each(|element| element.each_place(change)),
            Self::Object(members) => members.iter_mut().for_each(|(_, part)| part.each_place(change)),
        }
    }
}

fn member(name: &str) -> String {
    format!("{}:", Json::of(&name).text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(template: &str) -> Template {
        serde_json::from_str(template).unwrap()
    }

    fn response(keep: &Template, body: &str) -> Json {
        let header = |name: &str| (name == "location").then(|| "/charges/7".to_owned());
        let json = Json::of_any_depth(body.as_bytes(), 1_000).ok();
        keep.response(201, header, keep.takes_text().then_some(body), json.as_ref())
    }

    fn kept(template: &str, body: &str) -> Result<String, String> {
        let keep = keep(template);
        let response = response(&keep, body);
        match keep.missing_in(&response) {
            Some(missing) => Err(missing),
            None => Ok(keep.keep(&response, 1_000).unwrap().text().to_owned()),
        }
    }

    #[test]
    fn rule_19_a_header_the_status_and_a_text_are_kept_beside_members_of_the_body() {
        for (template, body, expected) in [
            (
                r#"{"At":"header:Location","Status":"answer:status","ID":"/id"}"#,
                r#"{"id":1.10}"#,
                r#"{"At":"/charges/7","ID":1.10,"Status":201}"#,
            ),
            (r#"{"Label":"answer:text"}"#, "^XA \"7\"", r#"{"Label":"^XA \"7\""}"#),
            (r#""answer:text""#, "PAID", r#""PAID""#),
            (r#"{"A":"header:location","B":["header:LOCATION?"]}"#, "{}", r#"{"A":"/charges/7","B":["/charges/7"]}"#),
            (r#"{"None":"header:ETag?","ID":"/id?","Code":"answer:status"}"#, "no JSON", r#"{"Code":201}"#),
            (
                r#"{"Code":"answer:status","Body":"/Body"}"#,
                r#"{"Body":{"Status":7}}"#,
                r#"{"Body":{"Status":7},"Code":201}"#,
            ),
            (
                r#"{"Ref":"answer:/Order/Ref","None":"answer:/OrderID?","Code":"answer:status"}"#,
                r#"{"Order":{"Ref":7}}"#,
                r#"{"Code":201,"Ref":7}"#,
            ),
            (r#"{"Ref":"answer:/Body","Code":"answer:status"}"#, r#"{"Body":7}"#, r#"{"Code":201,"Ref":7}"#),
            (r#"{"Code":"answer:status","All":""}"#, r#"{"a":1}"#, r#"{"All":"","Code":201}"#),
            (r#"{"Text":"\\answer:text"}"#, "{}", r#"{"Text":"answer:text"}"#),
        ] {
            assert_eq!(kept(template, body).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn rule_16_what_must_be_there_of_a_response_and_is_not_is_named_as_it_is_written() {
        let missing = kept(r#"{"Tag":"header:ETag","ID":"/id","At":"header:Location"}"#, "{}");
        assert_eq!(missing.unwrap_err(), "it has nothing at /id and header:ETag, which `keep` needs");
        assert!(
            kept(r#"{"Tag":"answer:status","ID":"/id"}"#, r#"{"id":1,"id":2}"#)
                .unwrap_err()
                .starts_with("/id is there twice")
        );
    }

    #[test]
    fn rule_19_a_member_of_the_body_with_a_name_of_the_order_is_kept_of_any_answer() {
        let answer = Json::document(br#"{"Order":{"Ref":7}}"#).unwrap();
        assert_eq!(keep(r#""answer:/Order""#).keep(&answer, 100).unwrap().text(), r#"{"Ref":7}"#);
    }

    #[test]
    fn a_later_result_has_its_body_alone() {
        let of = |template: &str| keep(template).of_body(Json::document(br#"{"id":7}"#).unwrap()).text().to_owned();
        assert_eq!(of(r#"{"ID":"/id"}"#), r#"{"id":7}"#);
        let template = r#"{"ID":"/id","At":"header:Location?"}"#;
        let body = keep(template).of_body(Json::document(br#"{"id":7}"#).unwrap());
        assert_eq!(keep(template).keep(&body, 100).unwrap().text(), r#"{"ID":7}"#);
        assert_eq!(
            keep(r#"{"A":"header:x","B":"answer:text?"}"#).needed_of_response().collect::<Vec<_>>(),
            ["header:x"]
        );
    }

    #[test]
    fn no_other_part_of_an_answer_can_be_named() {
        for text in ["header:", "header:a b", "answer:", "answer:body", "answer:Status", "header:?"] {
            let problem = Template::parse_keep(Json::of(&text)).unwrap_err().to_string();
            assert!(problem.contains("header:NAME, answer:status and answer:text"), "{text}: {problem}");
        }
        assert!(
            Template::parse(Json::of(&[("a", "header:x")].into_iter().collect::<std::collections::BTreeMap<_, _>>()))
                .unwrap()
                .places()
                .is_empty()
        );
    }
}
