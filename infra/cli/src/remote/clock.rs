//! The clock of the commands, which are clients of the API.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::time::Timestamp;

/// The time on this machine.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_epoch_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The same for signatures.
pub(crate) fn system_now() -> SystemTime {
    SystemTime::now()
}

/// A point on the clock that only goes forward.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

pub(crate) async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

/// The output of `work`, or `None` after the time-out.
pub(crate) async fn within<T>(at_most: Duration, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(at_most, work).await.ok()
}
