//! Time and randomness.

#![expect(clippy::disallowed_methods, reason = "what happened is told by the time at which it did")]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A wall-clock time, continued by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    epoch_ns: u64,
    at: Instant,
}

impl Start {
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX), at: Instant::now() }
    }

    /// Its own time, in nanoseconds since 1970.
    pub(crate) const fn epoch_ns(&self) -> u64 {
        self.epoch_ns
    }

    /// The time now, likewise.
    pub(crate) fn now_ns(&self) -> u64 {
        let passed_ns = u64::try_from(self.at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.epoch_ns.saturating_add(passed_ns)
    }
}

/// The ID of a new span. A duplicate would only confuse a reader of the trace. All zeros is not a valid ID.
pub(crate) fn span_id() -> [u8; 8] {
    fastrand::u64(1..).to_be_bytes()
}
