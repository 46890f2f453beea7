//! Leases, in memory: one process owns the data directory, so a lease that outlived it would only be in the way.

use domain::ports::{Lease, Leases, PortError};
use domain::time::Timestamp;

use crate::core::lock;
use crate::engine::Engine;

/// A lease and the note on its holder's health.
#[derive(Debug)]
pub(crate) struct Held {
    lease: Lease,
    health: String,
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
        leases.insert(lease.name.clone(), Held { lease: lease.clone(), health: String::new() });
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
        health.clone_into(&mut held.health);
        Ok(Some(held.lease.clone()))
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        if let Some(held) = lock(self.leases()).get_mut(&lease.name).filter(|held| held.is(lease)) {
            // The entry stays: its epoch must go on counting.
            held.lease.expires_at = GIVEN_BACK;
        }
        Ok(())
    }
}

impl Held {
    /// Whether this is the lease that somebody believes to hold.
    fn is(&self, lease: &Lease) -> bool {
        (self.lease.epoch, &self.lease.owner) == (lease.epoch, &lease.owner)
    }
}
