//! Schemas as they are published: for readers of every language, and in the words of the documents.

use domain::contract::{ALWAYS, OPEN};
use serde_json::{Map, Value, json};

/// Whom a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// Programs that write what Stepwarden reads. The bounds of numbers and the defaults are theirs to know.
    Writers,
    /// Programs that read what Stepwarden writes. It leaves out what is absent, and a later version may write more.
    Readers,
}

/// Makes a generated schema, and those in it, fit to be published.
pub(crate) fn tidy(schema: &mut Value, whom: For) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(|inner| tidy(inner, whom));
            words(members);
            always(members);
            absent(members);
            numbers(members, whom);
            if whom == For::Readers || members.get("default").is_some_and(Value::is_null) {
                members.remove("default");
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = described(text);
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|inner| tidy(inner, whom)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A list of words, with what each of them means. An open one has them as examples.
fn words(members: &mut Map<String, Value>) {
    let mut meanings = Vec::new();
    if let Some(Value::Array(parts)) = members.get("oneOf")
        && parts.iter().all(|part| part["type"] == "string" && (part["const"].is_string() || part["enum"].is_array()))
    {
        let mut words = Vec::new();
        for part in parts {
            let of_part = part["enum"].as_array().cloned().unwrap_or_else(|| vec![part["const"].clone()]);
            if let (Some(word), Some(meaning)) = (of_part[0].as_str(), part["description"].as_str())
                && !says(members, &format!("{word}:"))
            {
                meanings.push(format!("{word}: {}{}", meaning[..1].to_lowercase(), &meaning[1..]));
            }
            words.extend(of_part);
        }
        members.remove("oneOf");
        members.extend([("type".to_owned(), "string".into()), ("enum".to_owned(), words.into())]);
    }
    if members.remove(OPEN).is_some() {
        const MORE: &str = "More values may come.";
        if !says(members, MORE) {
            meanings.push(MORE.to_owned());
        }
        if let Some(words) = members.remove("enum") {
            members.insert("examples".to_owned(), words);
        }
    }
    if !meanings.is_empty() {
        let first = members.get("description").and_then(Value::as_str).map(described);
        let all: Vec<String> = first.into_iter().chain(meanings).collect();
        members.insert("description".to_owned(), all.join(" ").into());
    }
}

fn says(members: &Map<String, Value>, words: &str) -> bool {
    members.get("description").and_then(Value::as_str).is_some_and(|text| described(text).contains(words))
}

/// A member that is always written is required.
fn always(members: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
    let marked = properties.iter_mut().filter_map(|(name, property)| {
        let is_marked = property.as_object_mut().is_some_and(|property| property.remove(ALWAYS).is_some());
        is_marked.then(|| {
            without_null(property);
            Value::from(name.clone())
        })
    });
    let marked: Vec<Value> = marked.collect();
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.extend(marked);
    }
}

/// An optional member is left out, and never null.
fn absent(members: &mut Map<String, Value>) {
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|known| known == name));
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
        without_null(property);
    }
}

/// The schema of an `Option` that is not `None`.
fn without_null(property: &mut Value) {
    let Value::Object(property) = property else { return };
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(parts)) = property.get_mut("anyOf") {
        parts.retain(|part| part["type"] != "null");
        if let [Value::Object(only)] = &mut parts[..] {
            let mut only = std::mem::take(only);
            property.remove("anyOf");
            only.append(property);
            *property = only;
        }
    }
}

/// The ranges of whole numbers, in the place of the names that Rust has for them.
fn numbers(members: &mut Map<String, Value>, whom: For) {
    let max = match members.get("format").and_then(Value::as_str) {
        Some("uint8") => u64::from(u8::MAX),
        Some("uint16") => u64::from(u16::MAX),
        Some("uint32") => u64::from(u32::MAX),
        Some("uint64" | "uint") => u64::MAX,
        Some("int64" | "double") => {
            members.remove("format");
            return;
        }
        _ => return,
    };
    members.remove("format");
    if whom == For::Writers {
        members.entry("maximum").or_insert_with(|| json!(max));
    } else if members.get("maximum") == Some(&json!(max)) {
        members.remove("maximum");
    }
}

/// The first paragraph, without what only somebody who works on the code needs: links, and numbers of rules.
fn described(text: &str) -> String {
    let text = text.split("\n\n").next().unwrap_or_default().replace('\n', " ").replace("[`", "`").replace("`]", "`");
    let mut parts = text.split(" (rule");
    let mut described = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        described.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    described
}
