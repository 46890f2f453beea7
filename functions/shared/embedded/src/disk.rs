//! The condition of the disk, as the writer finds it: one line when it begins to fail, one when it is well again.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::later;
use crate::log::WriteError;

/// The pause between two lines while it fails.
const PAUSE: Duration = Duration::from_secs(10);

/// The failures since the last transaction that was committed.
#[derive(Debug, Default)]
pub(crate) struct Disk(Option<Failing>);

#[derive(Debug)]
struct Failing {
    transactions: u64,
    logged_at: Instant,
}

impl Disk {
    pub(crate) fn committed(&mut self) {
        if let Some(Failing { transactions, .. }) = self.0.take() {
            tracing::info!(failed = transactions, "transactions are written again");
        }
    }

    pub(crate) fn failed(&mut self, error: &WriteError) {
        let now = later(0);
        let Some(failing) = &mut self.0 else {
            tracing::error!("{error}");
            self.0 = Some(Failing { transactions: 1, logged_at: now });
            return;
        };
        failing.transactions += 1;
        if now.duration_since(failing.logged_at) >= PAUSE {
            failing.logged_at = now;
            tracing::error!(failed = failing.transactions, "{error}");
        }
    }
}
