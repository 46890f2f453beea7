//! Named leases.

use std::future::Future;
use std::sync::Arc;

use super::PortError;
use crate::time::Timestamp;

/// Named leases, so that one of many does a work (rule 13). A lease saves work; nothing may be wrong when two hold it.
pub trait Leases: Send + Sync {
    /// Takes the lease if nobody holds it or its term is over. `None`: somebody else holds it.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was taken; count it as not taken.
    fn acquire(
        &self,
        name: &str,
        owner: &str,
        now: Timestamp,
        term_ms: u64,
    ) -> impl Future<Output = Result<Option<Lease>, PortError>> + Send;

    /// Extends a lease that is still held with this epoch, and leaves a note on its holder's health. `None`: it is lost.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was extended; count it as lost.
    fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> impl Future<Output = Result<Option<Lease>, PortError>> + Send;

    /// Gives a lease back early, if it is still held with this epoch.
    ///
    /// # Errors
    /// [`PortError`] when that is not known to have happened; the term will end it.
    fn release(&self, lease: &Lease) -> impl Future<Output = Result<(), PortError>> + Send;

    /// What is known of every lease, held or not, by name: who worked last, and when. For those who watch; no holder may
    /// rely on it. A lease that nobody took for days may be forgotten.
    ///
    /// # Errors
    /// [`PortError`] when the records cannot be read.
    fn all_leases(&self) -> impl Future<Output = Result<Vec<LeaseRecord>, PortError>> + Send;
}

/// A lease as its holder knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What it is for.
    pub name: Arc<str>,
    /// Who holds it.
    pub owner: Arc<str>,
    /// +1 at every change of holder.
    pub epoch: u64,
    /// When its term is over.
    pub expires_at: Timestamp,
}

/// A lease as others see it: what its last holder left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// What it is for.
    pub name: Arc<str>,
    /// Who holds it, or held it last.
    pub owner: Arc<str>,
    /// +1 at every change of holder.
    pub epoch: u64,
    /// When its term is or was over; nothing once it was given back.
    pub expires_at: Option<Timestamp>,
    /// When its holder was last heard of: it took the lease or extended it. Nothing in records of an earlier version.
    pub renewed_at: Option<Timestamp>,
    /// What the holder said of its health when it last extended the lease.
    pub health: Option<Arc<str>>,
}

impl LeaseRecord {
    /// Whether somebody holds it at `now`.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at > now)
    }

    /// The lease as its holder knows it; `None` once it was given back.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        let Self { name, owner, epoch, expires_at, .. } = self;
        expires_at.map(|expires_at| Lease { name: name.clone(), owner: owner.clone(), epoch: *epoch, expires_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_held_until_its_term_is_over_and_no_longer_once_it_was_given_back() {
        let over = Timestamp::from_epoch_ms(1_000_000);
        let until = |expires_at| LeaseRecord {
            name: "shard-0".into(),
            owner: "a".into(),
            epoch: 1,
            expires_at,
            renewed_at: None,
            health: None,
        };
        let held_at = |now| until(Some(over)).is_held(now);
        assert_eq!([over.minus_ms(1), over, over.plus_ms(1)].map(held_at), [true, false, false]);
        assert!(!until(None).is_held(over));
    }
}
