//! The contracts: `openapi.json`, `asyncapi.json` and `schemas/`, from the types that programs read and write, and
//! from what the API answers. No file of them is written by hand, but the examples of messages in `examples/v1` are.
//!
//! What must never be here: a rule about a message or an operation. It stands at the type, or beside the route.

#![allow(clippy::disallowed_methods, reason = "a tool of the repository reads and writes files")]

mod asyncapi;
mod examples;
mod messages;
mod openapi;
mod tidy;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use serde_json::Value;

/// The folder of the contracts.
#[must_use]
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The text of each document, by its path in the folder.
///
/// # Errors
/// An example cannot be read.
pub fn documents() -> io::Result<BTreeMap<String, String>> {
    let mut documents = messages::schemas()?;
    documents.insert("asyncapi.json".to_owned(), asyncapi::document(&documents));
    documents.insert("openapi.json".to_owned(), openapi::document()?);
    Ok(documents.into_iter().map(|(path, document)| (path, format!("{document:#}\n"))).collect())
}

/// An example, by its path in the folder of the examples.
fn example(path: &str) -> io::Result<Value> {
    let path = folder().join("examples").join(path);
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contracts_are_as_the_types_say() {
        for (path, text) in documents().unwrap() {
            let written = fs::read_to_string(folder().join(&path)).unwrap_or_default();
            assert!(written == text, "{path} is not current: run `cargo run -p contracts`, and look at what changed");
        }
    }

    #[test]
    fn no_schema_is_left_over() {
        let documents = documents().unwrap();
        for entry in fs::read_dir(folder().join("schemas")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(documents.contains_key(&format!("schemas/{name}")), "{name} is a schema of nothing");
        }
    }
}
