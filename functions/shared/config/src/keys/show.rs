//! What people and editors are told of keys: the comments that `init` writes, the tables of the documents, and JSON Schemas.

use std::fmt::Write as _;

use domain::keys::{Key, Kind, time_text};
use serde_json::{Map, Value, json};

/// A key with the path to it, and what it holds if it is no table.
struct Row {
    path: String,
    key: &'static Key,
    kinds: Vec<&'static Kind>,
}

fn rows(prefix: &str, keys: &'static [Key], found: &mut Vec<Row>) {
    for (index, key) in keys.iter().enumerate() {
        let names = |key: &'static Key| key.kind.keys().iter().map(|key| key.name).collect::<Vec<_>>();
        let is_as_before = keys[..index].iter().any(|earlier| !names(key).is_empty() && names(earlier) == names(key));
        add(&format!("{prefix}{}", key.name), key, &key.kind, !is_as_before, found);
    }
}

/// Adds the row of a key, if it may hold something else than a table, and the rows of the tables in it.
fn add(path: &str, key: &'static Key, kind: &'static Kind, has_inner: bool, found: &mut Vec<Row>) {
    let is_plain = |kind: &&Kind| !matches!(kind, Kind::Table(_) | Kind::Named(_));
    let plain: Vec<&Kind> = kind.kinds().iter().filter(is_plain).collect();
    if !plain.is_empty() {
        found.push(Row { path: path.to_owned(), key, kinds: plain });
    }
    for kind in kind.kinds().iter().filter(|_| has_inner) {
        if let Kind::Table(keys) = kind {
            rows(&format!("{path}."), keys, found);
        } else if let Kind::Named(names) = kind {
            add(&format!("{path}.{}", names.stands_for), key, &names.kind, true, found);
        } else {
            rows(&format!("{path}[]."), kind.keys(), found);
        }
    }
}

/// The values that a kind has, for people.
fn values(kind: &Kind) -> String {
    match kind {
        Kind::Flag => "`true`, `false`".to_owned(),
        Kind::Number(min, u32::MAX) => format!("from {min}"),
        Kind::Number(min, max) => format!("{min} to {max}"),
        Kind::TimeMs(min, max) => format!("{} to {}", time_text(*min), time_text(*max)),
        Kind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Text(format) => format.what.to_owned(),
        Kind::Template => "a template".to_owned(),
        Kind::Members => "a table of members".to_owned(),
        Kind::Time => "a time".to_owned(),
        Kind::Array(_, max, kind) => format!("up to {max}: {}", values(kind)),
        Kind::Table(_) | Kind::Named(_) => "a table".to_owned(),
        Kind::Either(kinds) => kinds.iter().map(values).collect::<Vec<_>>().join(", or "),
    }
}

/// The value that a text stands for in a table of keys, if it is one of this kind.
fn value(kind: &Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::Flag => text.parse().ok().map(Value::Bool),
        Kind::Number(..) => text.parse::<u32>().ok().map(Value::from),
        Kind::TimeMs(..) => kind.time_ms(text).map(|_| text.into()),
        Kind::Word(words) => words.contains(&text).then(|| text.into()),
        Kind::Text(format) => (!text.is_empty() && (format.check)(text).is_ok()).then(|| text.into()),
        Kind::Either([first, ..]) => value(first, text),
        Kind::Template
        | Kind::Members
        | Kind::Time
        | Kind::Array(..)
        | Kind::Table(_)
        | Kind::Named(_)
        | Kind::Either([]) => None,
    }
}

/// A value of a key as it stands in a file. One of tables has the keys that each must have.
fn literal(key: &'static Key, kind: &'static Kind) -> String {
    let kind = kind.kinds().first().unwrap_or(kind);
    let text = if key.example.is_empty() { key.default } else { key.example };
    match (value(kind, text), kind) {
        (Some(value), _) => value.to_string(),
        (None, Kind::Word(words)) => format!("{:?}", words.first().copied().unwrap_or_default()),
        (None, Kind::Array(..)) if !kind.keys().is_empty() => {
            let required = kind.keys().iter().filter(|key| key.is_required);
            let members = required.map(|key| format!("{} = {}", key.name, literal(key, &key.kind)));
            format!("[{{ {} }}]", members.collect::<Vec<_>>().join(", "))
        }
        (None, _) => text.to_owned(),
    }
}

/// What a key means, which values it has, and what counts without it.
fn sentence(key: &Key, values: &str) -> String {
    let default = match (key.is_required, key.default) {
        (true, _) => ". Required",
        (false, "") => "",
        (false, _) => ". Default: ",
    };
    format!("{}: {}{default}{}", key.about, values.replace('`', ""), key.default)
}

impl Row {
    fn values(&self) -> String {
        self.kinds.iter().map(|kind| values(kind)).collect::<Vec<_>>().join(", or ")
    }
}

/// The keys of a table among these, or of each of several.
#[must_use]
pub fn keys_of(keys: &'static [Key], name: &str) -> &'static [Key] {
    keys.iter().find(|key| key.name == name).map_or(&[], |key| key.kind.keys())
}

/// The keys as comments of a file, each with a value and its sentence. Those that the file `has` are left out.
#[must_use]
pub fn commented(keys: &'static [Key], has: impl Fn(&str) -> bool) -> String {
    let mut found = Vec::new();
    rows("", keys, &mut found);
    let mut text = String::new();
    for row in found.iter().filter(|row| !row.path.contains("[]") && !has(&row.path)) {
        let Some(kind) = row.kinds.first() else { continue };
        let setting = format!("{} = {}", row.path, literal(row.key, kind));
        let _ = writeln!(text, "# {setting:<40}  # {}", sentence(row.key, &row.values()));
    }
    text
}

/// The keys as a table of a document, without those that it `has` elsewhere.
#[must_use]
pub fn markdown(keys: &'static [Key], has: impl Fn(&str) -> bool) -> String {
    let mut found = Vec::new();
    rows("", keys, &mut found);
    let mut text = "| key | value (default) | meaning |\n| --- | --- | --- |\n".to_owned();
    for row in found.iter().filter(|row| !has(&row.path)) {
        let values = row.values();
        let values = ["a ", "an "].iter().find_map(|article| values.strip_prefix(article)).unwrap_or(&values);
        let default = match (row.key.is_required, row.key.default) {
            (true, _) => ", required".to_owned(),
            (false, "" | "none") => String::new(),
            (false, default) => format!(" ({default})"),
        };
        let _ = writeln!(text, "| `{}` | {values}{default} | {} |", row.path, row.key.about);
    }
    text
}

/// The JSON Schema of a file with these keys, for editors.
#[must_use]
pub fn schema(title: &str, keys: &'static [Key]) -> Value {
    let mut schema = of_table(keys);
    schema.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    schema.insert("title".to_owned(), title.into());
    schema.into()
}

fn of_table(keys: &'static [Key]) -> Map<String, Value> {
    let property = |key: &'static Key| {
        let mut schema = of_kind(&key.kind);
        schema.insert("description".to_owned(), sentence(key, &values(&key.kind)).into());
        // The default of a text is said in words.
        let is_text = matches!(key.kind.kinds(), [Kind::Text(_), ..]);
        if let Some(default) = value(&key.kind, key.default).filter(|_| !is_text) {
            schema.insert("default".to_owned(), default);
        }
        (key.name.to_owned(), Value::from(schema))
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    members(json!({"type": "object", "additionalProperties": false, "properties": properties, "required": required}))
}

fn of_kind(kind: &'static Kind) -> Map<String, Value> {
    members(match kind {
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Number(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
        // TOML has times of its own, which editors take for texts.
        Kind::TimeMs(..) | Kind::Text(_) | Kind::Time => json!({"type": "string"}),
        Kind::Word(words) => json!({"enum": words}),
        Kind::Template => json!({}),
        Kind::Members => json!({"type": "object"}),
        Kind::Array(min, max, kind) => {
            json!({"type": "array", "minItems": min, "maxItems": max, "items": of_kind(kind)})
        }
        Kind::Table(keys) => return of_table(keys),
        Kind::Named(names) => json!({"type": "object", "additionalProperties": of_kind(&names.kind)}),
        Kind::Either(kinds) => json!({"anyOf": kinds.iter().map(of_kind).collect::<Vec<_>>()}),
    })
}

fn members(json: Value) -> Map<String, Value> {
    if let Value::Object(members) = json { members } else { Map::new() }
}
