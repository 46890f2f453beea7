//! The deadline of a request (rule 6).

use domain::message::Request;
use domain::time::Timestamp;

/// The time limit of one request, by the agent's own clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Timestamp,
    margin_ms: u64,
}

/// The margin is at most this part of the time that the request was sent with: a short attempt is called too.
const MARGIN_PART: u64 = 5;

impl Deadline {
    /// The earlier of `CompleteBy` and `BudgetMs` after the receipt. The budget protects an agent with a slow clock,
    /// and `CompleteBy` one with a fast clock: neither stops later than intended.
    pub(crate) fn of(request: &Request, received_at: Timestamp, margin_ms: u64) -> Self {
        let at = request.complete_by.min(received_at.plus_ms(request.budget_ms));
        Self { at, margin_ms: margin_ms.min(request.budget_ms / MARGIN_PART) }
    }

    /// Whether a call may start at this time.
    pub(crate) fn lets_start(self, at: Timestamp) -> bool {
        at < self.at.minus_ms(self.margin_ms)
    }

    /// Whether it is too late to send anything.
    pub(crate) fn is_over(self, now: Timestamp) -> bool {
        now >= self.at
    }

    /// The time from which on no call of the request has an effect any more, if each settles within this time after its
    /// start.
    pub(crate) fn settled_at(self, settles_within_ms: u64) -> Timestamp {
        self.at.plus_ms(settles_within_ms)
    }

    /// The time left, in milliseconds.
    pub(crate) fn left_ms(self, now: Timestamp) -> u64 {
        now.ms_until(self.at)
    }

    /// The time for which a call may still start, in milliseconds.
    pub(crate) fn startable_ms(self, now: Timestamp) -> u64 {
        now.ms_until(self.at.minus_ms(self.margin_ms))
    }
}
