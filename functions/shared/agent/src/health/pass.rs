//! What is asked before a call, and said after it.

use domain::ports::OutageReason;
use domain::time::Timestamp;

/// The era of a call whose end does not count.
pub(super) const NO_ERA: u64 = u64::MAX;

/// The permission for one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pass {
    pub(super) era: u64,
    /// Whether this call is the probe.
    pub(crate) probe: bool,
    /// Whether the breaker is not closed, for other orders that failed.
    pub(crate) other: bool,
    pub(super) since: Timestamp,
    /// Whether it took a permit of a release.
    pub(super) released: bool,
}

/// A call that failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failed<'a> {
    pub(crate) reason: OutageReason,
    pub(crate) problem: &'a str,
    /// The time for which the service asked for no call.
    pub(crate) after_ms: Option<u64>,
}

impl Pass {
    /// That of a look (rule 36), which nothing is asked for and nothing is said of.
    pub(crate) const OF_LOOK: Self =
        Self { era: NO_ERA, probe: false, other: false, since: Timestamp::from_epoch_ms(0), released: false };

    /// Whether the breaker was open or half-open at any time since then.
    pub(crate) fn failed_since(self, at: Timestamp) -> bool {
        self.era > 0 && self.since >= at
    }
}
