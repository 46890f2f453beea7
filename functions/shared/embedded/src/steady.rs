//! A clock that jumped ahead deletes nothing (rules 43 and 44). What is old is deleted only after the clock has gone on
//! evenly for a while, so that there is time to set it right.

use domain::time::Timestamp;

/// Between two looks at the clock, in milliseconds. More is a jump, or nothing looked.
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
}

impl Steady {
    /// For a rest of this many milliseconds, also after a start. Without a rest every clock is believed.
    pub(crate) const fn new(rest_ms: u64) -> Self {
        Self { rest_ms, seen: None }
    }

    /// Looks at the clock. Returns whether it may be believed.
    pub(crate) fn is_at(&mut self, now: Timestamp) -> bool {
        let seen = self.seen.get_or_insert(Seen { first: now, last: now });
        if seen.last.epoch_ms().abs_diff(now.epoch_ms()) > STEP_MS_MAX {
            seen.first = now;
        }
        seen.last = now;
        seen.first.plus_ms(self.rest_ms) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn a_clock_is_believed_once_it_has_gone_on_evenly_for_the_rest() {
        let minutes = |minutes: i64| Timestamp::from_epoch_ms(minutes * MINUTE_MS);
        let mut steady = Steady::new(60 * 60_000);
        for (at, expected) in [(0, false), (15, false), (30, false), (45, false), (60, true), (70, true)] {
            assert_eq!(steady.is_at(minutes(at)), expected, "{at}");
        }
        let years = 8 * 365 * 24 * 60;
        for (at, expected) in [(years, false), (years + 15, false), (85, false), (86, false), (100, false)] {
            assert_eq!(steady.is_at(minutes(at)), expected, "{at}: one jump ahead, and one back");
        }
        assert!(!steady.is_at(minutes(115)) && !steady.is_at(minutes(130)));
        assert!(steady.is_at(minutes(145)), "an hour after the last jump");
        assert!(!steady.is_at(minutes(161)), "nothing looked for 16 minutes");
        assert!(Steady::new(0).is_at(minutes(years)));
    }
}
