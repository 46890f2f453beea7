//! Waiting a moment before the same write is tried again.

use std::time::Duration;

use domain::ports::PortError;

/// Waits that double, with jitter, of a bounded number. The SDK has its own for what it takes as worth a retry; these are
/// for what it does not.
#[derive(Debug)]
pub(super) struct Pauses {
    left: u32,
    longest_ms: u64,
}

/// First wait at most, in milliseconds.
const FIRST_MS: u64 = 20;
/// Longest wait at most, in milliseconds.
const LONGEST_MS: u64 = 640;
/// Waits before giving up: 1.9 s together at most.
const PAUSES_MAX: u32 = 7;

impl Pauses {
    pub(super) const fn new() -> Self {
        Self { left: PAUSES_MAX, longest_ms: FIRST_MS }
    }

    /// Waits; `false`: that was often enough.
    #[expect(clippy::disallowed_methods, reason = "an adapter's own retries of one call")]
    pub(super) async fn pause(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let half_ms = self.longest_ms / 2;
        let wait_ms = half_ms + random() % (half_ms + 1);
        self.longest_ms = (self.longest_ms * 2).min(LONGEST_MS);
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        true
    }
}

/// A number that nobody else draws, to recognise a write by.
#[expect(clippy::disallowed_methods, reason = "an adapter's own nonces")]
pub(super) fn nonce(operation: &'static str) -> Result<u64, PortError> {
    getrandom::u64().map_err(|error| PortError::unavailable(operation, error))
}

/// Without randomness there is no jitter, and no harm.
#[expect(clippy::disallowed_methods, reason = "an adapter's own jitter")]
fn random() -> u64 {
    getrandom::u64().unwrap_or(0)
}
