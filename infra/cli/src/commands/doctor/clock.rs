//! How far the clock of the API is from this machine's.

use std::time::{Duration, SystemTime};

use super::finding::Finding;
use crate::show::time::span;

/// From here on somebody should know.
const WARNING: Duration = Duration::from_secs(5);
/// From here on attempts are lost, and signatures soon are no longer taken.
const WRONG: Duration = Duration::from_secs(60);
const CHECK: &str = "clock";

/// Judges the header `Date` of an answer that came between `asked` and `answered`. It tells whole seconds.
pub(super) fn judge(date: Option<&str>, asked: SystemTime, answered: SystemTime) -> Finding {
    let Some(told) = date.and_then(|date| httpdate::parse_http_date(date).ok()) else {
        return Finding::skipped(CHECK, "the API does not tell its time");
    };
    let skew = skew(told, asked, answered);
    let to_do = "set the clocks by NTP: one that is minutes off costs attempts and makes signatures invalid";
    let found = format!("{} from this machine's", span(u64::try_from(skew.as_millis()).unwrap_or(u64::MAX)));
    if skew > WRONG {
        Finding::wrong(CHECK, found, to_do)
    } else if skew > WARNING {
        Finding::warning(CHECK, found, to_do)
    } else {
        Finding::ok(CHECK, "right, to a few seconds")
    }
}

/// How far the second that was told lies outside of the time in which the answer was made.
fn skew(told: SystemTime, asked: SystemTime, answered: SystemTime) -> Duration {
    let told_end = told + Duration::from_secs(1);
    let early = asked.duration_since(told_end).unwrap_or_default();
    let late = told.duration_since(answered).unwrap_or_default();
    early.max(late)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::commands::doctor::finding::State;

    /// The state where the API's clock is `off_s` seconds ahead of this one, which is `s` seconds into 2026-11-20.
    fn state(off_s: i64) -> State {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_195_603);
        let theirs = UNIX_EPOCH + Duration::from_secs(u64::try_from(1_795_195_603 + off_s).unwrap());
        let date = httpdate::fmt_http_date(theirs);
        judge(Some(&date), now, now + Duration::from_millis(200)).state
    }

    #[test]
    fn a_clock_is_right_within_seconds_a_warning_within_a_minute_and_wrong_beyond() {
        for (off_s, expected) in [
            (0, State::Ok),
            (-5, State::Ok),
            (5, State::Ok),
            (7, State::Warning),
            (-8, State::Warning),
            (60, State::Warning),
            (62, State::Wrong),
            (-3_600, State::Wrong),
        ] {
            assert_eq!(state(off_s), expected, "{off_s}");
        }
    }

    #[test]
    fn an_answer_that_took_long_is_no_skew() {
        let now = UNIX_EPOCH + Duration::from_secs(1_795_195_603);
        let date = httpdate::fmt_http_date(now + Duration::from_secs(15));
        assert_eq!(judge(Some(&date), now, now + Duration::from_secs(20)).state, State::Ok);
        assert_eq!(judge(None, now, now).state, State::Skipped);
        assert_eq!(judge(Some("soon"), now, now).state, State::Skipped);
    }
}
