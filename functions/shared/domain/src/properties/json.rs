//! A document's fingerprint depends on its content, not on its spelling.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

use super::cases;
use crate::json::Json;
use crate::redaction::Redaction;
use crate::search::{Finder, Pointer};

/// Any JSON value of some depth.
pub(super) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| prop_oneof![vec(inner.clone(), 0..5).prop_map(Value::from), members(inner)])
}

/// Any JSON object, the form of a document.
pub(super) fn object() -> impl Strategy<Value = Value> {
    members(value())
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    btree_map(".{0,8}", inner, 0..5).prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Writes a value with random white space, order of members and escapes.
fn write(value: &Value, bits: &mut impl FnMut() -> u64, into: &mut String) {
    let space = |bits: u64| ["", " ", "\n", "\t ", "\r\n"][usize::try_from(bits % 5).unwrap()];
    into.push_str(space(bits()));
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => into.push_str(&value.to_string()),
        Value::String(text) => write_text(text, bits, into),
        Value::Array(elements) => {
            into.push('[');
            for (index, element) in elements.iter().enumerate() {
                into.push_str(if index > 0 { "," } else { "" });
                write(element, bits, into);
            }
            into.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let turn = usize::try_from(bits()).unwrap() % members.len().max(1);
            members.rotate_left(turn);
            into.push('{');
            for (index, (name, value)) in members.into_iter().enumerate() {
                into.push_str(if index > 0 { "," } else { "" });
                write_text(name, bits, into);
                into.push_str(space(bits()));
                into.push(':');
                write(value, bits, into);
            }
            into.push('}');
        }
    }
    into.push_str(space(bits()));
}

fn write_text(text: &str, bits: &mut impl FnMut() -> u64, into: &mut String) {
    into.push('"');
    for sign in text.chars() {
        let must_escape = sign < ' ' || sign == '"' || sign == '\\';
        if must_escape || bits().is_multiple_of(3) {
            let units = &mut [0; 2];
            for unit in sign.encode_utf16(units) {
                into.push_str(&format!("\\u{unit:04X}"));
            }
        } else {
            into.push(sign);
        }
    }
    into.push('"');
}

fn written(value: &Value, seed: u64) -> String {
    let (mut text, mut state) = (String::new(), seed | 1);
    let mut bits = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    write(value, &mut bits, &mut text);
    text
}

/// The values without members or elements, with the names on the way to each.
fn leaves(value: &Value) -> Vec<(Vec<String>, &Value)> {
    let named: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(elements) => elements.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return vec![(Vec::new(), value)],
    };
    let below = named
        .into_iter()
        .map(|(name, value)| leaves(value).into_iter().map(move |(names, leaf)| (name.clone(), names, leaf)));
    below.flatten().map(|(name, names, leaf)| ([vec![name], names].concat(), leaf)).collect()
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_fingerprint_is_the_same_however_the_document_is_written(value in object(), seeds: [u64; 2]) {
        let [one, other] = seeds.map(|seed| written(&value, seed));
        let fingerprint = |text: &str| Json::document(text.as_bytes()).unwrap().fingerprint();
        prop_assert_eq!(fingerprint(&one), fingerprint(&other), "{} {}", one, other);
        prop_assert_eq!(fingerprint(&one), Json::of(&value).fingerprint());
    }

    #[test]
    fn documents_that_say_something_else_have_other_fingerprints(one in object(), other in object()) {
        let [a, b] = [&one, &other].map(|value| Json::of(value).fingerprint());
        prop_assert_eq!(one == other, a == b);
    }

    #[test]
    fn a_document_keeps_its_text(value in object(), seed: u64) {
        let text = written(&value, seed);
        let document = Json::document(text.as_bytes()).unwrap();
        let again: Json = serde_json::from_str(&serde_json::to_string(&document).unwrap()).unwrap();
        prop_assert_eq!(again.text(), text.trim());
        prop_assert_eq!(serde_json::from_str::<Value>(again.text()).unwrap(), value);
    }

    #[test]
    fn a_member_is_what_it_is(value in object(), seed: u64) {
        let document = Json::document(written(&value, seed).as_bytes()).unwrap();
        for (name, wanted) in value.as_object().unwrap() {
            let found = document.member(name).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Value>(found).unwrap(), wanted);
        }
    }

    #[test]
    fn every_value_is_found_at_its_position_and_by_its_text(value in object(), seed: u64) {
        let document = Json::document(written(&value, seed).as_bytes()).unwrap();
        let none = Redaction::default();
        for (names, leaf) in leaves(&value) {
            let place = Pointer::of_names(&names);
            let found = place.value_in(&document).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Value>(found.text()).unwrap(), leaf);
            prop_assert_eq!(place.times_in(document.raw()), 1);
            let text = leaf.as_str().map_or_else(|| leaf.to_string(), str::to_owned);
            prop_assert!(Finder::Equals(place, text.clone()).finds(&document, &none));
            prop_assert!(Finder::Anywhere(text).finds(&document, &none));
        }
        prop_assert!(!Finder::Anywhere("longer than any text in it".to_owned()).finds(&document, &none));
    }

    #[test]
    fn what_is_not_hidden_stays_as_it_is(value in object(), seed: u64) {
        let (mut value, whole) = (value.clone(), value);
        value.as_object_mut().unwrap().insert("hidden".to_owned(), whole);
        let document = Json::document(written(&value, seed).as_bytes()).unwrap();
        value["hidden"] = "[redacted]".into();
        let shown = Redaction::of(["Hidden"]).shown(&document).into_owned();
        prop_assert_eq!(serde_json::from_str::<Value>(shown.text()).unwrap(), value);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, text in "[\\[\\]{}\",:0-9a-z\\\\ ]{0,40}") {
        for bytes in [&bytes[..], text.as_bytes()] {
            if let Ok(document) = Json::document(bytes) {
                let _ = (document.fingerprint(), document.member("a"));
            }
        }
    }
}
