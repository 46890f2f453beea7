//! The violations that the auditor reports.

use std::fmt;

use domain::id::OrderId;

/// The invariants by number, and the further rules that the auditor checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// 1: an accepted order is on the submission queue, stored, or a dead letter.
    Custody,
    /// 2: an attempt's number never decreases, and each has one claimant.
    Claims,
    /// 3: only the holder of the attempt, or a success of an earlier one, advances a step; the supervisor acts only after
    /// the deadline plus grace.
    Movers,
    /// 4: failures are at most the attempts, and each attempt counts once.
    Counting,
    /// 5: at most one effect for each order, step and direction.
    OneEffect,
    /// 6: a step starts only after its predecessors; an undo runs before theirs.
    Sequence,
    /// 7: final states never change.
    Absorbing,
    /// 8: compensated means that every started step has a confirmed undo.
    Undone,
    /// 9: no forward effect after a confirmed undo, and no undo while the forward attempt may still run.
    NothingAfterUndo,
    /// 10: an error comes with an alert.
    Alert,
    /// 11: no call starts too late, and no reply is sent after the deadline.
    Deadline,
    /// 12: a status message reports a committed state, to the channel of the order.
    Status,
    /// 14: after the faults, every order ends in time.
    Ends,
    /// 15: after the faults, notifications, alerts and queues drain.
    Drains,
    /// 16: an hour after an order ended, the books of every service are even with it.
    EvenBooks,
    /// 17: an order turns round, is given up or held only for a reason that a service, a person or a limit gave.
    Reason,
    /// 18: no call begins for an attempt that is over by more than a second.
    Wanted,
    /// Rule 16: no undo before every call without an answer has settled.
    UnderWay,
    /// Rule 17: an attempt is rejected only if its service said no.
    Rejected,
    /// Rule 17: no call is repeated earlier than its service asked for.
    Asked,
    /// An instance fetches one token at a time.
    OneToken,
    /// Rule 21: one agent alone calls for a step.
    OneAgent,
    /// Rule 22: an order begins with the version of its workflow that the API chose of those for new orders.
    Version,
    /// Rule 2: commit, then send, then acknowledge.
    SendBeforeAcknowledge,
    /// Rule 12: a paused order starts no step.
    Operator,
    /// Rule 14: every unfinished order has a watch, at the latest when its attempt expires.
    Watched,
    /// Rules 1 and 3: each change adds 1 to the version; workflow and document never change.
    Record,
    /// Rule 3: the history has each change of state that stops or ends an order.
    History,
    /// Rule 4: every call under a key has the same body: the posted document and the outputs of the steps before.
    Body,
    /// Rule 19: a call carries what the pinned version sends, and of its answer is kept what that version keeps.
    Mapping,
    /// Rule 33: a step is skipped if it does not apply, or was rejected and is optional; otherwise it is called.
    Applies,
    /// Rule 34: past a pivot, an order only goes forward.
    Pivot,
    /// Rule 37: an order is found late once, after its deadline and before its end.
    Late,
    /// Rule 40: people decide on an approval, and no service is called for it.
    Approved,
    /// Rule 50: each line of an order is carried out once, or dropped alone for a reason and undone.
    Lines,
    /// The state machine never panics.
    Panic,
}

impl Invariant {
    /// The number of the invariant, or the rule.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::Custody => "1",
            Self::Claims => "2",
            Self::Movers => "3",
            Self::Counting => "4",
            Self::OneEffect => "5",
            Self::Sequence => "6",
            Self::Absorbing => "7",
            Self::Undone => "8",
            Self::NothingAfterUndo => "9",
            Self::Alert => "10",
            Self::Deadline => "11",
            Self::Status => "12",
            Self::Ends => "14",
            Self::Drains => "15",
            Self::EvenBooks => "16",
            Self::Reason => "17",
            Self::Wanted => "18",
            Self::UnderWay => "rule 16",
            Self::Rejected => "rule 17",
            Self::Asked => "rule 17",
            Self::OneToken => "token",
            Self::OneAgent => "rule 21",
            Self::Version => "rule 22",
            Self::SendBeforeAcknowledge => "rule 2",
            Self::Operator => "rule 12",
            Self::Watched => "rule 14",
            Self::Record => "record",
            Self::History => "rule 3",
            Self::Body => "body",
            Self::Mapping => "rule 19",
            Self::Applies => "rule 33",
            Self::Pivot => "rule 34",
            Self::Late => "rule 37",
            Self::Approved => "rule 40",
            Self::Lines => "rule 50",
            Self::Panic => "panic",
        }
    }

    /// Whether it holds at any time, not only after the faults.
    #[must_use]
    pub const fn is_safety(self) -> bool {
        !matches!(self, Self::Ends | Self::Drains)
    }
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violated invariant.
    pub invariant: Invariant,
    /// Whether clocks or leaders were wrong. Then invariant 13 is violated too: safety must not depend on them.
    pub under_wrong_clocks: bool,
    /// The order, if any.
    pub order: Option<OrderId>,
    /// The time, in milliseconds since the start of the world.
    pub at_ms: i64,
    /// The observation.
    pub words: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}", self.invariant.number())?;
        if self.under_wrong_clocks && self.invariant.is_safety() {
            write!(f, " (and 13)")?;
        }
        write!(f, " ({:?}) at {} ms", self.invariant, self.at_ms)?;
        if let Some(order) = self.order {
            write!(f, ", order {order}")?;
        }
        write!(f, ": {}", self.words)
    }
}
