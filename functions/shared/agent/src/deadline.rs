//! The deadline of a request (rule 6).

use domain::message::Request;
use domain::time::Timestamp;

use crate::policy::Policy;

/// The time limit of one request, by the agent's own clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Timestamp,
    margin_ms: u64,
    whole_ms: u64,
}

/// The time that is left for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    /// None may start.
    None,
    /// It may start, and the deadline may cut it off.
    Cut,
    /// Its whole time-out, or half the time of the attempt.
    Whole,
}

/// The margin is at most this part of the time that the request was sent with: a short attempt is called too.
const MARGIN_PART: u64 = 5;

impl Deadline {
    /// The earlier of `CompleteBy` and `BudgetMs` after the receipt. The budget protects an agent with a slow clock,
    /// and `CompleteBy` one with a fast clock: neither stops later than intended.
    pub(crate) fn of(request: &Request, received_at: Timestamp, policy: &Policy) -> Self {
        let at = request.complete_by.min(received_at.plus_ms(request.budget_ms));
        let margin_ms = policy.margin_ms.min(request.budget_ms / MARGIN_PART);
        Self { at, margin_ms, whole_ms: policy.call_timeout_ms.min(request.budget_ms / 2).max(margin_ms) }
    }

    /// The time for a call that starts at this time.
    pub(crate) fn room(self, at: Timestamp) -> Room {
        match (self.lets_start(at), self.whole_ms <= self.left_ms(at)) {
            (false, _) => Room::None,
            (true, false) => Room::Cut,
            (true, true) => Room::Whole,
        }
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

    /// How long a call may be held up and still have this room, in milliseconds.
    pub(crate) fn spare_ms(self, now: Timestamp, room: Room) -> u64 {
        now.ms_until(self.at.minus_ms(if room == Room::Whole { self.whole_ms } else { self.margin_ms }))
    }
}
