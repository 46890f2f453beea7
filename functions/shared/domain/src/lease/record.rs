//! The rules of a lease's record, pure: its next value when the lease is acquired, renewed or released,
//! and when a work without a lease is reported.
//!
//! An adapter that reads and writes in one step calls these functions. The adapter on `DynamoDB` states the same rules as
//! conditions of its updates; the conformance suite holds both to one behaviour.

use crate::ports::{Lease, LeaseRecord};
use crate::time::Timestamp;

/// The record after `owner` has acquired the lease at `now`; `None` while another term lasts. A term that ends later than
/// one that begins now was written by a wrong clock, and is over (rule 23). The epoch keeps counting after a release.
#[must_use]
pub fn acquired(
    stored: Option<&LeaseRecord>,
    name: &str,
    owner: &str,
    now: Timestamp,
    term_ms: u64,
) -> Option<LeaseRecord> {
    let is_believed = |record: &LeaseRecord| !record.expires_at.is_some_and(|at| at.is_beyond(now, term_ms));
    if stored.is_some_and(|record| record.is_held(now) && is_believed(record)) {
        return None;
    }
    Some(LeaseRecord {
        name: name.into(),
        owner: owner.into(),
        epoch: stored.map_or(0, |record| record.epoch) + 1,
        expires_at: Some(now.plus_ms(term_ms)),
        renewed_at: Some(now),
        health: None,
    })
}

/// The record after the holder of `lease` has renewed it at `now`; `None` if the lease has ended or another instance
/// holds it.
#[must_use]
pub fn renewed(stored: &LeaseRecord, lease: &Lease, now: Timestamp, term_ms: u64, health: &str) -> Option<LeaseRecord> {
    let expires_at = Some(now.plus_ms(term_ms));
    (is_of(stored, lease) && stored.is_held(now)).then(|| LeaseRecord {
        expires_at,
        renewed_at: Some(now),
        health: Some(health.into()),
        ..stored.clone()
    })
}

/// The record after the holder of `lease` has released it; `None` if another instance holds it.
#[must_use]
pub fn released(stored: &LeaseRecord, lease: &Lease) -> Option<LeaseRecord> {
    is_of(stored, lease).then(|| LeaseRecord { expires_at: None, ..stored.clone() })
}

/// The record after `owner` has done a work at `now` for which it needs no lease.
#[must_use]
pub fn reported(stored: Option<&LeaseRecord>, name: &str, owner: &str, now: Timestamp, health: &str) -> LeaseRecord {
    LeaseRecord {
        name: name.into(),
        owner: owner.into(),
        epoch: stored.map_or(0, |record| record.epoch) + 1,
        expires_at: None,
        renewed_at: Some(now),
        health: Some(health.into()),
    }
}

/// Whether this is the record of the holder's lease.
fn is_of(stored: &LeaseRecord, lease: &Lease) -> bool {
    stored.expires_at.is_some() && (stored.epoch, &stored.owner) == (lease.epoch, &lease.owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_epoch_ms(1_000_000);

    fn taken() -> LeaseRecord {
        acquired(None, "shard-0", "a", START, 10).unwrap()
    }

    #[test]
    fn a_lease_is_acquired_once_its_term_is_over_and_not_before() {
        let first = taken();
        assert_eq!((first.epoch, first.expires_at), (1, Some(START.plus_ms(10))));
        let by_b = |now| acquired(Some(&first), "shard-0", "b", now, 10).map(|record| record.epoch);
        assert_eq!([START.plus_ms(9), START.plus_ms(10)].map(by_b), [None, Some(2)]);
    }

    #[test]
    fn f71_a_term_that_ends_later_than_one_that_begins_now_is_over() {
        let ahead = acquired(None, "shard-0", "fast", START.plus_ms(3_600_000), 10).unwrap();
        let by_b = |now| acquired(Some(&ahead), "shard-0", "b", now, 10).map(|record| record.epoch);
        let just = START.plus_ms(3_600_000 - 1_000);
        assert_eq!([START, just.minus_ms(1), just].map(by_b), [Some(2), Some(2), None]);
    }

    #[test]
    fn only_the_holder_renews_and_releases_and_only_while_the_term_lasts() {
        let first = taken();
        let lease = first.lease().unwrap();
        let renewed_at =
            |record: &LeaseRecord, lease: &Lease, ms| renewed(record, lease, START.plus_ms(ms), 10, "well");
        assert_eq!(renewed_at(&first, &lease, 9).unwrap().expires_at, Some(START.plus_ms(19)));
        assert_eq!(renewed_at(&first, &lease, 10), None, "the term is over");
        for other in [Lease { epoch: 2, ..lease.clone() }, Lease { owner: "b".into(), ..lease.clone() }] {
            assert_eq!((renewed_at(&first, &other, 1), released(&first, &other)), (None, None));
        }
        let free = released(&first, &lease).unwrap();
        assert_eq!((renewed_at(&free, &lease, 1), free.lease(), free.is_held(START)), (None, None, false));
        assert_eq!(acquired(Some(&free), "shard-0", "b", START, 10).unwrap().epoch, 2);
    }
}
