//! Named leases.

use std::future::Future;
use std::sync::Arc;

use super::PortError;
use crate::time::Timestamp;

/// Named leases, so that one of many instances does a work (rule 13). A lease saves work; two holders at once must do
/// no harm.
pub trait Leases: Send + Sync {
    /// Acquires the lease if it is free or its term is over. `None`: another instance holds it.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether it was acquired; count it as not acquired.
    fn acquire(
        &self,
        name: &str,
        owner: &str,
        now: Timestamp,
        term_ms: u64,
    ) -> impl Future<Output = Result<Option<Lease>, PortError>> + Send;

    /// Extends a lease that is still held with this epoch, and stores its holder's health. `None`: it is lost.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether it was extended; count it as lost.
    fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> impl Future<Output = Result<Option<Lease>, PortError>> + Send;

    /// Releases a lease early, if it is still held with this epoch.
    ///
    /// # Errors
    /// [`PortError`] if that is not known to have happened; the term then ends it.
    fn release(&self, lease: &Lease) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Writes down that `owner` has done the work `name` now, and its health: the record of a lease that is free. It
    /// keeps no one out.
    ///
    /// # Errors
    /// [`PortError`] if that is not known to have happened.
    fn report(
        &self,
        name: &str,
        owner: &str,
        now: Timestamp,
        health: &str,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// The record of every lease, held or not, by name: its last holder, and when. For monitoring; no holder may rely
    /// on it. A lease that was not taken for days may be deleted.
    ///
    /// # Errors
    /// [`PortError`] if the records cannot be read.
    fn all_leases(&self) -> impl Future<Output = Result<Vec<LeaseRecord>, PortError>> + Send;
}

/// A lease from its holder's side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The name of its work.
    pub name: Arc<str>,
    /// Its holder.
    pub owner: Arc<str>,
    /// +1 at every change of holder.
    pub epoch: u64,
    /// When its term is over.
    pub expires_at: Timestamp,
}

/// A lease as it is stored: the state that its last holder left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The name of its work.
    pub name: Arc<str>,
    /// Its present or last holder.
    pub owner: Arc<str>,
    /// +1 at every change of holder.
    pub epoch: u64,
    /// The end of its term; `None` once it was released.
    pub expires_at: Option<Timestamp>,
    /// When its holder last acquired or extended it.
    pub renewed_at: Option<Timestamp>,
    /// The holder's health when it last extended the lease.
    pub health: Option<Arc<str>>,
}

impl LeaseRecord {
    /// Whether it is held at `now`.
    #[must_use]
    pub fn is_held(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at > now)
    }

    /// The lease from its holder's side; `None` once it was released.
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
