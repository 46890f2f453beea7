//! The observations of the auditor: writes, messages, calls and answers, in types of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use domain::id::OrderId;

/// The state of an order in its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderState {
    /// No step has started.
    Pending,
    /// In progress.
    Processing,
    /// Completed. Final.
    Processed,
    /// Waits for an operator.
    Error,
    /// Compensation in progress.
    Compensating,
    /// Compensated. Final.
    Compensated,
}

/// The state of a step in its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepState {
    /// Waiting.
    Pending,
    /// Claimed.
    Processing,
    /// Done in its direction.
    Processed,
    /// Given up.
    Error,
}

/// Forward or undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Forward.
    Forward,
    /// Compensation.
    Undo,
}

/// A status message or alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// To the reply channel: the order is stored.
    Received,
    /// To the reply channel: the order is processed.
    Processed,
    /// To the reply channel: the order waits for an operator.
    Failed,
    /// To the reply channel: the order is compensated.
    Compensated,
    /// To the event bus: the order needs an operator.
    NeedsOperator,
    /// To the event bus: the reply channel fails.
    ChannelFailing,
}

/// The outcome of an attempt, from its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Done.
    Done,
    /// Done, with an output above the limit.
    TooLarge,
    /// Rejected.
    Failed,
    /// Deferred.
    Deferred,
}

/// What a caller heard from a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Heard {
    /// An answer after which the call has no effect of its own any more: it had it, or never will.
    Settled,
    /// A rejection with this code, and no call with the key was at work.
    No(Arc<str>),
    /// The call may still have its effect.
    Open,
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
    /// The claimant.
    pub locked_by: Option<Arc<str>>,
    /// The deadline of the attempt, in epoch milliseconds.
    pub complete_by_ms: Option<i64>,
    /// The end of the back-off, in epoch milliseconds.
    pub not_before_ms: Option<i64>,
    /// The first claim in its direction, in epoch milliseconds.
    pub started_ms: Option<i64>,
    /// Whether a supervisor doubted its own clock about the attempt.
    pub doubted: bool,
    /// Code and time of the last failure, in epoch milliseconds.
    pub last_error: Option<(Arc<str>, i64)>,
    /// Hash of the forward output.
    pub output: Option<u64>,
}

/// The record of an order in one version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// The order.
    pub order: OrderId,
    /// +1 at each write.
    pub version: u64,
    /// The version of the workflow.
    pub workflow: u32,
    /// The state.
    pub state: OrderState,
    /// Code of the reason of an error or a compensation, and the version in which it arose.
    pub reason: Option<(Arc<str>, u64)>,
    /// The last state that the history says the order entered.
    pub entered: Option<OrderState>,
    /// Whether an operator paused it.
    pub paused: bool,
    /// The time at which the supervisor looks at it, in epoch milliseconds.
    pub watch_ms: Option<i64>,
    /// Unsent notices: kind and version.
    pub unsent: Vec<(Kind, u64)>,
    /// The steps, in workflow order.
    pub steps: Vec<StepSeen>,
}

/// One attempt of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Try {
    /// The order.
    pub order: OrderId,
    /// The step's index in the workflow.
    pub step: usize,
    /// Its direction.
    pub way: Way,
    /// The attempt.
    pub attempt: u32,
}

/// The body of a call, as hashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Body {
    /// Hash of the order's document.
    pub document: u64,
    /// Hashes of other steps' outputs, by step index.
    pub outputs: BTreeMap<usize, u64>,
}

/// The version of a workflow that the API chose for an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pinned {
    /// The version. It is unique over all workflows of a world.
    pub version: u32,
    /// The workflow that the order names.
    pub named: Option<Arc<str>>,
    /// The API knows at least what was applied at this time, in milliseconds since the start of the world.
    pub since_ms: i64,
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seen {
    /// A customer got the answer that the order is accepted.
    Accepted {
        /// The order.
        order: OrderId,
        /// Fingerprint of the posted document.
        fingerprint: Arc<str>,
        /// Time of the post, in milliseconds since the start of the world.
        posted_ms: i64,
    },
    /// A customer posts a document, accepted or not.
    Posted {
        /// The order's ID, if the key determines it.
        order: OrderId,
        /// Fingerprint of the document.
        fingerprint: Arc<str>,
        /// Hash of the document.
        document: u64,
        /// The named channel.
        channel: Option<Arc<str>>,
        /// The version of the workflow that the API chose, if it chose one.
        pinned: Option<Pinned>,
    },
    /// An operator applied other workflows or settings.
    Applied {
        /// The versions that new orders begin with.
        choices: super::versions::Choices,
    },
    /// A message with the order is on the submission queue, or is a dead letter.
    Kept {
        /// The order.
        order: OrderId,
    },
    /// Such a message is deleted.
    LetGo {
        /// The order.
        order: OrderId,
        /// Whether the submission function deleted it, rather than the supervisor.
        is_submitted: bool,
    },
    /// The order is stored.
    Inserted {
        /// Fingerprint of its document.
        fingerprint: Arc<str>,
        /// The first record.
        record: Record,
    },
    /// A record is replaced.
    Written {
        /// The new record.
        record: Record,
        /// The invocation that wrote it.
        by: u32,
        /// The writer's clock.
        clock_ms: i64,
    },
    /// A wake for the order was put on the scheduler queue.
    Woken {
        /// The order.
        order: OrderId,
    },
    /// A repeated write succeeded since it met its own nonce.
    TakenForOwn {
        /// The order.
        order: OrderId,
        /// Whether the stored record is the one that it wrote.
        is_same: bool,
    },
    /// A request was put on an agent's queue.
    Requested {
        /// The order.
        of: Try,
        /// The deadline.
        complete_by_ms: i64,
        /// Its `BudgetMs`.
        budget_ms: u64,
        /// The sender's clock.
        clock_ms: i64,
    },
    /// An agent's instance receives requests for an attempt.
    Handed {
        /// The order.
        of: Try,
        /// The instance.
        to: Arc<str>,
        /// The end of the budget, by its own clock, in epoch milliseconds.
        until_ms: i64,
        /// The message.
        message: Arc<str>,
        /// Whether an earlier receiver of the message is still at work.
        overlaps: bool,
    },
    /// An agent tries to put a reply on the scheduler queue.
    Replied {
        /// The attempt.
        of: Try,
        /// The outcome.
        ending: Ending,
        /// Hash of the output, if done.
        output: Option<u64>,
        /// The code, if rejected.
        code: Option<Arc<str>>,
        /// The agent's instance.
        by: Arc<str>,
        /// The agent's clock.
        clock_ms: i64,
    },
    /// An agent's reply could not be queued.
    Unsent {
        /// The order.
        of: Try,
        /// The invocation.
        by: u32,
    },
    /// An agent is done with requests for an attempt.
    Dismissed {
        /// The order.
        of: Try,
        /// The invocation.
        by: u32,
        /// Requests for the same attempt in the batch that it reports as failed.
        returned: usize,
    },
    /// A message about an attempt is a dead letter.
    Buried {
        /// The order.
        of: Try,
    },
    /// An agent starts a call.
    Called {
        /// The order.
        of: Try,
        /// The number of the call.
        call: u64,
        /// The idempotency key.
        key: Arc<str>,
        /// The body under the key.
        body: Body,
        /// Other calls with the same key in flight at this agent, if it must prevent them.
        twins: usize,
        /// The index of the agent.
        agent: usize,
        /// The agent's instance.
        by: Arc<str>,
        /// The agent's clock.
        clock_ms: i64,
    },
    /// An agent got an answer.
    Answered {
        /// The order.
        of: Try,
        /// The number of the call.
        call: u64,
        /// What it says.
        heard: Heard,
    },
    /// A service had an effect.
    Effect {
        /// The attempt. For an undo: there was something to undo.
        of: Try,
    },
    /// A service answers that the call is carried out, now or earlier.
    Confirmed {
        /// The order.
        of: Try,
    },
    /// A status message or alert is sent.
    Telling {
        /// The order.
        order: OrderId,
        /// What.
        kind: Kind,
        /// The version of the task.
        version: u64,
        /// The channel; `None` for the event bus.
        channel: Option<Arc<str>>,
    },
    /// A status message or alert arrived.
    Told {
        /// The order.
        order: OrderId,
        /// What.
        kind: Kind,
        /// The version of the task.
        version: u64,
    },
    /// A dead letter that no order records: a command, or an unreadable message.
    DeadLetterDue {
        /// The dead letter.
        id: Arc<str>,
    },
    /// An alert about a dead letter arrived.
    LetterTold {
        /// The dead letter.
        id: Arc<str>,
    },
    /// A dead letter is deleted.
    DeadLetterGone {
        /// The dead letter.
        id: Arc<str>,
    },
    /// An operator's command was put on the scheduler queue.
    Wished {
        /// The order.
        order: OrderId,
        /// The kind of command.
        action: &'static str,
    },
    /// An operator got the answer that a command is accepted.
    Promised {
        /// The order.
        order: OrderId,
        /// The kind of command.
        action: &'static str,
    },
    /// A handler reports an operator's command as done.
    Granted {
        /// The order.
        order: OrderId,
        /// The kind of command.
        action: &'static str,
        /// The version of the record that the operator saw.
        looked_at: u64,
    },
    /// A handler reports a message of the scheduler queue as done.
    Acknowledged {
        /// The order.
        order: OrderId,
        /// The invocation that handled it.
        by: u32,
        /// Earlier invocations with the same message.
        earlier: Vec<u32>,
        /// The delivery to this invocation, in milliseconds since the start of the world.
        given_ms: i64,
        /// Whether the invocation reports all its messages of that order as done.
        is_whole: bool,
        /// The clock of the instance.
        clock_ms: i64,
    },
    /// A handler panicked.
    Panicked {
        /// The panic message.
        words: Arc<str>,
    },
    /// The check that every order has ended in time.
    EndIsDue {
        /// The end of the faults, in milliseconds since the start of the world.
        since_ms: i64,
        /// The time within which an order has to end, counted from then or from its last start, in milliseconds.
        bound_ms: i64,
    },
    /// The time limit of all messages is over.
    DrainIsDue {
        /// Messages left on the queues.
        queued: u64,
    },
}

impl Seen {
    /// The order of the observation.
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
            | Self::Answered { of, .. }
            | Self::Effect { of }
            | Self::Confirmed { of } => Some(of.order),
            Self::DeadLetterDue { .. }
            | Self::LetterTold { .. }
            | Self::DeadLetterGone { .. }
            | Self::Panicked { .. }
            | Self::EndIsDue { .. }
            | Self::DrainIsDue { .. }
            | Self::Applied { .. } => None,
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
            Self::Posted { pinned: Some(pinned), .. } => write!(f, "posted, begins with version {}", pinned.version),
            Self::Posted { .. } => write!(f, "posted"),
            Self::Applied { choices } => write!(f, "applied: new orders begin with {choices:?}"),
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
            Self::Called { of, call, .. } => write!(f, "calls for {of}, call {call}"),
            Self::Answered { of, call, heard } => write!(f, "hears {heard:?} for {of}, call {call}"),
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
