//! The schemas, and their verdicts on messages.

use std::collections::BTreeMap;
use std::path::PathBuf;

use boon::{Compiler, Draft, SchemaIndex};
use serde_json::{Map, Value};

use crate::template::cloudformation::root;

/// The location of the schemas for the compiler, which needs an absolute URL. The URL is never fetched.
const BASE: &str = "https://contracts.invalid/schemas/";
/// Schemas that are parts of others, and no messages.
const COMMON: &str = "common";
/// An event in the bus's envelope.
pub(crate) const FRAME: &str = "bus-event";

/// The folder of the contracts.
pub(crate) fn folder() -> PathBuf {
    root().join("infra/contracts")
}

/// All files of a folder of the contracts, by their names without `.json`.
pub(crate) fn files(of: &str) -> BTreeMap<String, Value> {
    let entries = std::fs::read_dir(folder().join(of)).unwrap().map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: &PathBuf| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    entries.map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), read(&path))).collect()
}

/// The names of all messages: each has a schema of its own.
pub(crate) fn messages() -> Vec<String> {
    files("schemas").into_keys().filter(|name| ![COMMON, FRAME].contains(&name.as_str())).collect()
}

/// The compiled schemas.
pub(crate) struct Schemas {
    compiled: boon::Schemas,
    places: BTreeMap<String, SchemaIndex>,
}

impl Schemas {
    /// The original schemas: they allow unnamed members.
    pub(crate) fn open() -> Self {
        Self::from(files("schemas"))
    }

    /// Closed schemas: they allow only named members. Written messages are checked against them, so that a new member
    /// is noticed.
    pub(crate) fn closed() -> Self {
        Self::from(files("schemas").into_iter().map(|(name, schema)| (name, closed(schema))).collect())
    }

    fn from(files: BTreeMap<String, Value>) -> Self {
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.enable_format_assertions();
        let place = |name: &String| format!("{BASE}{name}.json");
        let names: Vec<String> = files.keys().cloned().collect();
        for (name, schema) in files {
            compiler.add_resource(&place(&name), schema).unwrap();
        }
        let mut compiled = boon::Schemas::new();
        let places = names.into_iter().map(|name| {
            let index =
                compiler.compile(&place(&name), &mut compiled).unwrap_or_else(|error| panic!("{name}: {error:#}"));
            (name, index)
        });
        let places = places.collect();
        Self { compiled, places }
    }

    /// The faults of a message, in words.
    pub(crate) fn check(&self, name: &str, message: &Value) -> Result<(), String> {
        let place = *self.places.get(name).unwrap_or_else(|| panic!("there is no schema {name}"));
        self.compiled.validate(message, place).map_err(|error| format!("{name}: {error:#}\n{message:#}"))
    }

    /// Whether the schema allows this message.
    pub(crate) fn allows(&self, name: &str, message: &Value) -> bool {
        self.check(name, message).is_ok()
    }
}

/// The schema, with every object closed that names members.
fn closed(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.into_iter().map(|(name, value)| (name, closed(value))).collect();
            if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), false.into());
            }
            Value::Object(members)
        }
        Value::Array(elements) => elements.into_iter().map(closed).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

#[test]
fn every_example_is_as_its_schema_says() {
    let schemas = Schemas::open();
    for (name, schema) in files("schemas").into_iter().filter(|(name, _)| name != COMMON) {
        let examples = schema["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "{name}");
        for example in examples {
            schemas.check(&name, example).unwrap();
        }
    }
}

#[test]
fn every_part_says_what_it_is() {
    for (name, schema) in files("schemas") {
        said(&schema, &name);
    }
}

/// Every schema of a member has a description: its own, or that of its reference.
fn said(schema: &Value, place: &str) {
    let Value::Object(members) = schema else { return };
    // The one member of a variant is said with the variant.
    let is_variant = members.contains_key("description") && members.get("additionalProperties") == Some(&false.into());
    if let Some(properties) = members.get("properties").and_then(Value::as_object).filter(|_| !is_variant) {
        for (name, property) in properties {
            let place = format!("{place}.{name}");
            let is_said = property.get("description").is_some()
                || property.get("$ref").is_some()
                || property.get("properties").is_some()
                || property.get("anyOf").is_some();
            assert!(is_said, "{place} has no description");
            said(property, &place);
        }
    }
    for (name, inner) in
        members.iter().filter(|(name, _)| ["$defs", "oneOf", "anyOf", "items"].contains(&name.as_str()))
    {
        let inner: Vec<&Value> = match inner {
            Value::Array(all) => all.iter().collect(),
            Value::Object(all) if name == "$defs" => all.values().collect(),
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![inner],
        };
        inner.iter().for_each(|inner| said(inner, &format!("{place}/{name}")));
    }
}
