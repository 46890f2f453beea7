//! Truncated exponential back-off as an immutable value. Randomness is passed in.

use serde::{Deserialize, Serialize};

/// The configuration of a back-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct BackoffPolicy {
    /// The unit of waiting, in milliseconds.
    pub slot_time_ms: u64,
    /// The largest exponent drawn: no wait is longer than `slot_time_ms * (2^ceiling - 1)`. At most 32.
    pub ceiling: u32,
    /// Whether it stays at the ceiling or starts again from the first slot.
    pub stay_at_ceiling: bool,
}

impl BackoffPolicy {
    /// The longest wait of this policy, in milliseconds.
    #[must_use]
    pub fn wait_ms_max(&self) -> u64 {
        wait_ms(self.slot_time_ms, self.ceiling)
    }
}

/// A point in a sequence of retries. [`Backoff::next`] returns the following one and leaves this one unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Backoff {
    /// The configuration.
    pub policy: BackoffPolicy,
    /// The largest exponent of the next draw.
    pub slot: u32,
    /// The wait before this retry, in milliseconds.
    pub wait_time_ms: u64,
    /// Retries since the start or the last reset.
    pub retries: u32,
    /// How often it started again after the ceiling.
    pub resets: u32,
    /// Retries since the start.
    pub total_retries: u32,
}

/// The first retry already draws between two waits, so that callers that failed together do not retry together.
const FIRST_SLOT: u32 = 1;

impl Backoff {
    /// Before the first retry: no wait yet.
    #[must_use]
    pub fn new(policy: BackoffPolicy) -> Self {
        let slot = FIRST_SLOT.min(policy.ceiling);
        Self { policy, slot, wait_time_ms: 0, retries: 0, resets: 0, total_retries: 0 }
    }

    /// The next retry: draws e uniformly from `0..=slot`, waits `slot_time * (2^e - 1)`, and widens the slot by one up
    /// to the ceiling, where it stays or starts again. `draw` is 64 random bits.
    #[must_use]
    pub fn next(&self, draw: u64) -> Self {
        let exponent = u32::try_from(draw % (u64::from(self.slot) + 1)).unwrap_or(0);
        let at_ceiling = self.slot >= self.policy.ceiling;
        let starts_again = at_ceiling && !self.policy.stay_at_ceiling;
        Self {
            policy: self.policy,
            slot: if starts_again {
                FIRST_SLOT.min(self.policy.ceiling)
            } else {
                self.slot.saturating_add(1).min(self.policy.ceiling)
            },
            wait_time_ms: wait_ms(self.policy.slot_time_ms, exponent),
            retries: if starts_again { 0 } else { self.retries.saturating_add(1) },
            resets: self.resets.saturating_add(u32::from(starts_again)),
            total_retries: self.total_retries.saturating_add(1),
        }
    }

    /// The value of the `retry`-th retry (from 1) of a sequence whose earlier draws are not stored.
    #[must_use]
    pub fn at_retry(policy: BackoffPolicy, retry: u32, draw: u64) -> Self {
        // The wait depends only on the last draw; a slot never depends on a draw.
        (1..retry.max(1)).fold(Self::new(policy), |backoff, _| backoff.next(0)).next(draw)
    }
}

fn wait_ms(slot_time_ms: u64, exponent: u32) -> u64 {
    slot_time_ms.saturating_mul(2_u64.saturating_pow(exponent) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BackoffPolicy = BackoffPolicy { slot_time_ms: 100, ceiling: 4, stay_at_ceiling: true };

    /// Every wait that the next retry can give, in the order of the draw.
    fn waits(backoff: Backoff) -> Vec<u64> {
        (0..=u64::from(backoff.slot)).map(|draw| backoff.next(draw).wait_time_ms).collect()
    }

    #[test]
    fn each_retry_draws_uniformly_from_one_slot_more() {
        let first = Backoff::new(POLICY);
        assert_eq!(waits(first), [0, 100]);
        let second = first.next(0);
        assert_eq!(waits(second), [0, 100, 300]);
        assert_eq!(waits(second.next(0)), [0, 100, 300, 700]);
    }

    #[test]
    fn with_stay_at_ceiling_it_stays_there() {
        let at = |retry| Backoff::at_retry(POLICY, retry, u64::from(POLICY.ceiling));
        assert_eq!(at(4).wait_time_ms, POLICY.wait_ms_max());
        assert_eq!(at(40).wait_time_ms, POLICY.wait_ms_max());
        assert_eq!((at(40).resets, at(40).total_retries), (0, 40));
    }

    #[test]
    fn without_stay_at_ceiling_it_starts_again() {
        let policy = BackoffPolicy { stay_at_ceiling: false, ..POLICY };
        let mut backoff = Backoff::new(policy);
        for _ in 0..4 {
            backoff = backoff.next(0);
        }
        assert_eq!((backoff.slot, backoff.retries, backoff.resets, backoff.total_retries), (1, 0, 1, 4));
    }

    #[test]
    fn no_wait_is_longer_than_the_ceiling_allows() {
        for policy in [
            POLICY,
            BackoffPolicy { ceiling: 0, ..POLICY },
            BackoffPolicy { ceiling: 32, slot_time_ms: u64::MAX, ..POLICY },
        ] {
            let mut backoff = Backoff::new(policy);
            for draw in 0..200_u64 {
                backoff = backoff.next(draw.wrapping_mul(0x9E37_79B9_7F4A_7C15));
                assert!(backoff.wait_time_ms <= policy.wait_ms_max());
            }
        }
    }

    #[test]
    fn a_stored_value_that_is_at_its_end_still_has_a_next() {
        let policy = BackoffPolicy { slot_time_ms: u64::MAX, ceiling: u32::MAX, stay_at_ceiling: true };
        let end = Backoff { slot: u32::MAX, total_retries: u32::MAX, ..Backoff::new(policy) };
        let next = end.next(u64::from(u32::MAX));
        assert_eq!((next.slot, next.total_retries, next.wait_time_ms), (u32::MAX, u32::MAX, u64::MAX));
    }

    #[test]
    fn a_value_is_never_changed_by_the_next() {
        let first = Backoff::new(POLICY);
        let _ = first.next(3);
        assert_eq!(first, Backoff::new(POLICY));
    }
}
