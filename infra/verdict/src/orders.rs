//! The orders of a rehearsal: those that are given, and others in which what conditions look at is another, or with another
//! number of lines.

mod lines;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use lines::Lines;

use crate::wishes::{put, wishes};

/// The most documents.
const DOCUMENTS_MAX: usize = 60;

/// These documents, and each with other values where a condition of a workflow looks, and with other lines.
#[must_use]
pub(crate) fn varied(given: &[Value], workflows: &[toml::Table], lines: &[Lines]) -> Vec<Arc<str>> {
    let steps = workflows.iter().filter_map(|workflow| workflow.get("step")?.as_array()).flatten();
    let steps: Vec<Vec<Place>> = steps.map(|step| places(step, "Order")).collect();
    let mut documents: Vec<Value> = given.to_vec();
    let mut add = |document: Value| {
        if !documents.contains(&document) {
            documents.push(document);
        }
    };
    for document in given {
        lines.iter().flat_map(|lines| lines.varied(document)).for_each(&mut add);
        // All that one step wants, or all steps, so that branches are taken that need several members.
        let all: Vec<Place> = steps.iter().flatten().cloned().collect();
        for places in steps.iter().filter(|places| places.len() > 1).chain([&all]) {
            add(wanted(document, places));
        }
        for (names, values) in &all {
            for value in values.iter().chain([&Value::Null]) {
                add(with(document, names, value));
            }
        }
        // All but one of what a step wants.
        for places in steps.iter().filter(|places| places.len() > 1) {
            for (names, values) in places {
                for value in values.iter().skip(1).chain([&Value::Null]) {
                    add(with(&wanted(document, places), names, value));
                }
            }
        }
    }
    documents.truncate(DOCUMENTS_MAX.max(given.len()));
    documents.into_iter().map(text).collect()
}

/// The first document with as many lines as there can be.
#[must_use]
pub(crate) fn large(given: &[Value], lines: &[Lines]) -> Vec<Arc<str>> {
    given.iter().take(1).flat_map(|document| lines.iter().map(|lines| text(lines.largest(document)))).collect()
}

fn text(document: Value) -> Arc<str> {
    without_channel(document).to_string().into()
}

/// The names down to a place in the order, and values, those first that make a condition hold.
type Place = (Vec<String>, Vec<Value>);

/// The places below this root, the order or an element, at which the conditions of a step look.
fn places(step: &toml::Value, below: &str) -> Vec<Place> {
    let when = match step.get("when") {
        Some(toml::Value::String(text)) => vec![text.as_str()],
        Some(toml::Value::Array(texts)) => texts.iter().filter_map(toml::Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    let of_order = when.into_iter().flat_map(wishes).filter_map(|wish| match &*wish.names {
        [root, rest @ ..] if root == below && !rest.is_empty() => Some((rest.to_vec(), wish.values)),
        [..] => None,
    });
    of_order.collect()
}

fn with(document: &Value, names: &[String], value: &Value) -> Value {
    let mut other = document.clone();
    put(&mut other, names, value.clone());
    other
}

/// A document in which each of these places has the value that makes its condition hold.
fn wanted(document: &Value, places: &[Place]) -> Value {
    let first = |document, (names, values): &Place| match values.first() {
        Some(value) => with(&document, names, value),
        None => document,
    };
    places.iter().fold(document.clone(), first)
}

/// Nobody reads a reply channel here.
fn without_channel(mut document: Value) -> Value {
    if let Some(members) = document.as_object_mut() {
        members.remove("ReplyChannel");
    }
    document
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_branch_that_needs_two_members_is_taken_and_left_for_each() {
        let workflow = "[[step]]\nwhen = [\"/Order/To/Country != 'DE'\", \"/Order/Value >= 150\"]";
        let documents = varied(&[json!({"Value": 20, "To": {"Country": "DE"}})], &[workflow.parse().unwrap()], &[]);
        for wanted in [
            json!({"Value": 151, "To": {"Country": "not-DE"}}),
            json!({"Value": 149, "To": {"Country": "not-DE"}}),
            json!({"Value": 151, "To": {"Country": "DE"}}),
        ] {
            assert!(documents.contains(&wanted.to_string().into()), "{wanted}: {documents:?}");
        }
    }

    #[test]
    fn each_branch_of_a_workflow_has_its_orders() {
        let workflow = "[[step]]\nwhen = \"/Order/Total > 1000\"\n[[step]]\nwhen = [\"/Order/Kind == 'book'\", \"/Outputs/a/b == 1\"]";
        let documents = varied(&[json!({"Total": 7, "ReplyChannel": "shop"})], &[workflow.parse().unwrap()], &[]);
        for wanted in [
            json!({"Total": 7}),
            json!({"Total": 1001}),
            json!({"Total": 999}),
            json!({}),
            json!({"Total": 7, "Kind": "book"}),
            json!({"Total": 7, "Kind": "not-book"}),
        ] {
            assert!(documents.contains(&wanted.to_string().into()), "{wanted}: {documents:?}");
        }
        // With both, and a total that is none of these.
        assert!(documents.contains(&json!({"Total": 1001, "Kind": "book"}).to_string().into()), "{documents:?}");
        assert_eq!(documents.len(), 8);
    }
}
