//! The pace of a service with a rate: each call takes a time of its own (rule 20). Pure.
//!
//! Times are handed out one after the other, so all instances together make a call in each interval and no burst. A
//! time lies a second ahead at most, and its request waits for it in the invocation. Any other request joins the line:
//! it waits on its queue, and comes back when those before it have been called.

use domain::limits::DEFERRAL_MS_MAX;
use domain::ports::Pace;
use domain::time::Timestamp;

use crate::bounds::{PolicyError, within};

/// The most that a time may lie ahead, in milliseconds. It is also the difference of clocks that changes nothing.
pub(crate) const AHEAD_MS: u64 = 1_000;

/// The most calls of a service in a time, over all instances of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The number of calls.
    pub calls: u32,
    /// The time, in milliseconds.
    pub per_ms: u64,
}

impl Rate {
    /// The shortest time between two calls, in microseconds.
    pub(crate) fn interval_us(self) -> u64 {
        (self.per_ms * 1_000).div_ceil(u64::from(self.calls.max(1)))
    }

    /// # Errors
    /// [`PolicyError`] for the first value that is out of its range.
    pub(crate) fn check(self) -> Result<(), PolicyError> {
        let (min, max) = RATE_CALLS.into_inner();
        within("health.rate.calls", u64::from(self.calls), u64::from(min), u64::from(max))?;
        let (min, max) = RATE_PER_MS.into_inner();
        within("health.rate.per_ms", self.per_ms, min, max)
    }
}

/// The range of [`Rate::calls`].
pub const RATE_CALLS: std::ops::RangeInclusive<u32> = 1..=1_000;
/// The range of [`Rate::per_ms`].
pub const RATE_PER_MS: std::ops::RangeInclusive<u64> = 1_000..=60 * 60 * 1_000;

/// Places that some requests got, one interval after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) first_us: u64,
    pub(crate) count: u32,
    /// Whether they are in the line, and no times for calls.
    pub(crate) in_line: bool,
}

/// The requests that ask for places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) wanted: u32,
    /// A request that has waited goes before the line, since its place in it is over.
    pub(crate) has_waited: bool,
    /// How far ahead a time may lie, in milliseconds.
    pub(crate) ahead_ms: u64,
}

/// Places for some requests.
pub(crate) fn take(pace: Pace, asked: Asked, now: Timestamp, rate: Rate) -> (Pace, Places) {
    let Asked { wanted, has_waited, ahead_ms } = asked;
    let (interval_us, now_us) = (rate.interval_us(), micros(now));
    let ahead_us = now_us + ahead_ms * 1_000;
    let line_us_max = now_us + DEFERRAL_MS_MAX * 1_000;
    // What lies further ahead was written by a wrong clock. The bounds leave a second for small differences.
    let within = |at_us: u64, max_us: u64| if is_beyond(at_us, max_us) { now_us } else { at_us };
    let next_us = within(pace.next_us, ahead_us + interval_us).max(now_us);
    let line_us = within(pace.line_us, line_us_max).max(next_us);
    if next_us <= ahead_us && (has_waited || line_us <= ahead_us) {
        let free = (ahead_us - next_us) / interval_us + 1;
        let count = wanted.min(u32::try_from(free).unwrap_or(u32::MAX));
        let after = Pace { next_us: next_us + u64::from(count) * interval_us, line_us: pace.line_us };
        (after, Places { first_us: next_us, count, in_line: false })
    } else {
        let end_us = line_us + u64::from(wanted) * interval_us;
        let after = Pace { line_us: end_us.min(line_us_max), ..pace };
        (after, Places { first_us: line_us, count: wanted, in_line: true })
    }
}

const fn is_beyond(at_us: u64, max_us: u64) -> bool {
    at_us > max_us + AHEAD_MS * 1_000
}

/// Whether the end of a line lies so far ahead that only a wrong clock can have written it (rule 23).
pub(crate) fn is_beyond_line(line_us: u64, now: Timestamp) -> bool {
    is_beyond(line_us, micros(now) + DEFERRAL_MS_MAX * 1_000)
}

/// In microseconds since 1970.
pub(crate) fn micros(at: Timestamp) -> u64 {
    u64::try_from(at.epoch_ms()).unwrap_or(0).saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);
    const RATE: Rate = Rate { calls: 20, per_ms: 1_000 };

    /// In microseconds after `NOW`.
    fn pace(next_us: u64, line_us: u64) -> Pace {
        Pace { next_us: micros(NOW) + next_us, line_us: micros(NOW) + line_us }
    }

    fn places(first_us: u64, count: u32, in_line: bool) -> Places {
        Places { first_us: micros(NOW) + first_us, count, in_line }
    }

    fn asked(wanted: u32, has_waited: bool) -> Asked {
        Asked { wanted, has_waited, ahead_ms: AHEAD_MS }
    }

    #[test]
    fn each_call_has_a_time_of_its_own_and_one_second_at_most_is_handed_out() {
        assert_eq!(
            take(Pace::default(), asked(3, false), NOW, RATE),
            (Pace { line_us: 0, ..pace(150_000, 0) }, places(0, 3, false))
        );
        assert_eq!(take(pace(150_000, 0), asked(99, false), NOW, RATE).1, places(150_000, 18, false), "0.15 s to 1 s");
        assert_eq!(take(pace(1_000_000, 0), asked(9, false), NOW, RATE).1, places(1_000_000, 1, false));
        assert_eq!(take(pace(1_000_001, 0), asked(9, false), NOW, RATE).1, places(1_000_001, 9, true));
    }

    #[test]
    fn an_idle_second_is_not_made_up_for() {
        let (after, taken) = take(pace(0, 0), asked(2, false), NOW.plus_ms(10_000), RATE);
        assert_eq!((after.next_us, taken), (micros(NOW) + 10_100_000, places(10_000_000, 2, false)));
    }

    #[test]
    fn who_has_waited_goes_before_the_line_and_who_is_new_goes_to_its_end() {
        let crowded = pace(200_000, 7_000_000);
        assert_eq!(take(crowded, asked(1, true), NOW, RATE), (pace(250_000, 7_000_000), places(200_000, 1, false)));
        assert_eq!(take(crowded, asked(2, false), NOW, RATE), (pace(200_000, 7_100_000), places(7_000_000, 2, true)));
        assert_eq!(
            take(pace(200_000, 1_000_000), asked(1, false), NOW, RATE).1,
            places(200_000, 1, false),
            "a short line is none"
        );
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_is_not_exceeded() {
        let rate = Rate { calls: 7, per_ms: 60_000 };
        assert_eq!(rate.interval_us(), 8_571_429);
        assert_eq!(take(pace(0, 0), asked(9, false), NOW, rate).1.count, 1);
    }

    #[test]
    fn a_time_that_only_a_wrong_clock_can_have_written_holds_nobody_up() {
        let hour_us = 3_600_000_000;
        assert_eq!(take(pace(hour_us, 0), asked(1, false), NOW, RATE).1, places(0, 1, false));
        assert_eq!(take(pace(0, hour_us), asked(1, false), NOW, RATE).1, places(0, 1, false));
        let quarter_us = DEFERRAL_MS_MAX * 1_000;
        let (after, _) = take(pace(0, quarter_us), asked(500, false), NOW, RATE);
        assert_eq!(after, pace(0, quarter_us), "no wait is longer than a deferral");
    }
}
