//! A lease as a record, and its rules, pure: its next value when it is acquired, renewed or released, and when a work
//! without a lease is reported. The condition of each write is the version of the record that the rule saw.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ports::{Listed, Record, RecordKind, Shown};
use crate::time::Timestamp;

/// How long a record outlives its last write. Its epoch keeps counting for this time.
const KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// A lease: what its present or last holder wrote. For all but its holder it is only to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Lease {
    /// The name of its work.
    pub name: Arc<str>,
    /// Its present or last holder.
    pub owner: Arc<str>,
    /// +1 at every change of holder.
    pub epoch: u64,
    /// +1 at every change. The first one is the time: a holder whose record was deleted cannot take another one for its
    /// own.
    pub version: u64,
    /// The end of its term; `None` once it was released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
    /// When its holder last wrote it.
    pub renewed_at: Timestamp,
    /// The holder's health when it last wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Arc<str>>,
}

impl Lease {
    /// Whether it is held at `now`.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.held_until.is_some_and(|until| until > now)
    }

    /// The record after another holder, or a later run of this one.
    fn next(stored: Option<&Self>, name: &str, owner: &str, now: Timestamp) -> Self {
        Self {
            name: name.into(),
            owner: owner.into(),
            epoch: stored.map_or(0, |lease| lease.epoch) + 1,
            version: stored.map_or(now.epoch_ms().unsigned_abs().max(1), |lease| lease.version + 1),
            held_until: None,
            renewed_at: now,
            health: None,
        }
    }
}

impl Record for Lease {
    const KIND: RecordKind = RecordKind::Lease;

    fn key(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn expires_at(&self) -> Option<Timestamp> {
        Some(self.renewed_at.plus_ms(KEPT_MS))
    }

    fn shown(&self) -> Vec<(&'static str, Shown)> {
        vec![("Owner", Shown::Text(self.owner.to_string())), ("RenewedAt", Shown::Time(self.renewed_at))]
    }
}

impl Listed for Lease {}

/// The record after `owner` has acquired the lease at `now`; `None` while another term lasts. A term that ends later than
/// one that begins now was written by a wrong clock, and is over (rule 23). The epoch keeps counting after a release.
#[must_use]
pub fn acquired(stored: Option<&Lease>, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Option<Lease> {
    let is_believed = |lease: &Lease| !lease.held_until.is_some_and(|until| until.is_beyond(now, term_ms));
    if stored.is_some_and(|lease| lease.is_held(now) && is_believed(lease)) {
        return None;
    }
    Some(Lease { held_until: Some(now.plus_ms(term_ms)), ..Lease::next(stored, name, owner, now) })
}

/// The record after the holder of `lease` has renewed it at `now`; `None` if its term is over.
#[must_use]
pub fn renewed(lease: &Lease, now: Timestamp, term_ms: u64, health: &str) -> Option<Lease> {
    lease.is_held(now).then(|| Lease {
        version: lease.version + 1,
        held_until: Some(now.plus_ms(term_ms)),
        renewed_at: now,
        health: Some(health.into()),
        ..lease.clone()
    })
}

/// The record after the holder of `lease` has released it at `now`, with its last health unless that is empty; `None` if
/// another instance holds it, or it is free.
#[must_use]
pub fn released(stored: &Lease, lease: &Lease, now: Timestamp, health: &str) -> Option<Lease> {
    let is_own = stored.held_until.is_some() && (stored.epoch, &stored.owner) == (lease.epoch, &lease.owner);
    is_own.then(|| Lease {
        version: stored.version + 1,
        held_until: None,
        renewed_at: now,
        health: if health.is_empty() { stored.health.clone() } else { Some(health.into()) },
        ..stored.clone()
    })
}

/// The record after `owner` has done a work at `now` for which it needs no lease.
#[must_use]
pub fn reported(stored: Option<&Lease>, name: &str, owner: &str, now: Timestamp, health: &str) -> Lease {
    Lease { health: Some(health.into()), ..Lease::next(stored, name, owner, now) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_epoch_ms(1_000_000);

    fn taken() -> Lease {
        acquired(None, "shard-0", "a", START, 10).unwrap()
    }

    #[test]
    fn a_lease_is_acquired_once_its_term_is_over_and_not_before() {
        let first = taken();
        assert_eq!((first.epoch, first.held_until), (1, Some(START.plus_ms(10))));
        let by_b = |now| acquired(Some(&first), "shard-0", "b", now, 10).map(|lease| lease.epoch);
        assert_eq!([START.plus_ms(9), START.plus_ms(10)].map(by_b), [None, Some(2)]);
        assert_eq!([START.plus_ms(9), START.plus_ms(10)].map(|now| first.is_held(now)), [true, false]);
    }

    #[test]
    fn f71_a_term_that_ends_later_than_one_that_begins_now_is_over() {
        let ahead = acquired(None, "shard-0", "fast", START.plus_ms(3_600_000), 10).unwrap();
        let by_b = |now| acquired(Some(&ahead), "shard-0", "b", now, 10).map(|lease| lease.epoch);
        let just = START.plus_ms(3_600_000 - 1_000);
        assert_eq!([START, just.minus_ms(1), just].map(by_b), [Some(2), Some(2), None]);
    }

    #[test]
    fn a_holder_renews_while_its_term_lasts_and_the_next_one_begins_without_its_health() {
        let first = taken();
        let renewed_at = |ms| renewed(&first, START.plus_ms(ms), 10, "well");
        let second = renewed_at(9).unwrap();
        assert_eq!((second.held_until, second.version), (Some(START.plus_ms(19)), first.version + 1));
        assert_eq!((second.epoch, second.health.as_deref()), (1, Some("well")));
        assert_eq!(renewed_at(10), None, "the term is over");
        let next = acquired(Some(&second), "shard-0", "b", START.plus_ms(19), 10).unwrap();
        assert_eq!((next.epoch, next.version, next.health), (2, second.version + 1, None));
    }

    #[test]
    fn only_the_holder_releases_and_the_epoch_goes_on() {
        let first = taken();
        // The holder may not know that its last renewal was written.
        let stored = renewed(&first, START, 10, "well").unwrap();
        for other in [Lease { epoch: 2, ..first.clone() }, Lease { owner: "b".into(), ..first.clone() }] {
            assert_eq!(released(&stored, &other, START, ""), None);
        }
        let free = released(&stored, &first, START, "").unwrap();
        assert_eq!((free.held_until, free.version, free.health.as_deref()), (None, stored.version + 1, Some("well")));
        assert_eq!(released(&stored, &first, START, "done").unwrap().health.as_deref(), Some("done"));
        assert_eq!((released(&free, &first, START, ""), free.is_held(START)), (None, false));
        assert_eq!(acquired(Some(&free), "shard-0", "b", START, 10).unwrap().epoch, 2);
    }

    #[test]
    fn a_report_says_who_worked_last_and_keeps_no_one_out() {
        let first = reported(None, "run", "a", START, "took 3");
        let second = reported(Some(&first), "run", "b", START.plus_ms(1), "took 0");
        assert_eq!((&*second.owner, second.epoch, second.health.as_deref()), ("b", 2, Some("took 0")));
        assert_eq!(acquired(Some(&second), "run", "c", START.plus_ms(1), 10).unwrap().epoch, 3);
    }

    #[test]
    fn a_record_that_was_deleted_does_not_begin_with_a_version_of_before() {
        let lost = renewed(&taken(), START.plus_ms(5), 10, "well").unwrap();
        let anew = acquired(None, "shard-0", "b", START.plus_ms(15), 10).unwrap();
        assert!(anew.version > lost.version);
    }
}
