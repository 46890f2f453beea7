//! The system clock, and random bits.

#![expect(clippy::disallowed_methods, reason = "this is where time and randomness come from")]

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::ports::Environment;
use domain::time::Timestamp;

/// A wall clock.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The time of the operating system.
#[must_use]
pub fn system_time() -> Timestamp {
    // A time before 1970 counts as 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_epoch_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The time of the options' clock, and randomness from the operating system.
#[derive(Clone)]
pub struct Clock(pub(crate) Now);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        self.0()
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn random(&self) -> u64 {
        getrandom::u64().expect("the system has random bits")
    }
}

/// The monotonic time: it goes on while the machine runs, and cannot be set.
pub(crate) fn since_any_time() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The time `ms` from now, on the clock of the queues and waits.
pub(crate) fn later(ms: u64) -> tokio::time::Instant {
    since_any_time() + Duration::from_millis(ms)
}
