//! What follows from an event: the change, the messages, and the verdict.

use std::sync::Arc;

use crate::limits::{NOTES_MAX, OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX};
use crate::task::{Attempt, Notice, Task, What};
use crate::time::Timestamp;

/// A message to send once the change is committed. Sending it again is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Send the request for the current attempt of a step to its agent.
    Request {
        /// The index of the step.
        step: usize,
        /// Messages in the chain so far, this one included.
        hops: u32,
    },
    /// Ask the agent of a step for the state of its call that was taken on.
    Look {
        /// The index of the step.
        step: usize,
        /// Messages in the chain so far, this one included.
        hops: u32,
    },
    /// Wake the scheduler for this order.
    Wake {
        /// The delay.
        delay_ms: u64,
        /// Messages in the chain so far, this one included.
        hops: u32,
    },
    /// Send a status message to the order's reply channel.
    Notify(Notice),
    /// Put the alert on the event bus.
    Alert(Notice),
    /// Tell the step whose child this order is that the order has ended (rule 49).
    TellParent(Notice),
}

/// The result of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The task to write; `None` if nothing changes.
    pub change: Option<Task>,
    /// The messages to send after the write, or at once if there is no write.
    pub effects: Vec<Effect>,
    /// What happened to the task, in this order.
    pub happened: Vec<Happened>,
    /// For logs and counters: one for each event.
    pub verdicts: Vec<Verdict>,
}

/// Something that happened to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A line of its history; or one that it lacks, since another line in its place implies it.
    What(What),
    /// The attempt had no answer in time, and none follows. The history has [`What::GivenUp`].
    ExpiredLast(Attempt),
    /// The step had no answer too often or for too long. The history has [`What::GivenUp`].
    Exhausted(Attempt),
    /// A supervisor found the attempt so late that it doubted its own clock.
    Doubted(Attempt),
}

impl Happened {
    /// The attempt that it is about.
    #[must_use]
    pub const fn attempt(&self) -> Option<&Attempt> {
        match self {
            Self::What(what) => what.attempt(),
            Self::ExpiredLast(attempt) | Self::Exhausted(attempt) | Self::Doubted(attempt) => Some(attempt),
        }
    }
}

/// The outcome of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was taken.
    Taken,
    /// There was nothing to do.
    Nothing,
    /// A reply that must not count (rule 5).
    Dropped(Dropped),
    /// A command of an operator that the state does not allow.
    Refused(Refused),
}

/// Why a reply does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// The task is finished.
    #[error("the task is finished")]
    Finished,
    /// The workflow has no such step.
    #[error("the workflow has no such step")]
    UnknownStep,
    /// The step now runs in the other direction.
    #[error("the step runs in the other direction")]
    OtherDirection,
    /// No such attempt was ever claimed.
    #[error("no such attempt was claimed")]
    UnknownAttempt,
    /// The step is done or given up.
    #[error("the step is not open")]
    Closed,
    /// A failure of an attempt that is not the current one.
    #[error("a failure of an attempt that is over")]
    StaleFailure,
    /// Its output has a member twice: stored, it would have two readings. The attempt has no answer.
    #[error("its output has a member twice")]
    Ambiguous,
    /// The service took the call of the attempt on, so a duplicate of its request cannot give it back (rule 36).
    #[error("the service took the call on, and its result is awaited")]
    TakenOn,
    /// Only people decide on the step (rule 40).
    #[error("people decide on the step, and no service does")]
    NeedsPeople,
    /// Another sender answers for the agent of the step (rule 45).
    #[error("the sender does not carry out the steps of this agent")]
    Untrusted,
}

/// Why an operator's command is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Only a task in `Error` can be resubmitted or closed, or have a step settled.
    #[error("only an order in Error can be resubmitted or closed, or have a step settled")]
    NotInError,
    /// Only a step in `Error` can be settled, in its present direction.
    #[error("no such step is in Error in that direction")]
    NothingToSettle,
    /// The same, of an order that has such steps.
    #[error("no such step is in Error in that direction; of those in Error: {0}")]
    OthersToSettle(Arc<str>),
    /// Nobody can know the outcome of a step before its calls are over (rule 16).
    #[error("until {until} a call may still have its effect")]
    UnderWay {
        /// The end of that time.
        until: Timestamp,
    },
    /// The output, or those of all steps together, would exceed the limit.
    #[error("{0}")]
    OutputTooLarge(TooLarge),
    /// The command was meant for an earlier error of the same order.
    #[error("the order changed since the operator looked")]
    Stale,
    /// Finished is finished.
    #[error("the order is finished")]
    Finished,
    /// Past a pivot, an order only goes forward (rule 34).
    #[error("the order is past {step}: it only goes forward")]
    PastPivot {
        /// The name of the pivot.
        step: Arc<str>,
    },
    /// Only an optional step may be skipped.
    #[error("only an optional step can be settled as skipped")]
    NotOptional,
    /// Only a step that goes through an array is of a line.
    #[error("the step is not one of a line of the order, which alone can be dropped")]
    NoLine,
    /// Without a line there is no order.
    #[error("it is the last line of the order: cancel the order")]
    LastLine,
    /// A step that comes after all lines has begun with this one.
    #[error("{step} has begun with this line: cancel the order, or settle the step as done")]
    LineIsUsed {
        /// The step.
        step: Arc<str>,
    },
    /// It is being undone already.
    #[error("the order is being undone already")]
    AlreadyCompensating,
    /// An order in `Error` starts no step, so a pause has no effect.
    #[error("the order waits for an operator already")]
    InError,
    /// It is paused already.
    #[error("the order is paused already")]
    AlreadyPaused,
    /// It is not paused.
    #[error("the order is not paused")]
    NotPaused,
    /// An order keeps [`NOTES_MAX`] notes.
    #[error("the order has {NOTES_MAX} notes, and keeps no more")]
    TooManyNotes,
    /// A queue may deliver a command twice, and a client may send it twice.
    #[error("the command was carried out already")]
    DoneBefore,
    /// No operator has taken it on, so there is nothing to let go.
    #[error("no operator has taken the order on")]
    NotTaken,
    /// No step waits for people, or not this one.
    #[error("no such step of the order waits for an approval: it may be decided already")]
    NotAsked,
    /// Several steps wait for people.
    #[error("several steps wait for an approval: name one as Step, or with --step on the command line")]
    WhichStep,
    /// This person posted the order, and may not decide on it. The name is the order's, not as it was typed.
    #[error("{0} posted this order, so somebody else decides")]
    OwnOrder(Arc<str>),
    /// The order names this person at the place `not_by` of the step: it is their own too. The name is the order's.
    #[error("the order names {0} as the person who may not decide (not_by), so somebody else decides")]
    NamedInOrder(Arc<str>),
    /// Only a decision ends an approval.
    #[error("an approval is not settled: resubmit the order, and it is asked for again")]
    NeedsApproval,
    /// What is erased has to be over: no message about the order may be owed (rule 46).
    #[error("only an order that has ended and owes no message can be erased")]
    NotOver,
    /// Its personal data are gone already.
    #[error("the order is erased already")]
    AlreadyErased,
    /// Only a compensated order can be posted again.
    #[error("only an order that is Compensated, and not erased, can be posted again")]
    NotCompensated,
    /// New orders have its workflow no more.
    #[error("no new order can have the workflow {0}: apply it again, or choose a version of it")]
    NoWorkflow(Arc<str>),
}

impl Refused {
    /// The name of the reason, for metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotInError => "NotInError",
            Self::NothingToSettle | Self::OthersToSettle(_) => "NothingToSettle",
            Self::UnderWay { .. } => "UnderWay",
            Self::OutputTooLarge(_) => "OutputTooLarge",
            Self::Stale => "Stale",
            Self::Finished => "Finished",
            Self::PastPivot { .. } => "PastPivot",
            Self::NotOptional => "NotOptional",
            Self::NoLine => "NoLine",
            Self::LastLine => "LastLine",
            Self::LineIsUsed { .. } => "LineIsUsed",
            Self::AlreadyCompensating => "AlreadyCompensating",
            Self::InError => "InError",
            Self::AlreadyPaused => "AlreadyPaused",
            Self::NotPaused => "NotPaused",
            Self::TooManyNotes => "TooManyNotes",
            Self::DoneBefore => "DoneBefore",
            Self::NotTaken => "NotTaken",
            Self::NotAsked => "NotAsked",
            Self::WhichStep => "WhichStep",
            Self::OwnOrder(_) | Self::NamedInOrder(_) => "OwnOrder",
            Self::NeedsApproval => "NeedsApproval",
            Self::NotOver => "NotOver",
            Self::AlreadyErased => "AlreadyErased",
            Self::NotCompensated => "NotCompensated",
            Self::NoWorkflow(_) => "NoWorkflow",
        }
    }
}

/// An output beyond its limit, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// That of one step.
    #[error("the output has {0} bytes, the limit is {OUTPUT_BYTES_MAX}")]
    One(usize),
    /// Those of all steps of the task.
    #[error("the outputs of all steps have {0} bytes, the limit is {OUTPUTS_BYTES_MAX}")]
    All(usize),
}

/// A task that no sequence of events leads to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// The steps are not those of the workflow.
    #[error("the task's steps are not those of workflow {workflow} version {version}")]
    OtherWorkflow {
        /// Name of the workflow.
        workflow: Arc<str>,
        /// Its version.
        version: u32,
    },
    /// A counter has reached its maximum. No real order gets there.
    #[error("{count} is at its end")]
    CountedOut {
        /// The attribute's name.
        count: &'static str,
    },
    /// A claim has no deadline.
    #[error("step {step} is Processing without CompleteBy")]
    ClaimWithoutDeadline {
        /// Name of the step.
        step: Arc<str>,
    },
}
