//! Pauses and time-outs of the host. They are not of the protocol.

#![expect(clippy::disallowed_methods, reason = "this is where the host waits")]

use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

/// Waits for `ms`.
pub(crate) async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// A moment to count from.
pub(crate) fn moment() -> Instant {
    Instant::now()
}

/// The output of `work`, or `None` after `ms`.
pub(crate) fn within<T>(ms: u64, work: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    tokio::time::timeout(Duration::from_millis(ms), work).map(Result::ok)
}
