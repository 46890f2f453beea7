//! The other store: versioned records.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::callback::CallbackKey;
use domain::definition::Deployment;
use domain::lease::Lease;
use domain::ports::{Commit, Record, RecordKind, Seen};
use domain::time::Timestamp;
use serde_json::Value;

use crate::faults::Fault;
use crate::state::State;
use crate::who::Who;

/// A record as JSON, with the version for conditions.
#[derive(Debug)]
struct Stored {
    version: u64,
    expires_at: Option<Timestamp>,
    record: Value,
}

/// The other store.
#[derive(Debug, Default)]
pub struct Records {
    records: BTreeMap<(RecordKind, Arc<str>), Stored>,
}

impl Records {
    /// Nothing is applied but a key for the results that come later (rule 38).
    pub fn with_a_key(workflow: &Arc<str>) -> Self {
        let deployment = Deployment {
            version: 1,
            default: workflow.clone(),
            workflows: BTreeMap::new(),
            highest: BTreeMap::new(),
            settings: "".into(),
            schedules: [].into(),
            callback_keys: vec![CallbackKey::first([1, 2, 3, 4])],
            applied_at: Timestamp::from_epoch_ms(0),
            applied_by: "world".into(),
            of_start: false,
        };
        let record = serde_json::to_value(&deployment).unwrap_or_default();
        let stored = Stored { version: 1, expires_at: None, record };
        let records = BTreeMap::from([((RecordKind::Deployment, Deployment::KEY.into()), stored)]);
        Self { records }
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
}

fn read<R: Record>(stored: &Stored) -> R {
    serde_json::from_value(stored.record.clone()).expect("a record of this kind")
}

/// The same record, as another type of its kind.
fn same<A: Record, B: Record>(record: &A) -> B {
    serde_json::from_value(serde_json::to_value(record).expect("a record")).expect("a record of this kind")
}

impl State {
    /// A record, even if expired. Another instance's lease may seem to be free.
    ///
    /// # Panics
    /// If it is not of this kind.
    pub fn get<R: Record>(&mut self, who: &Who, key: &str) -> Option<R> {
        let found: R = self.records.get(key)?;
        if R::KIND != RecordKind::Lease {
            return Some(found);
        }
        let mut lease: Lease = same(&found);
        if lease.is_held(self.clock(who.skew_ms)) && lease.owner != who.name && self.strikes(Fault::TwoLeaders) {
            lease.held_until = None;
        }
        Some(same(&lease))
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
            // A lease that was taken over may be renewed all the same.
            let is_granted = R::KIND == RecordKind::Lease && self.strikes(Fault::TwoLeaders);
            return if is_granted { Commit::Committed } else { Commit::Conflict };
        }
        if R::KIND == RecordKind::Deployment {
            self.see_deployment(&value);
        }
        if R::KIND == RecordKind::Memo {
            self.see_claim(&same(record));
        }
        let stored = Stored { version: record.version(), expires_at: record.expires_at(), record: value };
        self.records.records.insert(key, stored);
        Commit::Committed
    }
}
