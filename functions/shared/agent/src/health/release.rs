//! The release of parked requests after a recovery: permits by interval, twice as many in each.

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

/// The release at `now`, for a recovery at `since`: a new interval starts with no permit taken.
pub(crate) fn at(release: Release, since: Timestamp, now: Timestamp) -> Release {
    let interval = u32::try_from(since.ms_until(now) / INTERVAL_MS).unwrap_or(u32::MAX);
    if interval > release.interval {
        Release { interval, taken: 0, ..release }
    } else {
        // If this clock is behind, the interval of the last writer goes on.
        release
    }
}

/// Whether no parked request is left.
pub(crate) const fn is_over(release: Release) -> bool {
    release.interval > release.crowded.saturating_add(QUIET_INTERVALS)
}

/// Takes a portion of the permits, or the rest of them, and returns its size. The instance that takes the last one
/// leaves a mark, since other requests may have to wait on.
pub(crate) fn take(release: Release, policy: &HealthPolicy) -> (Release, u32) {
    let permits = permits(release.interval, policy);
    let left = permits.saturating_sub(release.taken);
    let taken = permits.div_ceil(PORTIONS).min(left);
    let crowded = if taken == left { release.interval } else { release.crowded };
    (Release { taken: release.taken + taken, crowded, ..release }, taken)
}

fn permits(interval: u32, policy: &HealthPolicy) -> u32 {
    policy.release_first.saturating_mul(2_u32.saturating_pow(interval)).min(policy.release_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> HealthPolicy {
        HealthPolicy { release_first: 20, release_max: 100, ..HealthPolicy::default() }
    }

    #[test]
    fn each_interval_has_twice_the_permits_up_to_the_most() {
        let of = |interval| permits(interval, &policy());
        assert_eq!([0, 1, 2, 3, 4, 31, 32, u32::MAX].map(of), [20, 40, 80, 100, 100, 100, 100, 100]);
    }

    #[test]
    fn no_more_is_taken_than_there_is_and_the_last_one_leaves_a_mark() {
        let start = Release { interval: 3, taken: 0, crowded: 1 };
        let (some, taken) = take(start, &policy());
        assert_eq!((some, taken), (Release { taken: 10, ..start }, 10));
        let (all, taken) = take(Release { taken: 95, ..start }, &policy());
        assert_eq!((all, taken), (Release { taken: 100, crowded: 3, ..start }, 5));
        assert_eq!(take(all, &policy()), (all, 0));
    }

    #[test]
    fn a_new_interval_starts_with_nothing_taken_and_a_late_clock_changes_nothing() {
        let since = Timestamp::from_epoch_ms(10_000);
        let release = Release { interval: 2, taken: 7, crowded: 2 };
        assert_eq!(at(release, since, since.plus_ms(2_999)), release);
        assert_eq!(at(release, since, since.plus_ms(3_000)), Release { interval: 3, taken: 0, crowded: 2 });
        assert_eq!(at(release, since, since.minus_ms(60_000)), release);
    }

    #[test]
    fn the_release_is_over_once_no_request_waited_for_longer_than_any_wait() {
        assert!(u64::from(QUIET_INTERVALS) > SPREAD_INTERVALS);
        let is_over = |interval| is_over(Release { interval, taken: 1, crowded: 4 });
        assert!(!is_over(4 + QUIET_INTERVALS));
        assert!(is_over(5 + QUIET_INTERVALS));
    }
}
