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
