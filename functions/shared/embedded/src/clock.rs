//! The time of the system, and random bits.

#![expect(clippy::disallowed_methods, reason = "this is where time and randomness come from")]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::ports::Environment;
use domain::time::Timestamp;

use crate::engine::Engine;

impl Environment for Engine {
    fn now(&self) -> Timestamp {
        // A clock that stands before 1970 counts as 1970.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_epoch_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn random(&self) -> u64 {
        self.next_random()
    }
}

/// The point `ms` from now on the clock of the queues and waits.
pub(crate) fn later(ms: u64) -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_millis(ms)
}

/// Now on the clock of the writer's thread.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Random bits for nonces, ids and jitter (SplitMix64, seeded by the system). They are not secrets.
#[derive(Debug)]
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) fn seeded() -> io::Result<Self> {
        getrandom::u64().map(|seed| Self(AtomicU64::new(seed))).map_err(io::Error::other)
    }

    pub(crate) fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut bits = self.0.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}
