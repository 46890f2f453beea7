//! Time and randomness.

use std::future::Future;

use crate::time::Timestamp;

/// The environment of an instance: the time, a way to wait, and random bits.
pub trait Environment: Send + Sync {
    /// The time by this instance's clock.
    fn now(&self) -> Timestamp;

    /// The time that others see, for what is compared with their clocks: signatures, and times that a caller gives. The
    /// time above may be without a jump that is not believed yet (F71).
    fn wall(&self) -> Timestamp {
        self.now()
    }

    /// Waits.
    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send;

    /// 64 unpredictable bits.
    fn random(&self) -> u64;
}
