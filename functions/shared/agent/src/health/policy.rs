//! When a service counts as failing, and how fast it gets its work back.

use domain::backoff::BackoffPolicy;

use crate::policy::{PolicyError, check_backoff, within};

/// When a service counts as failing, and how fast it gets its work back. All instances of an agent must have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthPolicy {
    /// Failures in a row that open the breaker: answers to try again, and time-outs.
    pub failures_to_open: u32,
    /// For how long it stays open before each probe; one slot at least.
    pub backoff: BackoffPolicy,
    /// Requests that had to wait which are let through in the first second after a recovery. Each second has twice as
    /// many as the one before.
    pub release_first: u32,
    /// The most of them in a second, for as long as anybody waits. Seconds are counted from the recovery on, so any other
    /// second may see the end of one and the beginning of the next, and new requests come on top: with half of the
    /// service's normal rate the service never gets more than twice that rate.
    pub release_max: u32,
}

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            failures_to_open: 5,
            backoff: BackoffPolicy { slot_time_ms: 500, ceiling: 5, stay_at_ceiling: true },
            release_first: 20,
            release_max: 10_000,
        }
    }
}

impl HealthPolicy {
    /// # Errors
    /// [`PolicyError`] for the first value that is out of its range.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        const ALL: u64 = u32::MAX as u64;
        within("health.failures_to_open", u64::from(self.failures_to_open), 1, ALL)?;
        check_backoff("health.backoff.slot_time_ms", "health.backoff.ceiling", self.backoff)?;
        within("health.release_first", u64::from(self.release_first), 1, ALL)?;
        within("health.release_max", u64::from(self.release_max), u64::from(self.release_first), ALL)
    }

    /// Failures that an instance keeps to itself before it adds them to the record.
    pub(crate) const fn failures_to_report(&self) -> u32 {
        self.failures_to_open.div_ceil(2)
    }
}
