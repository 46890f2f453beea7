//! Times and spans as people read them.

use domain::time::Timestamp;

const SECOND_MS: u64 = 1_000;
/// Shorter percentiles have a tenth of a second.
const TENTHS_MS: u64 = 10 * SECOND_MS;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A span in its one or two largest units: `840 ms`, `12 s`, `3 min 20 s`, `5 h 10 min`, `3 d 4 h`.
pub(crate) fn span(ms: u64) -> String {
    let two = |unit_ms: u64, unit: &str, part_ms: u64, part: &str| {
        let (whole, rest) = (ms / unit_ms, ms % unit_ms / part_ms);
        if rest == 0 { format!("{whole} {unit}") } else { format!("{whole} {unit} {rest} {part}") }
    };
    match ms {
        0..SECOND_MS => format!("{ms} ms"),
        SECOND_MS..MINUTE_MS => format!("{} s", ms / SECOND_MS),
        MINUTE_MS..HOUR_MS => two(MINUTE_MS, "min", SECOND_MS, "s"),
        HOUR_MS..DAY_MS => two(HOUR_MS, "h", MINUTE_MS, "min"),
        _ => two(DAY_MS, "d", HOUR_MS, "h"),
    }
}

/// A percentile: a span of up to 10 s with a tenth of a second, rounded up, since it is never shown too low (rule 26).
pub(crate) fn percentile(ms: u64) -> String {
    match ms {
        SECOND_MS..TENTHS_MS => {
            let tenths = ms.div_ceil(100);
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        TENTHS_MS.. => span(ms.next_multiple_of(SECOND_MS)),
        _ => span(ms),
    }
}

/// How far a time is from now: `12 s ago`, `in 3 min 20 s`.
pub(crate) fn from_now(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", span(now.ms_until(at))) } else { format!("{} ago", span(at.ms_until(now))) }
}

/// A time without its milliseconds: `2026-11-20 17:26:43Z`.
pub(crate) fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    match text.split_once('T') {
        Some((date, time)) => format!("{date} {}Z", time.split('.').next().unwrap_or(time)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_told_in_its_largest_units() {
        for (ms, words) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_999, "1 s"),
            (60_000, "1 min"),
            (200_000, "3 min 20 s"),
            (3_600_000, "1 h"),
            (18_600_000, "5 h 10 min"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(span(ms), words);
        }
    }

    #[test]
    fn a_percentile_is_never_shown_too_low() {
        for (ms, words) in [(575, "575 ms"), (1_000, "1.0 s"), (1_919, "2.0 s"), (9_899, "9.9 s"), (10_001, "11 s")] {
            assert_eq!(percentile(ms), words);
        }
    }

    #[test]
    fn a_time_is_told_from_now_or_by_the_clock() {
        let now = Timestamp::from_epoch_ms(1_795_195_603_007);
        assert_eq!(from_now(now.minus_ms(12_000), now), "12 s ago");
        assert_eq!(from_now(now.plus_ms(90_000), now), "in 1 min 30 s");
        assert_eq!(clock(now), "2026-11-20 17:26:43Z");
    }
}
