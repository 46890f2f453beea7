//! What an order is found by (rule 28): its correlation id, and the members that its workflow declares.
//!
//! The API gives an order its [`Term`]s when it accepts it, and a store keeps an index of them. A term has neither the
//! text that it stands for nor its length, so that no personal data lies in an index.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::json::Json;
use crate::located::{Reader, Table};
use crate::redaction::Redaction;
use crate::search::Pointer;

/// A name and a text: 128 bits of the SHA-256 of both, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(Arc<str>);

/// The members by which the orders of a workflow are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index(Vec<Pointer>);

impl Term {
    /// Of orders with this `CorrelationID`.
    #[must_use]
    pub fn correlation(id: &str) -> Self {
        Self::of("CorrelationID", id)
    }

    /// Of orders that have this text at this position.
    #[must_use]
    pub fn member(place: &Pointer, text: &str) -> Self {
        Self::of(&place.text(), text)
    }

    /// No two names and texts have the same bytes: the length separates them.
    fn of(name: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((name.len() as u64).to_be_bytes());
        hash.update(name);
        hash.update(text);
        Self(hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>().into())
    }

    /// The text, as it is stored.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Index {
    /// Reads the key `index`.
    pub(crate) fn read(reader: &mut Reader<'_>, root: &Table<'_>) -> Self {
        let (mut given, mut pointers) = (Vec::new(), Vec::new());
        for entry in root.elements("index") {
            let Some(pointer) = entry.exact_text().and_then(|text| Pointer::parse(text).ok()) else { continue };
            if given.contains(&pointer) {
                reader.blame_value(&entry, format_args!("{:?} is named twice", pointer.text()));
            }
            pointers.push(pointer.in_order().unwrap_or_else(|| pointer.clone()));
            given.push(pointer);
        }
        Self(pointers)
    }

    /// Whether the orders of the workflow are found by the member at this position.
    #[must_use]
    pub fn has(&self, place: &Pointer) -> bool {
        self.0.contains(place)
    }

    /// The terms of an order. What is redacted cannot be searched for, and has none.
    #[must_use]
    pub fn terms(&self, correlation_id: Option<&str>, document: &Json, redaction: &Redaction) -> Vec<Term> {
        let members = self.members(document, redaction).map(|(place, text)| Term::member(place, &text));
        correlation_id.map(Term::correlation).into_iter().chain(members).collect()
    }

    /// The texts behind the terms of an order, by their positions.
    #[must_use]
    pub fn texts(
        &self,
        correlation_id: Option<&str>,
        document: &Json,
        redaction: &Redaction,
    ) -> BTreeMap<String, String> {
        let correlation = correlation_id.map(|id| ("/CorrelationID".to_owned(), id.to_owned()));
        let members = self.members(document, redaction).map(|(place, text)| (place.text(), text));
        correlation.into_iter().chain(members).collect()
    }

    fn members(&self, document: &Json, redaction: &Redaction) -> impl Iterator<Item = (&Pointer, String)> {
        let shown = self.0.iter().filter(|place| place.hidden_by(redaction).is_none());
        shown.filter_map(|place| Some((place, place.text_in(document)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::Workflow;

    fn parse(index: &str) -> Result<Index, String> {
        let text = format!("name = \"w\"\nversion = 1\nindex = {index}\n[[step]]\nname = \"a\"\nagent = \"any\"");
        Workflow::parse(&text, &["any"]).map(|workflow| workflow.index).map_err(|faults| faults.to_string())
    }

    fn place(text: &str) -> Pointer {
        Pointer::parse(text).unwrap()
    }

    #[test]
    fn an_order_has_a_term_for_its_correlation_id_and_for_each_declared_member_with_a_text() {
        let index = parse(r#"["/Order/Email", "/Customer/No", "/Missing", "/Order/Customer"]"#).unwrap();
        let document = Json::document(br#"{"Email": "a@x.example", "Customer": {"No": 7.50}, "Other": "x"}"#).unwrap();
        let terms = |redacted: &Redaction| index.terms(Some("c-1"), &document, redacted);
        let expected = [
            Term::correlation("c-1"),
            Term::member(&place("/Email"), "a@x.example"),
            Term::member(&place("/Customer/No"), "7.50"),
        ];
        assert_eq!(terms(&Redaction::default()), expected);
        assert_eq!(terms(&Redaction::of(["email"])), [expected[0].clone(), expected[2].clone()]);
        let texts = index.texts(Some("c-1"), &document, &Redaction::of(["email"]));
        let expected = [("/CorrelationID", "c-1"), ("/Customer/No", "7.50")];
        assert_eq!(texts, expected.map(|(place, text)| (place.to_owned(), text.to_owned())).into());
        assert_eq!(Index::default().terms(None, &document, &Redaction::default()), []);
        assert!(index.has(&place("/Email")) && !index.has(&place("/Other")));
    }

    #[test]
    fn a_term_tells_the_name_and_the_text_apart_and_shows_neither() {
        let member = |name: &str, text: &str| Term::member(&place(name), text);
        assert_ne!(member("/a", "b"), member("/ab", ""));
        assert_ne!(member("/a", "b"), member("/b", "b"));
        // Stored terms are found by it.
        assert_eq!(Term::correlation("c-1").text().len(), 32);
    }

    #[test]
    fn what_is_no_index_is_refused_with_its_place() {
        for (index, words) in [
            ("\"/Email\"", "must be an array of 0 to 8 elements"),
            ("[7]", "text in quotes"),
            ("[\"Email\"]", "must be a JSON pointer"),
            ("[\"\"]", "must be 1 to"),
            ("[\"/a\", \"/a\"]", "named twice"),
            ("[\"/1\",\"/2\",\"/3\",\"/4\",\"/5\",\"/6\",\"/7\",\"/8\",\"/9\"]", "must be an array of 0 to 8 elements"),
        ] {
            let fault = parse(index).unwrap_err();
            assert!(fault.contains(words) && fault.contains('3'), "{index}: {fault}");
        }
    }
}
