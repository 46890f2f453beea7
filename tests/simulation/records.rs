//! What is stored beside orders: leases, health, memos, jobs and what became of dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::bulk::Job;
use domain::ports::{Commit, DeadLetterRecord, Lease, LeaseRecord, Memo, ServiceHealth};
use domain::time::Timestamp;

use super::faults::Fault;
use super::state::State;

/// A lease, or what is left of one that was given back.
#[derive(Debug)]
struct Held {
    lease: Lease,
    is_given_back: bool,
}

/// What is stored beside orders.
#[derive(Debug, Default)]
pub struct Records {
    leases: BTreeMap<Arc<str>, Held>,
    /// By service.
    pub health: BTreeMap<Arc<str>, ServiceHealth>,
    memos: BTreeMap<Arc<str>, Memo>,
    /// Newest first.
    pub jobs: Vec<Arc<Job>>,
    /// By message.
    pub dead_letters: BTreeMap<Arc<str>, DeadLetterRecord>,
}

impl Records {
    /// The memo of a key, if it is not over.
    #[must_use]
    pub fn memo(&self, key: &str, now: Timestamp) -> Option<Memo> {
        self.memos.get(key).filter(|memo| memo.expires_at > now).cloned()
    }

    /// All leases, for who watches. Nobody here asks when they were last extended.
    #[must_use]
    pub fn all_leases(&self) -> Vec<LeaseRecord> {
        let record = |held: &Held| {
            let Lease { name, owner, epoch, expires_at } = held.lease.clone();
            let expires_at = (!held.is_given_back).then_some(expires_at);
            LeaseRecord { name, owner, epoch, expires_at, renewed_at: None, health: None }
        };
        self.leases.values().map(record).collect()
    }
}

impl State {
    /// Takes a lease, if it is free by this clock, or if it is given wrongly.
    pub fn acquire(&mut self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Option<Lease> {
        let held = self.records.leases.get(name);
        let epoch = held.map_or(0, |held| held.lease.epoch) + 1;
        let is_free = held.is_none_or(|held| held.is_given_back || held.lease.expires_at <= now);
        if !is_free && !self.strikes(Fault::TwoLeaders) {
            return None;
        }
        let lease = Lease { name: name.into(), owner: owner.into(), epoch, expires_at: now.plus_ms(term_ms) };
        self.records.leases.insert(name.into(), Held { lease: lease.clone(), is_given_back: false });
        Some(lease)
    }

    /// Extends a lease, if it is still held, or if that is answered wrongly.
    pub fn renew(&mut self, lease: &Lease, now: Timestamp, term_ms: u64) -> Option<Lease> {
        let extended = Lease { expires_at: now.plus_ms(term_ms), ..lease.clone() };
        let held = self.records.leases.get_mut(&lease.name)?;
        let is_held = !held.is_given_back && held.lease.epoch == lease.epoch && held.lease.expires_at > now;
        if is_held {
            held.lease.expires_at = extended.expires_at;
            return Some(extended);
        }
        self.strikes(Fault::TwoLeaders).then_some(extended)
    }

    /// Gives a lease back, if it is still held.
    pub fn release(&mut self, lease: &Lease) {
        if let Some(held) = self.records.leases.get_mut(&lease.name).filter(|held| held.lease.epoch == lease.epoch) {
            held.is_given_back = true;
        }
    }

    /// Writes a service's health, if its version is still this.
    pub fn set_health(&mut self, version_before: u64, after: ServiceHealth) -> Commit {
        let present = self.records.health.get(&after.service).map_or(0, |health| health.version);
        if present != version_before || self.strikes(Fault::ConflictInjected) {
            return Commit::Conflict;
        }
        self.records.health.insert(after.service.clone(), after);
        Commit::Committed
    }

    /// Writes a memo, if its version is still this.
    pub fn set_memo(&mut self, version_before: u64, memo: Memo, now: Timestamp) -> Commit {
        let present = self.records.memo(&memo.key, now).map_or(0, |memo| memo.version);
        let is_lost = present != version_before || self.strikes(Fault::ConflictInjected);
        let world = self.world.clone();
        self.note(&world, None, &(memo.version, is_lost), || {
            let Memo { key, version, state, .. } = &memo;
            format!("memo {key} v{version} {state:?}{}", if is_lost { ": conflict" } else { "" })
        });
        if is_lost {
            return Commit::Conflict;
        }
        self.records.memos.insert(memo.key.clone(), memo);
        Commit::Committed
    }

    /// Writes a job, if its version is still this.
    pub fn set_job(&mut self, version_before: u64, job: Arc<Job>) -> Commit {
        let place = self.records.jobs.iter().position(|stored| stored.id == job.id);
        let present = place.map_or(0, |place| self.records.jobs[place].version);
        if present != version_before || self.strikes(Fault::ConflictInjected) {
            return Commit::Conflict;
        }
        place.map(|place| self.records.jobs.remove(place));
        self.records.jobs.insert(0, job);
        self.records.jobs.sort_by(|one, other| (other.planned_at, &other.id).cmp(&(one.planned_at, &one.id)));
        Commit::Committed
    }
}
