//! What the observations are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::id::OrderId;
use domain::workflow::{Encoding, Method};

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
    /// Ended by an operator as it was. Final.
    Closed,
}

impl OrderState {
    /// Whether nothing changes it any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Processed | Self::Compensated | Self::Closed)
    }
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
    /// Not to be carried out.
    Skipped,
}

/// Forward or undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Forward.
    Forward,
    /// Compensation.
    Undo,
}

/// A step that an operator settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SettledStep {
    /// Its index.
    pub step: usize,
    /// Its direction.
    pub way: Way,
    /// Hash of the operator's output.
    pub output: Option<u64>,
    /// Whether the order goes on without it.
    pub is_skipped: bool,
    /// Whether the order goes on without its line.
    pub is_dropped: bool,
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
    /// To the reply channel: an operator closed the order.
    Closed,
    /// To the reply channel: a step waits for people or for its result.
    Waiting,
    /// To the reply channel: the order is late.
    LateStatus,
    /// To the event bus: a step waits for people.
    NeedsApproval,
    /// To the event bus: the order needs an operator.
    NeedsOperator,
    /// To the event bus: the reply channel fails.
    ChannelFailing,
    /// To the event bus: the order is late.
    Late,
    /// To the order whose step made this one. No order here has one.
    ParentTold,
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
    /// Not over: its last call failed.
    Retrying,
    /// It was taken on, and its result comes later.
    Accepted,
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
    /// Its name.
    pub name: Arc<str>,
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
    /// The end of its long wait, in epoch milliseconds.
    pub waits_until_ms: Option<i64>,
    /// Whether its state is to be asked before the wait ends.
    pub is_to_look: bool,
    /// The first claim in its direction, in epoch milliseconds.
    pub started_ms: Option<i64>,
    /// The end of the time in which a call may still have its effect, in epoch milliseconds.
    pub runs_until_ms: Option<i64>,
    /// When a supervisor doubted its own clock or another about the attempt, in epoch milliseconds.
    pub doubted_ms: Option<i64>,
    /// Code and time of the last failure, in epoch milliseconds.
    pub last_error: Option<(Arc<str>, i64)>,
    /// Hash of the forward output.
    pub output: Option<u64>,
    /// Whether its line was dropped.
    pub dropped: bool,
}

impl StepSeen {
    /// A step of a new order.
    #[must_use]
    pub fn new(state: StepState) -> Self {
        Self {
            name: "".into(),
            state,
            way: Way::Forward,
            attempt: 0,
            failures: 0,
            locked_by: None,
            complete_by_ms: None,
            not_before_ms: None,
            waits_until_ms: None,
            is_to_look: false,
            started_ms: None,
            runs_until_ms: None,
            doubted_ms: None,
            last_error: None,
            output: None,
            dropped: false,
        }
    }
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
    /// The notes of operators, in the order of the history.
    pub notes: Vec<Arc<str>>,
    /// How many lines of the history say that a result contradicts it.
    pub contradicted: usize,
    /// The version in which an operator last took it on or let it go.
    pub taken_version: u64,
    /// Its deadline, in epoch milliseconds.
    pub complete_by_ms: Option<i64>,
    /// When it was found late, in epoch milliseconds.
    pub late_ms: Option<i64>,
    /// The time at which the supervisor looks at it, in epoch milliseconds.
    pub watch_ms: Option<i64>,
    /// Unsent notices: kind and version.
    pub unsent: Vec<(Kind, u64)>,
    /// The steps, in workflow order: one with lines once for each of them.
    pub steps: Vec<StepSeen>,
    /// The lines that the order says it carries, and those that were dropped.
    pub lines: [Vec<Arc<str>>; 2],
}

/// One attempt of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Try {
    /// The order.
    pub order: OrderId,
    /// The step's index in the record.
    pub step: usize,
    /// Its direction.
    pub way: Way,
    /// The attempt.
    pub attempt: u32,
}

/// The body and the path of a call, as hashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Body {
    /// Hash of the order's document, if it is carried.
    pub document: Option<u64>,
    /// Hashes of other steps' outputs, by their index in the workflow.
    pub outputs: BTreeMap<usize, u64>,
    /// Hashes of the members that a mapping sends instead.
    pub members: Option<BTreeMap<Arc<str>, u64>>,
    /// Their encoding.
    pub encode: Encoding,
    /// The path below the URL of the operation.
    pub path: Option<Arc<str>>,
    /// The method.
    pub method: Method,
    /// The headers that the workflow names.
    pub headers: BTreeMap<Arc<str>, Arc<str>>,
}

impl Body {
    /// Of a call without a mapping.
    #[must_use]
    pub const fn whole(document: u64, outputs: BTreeMap<usize, u64>) -> Self {
        Self {
            document: Some(document),
            outputs,
            members: None,
            encode: Encoding::Json,
            path: None,
            method: Method::Post,
            headers: BTreeMap::new(),
        }
    }
}

/// An element of the array of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Element {
    /// What it is called.
    pub name: Arc<str>,
    /// Its number.
    pub number: u64,
    /// Hash of its text.
    pub hash: u64,
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
