//! A wall clock without its short jumps (F71).
//!
//! Attempts, horizons and waits are compared with the wall clock, which others set. A jump that is taken back soon would
//! expire all of them at once, or lengthen a wait by the jump. So the time goes on evenly, as the machine runs, until the
//! wall clock has differed by the same for a while.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use domain::limits::CLOCKS_DIFFER_MS;
use domain::time::Timestamp;

/// How long a clock that jumped must go on evenly before it is believed.
const BELIEVED_AFTER: Duration = Duration::from_secs(5 * 60);

/// The time, and the jump that is not believed yet.
#[derive(Debug, Default)]
pub(crate) struct Even(Mutex<Option<Seen>>);

#[derive(Debug, Clone, Copy)]
struct Seen {
    time: Timestamp,
    at: Instant,
    /// By how many milliseconds the wall clock differs, and since when.
    jump: Option<(i64, Instant)>,
}

impl Even {
    /// The time, when the wall clock says `wall`. `at` is the time that no one sets.
    pub(crate) fn at(&self, wall: Timestamp, at: Instant) -> Timestamp {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let believed = Seen { time: wall, at, jump: None };
        let Some(last) = *seen else {
            *seen = Some(believed);
            return wall;
        };
        let gone = at.saturating_duration_since(last.at);
        let time = last.time.plus_ms(u64::try_from(gone.as_millis()).unwrap_or(u64::MAX));
        let differs = |one: i64, other: i64| one.abs_diff(other) > CLOCKS_DIFFER_MS;
        let ahead_ms = wall.epoch_ms().saturating_sub(time.epoch_ms());
        if !differs(ahead_ms, 0) {
            *seen = Some(believed);
            return wall;
        }
        let since = match last.jump {
            Some((jump_ms, since)) if !differs(jump_ms, ahead_ms) => since,
            Some(_) | None => {
                let after_s = BELIEVED_AFTER.as_secs();
                tracing::warn!(ahead_ms, "the clock jumped: it is believed if it goes on evenly for {after_s} s");
                at
            }
        };
        if at.saturating_duration_since(since) >= BELIEVED_AFTER {
            tracing::warn!(ahead_ms, "the clock that jumped is believed");
            *seen = Some(believed);
            return wall;
        }
        *seen = Some(Seen { jump: Some((ahead_ms, since)), ..last });
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: i64 = 24 * 60 * 60;

    /// The time that is given at each second since the start, when the wall clock shows this.
    fn times(looks: &[(u64, i64)]) -> Vec<i64> {
        let (even, start) = (Even::default(), crate::clock::since_any_time().into_std());
        let look = |(at_s, wall_s): &(u64, i64)| {
            even.at(Timestamp::from_epoch_ms(wall_s * 1_000), start + Duration::from_secs(*at_s)).epoch_ms() / 1_000
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn f71_a_jump_that_is_taken_back_soon_changes_no_time() {
        let looks = [(0, 100), (10, 110), (11, 111 + DAY_S), (19, 119 + DAY_S), (20, 120), (30, 130)];
        assert_eq!(times(&looks), [100, 110, 111, 119, 120, 130]);
        assert_eq!(
            times(&[(0, DAY_S), (5, 5), (299, 299), (300, DAY_S + 300)])[1..],
            [DAY_S + 5, DAY_S + 299, DAY_S + 300]
        );
    }

    #[test]
    fn f71_a_jump_that_stays_is_believed_in_the_end() {
        for jump_s in [DAY_S, -DAY_S, 30] {
            let wall = |at: i64| DAY_S + at + if at >= 10 { jump_s } else { 0 };
            let looks = [0, 10, 309, 310, 400].map(|at: u64| (at, wall(at.cast_signed())));
            let expected = [DAY_S, DAY_S + 10, DAY_S + 309, DAY_S + 310 + jump_s, DAY_S + 400 + jump_s];
            assert_eq!(times(&looks), expected, "{jump_s}");
        }
    }

    #[test]
    fn f71_each_jump_is_awaited_anew_and_small_ones_are_followed() {
        assert_eq!(times(&[(0, 0), (1, DAY_S), (290, 2 * DAY_S), (310, 2 * DAY_S + 20)])[3], 310);
        assert_eq!(times(&[(0, 100), (10, 111), (20, 120)]), [100, 111, 120]);
    }
}
