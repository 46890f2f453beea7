//! An event as the platform passes it: JSON that is parsed only when its expected type is known.

use serde::Deserialize;
use serde_json::value::RawValue;

/// An event that is not parsed yet.
pub type Payload = Box<RawValue>;

/// An event of the wrong type for this function. The whole invocation fails.
#[derive(Debug, thiserror::Error)]
#[error("the event is not {expected}: {source}")]
pub struct BadPayload {
    expected: &'static str,
    #[source]
    source: serde_json::Error,
}

/// Parses an event.
///
/// # Errors
/// [`BadPayload`] reports the place of the error.
pub(super) fn read<'a, T: Deserialize<'a>>(payload: &'a RawValue, expected: &'static str) -> Result<T, BadPayload> {
    serde_json::from_str(payload.get()).map_err(|source| BadPayload { expected, source })
}
