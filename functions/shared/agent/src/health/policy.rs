//! When a service counts as failing, and how fast its work returns.

use std::ops::RangeInclusive;

use domain::backoff::BackoffPolicy;

use crate::bounds::{PolicyError, check_backoff, within};
use crate::health::Rate;

/// When a service counts as failing, and how fast its work returns. All instances of an agent must have the same
/// policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthPolicy {
    /// Failures in a row that open the breaker: answers to retry, and time-outs. With more calls than that in a second, it
    /// takes as many failures more than successes as there were calls, and four times this number at most.
    pub failures_to_open: u32,
    /// The time for which it stays open before each probe; at least one slot.
    pub backoff: BackoffPolicy,
    /// Requests that an outage may have delayed and that are let through in the first second after a recovery, if the
    /// service did not carry more before. Each second lets through twice as many as the one before, or half as many if
    /// most of them failed.
    pub release_first: u32,
    /// The most delayed requests that are let through in a second. Seconds count from the recovery, so any other second
    /// may see the end of one and the beginning of the next. New requests come on top. With half of the service's
    /// normal rate, the service never gets more than twice its normal rate.
    pub release_max: u32,
    /// When rejections open the breaker (rule 18). `None`: never.
    pub rejections: Option<RejectionsPolicy>,
    /// The most calls over all instances (rule 20). `None`: no limit.
    pub rate: Option<Rate>,
}

/// When the rejections of a service are too many to be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectionsPolicy {
    /// Fewer answers in the window open nothing.
    pub answers_min: u32,
    /// A larger share of rejections opens the breaker, in percent of the answers in the window.
    pub percent: u32,
    /// The length of the window, in milliseconds.
    pub window_ms: u64,
}

impl Default for RejectionsPolicy {
    fn default() -> Self {
        Self { answers_min: 20, percent: 50, window_ms: 60_000 }
    }
}

/// The range of [`RejectionsPolicy::window_ms`].
pub const REJECTIONS_WINDOW_MS: RangeInclusive<u64> = 1_000..=60 * 60 * 1_000;

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            failures_to_open: 5,
            backoff: BackoffPolicy { slot_time_ms: 500, ceiling: 5, stay_at_ceiling: true },
            release_first: 20,
            release_max: 10_000,
            rejections: Some(RejectionsPolicy::default()),
            rate: None,
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
        within("health.release_max", u64::from(self.release_max), u64::from(self.release_first), ALL)?;
        self.rate.map_or(Ok(()), Rate::check)?;
        let Some(rejections) = self.rejections else { return Ok(()) };
        within("health.rejections.answers_min", u64::from(rejections.answers_min), 1, ALL)?;
        within("health.rejections.percent", u64::from(rejections.percent), 1, 99)?;
        let (min, max) = REJECTIONS_WINDOW_MS.into_inner();
        within("health.rejections.window_ms", rejections.window_ms, min, max)
    }
}
