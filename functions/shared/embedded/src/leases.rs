//! Leases, in memory: one process owns the data directory, so a lease that outlived it would only be in the way.

use std::sync::Arc;

use domain::ports::{Lease, LeaseRecord, Leases, PortError};
use domain::time::Timestamp;

use crate::core::lock;
use crate::engine::Engine;

/// A lease and the note on its holder's health.
#[derive(Debug)]
pub(crate) struct Held {
    lease: Lease,
    renewed_at: Timestamp,
    /// Nothing until the holder says something.
    health: Option<Arc<str>>,
}

/// A term that is always over.
const GIVEN_BACK: Timestamp = Timestamp::from_epoch_ms(i64::MIN);

impl Leases for Engine {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        let mut leases = lock(self.leases());
        let epoch_before = match leases.get(name) {
            Some(held) if held.lease.expires_at > now => return Ok(None),
            Some(held) => held.lease.epoch,
            None => 0,
        };
        let (name, expires_at) = (name.into(), now.plus_ms(term_ms));
        let lease = Lease { name, owner: owner.into(), epoch: epoch_before + 1, expires_at };
        leases.insert(lease.name.clone(), Held { lease: lease.clone(), renewed_at: now, health: None });
        Ok(Some(lease))
    }

    async fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> Result<Option<Lease>, PortError> {
        let mut leases = lock(self.leases());
        let Some(held) = leases.get_mut(&lease.name).filter(|held| held.is(lease) && held.lease.expires_at > now)
        else {
            return Ok(None);
        };
        held.lease.expires_at = now.plus_ms(term_ms);
        (held.renewed_at, held.health) = (now, Some(health.into()));
        Ok(Some(held.lease.clone()))
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        if let Some(held) = lock(self.leases()).get_mut(&lease.name).filter(|held| held.is(lease)) {
            // The entry stays: its epoch must go on counting.
            held.lease.expires_at = GIVEN_BACK;
        }
        Ok(())
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        Ok(lock(self.leases()).values().map(Held::record).collect())
    }
}

impl Held {
    /// Whether this is the lease that somebody believes to hold.
    fn is(&self, lease: &Lease) -> bool {
        (self.lease.epoch, &self.lease.owner) == (lease.epoch, &lease.owner)
    }

    fn record(&self) -> LeaseRecord {
        let Self { lease: Lease { name, owner, epoch, expires_at }, renewed_at, health } = self;
        LeaseRecord {
            name: name.clone(),
            owner: owner.clone(),
            epoch: *epoch,
            expires_at: Some(*expires_at).filter(|at| *at != GIVEN_BACK),
            renewed_at: Some(*renewed_at),
            health: health.clone(),
        }
    }
}
