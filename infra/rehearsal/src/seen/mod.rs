//! What is seen from outside: writes, messages, calls and answers, in types of its own.

mod values;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::id::OrderId;

pub use values::{
    Body, Element, Ending, Heard, Kind, OrderState, Pinned, Record, SettledStep, StepSeen, StepState, Try, Way,
};

/// By the name of a workflow: the versions that new orders begin with. The name of an order that names none is empty.
pub type Choices = BTreeMap<Arc<str>, BTreeSet<u32>>;

/// A call may still begin for so long after its attempt is over, in milliseconds. A request that was sent within this time
/// needs no look.
pub const WANTED_MS: i64 = 1_000;

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
        /// The elements of its array.
        elements: Vec<Element>,
        /// The version of the workflow that the API chose, if it chose one.
        pinned: Option<Pinned>,
    },
    /// An order is posted again as a new one.
    PostsAgain {
        /// The new order.
        order: OrderId,
        /// The order that it repeats.
        of: OrderId,
    },
    /// An operator applied other workflows or settings.
    Applied {
        /// The versions that new orders begin with.
        choices: Choices,
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
    },
    /// The order is stored.
    Inserted {
        /// Fingerprint of its document.
        fingerprint: Arc<str>,
        /// The first record.
        record: Record,
        /// The invocation that wrote it.
        by: u32,
        /// The writer's clock, in epoch milliseconds.
        clock_ms: i64,
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
        /// When its sender first read or inserted the task, by its clock.
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
        /// The smallest `BudgetMs` of them.
        budget_ms: u64,
        /// The message.
        message: Arc<str>,
        /// Whether an earlier receiver of the message is still at work.
        overlaps: bool,
        /// Whether the queue made two messages of the one that was sent.
        is_copied: bool,
        /// If this is its first delivery: the end of the second in which it was sent, by the receiver's clock.
        fresh_until_ms: Option<i64>,
    },
    /// An agent's instance looks at the task.
    Looked {
        /// The order.
        order: OrderId,
        /// The instance.
        by: Arc<str>,
    },
    /// An agent tries to put a reply on the scheduler queue.
    Replied {
        /// The attempt.
        of: Try,
        /// The outcome.
        ending: Ending,
        /// Hash of the output, if done.
        output: Option<u64>,
        /// The text in the output that names a version and a step, if there is one.
        kept: Option<Arc<str>>,
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
    /// An agent's instance fetches a token.
    FetchesToken {
        /// The instance.
        by: Arc<str>,
        /// Its other fetches under way.
        twins: usize,
    },
    /// An agent sends its last call again, with another token.
    SendsAgain {
        /// The attempt.
        of: Try,
        /// The agent's instance.
        by: Arc<str>,
    },
    /// An agent is asked not to call before a time.
    AskedToWait {
        /// The attempt.
        of: Try,
        /// The agent's instance.
        by: Arc<str>,
        /// The time, in milliseconds since the start of the world.
        until_ms: i64,
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
    /// A service decides against a step, for its key.
    Refused {
        /// The attempt that it refuses.
        of: Try,
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
        /// What it settles.
        settled: Option<SettledStep>,
    },
    /// A person's decision on a step was put on the scheduler queue.
    Decided {
        /// The order.
        order: OrderId,
        /// The step.
        step: usize,
        /// Whether the person approved.
        approves: bool,
    },
    /// A note of an operator was put on the scheduler queue.
    NoteQueued {
        /// The order.
        order: OrderId,
        /// The note.
        words: Arc<str>,
        /// Whether the operator takes the order on with it, or lets it go.
        take: Option<bool>,
    },
    /// A handler reports a note as done.
    NoteHandled {
        /// The order.
        order: OrderId,
        /// The note.
        words: Arc<str>,
        /// The version of the record that the operator saw.
        looked_at: u64,
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
        /// The step that it settles.
        step: Option<usize>,
        /// The handler's clock at the delivery, in epoch milliseconds.
        clock_ms: i64,
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
            | Self::PostsAgain { order, .. }
            | Self::Kept { order }
            | Self::LetGo { order, .. }
            | Self::TakenForOwn { order, .. }
            | Self::Telling { order, .. }
            | Self::Told { order, .. }
            | Self::Wished { order, .. }
            | Self::Decided { order, .. }
            | Self::NoteQueued { order, .. }
            | Self::NoteHandled { order, .. }
            | Self::Promised { order, .. }
            | Self::Granted { order, .. }
            | Self::Looked { order, .. }
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
            | Self::AskedToWait { of, .. }
            | Self::SendsAgain { of, .. }
            | Self::Refused { of }
            | Self::Effect { of }
            | Self::Confirmed { of } => Some(of.order),
            Self::FetchesToken { .. }
            | Self::DeadLetterDue { .. }
            | Self::LetterTold { .. }
            | Self::DeadLetterGone { .. }
            | Self::Panicked { .. }
            | Self::EndIsDue { .. }
            | Self::DrainIsDue { .. }
            | Self::Applied { .. } => None,
        }
    }
}
