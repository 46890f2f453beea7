//! What is done with input from outside, whatever it is: the bodies of the fuzz targets in `tests/fuzz`, and of the tests
//! that run the kept inputs through the same functions.
//!
//! A target panics where something is wrong, and says so by its assertions: what was read is written and read again, two
//! spellings of one document are one document, a request is always answered and never by a fault of ours.

mod answer;
mod api;
mod cursor;
mod document;
mod expression;
mod folder;
mod messages;
mod queues;
mod records;
mod schema;
mod spelling;
mod stand_in;
mod text;
mod texts;
mod workflow;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A decoder of outside input with what has to hold for whatever it is given.
pub type Target = fn(&[u8]);

/// All targets by name. Each has a program in `tests/fuzz/fuzz_targets` and inputs in `tests/fuzz/corpus`.
pub const TARGETS: [(&str, Target); 13] = [
    ("answer", answer::run),
    ("cursor", cursor::run),
    ("document", document::run),
    ("expression", expression::run),
    ("folder", folder::run),
    ("api", api::run),
    ("messages", messages::run),
    ("queues", queues::run),
    ("records", records::run),
    ("schema", schema::run),
    ("stand_in", stand_in::run),
    ("texts", texts::run),
    ("workflow", workflow::run),
];

/// Runs one target.
///
/// # Panics
/// Where something is wrong, or there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, run) = target.expect("a target");
    run(input);
}

/// What was read is written, and read again as the same. Gives what was read.
fn round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(input: &[u8]) -> Option<T> {
    let read: T = domain::message::decode(input).ok()?;
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    let again: T = domain::message::decode(&written).expect("what was written can be read");
    assert_eq!(again, read, "{}", String::from_utf8_lossy(&written));
    Some(read)
}
