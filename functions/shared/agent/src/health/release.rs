//! The release of parked requests after a recovery: permits by interval. It begins with what the service carried before.
//! Each interval has twice as many as the one before, or half as many if most of the calls that took them failed.

use domain::ports::Release;
use domain::time::Timestamp;

use crate::health::HealthPolicy;

/// Length of an interval, in milliseconds.
pub(crate) const INTERVAL_MS: u64 = 1_000;
/// A request without a permit comes back within this many intervals.
pub(crate) const SPREAD_INTERVALS: u64 = 4;
/// After this many intervals with permits left over, no request waits any more. It is more than [`SPREAD_INTERVALS`],
/// so every parked request has been back.
const QUIET_INTERVALS: u32 = 5;
/// The number of portions of an interval's permits. An instance takes one portion at a time, which bounds the writes.
const PORTIONS: u32 = 10;

/// The interval at `now`, for a recovery at `since`. If this clock is behind, the interval of the last writer goes on.
pub(crate) fn interval(release: Release, since: Timestamp, now: Timestamp) -> u32 {
    u32::try_from(since.ms_until(now) / INTERVAL_MS).unwrap_or(u32::MAX).max(release.interval)
}

/// The release at `now`, for a recovery at `since`: a new interval starts with no permit taken.
pub(crate) fn at(release: Release, since: Timestamp, now: Timestamp, policy: &HealthPolicy) -> Release {
    let doubled = |rate: u32, times: u32| rate.saturating_mul(2_u32.saturating_pow(times));
    let rate = if release.rate > 0 { release.rate } else { doubled(policy.release_first, release.interval) };
    let interval = interval(release, since, now);
    if interval == release.interval {
        return Release { rate: rate.min(policy.release_max), ..release };
    }
    let fails = release.failed > release.taken / 2;
    let rate = if fails { (rate / 2).max(1) } else { doubled(rate, interval - release.interval) };
    Release { interval, taken: 0, failed: 0, rate: rate.min(policy.release_max), ..release }
}

/// Whether no parked request is left.
pub(crate) fn is_over(release: Release, since: Timestamp, now: Timestamp) -> bool {
    interval(release, since, now) > release.crowded.saturating_add(QUIET_INTERVALS)
}

/// Takes a portion of the permits, or the rest of them, and returns its size. The instance that takes the last one
/// leaves a mark, since other requests may have to wait on.
pub(crate) fn take(release: Release) -> (Release, u32) {
    let left = release.rate.saturating_sub(release.taken);
    let taken = release.rate.div_ceil(PORTIONS).min(left);
    let crowded = if taken == left { release.interval } else { release.crowded };
    (Release { taken: release.taken + taken, crowded, ..release }, taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> HealthPolicy {
        HealthPolicy { release_first: 20, release_max: 100, ..HealthPolicy::default() }
    }

    const SINCE: Timestamp = Timestamp::from_epoch_ms(10_000);

    /// The permits of an interval, if the calls of the one at the start went well.
    fn permits(start: Release, interval: u64) -> u32 {
        at(start, SINCE, SINCE.plus_ms(interval * INTERVAL_MS), &policy()).rate
    }

    #[test]
    fn each_interval_has_twice_the_permits_up_to_the_most() {
        let start = Release { rate: 20, ..Release::default() };
        assert_eq!([0, 1, 2, 3, 4, 31, 32, 1 << 40].map(|n| permits(start, n)), [20, 40, 80, 100, 100, 100, 100, 100]);
        assert_eq!(permits(Release { rate: 30, ..start }, 1), 60, "it begins with what the service carried");
        let of_an_earlier_version = Release { interval: 1, ..Release::default() };
        assert_eq!([1, 2].map(|n| permits(of_an_earlier_version, n)), [40, 80]);
    }

    #[test]
    fn an_interval_in_which_most_calls_fail_is_followed_by_half_the_permits() {
        let of = |failed| permits(Release { rate: 20, taken: 20, failed, ..Release::default() }, 1);
        assert_eq!([0, 10, 11, 99].map(of), [40, 40, 10, 10]);
        assert_eq!(permits(Release { rate: 1, taken: 1, failed: 1, ..Release::default() }, 1), 1);
    }

    #[test]
    fn no_more_is_taken_than_there_is_and_the_last_one_leaves_a_mark() {
        let start = Release { interval: 3, taken: 0, crowded: 1, rate: 100, failed: 0 };
        let (some, taken) = take(start);
        assert_eq!((some, taken), (Release { taken: 10, ..start }, 10));
        let (all, taken) = take(Release { taken: 95, ..start });
        assert_eq!((all, taken), (Release { taken: 100, crowded: 3, ..start }, 5));
        assert_eq!(take(all), (all, 0));
    }

    #[test]
    fn a_new_interval_starts_with_nothing_taken_and_a_late_clock_changes_nothing() {
        let release = Release { interval: 2, taken: 7, crowded: 2, rate: 50, failed: 1 };
        let at = |now| at(release, SINCE, now, &policy());
        assert_eq!(at(SINCE.plus_ms(2_999)), release);
        let next = Release { interval: 3, taken: 0, rate: 100, failed: 0, ..release };
        assert_eq!(at(SINCE.plus_ms(3_000)), next);
        assert_eq!(at(SINCE.minus_ms(60_000)), release);
    }

    #[test]
    fn the_release_is_over_once_no_request_waited_for_longer_than_any_wait() {
        assert!(u64::from(QUIET_INTERVALS) > SPREAD_INTERVALS);
        let release = |interval| Release { interval, taken: 1, crowded: 4, rate: 1, failed: 0 };
        let is_over = |interval| is_over(release(interval), SINCE, SINCE);
        assert!(!is_over(4 + QUIET_INTERVALS));
        assert!(is_over(5 + QUIET_INTERVALS));
    }
}
