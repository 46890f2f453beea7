//! What may be pending in a world.

use domain::id::OrderId;
use domain::message::Action;

use crate::faults::Fault;

/// A pending event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A sleep is over: index and generation of the timer.
    Timer(u32, u32),
    /// A service tells the result of a call.
    CallBack(u64),
    /// A batch may be received from a queue.
    Pump(usize),
    /// A paused invocation resumes.
    Resume(u32),
    /// An instance has started, by its index.
    Started(usize),
    /// An instance is replaced by one of the present deployment.
    Recycled(usize),
    /// A supervisor's tick, by its number. Only the due tick counts.
    Tick(usize, i64),
    /// A customer posts.
    Post(usize),
    /// An operator acts during the run.
    Meddle(Meddling),
    /// An outage or an intrusion starts.
    Strike(Blow),
    /// A call reaches its service.
    Arrive(u64),
    /// A service is done with its work on a call.
    Effect(u64),
    /// The answer of a service reaches its caller.
    Answer(u64),
    /// A service may drop a key: order, step, and whether it is the undo's key.
    Forget(OrderId, usize, bool),
    /// Somebody cancels an order.
    Cancel(OrderId),
    /// Workflows and settings are applied.
    Apply(usize),
    /// The second version of the workflow is deployed.
    Deploy,
    /// Faults stop.
    Calm,
    /// The next check that all orders have ended.
    Look,
}

/// An operator's action during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meddling {
    /// Resubmits an order.
    Resubmit,
    /// Cancels an order.
    Cancel,
    /// Pauses an order.
    Pause,
    /// Resumes an order.
    Resume,
    /// Mends a step by hand, and settles it.
    Settle,
    /// Writes a note.
    Note,
    /// Closes an order.
    Close,
    /// Approves or rejects an order that waits for people.
    Decide,
    /// Resubmits many orders.
    Bulk,
    /// Posts many orders again.
    BulkAgain,
}

impl Meddling {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Resubmit,
        Self::Cancel,
        Self::Pause,
        Self::Resume,
        Self::Settle,
        Self::Note,
        Self::Close,
        Self::Decide,
        Self::Bulk,
        Self::BulkAgain,
    ];

    /// The fault under which it is planned and counted.
    #[must_use]
    pub const fn fault(self) -> Fault {
        match self {
            Self::Resubmit => Fault::Resubmitted,
            Self::Cancel => Fault::Cancelled,
            Self::Pause => Fault::Held,
            Self::Resume => Fault::Resumed,
            Self::Settle => Fault::Settled,
            Self::Note => Fault::Noted,
            Self::Close => Fault::Closed,
            Self::Decide => Fault::Decided,
            Self::Bulk => Fault::BulkResubmitted,
            Self::BulkAgain => Fault::BulkPostedAgain,
        }
    }

    /// The command, if it is for one order.
    pub(crate) const fn action(self) -> Option<Action> {
        match self {
            Self::Resubmit => Some(Action::Resubmit),
            Self::Cancel => Some(Action::Cancel),
            Self::Pause => Some(Action::Pause),
            Self::Resume => Some(Action::Resume),
            Self::Settle => Some(Action::Settle),
            Self::Note => Some(Action::Note),
            Self::Close => Some(Action::Close),
            Self::Decide => Some(Action::Approve),
            Self::Bulk | Self::BulkAgain => None,
        }
    }
}

/// An outage or an intrusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// A queue cannot be reached.
    QueueAway,
    /// The store cannot be reached.
    StoreAway,
    /// A service cannot be reached.
    ServiceAway,
    /// A service refuses every call.
    ServiceMisconfigured,
    /// An unreadable body.
    Poison,
    /// A reply that no agent sent.
    Forge,
    /// The clock of all instances jumps.
    ClockJump,
}

impl Blow {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::QueueAway,
        Self::StoreAway,
        Self::ServiceAway,
        Self::ServiceMisconfigured,
        Self::Poison,
        Self::Forge,
        Self::ClockJump,
    ];

    /// The fault under which it is planned and counted.
    #[must_use]
    pub const fn fault(self) -> Fault {
        match self {
            Self::QueueAway => Fault::QueueAway,
            Self::StoreAway => Fault::StoreAway,
            Self::ServiceAway => Fault::ServiceAway,
            Self::ServiceMisconfigured => Fault::ServiceMisconfigured,
            Self::Poison => Fault::Poisoned,
            Self::Forge => Fault::Forged,
            Self::ClockJump => Fault::ClockJumped,
        }
    }
}
