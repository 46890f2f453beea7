//! The header `Retry-After`: seconds, or a date.

use std::time::{Duration, SystemTime};

use domain::time::{Timestamp, whole_seconds};
use http::HeaderMap;
use http::header::{DATE, HeaderName, RETRY_AFTER};

/// The time for which the service asks not to be called, in milliseconds; `None` if the header is absent or invalid.
///
/// A date is by the service's clock, so it is compared with the date of its answer. Only without that date, `now` by
/// the agent's clock is used: the two clocks may differ.
/// Of several values the first that can be read counts. One that is invalid spoils none beside it.
pub(crate) fn retry_after_ms(headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    let mut values = headers.get_all(RETRY_AFTER).into_iter().filter_map(|value| value.to_str().ok());
    let wait_ms = |value: &str| until_ms(value.trim(), headers, now);
    // A date has a comma of its own.
    values.find_map(|value| wait_ms(value).or_else(|| value.split(',').find_map(wait_ms)))
}

fn until_ms(value: &str, headers: &HeaderMap, now: Timestamp) -> Option<u64> {
    if let Some(seconds) = whole_seconds(value) {
        return Some(seconds.saturating_mul(1_000));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = date(headers, &DATE).unwrap_or_else(|| system_time(now));
    let wait = until.duration_since(now).unwrap_or(Duration::ZERO);
    Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

fn system_time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.epoch_ms()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fri, 20 Nov 2026 17:26:43 GMT.
    const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);

    fn of(headers: &[(HeaderName, &str)]) -> Option<u64> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        retry_after_ms(&headers, NOW)
    }

    #[test]
    fn seconds_are_taken_as_they_are() {
        assert_eq!(of(&[(RETRY_AFTER, "120")]), Some(120_000));
        assert_eq!(of(&[(RETRY_AFTER, "0")]), Some(0));
        assert_eq!(of(&[(RETRY_AFTER, "99999999999999999999999")]), Some(u64::MAX));
    }

    #[test]
    fn a_fraction_of_a_second_is_rounded_up() {
        for (value, ms) in [("4.0", 4_000), ("2.5", 3_000), ("0.001", 1_000), ("0.0", 0)] {
            assert_eq!(of(&[(RETRY_AFTER, value)]), Some(ms), "{value}");
        }
    }

    #[test]
    fn of_several_values_the_first_counts_and_a_bad_one_spoils_none() {
        assert_eq!(of(&[(RETRY_AFTER, "4"), (RETRY_AFTER, "9")]), Some(4_000));
        assert_eq!(of(&[(RETRY_AFTER, "soon"), (RETRY_AFTER, "4")]), Some(4_000));
        assert_eq!(of(&[(RETRY_AFTER, "soon, 9.5, 4")]), Some(10_000));
        assert_eq!(of(&[(RETRY_AFTER, "-1"), (RETRY_AFTER, "Fri, 20 Nov 2026 17:27:00 GMT")]), Some(17_000));
    }

    #[test]
    fn a_date_in_each_form_of_http_is_taken_as_a_distance() {
        for date in ["Fri, 20 Nov 2026 17:27:00 GMT", "Friday, 20-Nov-26 17:27:00 GMT", "Fri Nov 20 17:27:00 2026"] {
            assert_eq!(of(&[(RETRY_AFTER, date)]), Some(17_000), "{date}");
        }
        assert_eq!(of(&[(RETRY_AFTER, "Fri, 20 Nov 2026 17:00:00 GMT")]), Some(0), "in the past");
    }

    #[test]
    fn a_date_is_measured_by_the_clock_of_the_service() {
        let service_is_an_hour_early =
            [(DATE, "Fri, 20 Nov 2026 18:26:43 GMT"), (RETRY_AFTER, "Fri, 20 Nov 2026 18:26:48 GMT")];
        assert_eq!(of(&service_is_an_hour_early), Some(5_000));
    }

    #[test]
    fn nonsense_is_no_command() {
        assert_eq!(of(&[]), None);
        for value in ["", "soon", "-1", "1.", ".5", "1.5.5", "1e3", "1s", "Fri, 99 Nov 2026 17:27:00 GMT"] {
            assert_eq!(of(&[(RETRY_AFTER, value)]), None, "{value:?}");
        }
    }
}
