//! Time and chance.

use std::future::Future;

use crate::time::Timestamp;

/// The time and the way to wait.
pub trait Clock: Send + Sync {
    /// The time, as far as this instance knows.
    fn now(&self) -> Timestamp;

    /// Waits.
    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send;
}

/// Random bits.
pub trait Randomness: Send + Sync {
    /// 64 of them.
    fn random(&self) -> u64;
}
