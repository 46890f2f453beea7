//! Points in time: epoch milliseconds in keys, RFC 3339 UTC with milliseconds in documents (design §6).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

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

    /// This time and `ms` later; the end of time where that would overflow.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// This time and `ms` earlier.
    #[must_use]
    pub fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Milliseconds from `self` to `later`; 0 where `later` is not later.
    #[must_use]
    pub fn ms_until(self, later: Self) -> u64 {
        u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Beyond the years that RFC 3339 can write there is only the epoch to show.
        let at = OffsetDateTime::from_unix_timestamp(self.0.div_euclid(1_000)).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute(),
            at.second(),
            self.0.rem_euclid(1_000)
        )
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let at = OffsetDateTime::parse(&text, &Rfc3339).map_err(de::Error::custom)?;
        i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).map(Self).map_err(de::Error::custom)
    }
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
    fn differences_never_go_below_zero() {
        let now = Timestamp::from_epoch_ms(1_000);
        assert_eq!(now.ms_until(now.plus_ms(5)), 5);
        assert_eq!(now.plus_ms(5).ms_until(now), 0);
    }
}
