//! Back-off before a retry of the same write.

use std::sync::Arc;
use std::time::Duration;

use crate::environment::Random;

/// A bounded number of waits that double, with jitter. The SDK has its own retries for the errors that it counts as
/// retryable; these waits serve the others.
#[derive(Debug)]
pub(super) struct Pauses {
    random: Arc<Random>,
    left: u32,
    longest_ms: u64,
}

/// The longest first wait, in milliseconds.
const FIRST_MS: u64 = 20;
/// The longest wait, in milliseconds.
const LONGEST_MS: u64 = 640;
/// The number of waits before giving up: 1.9 s together at most.
const PAUSES_MAX: u32 = 7;

impl Pauses {
    pub(super) const fn new(random: Arc<Random>) -> Self {
        Self { random, left: PAUSES_MAX, longest_ms: FIRST_MS }
    }

    /// Waits. Returns `false` if no wait is left.
    #[expect(clippy::disallowed_methods, reason = "an adapter's own retries of one call")]
    pub(super) async fn pause(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let half_ms = self.longest_ms / 2;
        let wait_ms = half_ms + self.random.next() % (half_ms + 1);
        self.longest_ms = (self.longest_ms * 2).min(LONGEST_MS);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        true
    }
}
