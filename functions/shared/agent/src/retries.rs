//! How often a request is tried again, after which wait, and where it waits.

use domain::backoff::Backoff;
use domain::time::Timestamp;

use crate::deadline::Deadline;
use crate::policy::Policy;

/// The retries of one request so far.
///
/// A message carries no memory of the deliveries before, except how many there were. Each of them ended with a wait on
/// the queue, which was a retry (or with a fault of the infrastructure, where more patience does no harm), so a delivery
/// goes on at least there: the n-th starts with n - 1 retries behind it, and its back-off at the slot that belongs to
/// them. Retries that an earlier delivery made within its invocation are forgotten: a delivery begins more patient than
/// the one before it began, not than the one before it ended.
///
/// The first call of a delivery is always made, even when the count is used up: it may be there only because a reply
/// could not be sent, and the call is how to learn that reply again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    backoff: Backoff,
}

/// What to do about a call that is to be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Wait in the invocation.
    Here { wait_ms: u64 },
    /// Wait on the queue.
    OnQueue { wait_ms: u64 },
    /// There have been enough retries.
    Exhausted,
    /// The wait would last until no call may start any more.
    TooLate,
}

impl Retries {
    /// As far as a delivery knows: the `receive_count`-th of its message.
    pub(crate) fn of_delivery(policy: &Policy, receive_count: u32) -> Self {
        let before = receive_count.saturating_sub(1).min(policy.retries_max);
        // Only waits depend on a draw, slots never do.
        Self { backoff: (0..before).fold(Backoff::new(policy.backoff), |backoff, _| backoff.next(0)) }
    }

    /// Retries behind it.
    pub(crate) const fn count(&self) -> u32 {
        self.backoff.total_retries
    }

    /// Counts one more retry and says where it waits: as long as the back-off draws, or as the service asked for if that
    /// is longer.
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
        let wait_ms = self.backoff.wait_time_ms.max(after_ms.unwrap_or(0));
        if !deadline.lets_start(now.plus_ms(wait_ms)) {
            Next::TooLate
        } else if wait_ms <= policy.wait_in_invocation_ms_max {
            Next::Here { wait_ms }
        } else {
            Next::OnQueue { wait_ms }
        }
    }
}
