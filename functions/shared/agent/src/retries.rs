//! The retries of a request: how many, after which wait, and where it waits.

use domain::backoff::Backoff;
use domain::time::Timestamp;

use crate::deadline::Deadline;
use crate::policy::Policy;

/// The retries of one request so far.
///
/// A message carries no memory of earlier deliveries, except their number. Each of them ended with a wait on the
/// queue, which was a retry. (A fault of the infrastructure counts too; more patience does no harm there.) So the n-th
/// delivery starts with n - 1 retries behind it. Its back-off starts at the slot that belongs to them. Retries that an
/// earlier delivery made within its invocation are forgotten. So a delivery begins more patient than the one before it
/// began, not than that one ended.
///
/// The first call of a delivery is always made, even if the count is used up. The delivery may exist only because a
/// reply could not be sent, and the call returns that reply again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    backoff: Backoff,
}

/// The next action for a call that must be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait in the invocation.
    Here { wait_ms: u64 },
    /// Wait on the queue.
    OnQueue { wait_ms: u64 },
    /// Later than the attempt allows: so the service asked. Its own back-off would have been in time.
    AskedLater { wait_ms: u64 },
    /// The retries are used up.
    Exhausted,
    /// The wait would end too late for another call.
    TooLate,
}

impl Next {
    /// Its name for logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Here { .. } => "here",
            Self::OnQueue { .. } => "on-queue",
            Self::AskedLater { .. } => "asked-later",
            Self::Exhausted => "exhausted",
            Self::TooLate => "too-late",
        }
    }
}

impl Retries {
    /// For the `receive_count`-th delivery of a message.
    pub(crate) fn of_delivery(policy: &Policy, receive_count: u32) -> Self {
        let before = receive_count.saturating_sub(1).min(policy.retries_max);
        // Only waits depend on a draw, slots never do.
        Self { backoff: (0..before).fold(Backoff::new(policy.backoff), |backoff, _| backoff.next(0)) }
    }

    /// The number of retries so far.
    pub(crate) const fn count(&self) -> u32 {
        self.backoff.total_retries
    }

    /// Whether an operator should see the trouble: from the second call that failed on, ever more rarely. One failure is
    /// usual, and would cost a message and a write for nothing.
    pub(crate) const fn is_told(self) -> bool {
        self.count() >= 2 && self.count().is_power_of_two()
    }

    /// The wait before the last retry, in milliseconds.
    pub(crate) const fn wait_ms(&self) -> u64 {
        self.backoff.wait_time_ms
    }

    /// Counts one more retry and returns where it waits: for the back-off's draw, or for the service's own wait if
    /// that is longer. A service that names any wait, also none, is not asked again within the first slot.
    pub(crate) fn next(
        &mut self,
        policy: &Policy,
        deadline: Deadline,
        now: Timestamp,
        after_ms: Option<u64>,
        draw: u64,
    ) -> Next {
        if self.count() >= policy.retries_max {
            return Next::Exhausted;
        }
        self.backoff = self.backoff.next(draw);
        let own_ms = self.backoff.wait_time_ms;
        let own_ms = own_ms.max(if after_ms.is_some() { policy.backoff.slot_time_ms } else { 0 });
        let wait_ms = own_ms.max(after_ms.unwrap_or(0));
        if !deadline.lets_start(now.plus_ms(own_ms)) {
            Next::TooLate
        } else if !deadline.lets_start(now.plus_ms(wait_ms)) {
            Next::AskedLater { wait_ms }
        } else if wait_ms <= policy.wait_in_invocation_ms_max {
            Next::Here { wait_ms }
        } else {
            Next::OnQueue { wait_ms }
        }
    }
}
