//! Leases.

use domain::lease::{acquired, released, renewed, reported};
use domain::ports::{Lease, LeaseRecord, Leases, PortError};
use domain::time::Timestamp;

use super::Memory;

impl Leases for Memory {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        self.work("leases.acquire", |state| {
            let mut stored = state.leases.get(name).cloned();
            if state.faults.leases_broken {
                // The term of any holder is ignored.
                stored.iter_mut().for_each(|record| record.expires_at = None);
            }
            let record = acquired(stored.as_ref(), name, owner, now, term_ms)?;
            let lease = record.lease();
            state.leases.insert(name.to_owned(), record);
            lease
        })
    }

    async fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> Result<Option<Lease>, PortError> {
        self.work("leases.renew", |state| {
            if state.faults.leases_broken {
                return Some(Lease { expires_at: now.plus_ms(term_ms), ..lease.clone() });
            }
            let record = renewed(state.leases.get(&*lease.name)?, lease, now, term_ms, health)?;
            let lease = record.lease();
            state.leases.insert(record.name.to_string(), record);
            lease
        })
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        self.work("leases.release", |state| {
            if let Some(record) = state.leases.get(&*lease.name).and_then(|stored| released(stored, lease)) {
                state.leases.insert(record.name.to_string(), record);
            }
        })
    }

    async fn report(&self, name: &str, owner: &str, now: Timestamp, health: &str) -> Result<(), PortError> {
        self.work("leases.report", |state| {
            let record = reported(state.leases.get(name), name, owner, now, health);
            state.leases.insert(name.to_owned(), record);
        })
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        self.work("leases.all_leases", |state| state.leases.values().cloned().collect())
    }
}
