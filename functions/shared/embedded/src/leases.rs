//! Leases, in memory: one process owns the data directory, so a lease that outlived it would only be in the way.

use domain::lease::{acquired, released, renewed};
use domain::ports::{Lease, LeaseRecord, Leases, PortError};
use domain::time::Timestamp;

use crate::core::lock;
use crate::engine::Engine;

impl Leases for Engine {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        let mut leases = lock(self.leases());
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
        let mut leases = lock(self.leases());
        let Some(stored) = leases.get_mut(&lease.name) else { return Ok(None) };
        let Some(record) = renewed(stored, lease, now, term_ms, health) else { return Ok(None) };
        *stored = record;
        Ok(stored.lease())
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        if let Some(stored) = lock(self.leases()).get_mut(&lease.name)
            && let Some(record) = released(stored, lease)
        {
            *stored = record;
        }
        Ok(())
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        Ok(lock(self.leases()).values().cloned().collect())
    }
}
