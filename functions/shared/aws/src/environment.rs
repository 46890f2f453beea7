//! Time and randomness.

#![expect(clippy::disallowed_methods, reason = "this is where time and randomness come from")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use domain::ports::Environment;
use domain::time::Timestamp;
use tokio::time::Instant;

/// The system time. A clock before 1970 counts as 1970.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_epoch_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

pub(crate) async fn sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// The moment after this many milliseconds. A change of the wall clock does not move it.
pub(crate) fn moment_in(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

/// The time until this moment, in milliseconds.
pub(crate) fn ms_until(moment: Instant) -> u64 {
    let left = moment.saturating_duration_since(Instant::now());
    u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
}

/// The output of `work`, or `None` if it takes longer than `ms`.
pub(crate) async fn within<T>(ms: u64, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(ms), work).await.ok()
}

/// The system provides no random bits. A system in service always provides them.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random bits: {0}")]
pub struct NoRandomness(getrandom::Error);

/// Random bits for nonces, ids, jitter and secrets.
#[derive(Debug)]
pub(crate) enum Random {
    /// Unpredictable bits of the system.
    System,
    /// Those of a seed (SplitMix64), for simulations.
    Seeded(AtomicU64),
}

impl Random {
    pub(crate) fn of_system() -> Result<Self, NoRandomness> {
        getrandom::u64().map(|_| Self::System).map_err(NoRandomness)
    }

    /// The same bits for the same seed.
    pub(crate) const fn of(seed: u64) -> Self {
        Self::Seeded(AtomicU64::new(seed))
    }

    pub(crate) fn next(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let Self::Seeded(state) = self else {
            return getrandom::u64().expect("the system gave random bits before");
        };
        let mut bits = state.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}

/// A clock, and random bits. A clone shares them.
#[derive(Clone)]
pub struct System {
    pub(crate) random: Arc<Random>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl System {
    /// The clock and the randomness of this machine.
    ///
    /// # Errors
    /// [`NoRandomness`] if the system provides no random bits.
    pub fn of_machine() -> Result<Self, NoRandomness> {
        Ok(Self { random: Arc::new(Random::of_system()?), now: Arc::new(now) })
    }

    /// Another clock, and the random bits of this seed.
    #[must_use]
    pub fn simulated(seed: u64, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { random: Arc::new(Random::of(seed)), now: Arc::new(now) }
    }
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").finish_non_exhaustive()
    }
}

impl Environment for System {
    fn now(&self) -> Timestamp {
        (self.now)()
    }

    async fn sleep(&self, ms: u64) {
        sleep(ms).await;
    }

    fn random(&self) -> u64 {
        self.random.next()
    }
}
