//! Until when a request may be worked on (rule 6).

use domain::message::Request;
use domain::time::Timestamp;

/// The time limit of one request, by the agent's own clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Timestamp,
    margin_ms: u64,
}

impl Deadline {
    /// The earlier of `CompleteBy` and `BudgetMs` after the receipt. An agent whose clock is late goes by the budget, one
    /// whose clock is early by `CompleteBy`: either way it stops no later than was meant.
    pub(crate) fn of(request: &Request, received_at: Timestamp, margin_ms: u64) -> Self {
        Self { at: request.complete_by.min(received_at.plus_ms(request.budget_ms)), margin_ms }
    }

    /// Whether a call may start at this time.
    pub(crate) fn lets_start(self, at: Timestamp) -> bool {
        at < self.at.minus_ms(self.margin_ms)
    }

    /// Whether nothing may be sent any more.
    pub(crate) fn is_over(self, now: Timestamp) -> bool {
        now >= self.at
    }

    /// What is left, in milliseconds.
    pub(crate) fn left_ms(self, now: Timestamp) -> u64 {
        now.ms_until(self.at)
    }
}
