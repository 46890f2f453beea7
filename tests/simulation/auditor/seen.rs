//! What an onlooker can see of the system: what is written, sent, called and answered, in the auditor's own words.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use domain::id::OrderId;

/// The state of an order, as its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderState {
    /// Nothing has begun.
    Pending,
    /// Under way.
    Processing,
    /// Carried out. Final.
    Processed,
    /// Waits for an operator.
    Error,
    /// Being undone.
    Compensating,
    /// Undone. Final.
    Compensated,
}

/// The state of a step, as its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepState {
    /// Waits.
    Pending,
    /// Claimed.
    Processing,
    /// Done in its direction.
    Processed,
    /// Given up.
    Error,
}

/// Carry out, or take back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Carry out.
    Forward,
    /// Take back.
    Undo,
}

/// What is told to the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// To the reply channel: stored.
    Received,
    /// To the reply channel: carried out.
    Processed,
    /// To the reply channel: waits for an operator.
    Failed,
    /// To the reply channel: undone.
    Compensated,
    /// To the event bus: an operator is needed.
    NeedsOperator,
    /// To the event bus: the reply channel takes nothing.
    ChannelFailing,
}

/// How an attempt ended, as its reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Done.
    Done,
    /// Done, with an output that is larger than a step's may be.
    TooLarge,
    /// No for good.
    Failed,
    /// Given back.
    Deferred,
}

/// The record of a step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StepSeen {
    /// Its state.
    pub state: StepState,
    /// Its direction.
    pub way: Way,
    /// The fencing token.
    pub attempt: u32,
    /// Failures counted.
    pub failures: u32,
    /// Who claimed it.
    pub locked_by: Option<Arc<str>>,
    /// When the attempt has to be done, in epoch milliseconds.
    pub complete_by_ms: Option<i64>,
    /// Before when it must not be claimed, in epoch milliseconds.
    pub not_before_ms: Option<i64>,
    /// When its direction was first claimed, in epoch milliseconds.
    pub started_ms: Option<i64>,
    /// Whether a supervisor doubted its own clock about the attempt.
    pub doubted: bool,
    /// Code of the last failure, and when it was noticed, in epoch milliseconds.
    pub last_error: Option<(Arc<str>, i64)>,
    /// Hash of what came of carrying it out.
    pub output: Option<u64>,
}

/// The record of an order in one version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Whose.
    pub order: OrderId,
    /// +1 at each write.
    pub version: u64,
    /// The version of the workflow.
    pub workflow: u32,
    /// The state.
    pub state: OrderState,
    /// Code of the reason of an error or an undoing, and the version in which it came up.
    pub reason: Option<(Arc<str>, u64)>,
    /// Whether an operator paused it.
    pub paused: bool,
    /// When the supervisor looks at it, if it does, in epoch milliseconds.
    pub watch_ms: Option<i64>,
    /// What is to be told and not known to have been: kind and version.
    pub unsent: Vec<(Kind, u64)>,
    /// The steps, in workflow order.
    pub steps: Vec<StepSeen>,
}

/// One attempt of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Try {
    /// Whose.
    pub order: OrderId,
    /// The step's place in the workflow.
    pub step: usize,
    /// Its direction.
    pub way: Way,
    /// The attempt.
    pub attempt: u32,
}

/// What is sent with a call, as hashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Body {
    /// Of the order's document.
    pub document: u64,
    /// Of what came of other steps, by their places.
    pub outputs: BTreeMap<usize, u64>,
}

/// Something seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seen {
    /// A customer was told that the order is accepted.
    Accepted {
        /// Which.
        order: OrderId,
        /// Fingerprint of the document that the customer posted.
        fingerprint: Arc<str>,
        /// When it was posted, in milliseconds since the world began.
        posted_ms: i64,
    },
    /// A customer posts a document, accepted or not.
    Posted {
        /// The order that it would be, where that is known beforehand.
        order: OrderId,
        /// Fingerprint of the document.
        fingerprint: Arc<str>,
        /// Hash of the document.
        document: u64,
        /// The channel it names.
        channel: Option<Arc<str>>,
    },
    /// A message with the order is on the submission queue, or among its dead letters.
    Kept {
        /// Which.
        order: OrderId,
    },
    /// Such a message is gone.
    LetGo {
        /// Which.
        order: OrderId,
        /// Whether it was the submission that let it go, and not the one who settles dead letters.
        is_submitted: bool,
    },
    /// The order is stored.
    Inserted {
        /// Fingerprint of its document.
        fingerprint: Arc<str>,
        /// Its first record.
        record: Record,
    },
    /// A record is replaced.
    Written {
        /// The new one.
        record: Record,
        /// The invocation that wrote it.
        by: u32,
        /// The writer's clock.
        clock_ms: i64,
    },
    /// A wake for the order was put on the scheduler queue.
    Woken {
        /// Whose.
        order: OrderId,
    },
    /// A repeated write was answered with success because it met its own mark.
    TakenForOwn {
        /// Whose.
        order: OrderId,
        /// Whether what is stored is what it wanted to write.
        is_same: bool,
    },
    /// A request was put on an agent's queue.
    Requested {
        /// Which.
        of: Try,
        /// When it has to be done.
        complete_by_ms: i64,
        /// How much time it says is left, in milliseconds.
        budget_ms: u64,
        /// The sender's clock.
        clock_ms: i64,
    },
    /// An agent's instance is given requests for an attempt.
    Handed {
        /// Which.
        of: Try,
        /// The instance.
        to: Arc<str>,
        /// By its clock, when what is left of the attempt's time by the sender's clock is over, in epoch milliseconds.
        until_ms: i64,
    },
    /// An agent tries to put a reply on the scheduler queue.
    Replied {
        /// To which.
        of: Try,
        /// What it says.
        ending: Ending,
        /// Hash of what came of it, where it is done.
        output: Option<u64>,
        /// The agent's instance.
        by: Arc<str>,
        /// The agent's clock.
        clock_ms: i64,
    },
    /// An agent is told that its reply could not be queued.
    Unsent {
        /// Which.
        of: Try,
        /// The invocation.
        by: u32,
    },
    /// An agent is done with requests for an attempt.
    Dismissed {
        /// Which.
        of: Try,
        /// The invocation.
        by: u32,
        /// Requests for the same attempt that it was given with them and reports as not done.
        returned: usize,
    },
    /// A message about an attempt is a dead letter.
    Buried {
        /// Which.
        of: Try,
    },
    /// An agent starts a call.
    Called {
        /// Which.
        of: Try,
        /// The idempotency key.
        key: Arc<str>,
        /// What is sent under it.
        body: Body,
        /// Calls with the same key that this agent has under way elsewhere, where it has to see to that there is none.
        twins: usize,
        /// The agent's place among the agents.
        agent: usize,
        /// The agent's instance.
        by: Arc<str>,
        /// The agent's clock.
        clock_ms: i64,
    },
    /// A service did something.
    Effect {
        /// Which; of an undo: there was something to undo.
        of: Try,
    },
    /// A service says that it is done, now or before.
    Confirmed {
        /// Which.
        of: Try,
    },
    /// A status message is being sent to a reply channel.
    Telling {
        /// Whose.
        order: OrderId,
        /// What.
        kind: Kind,
        /// Of which version.
        version: u64,
        /// To which channel; nothing: to the event bus.
        channel: Option<Arc<str>>,
    },
    /// A status message or alert arrived.
    Told {
        /// Whose.
        order: OrderId,
        /// What.
        kind: Kind,
        /// Of which version.
        version: u64,
    },
    /// A message that no order can tell of is a dead letter: a command, or what nobody can read.
    DeadLetterDue {
        /// The dead letter.
        id: Arc<str>,
    },
    /// An alert about a dead letter arrived.
    LetterTold {
        /// The dead letter.
        id: Arc<str>,
    },
    /// A dead letter is let go.
    DeadLetterGone {
        /// The dead letter.
        id: Arc<str>,
    },
    /// An operator's command was put on the scheduler queue.
    Wished {
        /// Whose.
        order: OrderId,
        /// The word.
        action: &'static str,
    },
    /// An operator was told that a command is accepted.
    Promised {
        /// For which.
        order: OrderId,
        /// The word.
        action: &'static str,
    },
    /// A handler reports an operator's command as done.
    Granted {
        /// Whose.
        order: OrderId,
        /// The word.
        action: &'static str,
        /// The version of the record that the operator saw.
        looked_at: u64,
    },
    /// A handler reports a message of the scheduler queue as done.
    Acknowledged {
        /// Whose.
        order: OrderId,
        /// The invocation that handled it.
        by: u32,
        /// Earlier invocations that were given the same message.
        earlier: Vec<u32>,
        /// When this one was given it, in milliseconds since the world began.
        given_ms: i64,
        /// Whether the invocation reports all its messages of that order as done.
        is_whole: bool,
        /// The clock of the instance.
        clock_ms: i64,
    },
    /// A handler panicked.
    Panicked {
        /// What it said.
        words: Arc<str>,
    },
    /// Somebody looks whether every order has ended that ought to have.
    EndIsDue {
        /// When faults stopped, in milliseconds since the world began.
        since_ms: i64,
        /// Within how long an order has to end from then on, or from when it was last set going, in milliseconds.
        bound_ms: i64,
    },
    /// The time by which everything ought to have been told is over.
    DrainIsDue {
        /// Messages that are still on a queue.
        queued: u64,
    },
}

impl Seen {
    /// The order that it is about.
    #[must_use]
    pub const fn order(&self) -> Option<OrderId> {
        match self {
            Self::Accepted { order, .. }
            | Self::Posted { order, .. }
            | Self::Kept { order }
            | Self::LetGo { order, .. }
            | Self::Woken { order }
            | Self::TakenForOwn { order, .. }
            | Self::Telling { order, .. }
            | Self::Told { order, .. }
            | Self::Wished { order, .. }
            | Self::Promised { order, .. }
            | Self::Granted { order, .. }
            | Self::Acknowledged { order, .. } => Some(*order),
            Self::Inserted { record, .. } | Self::Written { record, .. } => Some(record.order),
            Self::Requested { of, .. }
            | Self::Handed { of, .. }
            | Self::Replied { of, .. }
            | Self::Unsent { of, .. }
            | Self::Dismissed { of, .. }
            | Self::Buried { of }
            | Self::Called { of, .. }
            | Self::Effect { of }
            | Self::Confirmed { of } => Some(of.order),
            Self::DeadLetterDue { .. }
            | Self::LetterTold { .. }
            | Self::DeadLetterGone { .. }
            | Self::Panicked { .. }
            | Self::EndIsDue { .. }
            | Self::DrainIsDue { .. } => None,
        }
    }
}

impl fmt::Display for Try {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let undo = if self.way == Way::Undo { "undo of " } else { "" };
        write!(f, "{undo}step {} #{}", self.step, self.attempt)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{} {:?}", self.version, self.state)?;
        if let Some((code, since)) = &self.reason {
            write!(f, " ({code} since v{since})")?;
        }
        if self.paused {
            write!(f, " paused")?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            let way = if step.way == Way::Undo { "undo " } else { "" };
            write!(f, " | {index} {way}{:?} #{}", step.state, step.attempt)?;
            if step.failures > 0 {
                write!(f, " failed {}", step.failures)?;
            }
        }
        if !self.unsent.is_empty() {
            write!(f, " | owes")?;
            for (kind, version) in &self.unsent {
                write!(f, " {kind:?} v{version}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { .. } => write!(f, "accepted"),
            Self::Posted { .. } => write!(f, "posted"),
            Self::Kept { .. } => write!(f, "on the submission queue"),
            Self::LetGo { .. } => write!(f, "let go from the submission queue"),
            Self::Inserted { record, .. } => write!(f, "inserted {record}"),
            Self::Written { record, by, .. } => write!(f, "written by {by}: {record}"),
            Self::Woken { .. } => write!(f, "wake queued"),
            Self::TakenForOwn { is_same, .. } => {
                write!(f, "a repeated write met its own mark, same content: {is_same}")
            }
            Self::Requested { of, .. } => write!(f, "requested {of}"),
            Self::Handed { of, to, .. } => write!(f, "{to} is given {of}"),
            Self::Replied { of, ending, .. } => write!(f, "replies {ending:?} to {of}"),
            Self::Unsent { of, .. } => write!(f, "could not send its reply to {of}"),
            Self::Dismissed { of, .. } => write!(f, "is done with {of}"),
            Self::Buried { of } => write!(f, "dead letter about {of}"),
            Self::Called { of, .. } => write!(f, "calls for {of}"),
            Self::Effect { of } => write!(f, "EFFECT of {of}"),
            Self::Confirmed { of } => write!(f, "service confirms {of}"),
            Self::Telling { kind, version, channel, .. } => {
                write!(f, "tells {kind:?} of v{version} to {}", channel.as_deref().unwrap_or("the event bus"))
            }
            Self::Told { kind, version, .. } => write!(f, "{kind:?} of v{version} arrived"),
            Self::DeadLetterDue { id } => write!(f, "somebody has to be told of dead letter {id}"),
            Self::LetterTold { id } => write!(f, "an alert about dead letter {id} arrived"),
            Self::DeadLetterGone { id } => write!(f, "dead letter {id} is let go"),
            Self::Wished { action, .. } => write!(f, "an operator wishes: {action}"),
            Self::Promised { action, .. } => write!(f, "an operator is told that the {action} is accepted"),
            Self::Granted { action, looked_at, .. } => write!(f, "is done with the {action} wished at v{looked_at}"),
            Self::Acknowledged { by, .. } => write!(f, "invocation {by} is done with its message"),
            Self::Panicked { words } => write!(f, "panicked: {words}"),
            Self::EndIsDue { bound_ms, .. } => write!(f, "every order ought to end within {bound_ms} ms"),
            Self::DrainIsDue { queued } => write!(f, "by now all ought to be told; {queued} messages on queues"),
        }
    }
}
