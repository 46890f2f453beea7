//! The other stores: leases, versioned records, and settled dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::callback::CallbackKey;
use domain::definition::Deployment;
use domain::lease::{acquired, released, renewed, reported};
use domain::ports::{Commit, DeadLetterRecord, Lease, LeaseRecord, Record, RecordKind, Seen};
use domain::time::Timestamp;
use serde_json::Value;

use super::faults::Fault;
use super::shapes::ORDER;
use super::state::State;

/// A record as JSON, with the version for conditions.
#[derive(Debug)]
struct Stored {
    version: u64,
    expires_at: Option<Timestamp>,
    record: Value,
}

/// The other stores.
#[derive(Debug, Default)]
pub struct Records {
    leases: BTreeMap<Arc<str>, LeaseRecord>,
    records: BTreeMap<(RecordKind, Arc<str>), Stored>,
    /// By message ID.
    pub dead_letters: BTreeMap<Arc<str>, DeadLetterRecord>,
}

impl Records {
    /// Nothing is applied but a key for the results that come later (rule 38).
    pub fn with_a_key() -> Self {
        let deployment = Deployment {
            version: 1,
            default: ORDER.into(),
            workflows: BTreeMap::new(),
            highest: BTreeMap::new(),
            settings: "".into(),
            callback_keys: vec![CallbackKey::first([1, 2, 3, 4])],
            applied_at: Timestamp::from_epoch_ms(0),
            applied_by: "world".into(),
            of_start: false,
        };
        let record = serde_json::to_value(&deployment).unwrap_or_default();
        let stored = Stored { version: 1, expires_at: None, record };
        let records = BTreeMap::from([((RecordKind::Deployment, Deployment::KEY.into()), stored)]);
        Self { records, ..Self::default() }
    }

    /// A record, even if expired.
    ///
    /// # Panics
    /// If it is not of this kind.
    #[must_use]
    pub fn get<R: Record>(&self, key: &str) -> Option<R> {
        self.records.get(&(R::KIND, key.into())).map(read)
    }

    /// All records of a kind.
    ///
    /// # Panics
    /// If one of them is not of this kind.
    #[must_use]
    pub fn all<R: Record>(&self) -> Vec<R> {
        self.records.iter().filter(|((kind, _), _)| *kind == R::KIND).map(|(_, stored)| read(stored)).collect()
    }

    /// All leases.
    #[must_use]
    pub fn all_leases(&self) -> Vec<LeaseRecord> {
        self.leases.values().cloned().collect()
    }
}

fn read<R: Record>(stored: &Stored) -> R {
    serde_json::from_value(stored.record.clone()).expect("a record of this kind")
}

impl State {
    /// Acquires a lease if it is free by this clock, or if the fault grants it.
    pub fn acquire(&mut self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Option<Lease> {
        let mut stored = self.records.leases.get(name).cloned();
        if stored.as_ref().is_some_and(|record| record.is_held(now)) && self.strikes(Fault::TwoLeaders) {
            stored.iter_mut().for_each(|record| record.expires_at = None);
        }
        let record = acquired(stored.as_ref(), name, owner, now, term_ms)?;
        let lease = record.lease();
        self.records.leases.insert(name.into(), record);
        lease
    }

    /// Renews a lease if it is still held, or if the fault grants it.
    pub fn renew(&mut self, lease: &Lease, now: Timestamp, term_ms: u64, health: &str) -> Option<Lease> {
        match renewed(self.records.leases.get(&lease.name)?, lease, now, term_ms, health) {
            Some(record) => {
                let lease = record.lease();
                self.records.leases.insert(record.name.clone(), record);
                lease
            }
            None => {
                let extended = Lease { expires_at: now.plus_ms(term_ms), ..lease.clone() };
                self.strikes(Fault::TwoLeaders).then_some(extended)
            }
        }
    }

    /// Writes down who has done a work without a lease.
    pub fn report(&mut self, name: &str, owner: &str, now: Timestamp, health: &str) {
        let record = reported(self.records.leases.get(name), name, owner, now, health);
        self.records.leases.insert(record.name.clone(), record);
    }

    /// Releases a lease if it is still held.
    pub fn release(&mut self, lease: &Lease) {
        if let Some(record) = self.records.leases.get(&lease.name).and_then(|stored| released(stored, lease)) {
            self.records.leases.insert(record.name.clone(), record);
        }
    }

    /// Writes a record if the stored version is unchanged.
    ///
    /// # Panics
    /// If the record is not JSON.
    pub fn put<R: Record>(&mut self, seen: Seen, record: &R) -> Commit {
        let key = (R::KIND, Arc::<str>::from(record.key()));
        let is_live = |stored: &&Stored| stored.expires_at.is_none_or(|at| at > seen.at);
        let present = self.records.records.get(&key).filter(is_live).map_or(0, |stored| stored.version);
        let is_lost = present != seen.version || self.strikes(Fault::ConflictInjected);
        let value = serde_json::to_value(record).expect("a record");
        if R::KIND == RecordKind::Memo {
            let world = self.world.clone();
            self.note(&world, None, &(record.version(), is_lost), || {
                format!("memo {} {value}{}", record.key(), if is_lost { ": conflict" } else { "" })
            });
        }
        if is_lost {
            return Commit::Conflict;
        }
        if R::KIND == RecordKind::Deployment {
            self.see_deployment(&value);
        }
        let stored = Stored { version: record.version(), expires_at: record.expires_at(), record: value };
        self.records.records.insert(key, stored);
        Commit::Committed
    }
}
