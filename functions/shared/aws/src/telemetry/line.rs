//! One line of the log.

use domain::time::Timestamp;
use serde::ser::{SerializeMap, Serializer};
use tracing::Metadata;

use super::fields::{Named, set};
use super::levels;

/// The members of every line. Lambda reads the time and the level of a JSON line from the first two.
const EVERY: [&str; 5] = ["timestamp", "level", "target", "message", "function"];

/// A line with its newline: first the fixed members, then the spans' fields, then the event's fields. An event's field
/// overrides a span's field.
pub(super) fn of(
    function: &str,
    at: Timestamp,
    metadata: &Metadata<'_>,
    message: &str,
    mut fields: Named,
    of_event: Named,
) -> Vec<u8> {
    for (name, value) in of_event {
        set(&mut fields, name, value);
    }
    fields.retain(|(name, _)| !EVERY.contains(name));
    let mut line = Vec::with_capacity(256);
    // Every value here has a JSON form, and a write to memory does not fail.
    let _ = write(&mut line, function, at, metadata, message, &fields);
    line.push(b'\n');
    line
}

fn write(
    line: &mut Vec<u8>,
    function: &str,
    at: Timestamp,
    metadata: &Metadata<'_>,
    message: &str,
    fields: &Named,
) -> serde_json::Result<()> {
    let mut serializer = serde_json::Serializer::new(line);
    let mut map = serializer.serialize_map(None)?;
    let [timestamp, level, target, text, name] = EVERY;
    map.serialize_entry(timestamp, &at)?;
    map.serialize_entry(level, levels::name(metadata.level()))?;
    map.serialize_entry(target, metadata.target())?;
    map.serialize_entry(text, message)?;
    map.serialize_entry(name, function)?;
    for (name, value) in fields {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
