//! An event as the platform gives it: JSON, looked into only when it is known what it should be.

use serde::Deserialize;
use serde_json::value::RawValue;

/// An event that is not looked into yet.
pub type Payload = Box<RawValue>;

/// An event that is not what this function takes. The whole invocation fails.
#[derive(Debug, thiserror::Error)]
#[error("the event is not {expected}: {source}")]
pub struct BadPayload {
    expected: &'static str,
    #[source]
    source: serde_json::Error,
}

/// Reads an event.
///
/// # Errors
/// [`BadPayload`], which says where it is wrong.
pub(super) fn read<'a, T: Deserialize<'a>>(payload: &'a RawValue, expected: &'static str) -> Result<T, BadPayload> {
    serde_json::from_str(payload.get()).map_err(|source| BadPayload { expected, source })
}
