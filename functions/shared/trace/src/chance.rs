//! Time and chance.

#![expect(clippy::disallowed_methods, reason = "what happened is told by the time at which it did")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A moment, by the clock that people read, from which on time is taken by the one that never steps back.
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

/// Ids of spans. Two that are the same would only confuse whoever looks at a trace.
#[derive(Debug)]
pub(crate) struct Ids(AtomicU64);

impl Ids {
    /// Where the system gives no random bits, which no system in service does, the time has to do.
    pub(crate) fn seeded() -> Self {
        Self(AtomicU64::new(getrandom::u64().unwrap_or_else(|_| Start::now().epoch_ns)))
    }

    /// The next one; not all zeros, which is no id.
    pub(crate) fn next(&self) -> [u8; 8] {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut bits = self.0.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)).max(1).to_be_bytes()
    }
}
