//! The orders of a rehearsal: those that are given, and others in which what conditions look at is another.

use std::sync::Arc;

use serde_json::Value;

use crate::wishes::{put, wishes};

/// The most documents.
const DOCUMENTS_MAX: usize = 60;

/// These documents, and each with other values where a condition of a workflow looks.
#[must_use]
pub(crate) fn varied(given: &[Value], workflows: &[toml::Table]) -> Vec<Arc<str>> {
    let mut places = Vec::new();
    for step in workflows.iter().filter_map(|workflow| workflow.get("step")?.as_array()).flatten() {
        let when = match step.get("when") {
            Some(toml::Value::String(text)) => vec![text.as_str()],
            Some(toml::Value::Array(texts)) => texts.iter().filter_map(toml::Value::as_str).collect(),
            Some(_) | None => Vec::new(),
        };
        for wish in when.into_iter().flat_map(wishes) {
            if let [root, rest @ ..] = &*wish.names
                && root == "Order"
                && !rest.is_empty()
            {
                places.push((rest.to_vec(), wish.values));
            }
        }
    }
    let mut documents: Vec<Value> = given.to_vec();
    for document in given {
        for (names, values) in &places {
            for value in values.iter().chain([&Value::Null]) {
                let mut other = document.clone();
                put(&mut other, names, value.clone());
                if !documents.contains(&other) {
                    documents.push(other);
                }
            }
        }
    }
    documents.truncate(DOCUMENTS_MAX.max(given.len()));
    documents.into_iter().map(without_channel).map(|document| document.to_string().into()).collect()
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
    fn each_branch_of_a_workflow_has_its_orders() {
        let workflow = "[[step]]\nwhen = \"/Order/Total > 1000\"\n[[step]]\nwhen = [\"/Order/Kind == 'book'\", \"/Outputs/a/b == 1\"]";
        let documents = varied(&[json!({"Total": 7, "ReplyChannel": "shop"})], &[workflow.parse().unwrap()]);
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
        assert_eq!(documents.len(), 7);
    }
}
