//! Leases, in memory. One process owns the data directory, so a lease must not outlive the process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::lease::{acquired, released, renewed, reported};
use domain::ports::{Lease, LeaseRecord, Leases, PortError};
use domain::time::Timestamp;

use crate::lock::lock;

/// The leases, by their names.
#[derive(Debug, Default)]
pub struct EngineLeases(Mutex<BTreeMap<Arc<str>, LeaseRecord>>);

impl Leases for EngineLeases {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        let mut leases = lock(&self.0);
        let Some(record) = acquired(leases.get(name), name, owner, now, term_ms) else { return Ok(None) };
        let lease = record.lease();
        leases.insert(record.name.clone(), record);
        Ok(lease)
    }

    async fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> Result<Option<Lease>, PortError> {
        let mut leases = lock(&self.0);
        let Some(stored) = leases.get_mut(&lease.name) else { return Ok(None) };
        let Some(record) = renewed(stored, lease, now, term_ms, health) else { return Ok(None) };
        *stored = record;
        Ok(stored.lease())
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        if let Some(stored) = lock(&self.0).get_mut(&lease.name)
            && let Some(record) = released(stored, lease)
        {
            *stored = record;
        }
        Ok(())
    }

    async fn report(&self, name: &str, owner: &str, now: Timestamp, health: &str) -> Result<(), PortError> {
        let mut leases = lock(&self.0);
        let record = reported(leases.get(name), name, owner, now, health);
        leases.insert(record.name.clone(), record);
        Ok(())
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        Ok(lock(&self.0).values().cloned().collect())
    }
}
