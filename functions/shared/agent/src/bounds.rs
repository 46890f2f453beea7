//! The ranges of an agent's settings.

use domain::backoff::BackoffPolicy;
use domain::limits::COMPLETE_WITHIN_MS_MAX;

/// Largest ceiling of a back-off.
pub const BACKOFF_CEILING_MAX: u32 = 32;

/// A value of a [`Policy`](crate::Policy), or the length of the agent's name, is out of its range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be from {min} to {max}, got {got}")]
pub struct PolicyError {
    /// The value's name.
    pub field: &'static str,
    /// The smallest allowed value.
    pub min: u64,
    /// The largest allowed value.
    pub max: u64,
    /// The given value.
    pub got: u64,
}

/// # Errors
/// [`PolicyError`] under one of the two names.
pub(crate) fn check_backoff(
    slot_time_ms: &'static str,
    ceiling: &'static str,
    backoff: BackoffPolicy,
) -> Result<(), PolicyError> {
    within(slot_time_ms, backoff.slot_time_ms, 1, COMPLETE_WITHIN_MS_MAX)?;
    within(ceiling, u64::from(backoff.ceiling), 0, u64::from(BACKOFF_CEILING_MAX))
}

/// # Errors
/// [`PolicyError`] if `got` is not in `min..=max`.
pub(crate) fn within(field: &'static str, got: u64, min: u64, max: u64) -> Result<(), PolicyError> {
    if (min..=max).contains(&got) { Ok(()) } else { Err(PolicyError { field, min, max, got }) }
}
