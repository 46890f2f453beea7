//! Points in time: epoch milliseconds in keys, RFC 3339 UTC with milliseconds in documents.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::limits::CLOCKS_DIFFER_MS;

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// The first and the last millisecond that RFC 3339 can write: the years from 0000 to 9999, in epoch milliseconds.
const WRITABLE_MS: (i64, i64) = (-62_167_219_200_000, 253_402_300_799_999);

impl Timestamp {
    /// From epoch milliseconds.
    #[must_use]
    pub const fn from_epoch_ms(epoch_ms: i64) -> Self {
        Self(epoch_ms)
    }

    /// Epoch milliseconds, the form used in keys.
    #[must_use]
    pub const fn epoch_ms(self) -> i64 {
        self.0
    }

    /// This time and `ms` later; the end of time on an overflow.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// This time and `ms` earlier.
    #[must_use]
    pub fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Milliseconds from `self` to `later`; 0 if `later` is not later.
    #[must_use]
    pub fn ms_until(self, later: Self) -> u64 {
        u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0)
    }

    /// Whether this time lies more than `ms` after `now`, and more than clocks usually differ. A time that honestly lies
    /// at most `ms` ahead was then written by another clock, or before this one was set back (rule 23).
    #[must_use]
    pub fn is_beyond(self, now: Self, ms: u64) -> bool {
        now.ms_until(self) > ms.saturating_add(CLOCKS_DIFFER_MS)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.written(&mut [0; WRITTEN_BYTES]))
    }
}

/// `2026-11-20T17:26:43.007Z`
const WRITTEN_BYTES: usize = 24;

impl Timestamp {
    /// In RFC 3339, digit by digit: every version of a task contains a dozen times, and the formatter's machinery
    /// takes ten times as long.
    fn written(self, text: &mut [u8; WRITTEN_BYTES]) -> &str {
        // A time outside the years of RFC 3339 is written as the nearest one inside. So the order of written times is
        // the order of the times.
        let epoch_ms = self.0.clamp(WRITABLE_MS.0, WRITABLE_MS.1);
        let at = OffsetDateTime::from_unix_timestamp(epoch_ms.div_euclid(1_000)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        *text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |first: usize, digits: usize, number: u32| {
            let mut rest = number;
            for place in (first..first + digits).rev() {
                text[place] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
                rest /= 10;
            }
        };
        let ((year, month, day), (hour, minute, second)) = (at.to_calendar_date(), at.to_hms());
        put(0, 4, year.unsigned_abs());
        put(5, 2, u8::from(month).into());
        put(8, 2, day.into());
        put(11, 2, hour.into());
        put(14, 2, minute.into());
        put(17, 2, second.into());
        put(20, 3, u32::try_from(epoch_ms.rem_euclid(1_000)).unwrap_or_default());
        // It contains only digits and the separators.
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.written(&mut [0; WRITTEN_BYTES]))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let at = OffsetDateTime::parse(&text, &Rfc3339).map_err(de::Error::custom)?;
        let epoch_ms = i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).map_err(de::Error::custom)?;
        // A time zone can move a time out of the years in which it could be written again.
        match (WRITABLE_MS.0..=WRITABLE_MS.1).contains(&epoch_ms) {
            true => Ok(Self(epoch_ms)),
            false => Err(de::Error::custom("a time before the year 0000 or after the year 9999 in UTC")),
        }
    }
}

/// The seconds of a `Retry-After`. Some services also send a fraction, which is rounded up. `None`: a date, or neither.
#[must_use]
pub fn whole_seconds(value: &str) -> Option<u64> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    if [whole, fraction].iter().any(|digits| digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let is_more = fraction.bytes().any(|digit| digit != b'0');
    // A number with too many digits is longer than any wait.
    Some(whole.parse::<u64>().unwrap_or(u64::MAX).saturating_add(u64::from(is_more)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_milliseconds_and_read_back() {
        let at = Timestamp::from_epoch_ms(1_795_195_603_007);
        let text = serde_json::to_string(&at).unwrap();
        assert_eq!(text, "\"2026-11-20T17:26:43.007Z\"");
        assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), at);
    }

    #[test]
    fn a_time_in_another_zone_is_the_same_time() {
        let there: Timestamp = serde_json::from_str("\"2026-11-20T18:26:43.007+01:00\"").unwrap();
        assert_eq!(there, Timestamp::from_epoch_ms(1_795_195_603_007));
    }

    #[test]
    fn a_time_that_its_zone_moves_out_of_the_years_that_can_be_written_is_refused() {
        for (text, epoch_ms) in
            [("0000-01-01T00:00:00Z", WRITABLE_MS.0), ("9999-12-31T22:59:59.999-01:00", WRITABLE_MS.1)]
        {
            let at: Timestamp = serde_json::from_str(&format!("\"{text}\"")).unwrap();
            assert_eq!(at, Timestamp::from_epoch_ms(epoch_ms), "{text}");
        }
        for text in ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert!(serde_json::from_str::<Timestamp>(&format!("\"{text}\"")).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_written_in_their_order_to_the_end_of_time() {
        let ends = [i64::MIN, WRITABLE_MS.0, 0, WRITABLE_MS.1, i64::MAX];
        let written = ends.map(|epoch_ms| Timestamp::from_epoch_ms(epoch_ms).to_string());
        assert!(written.is_sorted(), "{written:?}");
        assert_eq!((&*written[0], &*written[4]), ("0000-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"));
    }

    #[test]
    fn differences_never_go_below_zero() {
        let now = Timestamp::from_epoch_ms(1_000);
        assert_eq!(now.ms_until(now.plus_ms(5)), 5);
        assert_eq!(now.plus_ms(5).ms_until(now), 0);
    }

    #[test]
    fn rule_23_a_time_is_beyond_its_bound_if_no_usual_difference_of_clocks_explains_it() {
        let now = Timestamp::from_epoch_ms(1_000_000);
        let is_beyond = |ms| now.plus_ms(ms).is_beyond(now, 500);
        assert_eq!([0, 500, 1_500, 1_501].map(is_beyond), [false, false, false, true]);
        assert!(!now.minus_ms(5_000).is_beyond(now, 0), "the past is never ahead");
    }

    #[test]
    fn in_logs_a_time_reads_as_everywhere_else() {
        assert_eq!(format!("{:?}", Timestamp::from_epoch_ms(1_795_195_603_007)), "2026-11-20T17:26:43.007Z");
    }
}
