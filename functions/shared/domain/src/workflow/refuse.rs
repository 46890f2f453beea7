//! The members that no order of a workflow may carry (rule 19).

use std::collections::BTreeSet;

use crate::json::Json;
use crate::located::Table;
use crate::redaction::Redaction;
use crate::search::Pointer;
use crate::tokens::{Token, Tokens, literal_text};

/// The members that no order of a workflow may carry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refuse {
    names: Redaction,
    /// As they are written in the file.
    texts: Vec<String>,
    pointers: Vec<Pointer>,
}

impl Refuse {
    /// Reads the key `refuse`: names of members, and pointers.
    pub(super) fn read(root: &Table<'_>) -> Self {
        let elements = root.elements("refuse");
        let texts: Vec<String> = elements.iter().filter_map(|entry| entry.exact_text().map(str::to_owned)).collect();
        let (pointers, names): (Vec<&String>, Vec<&String>) = texts.iter().partition(|text| text.starts_with('/'));
        let pointers = pointers.into_iter().filter_map(|text| Pointer::parse(text).ok()).collect();
        Self { names: Redaction::of(names), pointers, texts }
    }

    /// The entries that a document meets: a name at any depth, in any case, or a value at a pointer.
    #[must_use]
    pub fn met_by(&self, document: &Json) -> Vec<&str> {
        let mut carried = BTreeSet::new();
        if self.names != Redaction::default() {
            for token in Tokens::of(document.text()) {
                let Token::Key(key) = token else { continue };
                if let Some(name) = literal_text(key).filter(|name| self.names.hides(name)) {
                    carried.insert(name.to_lowercase());
                }
            }
        }
        let mut pointers = self.pointers.iter();
        let is_met = |text: &&String| match text.starts_with('/') {
            true => pointers.next().is_some_and(|pointer| is_met_at(pointer, document)),
            false => carried.contains(&text.to_lowercase()),
        };
        self.texts.iter().filter(is_met).map(String::as_str).collect()
    }
}

/// A document may have a member `Order` of its own, so either reading of `/Order/Card` counts.
fn is_met_at(pointer: &Pointer, document: &Json) -> bool {
    let is_there = |pointer: &Pointer| pointer.times_in(document.raw()) > 0;
    is_there(pointer) || pointer.in_order().as_ref().is_some_and(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REFUSED_MAX;
    use crate::workflow::Workflow;

    fn met(refuse: &[&str], document: &str) -> Vec<String> {
        let text = format!("name = \"w\"\nversion = 1\nrefuse = {refuse:?}\n[[step]]\nname = \"a\"\nagent = \"any\"");
        let refuse = Workflow::read(&text).unwrap().refuse;
        let document = Json::parse(document.as_bytes(), 10_000).unwrap();
        refuse.met_by(&document).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_refused_member_is_found_by_name_at_any_depth_and_by_pointer_at_its_place() {
        let refuse = ["Cvc", "/Card/Number", "Pin"];
        assert_eq!(met(&refuse, r#"{"Cards": [{"CVC": 1}], "Card": {"Number": null}}"#), ["Cvc", "/Card/Number"]);
        assert_eq!(met(&refuse, r#"{"p\u0069n": 1}"#), ["Pin"]);
        let repeated = r#"{"Card": {"Number": 1, "Number": 2}, "Card": {"Last4": 3}}"#;
        assert_eq!(met(&refuse, repeated), ["/Card/Number"], "a service may read the first of two");
        assert!(met(&refuse, r#"{"Number": 1, "Card": {"Last4": "Cvc"}}"#).is_empty());
        assert!(met(&[], r#"{"Cvc": 1}"#).is_empty());
        let below_order = ["/Order/Card/Number"];
        assert_eq!(met(&below_order, r#"{"Card": {"Number": 1}}"#), below_order, "as all else of a workflow writes it");
        assert_eq!(met(&below_order, r#"{"Order": {"Card": {"Number": 1}}}"#), below_order);
        assert!(met(&below_order, r#"{"Card": {}, "Order": {"Number": 1}}"#).is_empty());
    }

    #[test]
    fn refused_members_have_limits() {
        let parse = |refuse: &[String]| {
            let text =
                format!("name = \"w\"\nversion = 1\nrefuse = {refuse:?}\n[[step]]\nname = \"a\"\nagent = \"any\"");
            Workflow::parse(&text, &["any"])
        };
        assert!(parse(&vec!["Cvc".to_owned(); REFUSED_MAX]).is_ok());
        for (refuse, words) in [
            (vec!["Cvc".to_owned(); REFUSED_MAX + 1], "must be an array of 0 to 64 elements"),
            (vec![String::new()], "1 to 256 characters"),
            (vec!["x".repeat(257)], "1 to 256 characters"),
            (vec!["/a~b".to_owned()], "~0"),
        ] {
            let text = parse(&refuse).unwrap_err().to_string();
            assert!(text.contains("refuse") && text.contains(words), "{text}");
        }
    }
}
