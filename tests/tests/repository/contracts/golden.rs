//! Messages as each version wrote them. A queue holds them for days, so they stay readable for ever. A file here never
//! changes. A new form of a message gets new files in the folder of its version.

use serde_json::{Value, json};

use super::read::read;
use super::schemas::{Schemas, files, messages};

/// The messages of a version: the name of the schema, that of the file, and the message.
fn of_version(version: &str) -> Vec<(String, String, Value)> {
    let files = files(&format!("examples/{version}"));
    let named = files.into_iter().map(|(file, message)| (file.split('.').next().unwrap().to_owned(), file, message));
    named.collect()
}

#[test]
fn every_message_that_was_ever_written_is_read_and_is_as_the_schemas_say() {
    let schemas = Schemas::open();
    for (name, file, message) in of_version("v1") {
        schemas.check(&name, &message).unwrap();
        let read = read(&name, &message).unwrap_or_else(|problem| panic!("{file}: {problem}"));
        assert!(includes(&read, &message), "{file} was {message:#} and is read as {read:#}");
    }
}

#[test]
fn every_message_has_its_first_version_kept() {
    let kept: Vec<String> = of_version("v1").into_iter().map(|(name, ..)| name).collect();
    for name in messages() {
        assert!(kept.contains(&name), "examples/v1 has no {name}");
    }
}

#[test]
fn a_member_that_is_not_known_is_ignored_wherever_the_schema_allows_one_and_refused_where_not() {
    let schemas = Schemas::open();
    let (mut ignored, mut refused) = (0, 0);
    for (name, file, message) in of_version("v1") {
        let before = read(&name, &message).unwrap();
        for place in objects(&message, "") {
            let mut later = message.clone();
            let Some(Value::Object(members)) = later.pointer_mut(&place) else { panic!("{file} has no {place}") };
            members.insert("Later".to_owned(), json!({"New": [1]}));
            match read(&name, &later) {
                Ok(after) => {
                    // The data of an event is for its receivers. Here it only passes through.
                    let is_seen = schemas.allows(&name, &later) || place.starts_with("/data");
                    assert!(is_seen, "{file}: {place} may have no more members, but is read");
                    // The code passes on the data that it does not read.
                    assert!(after == before || after == later, "{file}: {place}");
                    ignored += 1;
                }
                Err(problem) => {
                    assert!(!schemas.allows(&name, &later), "{file}: {place} may have more members: {problem}");
                    refused += 1;
                }
            }
        }
    }
    assert!(ignored > 60 && refused > 10, "{ignored} and {refused}");
}

/// Whether the read value contains the whole written value. Added defaults are allowed.
fn includes(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            written.iter().all(|(name, value)| read.get(name).is_some_and(|read| includes(read, value)))
        }
        (read, written) => read == written,
    }
}

/// The paths of all objects in a value, itself included.
fn objects(value: &Value, place: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, inner)| (name.clone(), inner)).collect(),
        Value::Array(elements) => elements.iter().enumerate().map(|(at, inner)| (at.to_string(), inner)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut places: Vec<String> = value.is_object().then(|| place.to_owned()).into_iter().collect();
    places.extend(inner.into_iter().flat_map(|(name, inner)| objects(inner, &format!("{place}/{name}"))));
    places
}
