//! Leases.

use std::sync::Arc;

use domain::ports::{Lease, LeaseRecord, Leases, PortError};
use domain::time::Timestamp;

use super::Memory;

/// A lease, or what is left of one that was given back: its epoch goes on counting.
pub(super) struct Held {
    lease: Lease,
    is_given_back: bool,
    renewed_at: Timestamp,
    health: Option<Arc<str>>,
}

impl Held {
    fn is_over(&self, now: Timestamp) -> bool {
        self.is_given_back || self.lease.expires_at <= now
    }

    /// Whether this is the lease that somebody believes to hold.
    fn is(&self, lease: &Lease) -> bool {
        !self.is_given_back && (self.lease.epoch, &self.lease.owner) == (lease.epoch, &lease.owner)
    }

    fn record(&self) -> LeaseRecord {
        let Lease { name, owner, epoch, expires_at } = self.lease.clone();
        let expires_at = (!self.is_given_back).then_some(expires_at);
        LeaseRecord { name, owner, epoch, expires_at, renewed_at: Some(self.renewed_at), health: self.health.clone() }
    }
}

impl Leases for Memory {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        self.work("leases.acquire", |state| {
            let held = state.leases.get(name);
            if held.is_some_and(|held| !held.is_over(now)) && !state.faults.leases_broken {
                return None;
            }
            let epoch = held.map_or(0, |held| held.lease.epoch) + 1;
            let lease = Lease { name: name.into(), owner: owner.into(), epoch, expires_at: now.plus_ms(term_ms) };
            state.leases.insert(name.to_owned(), held_from(now, &lease));
            Some(lease)
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
            let held = state.leases.get_mut(&*lease.name)?;
            if !held.is(lease) || held.is_over(now) {
                return None;
            }
            held.lease.expires_at = now.plus_ms(term_ms);
            (held.renewed_at, held.health) = (now, Some(health.into()));
            Some(held.lease.clone())
        })
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        self.work("leases.release", |state| {
            if let Some(held) = state.leases.get_mut(&*lease.name).filter(|held| held.is(lease)) {
                held.is_given_back = true;
            }
        })
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        self.work("leases.all_leases", |state| state.leases.values().map(Held::record).collect())
    }
}

fn held_from(now: Timestamp, lease: &Lease) -> Held {
    Held { lease: lease.clone(), is_given_back: false, renewed_at: now, health: None }
}
