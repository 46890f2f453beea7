//! What the auditor complains about.

use std::fmt;

use domain::id::OrderId;

/// The invariants by their number, and the rules that the auditor checks beyond them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// 1: an accepted order is on the submission queue, stored, or a dead letter.
    Custody,
    /// 2: an attempt's number never decreases, and each has one claimant.
    Claims,
    /// 3: only the holder of the attempt, or a success of an earlier one, moves a step on; the supervisor only after the
    /// deadline plus grace.
    Movers,
    /// 4: failures are at most the attempts, and each attempt counts once.
    Counting,
    /// 5: at most one effect for each order, step and direction.
    OneEffect,
    /// 6: a step starts only after all that it comes after; an undo before them.
    Sequence,
    /// 7: what ended stays as it is.
    Absorbing,
    /// 8: compensated means that every step ever begun has a confirmed undo.
    Undone,
    /// 9: no forward effect after a confirmed undo, and no undo while the forward attempt may still run.
    NothingAfterUndo,
    /// 10: an error comes with an alert.
    Alert,
    /// 11: no call starts too late, and nothing is said after the deadline.
    Deadline,
    /// 12: a status message tells what is committed, to the channel of the order.
    Status,
    /// 14: once faults stop, every order ends in time.
    Ends,
    /// 15: once faults stop, notifications, alerts and queues drain.
    Drains,
    /// Rule 2: commit, then send, then acknowledge.
    SendBeforeAcknowledge,
    /// Rule 12: an order starts nothing while an operator keeps it from that.
    Operator,
    /// Rule 14: the supervisor looks at every order under way, at no attempt later than when it counts as expired.
    Watched,
    /// Rules 1 and 3: a version grows by one at each change; workflow and document stay as they are.
    Record,
    /// Rule 4: every call under a key has the same body: the document as posted, and the outputs of the steps before.
    Body,
    /// The state machine never panics.
    Panic,
}

impl Invariant {
    /// The number in the list of invariants, or the rule.
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
            Self::SendBeforeAcknowledge => "rule 2",
            Self::Operator => "rule 12",
            Self::Watched => "rule 14",
            Self::Record => "record",
            Self::Body => "body",
            Self::Panic => "panic",
        }
    }

    /// Whether it has to hold at any time, and not only once faults stop.
    #[must_use]
    pub const fn is_safety(self) -> bool {
        !matches!(self, Self::Ends | Self::Drains)
    }
}

/// One complaint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What did not hold.
    pub invariant: Invariant,
    /// Whether clocks or leaders were wrong, so that invariant 13 did not hold either: safety does not depend on them.
    pub under_wrong_clocks: bool,
    /// The order, where it is about one.
    pub order: Option<OrderId>,
    /// When, in milliseconds since the world began.
    pub at_ms: i64,
    /// What was seen.
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
