//! The long waits of a step: before its first claim (rule 35), for a result that comes later (rule 36), and after too
//! many failures (rule 39).

use serde_json::value::RawValue;

use super::mapping::place_in_order;
use crate::json::Json;
use crate::limits::WAIT_MS_MAX;
use crate::located::Table;
use crate::search::Pointer;
use crate::time::Timestamp;

/// The reserved member of a document with the time before which its order does not begin.
pub(super) const NOT_BEFORE: &str = "NotBefore";

/// The waits of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    /// Before its first claim, from the moment at which it is ready, in milliseconds.
    pub before_ms: Option<u64>,
    /// The place in the document of the time before which it is not claimed: without `/Order`.
    pub not_before: Option<Pointer>,
    /// How long a result that comes later is awaited, in milliseconds. `None`: its calls must be answered at once.
    pub within_ms: Option<u64>,
}

/// The longer wait of a step after each failure from `max_failures` on (rule 39).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongerWait {
    /// How long, in milliseconds.
    pub wait_ms: u64,
    /// How often, before the step is given up.
    pub times: u32,
}

impl LongerWait {
    /// Reads the table of `on_exhausted`.
    pub(super) fn read(table: &Table<'_>) -> Option<Self> {
        Some(Self { wait_ms: table.time_ms("wait")?, times: table.number("times")? })
    }

    /// All its waits together, in milliseconds.
    pub(super) fn all_ms(self) -> u64 {
        self.wait_ms.saturating_mul(self.times.into())
    }
}

/// A member of a document should be a time that the order can keep, and is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct NotATime {
    /// Where it is: a JSON pointer.
    pub place: String,
    /// What is wrong with it.
    pub fault: &'static str,
}

pub(super) const NO_TIME: &str = "must be a time such as 2026-12-01T08:00:00Z";
/// More than [`WAIT_MS_MAX`].
pub(super) const FAR: &str = "lies more than 400 days ahead";

impl Waits {
    pub(super) fn read(step: &Table<'_>) -> Self {
        let not_before = step.exact_text("not_before").and_then(place_in_order);
        Self { before_ms: step.time_ms("wait"), not_before, within_ms: step.time_ms("wait_within") }
    }
}

/// The time at a place of the document.
pub(super) fn time_at(document: &Json, place: &Pointer, now: Timestamp) -> Result<Option<Timestamp>, NotATime> {
    given(place.of(document.raw()).map(RawValue::get)).map(|value| time(value, || place.text(), now)).transpose()
}

/// The time in a reserved member of the document.
pub(super) fn time_of_order(document: &Json, member: &str, now: Timestamp) -> Result<Option<Timestamp>, NotATime> {
    given(document.member(member)).map(|value| time(value, || format!("/{member}"), now)).transpose()
}

/// Many programs write `null` for a member that they leave out.
fn given(json: Option<&str>) -> Option<&str> {
    json.filter(|json| *json != "null")
}

fn time(value: &str, place: impl Fn() -> String, now: Timestamp) -> Result<Timestamp, NotATime> {
    let wrong = |fault| NotATime { place: place(), fault };
    let at: Timestamp = serde_json::from_str(value).map_err(|_| wrong(NO_TIME))?;
    if at.is_beyond(now, WAIT_MS_MAX) { Err(wrong(FAR)) } else { Ok(at) }
}

#[cfg(test)]
mod tests;
