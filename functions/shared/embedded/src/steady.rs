//! A clock that jumped ahead deletes nothing (rules 43 and 44). What is old is deleted only after the clock has gone on
//! evenly for a while, so that there is time to set it right.

use domain::time::Timestamp;
use tokio::time::Instant;

/// By how much the clock may differ, in milliseconds, from the time that has gone by since the last look. More is a jump, or
/// the machine slept.
const STEP_MS_MAX: u64 = 15 * 60_000;

/// Watches a clock.
#[derive(Debug)]
pub(crate) struct Steady {
    rest_ms: u64,
    seen: Option<Seen>,
}

/// The looks since the last jump.
#[derive(Debug)]
struct Seen {
    first: Timestamp,
    last: Timestamp,
    last_at: Instant,
}

impl Steady {
    /// For a rest of this many milliseconds, also after a start. Without a rest every clock is believed.
    pub(crate) const fn new(rest_ms: u64) -> Self {
        Self { rest_ms, seen: None }
    }

    /// Looks at the clock. Returns whether it may be believed. `at` is the time that no one sets.
    pub(crate) fn is_at(&mut self, now: Timestamp, at: Instant) -> bool {
        let seen = self.seen.get_or_insert(Seen { first: now, last: now, last_at: at });
        let gone_ms = at.saturating_duration_since(seen.last_at).as_millis();
        let expected = seen.last.plus_ms(u64::try_from(gone_ms).unwrap_or(u64::MAX));
        if expected.epoch_ms().abs_diff(now.epoch_ms()) > STEP_MS_MAX {
            seen.first = now;
        }
        (seen.last, seen.last_at) = (now, at);
        seen.first.plus_ms(self.rest_ms) <= now
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MINUTE_MS: i64 = 60_000;

    fn minutes(minutes: i64) -> Timestamp {
        Timestamp::from_epoch_ms(minutes * MINUTE_MS)
    }

    #[test]
    fn a_clock_is_believed_once_it_has_gone_on_evenly_for_the_rest() {
        let start = crate::clock::since_any_time();
        let mut steady = Steady::new(60 * 60_000);
        let mut looks = |gone: u64, at: i64| steady.is_at(minutes(at), start + Duration::from_secs(60 * gone));
        for (at, expected) in [(0_i64, false), (15, false), (59, false), (60, true), (70, true)] {
            assert_eq!(looks(at.unsigned_abs(), at), expected, "{at}");
        }
        let years = 8 * 365 * 24 * 60;
        assert!(!looks(70, years) && !looks(85, years + 15), "one jump ahead");
        assert!(!looks(86, 86) && !looks(100, 100) && !looks(145, 145), "and one back");
        assert!(looks(146, 146), "an hour after the last jump");
        assert!(looks(160, 175), "15 minutes ahead");
        assert!(!looks(161, 192), "and 16 more");
        assert!(Steady::new(0).is_at(minutes(years), start));
    }

    #[test]
    fn a_clock_that_is_seldom_looked_at_is_believed() {
        let start = crate::clock::since_any_time();
        let mut steady = Steady::new(60 * 60_000);
        let looks: Vec<bool> = (0..5)
            .map(|look: u64| {
                steady.is_at(minutes(i64::try_from(40 * look).unwrap()), start + Duration::from_secs(60 * 40 * look))
            })
            .collect();
        assert_eq!(looks, [false, false, true, true, true]);
    }
}
