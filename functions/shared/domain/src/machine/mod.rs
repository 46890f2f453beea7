//! The state machine: how an event changes a task (rules 1 to 16, 19, 21, 23, 27, 30 to 40 and 46).
//!
//! [`decide`] takes a task, its workflow, an event, the time and the instance. It returns the task to write and the
//! messages that follow from it. It performs nothing, so it can run again at any time: the loser of a conditional
//! write reads again and decides again.
//!
//! The modules: `turn` is the working copy with the elementary moves (claim, complete, fail, hold). `reply`, `sweep`,
//! `dead_letter` and `operator` (with `settle`, `note`, `close`, `erase` and `approval`) handle one kind of event each. `compensation` turns an order
//! round, `skip` ends the steps that need no call, and `pivot` says when an order only goes forward. `wait` has the long
//! waits, `late` the deadline of the order, `watch` sets the next look at the task, and `request` writes the message to an agent.
//!
//! What must never happen here: a final state changes; an attempt is counted twice; an event that is not the
//! scheduler's claims a step; an effect does not follow from the committed state.

mod approval;
mod close;
mod compensation;
mod dead_letter;
mod erase;
mod late;
mod note;
mod operator;
mod pivot;
mod reply;
mod request;
mod settle;
mod skip;
mod sweep;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod turn;
mod wait;
mod watch;

use std::sync::Arc;

pub use request::request;

use crate::limits::{NOTES_MAX, OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX};
use crate::message::{Command, Reply};
use crate::task::{Direction, Notice, ProcessState, Step, Task, What, reason};
use crate::time::Timestamp;
use crate::workflow::Workflow;
use turn::Turn;

/// Something that happened to a task.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The scheduler was asked to look.
    Wake {
        /// Messages in the chain that led here.
        hops: u32,
        /// An earlier delivery may have been cut short, so the messages that follow from the state are sent again.
        redelivered: bool,
    },
    /// An agent answered.
    Reply {
        /// The answer.
        reply: &'a Reply,
        /// An earlier delivery may have been cut short, so the messages that follow from the state are sent again.
        redelivered: bool,
    },
    /// The supervisor looks.
    Sweep,
    /// An operator sends a command.
    Command {
        /// The action, the operator and the reason.
        command: &'a Command,
        /// An earlier delivery may have been cut short, so the messages that follow from the state are sent again.
        redelivered: bool,
    },
    /// A message about the task was delivered too often without success.
    DeadLetter {
        /// The subject of that message.
        dead_letter: &'a DeadLetterSubject,
    },
    /// Notices are known to have been sent.
    Sent {
        /// These notices.
        notices: &'a [Notice],
    },
}

impl Event<'_> {
    /// The same event, after an earlier delivery that may have been cut short.
    #[must_use]
    pub const fn again(self) -> Self {
        match self {
            Self::Wake { hops, .. } => Self::Wake { hops, redelivered: true },
            Self::Reply { reply, .. } => Self::Reply { reply, redelivered: true },
            Self::Command { command, .. } => Self::Command { command, redelivered: true },
            // The watch covers the messages that these leave unsent.
            Self::Sweep | Self::DeadLetter { .. } | Self::Sent { .. } => self,
        }
    }
}

/// The subject of a dead letter, as far as a task needs it to decide whether the dead letter still matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterSubject {
    /// A submission or a wake: the task was not looked at.
    Wake,
    /// A request or a reply of one attempt.
    Attempt {
        /// The step's name.
        step: Arc<str>,
        /// Carry out, or undo.
        direction: Direction,
        /// Which attempt.
        attempt: u32,
    },
}

/// The time and the instance that handle an event, and the random bits for it.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The time, as far as the instance knows.
    pub now: Timestamp,
    /// Goes into `LockedBy` and the history.
    pub instance: &'a Arc<str>,
    /// Random; stored with the new version.
    pub nonce: u64,
    /// Random; draws the back-off.
    pub draw: u64,
}

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
}

/// The result of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The task to write; `None` if nothing changes.
    pub change: Option<Task>,
    /// The messages to send after the write, or at once if there is no write.
    pub effects: Vec<Effect>,
    /// What happened to the task, in this order: its new lines of history, and more for the metrics.
    pub happened: Vec<What>,
    /// For logs and counters.
    pub verdict: Verdict,
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
    /// The same operator wrote the same words.
    #[error("the order has this note already")]
    NotedBefore,
    /// Nobody has taken it on, so nobody can let it go.
    #[error("nobody has taken the order on")]
    NotTaken,
    /// No step waits for people, or not this one.
    #[error("no such step of the order waits for an approval: it may be decided already")]
    NotAsked,
    /// Several steps wait for people.
    #[error("several steps wait for an approval: name one as Step, or with --step on the command line")]
    WhichStep,
    /// This person posted the order, and nobody decides on an order of their own.
    #[error("{0} posted this order, so somebody else decides")]
    OwnOrder(Arc<str>),
    /// The order names this person at the place `not_by` of the step: it is their own too.
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
}

impl Refused {
    /// The name of the reason, for metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotInError => "NotInError",
            Self::NothingToSettle => "NothingToSettle",
            Self::UnderWay { .. } => "UnderWay",
            Self::OutputTooLarge(_) => "OutputTooLarge",
            Self::Stale => "Stale",
            Self::Finished => "Finished",
            Self::PastPivot { .. } => "PastPivot",
            Self::NotOptional => "NotOptional",
            Self::AlreadyCompensating => "AlreadyCompensating",
            Self::InError => "InError",
            Self::AlreadyPaused => "AlreadyPaused",
            Self::NotPaused => "NotPaused",
            Self::TooManyNotes => "TooManyNotes",
            Self::NotedBefore => "NotedBefore",
            Self::NotTaken => "NotTaken",
            Self::NotAsked => "NotAsked",
            Self::WhichStep => "WhichStep",
            Self::OwnOrder(_) | Self::NamedInOrder(_) => "OwnOrder",
            Self::NeedsApproval => "NeedsApproval",
            Self::NotOver => "NotOver",
            Self::AlreadyErased => "AlreadyErased",
            Self::NotCompensated => "NotCompensated",
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

/// Applies `event` to `task`.
///
/// # Errors
/// [`Impossible`] if the record contradicts itself or the workflow. Nothing is changed then.
pub fn decide(task: &Task, workflow: &Workflow, event: Event<'_>, moment: Moment<'_>) -> Result<Decision, Impossible> {
    use ProcessState::{Closed, Compensated, Compensating, Error, Pending, Processed, Processing};

    check(task, workflow)?;
    let mut turn = Turn::new(task, workflow, moment);
    let verdict = match (event, task.process_state) {
        // A chain longer than the workflow's worst case is a loop.
        (Event::Wake { hops, .. }, Pending | Processing | Compensating) if hops > workflow.hops_max() => {
            turn.cut_chain()
        }
        (Event::Wake { hops, redelivered }, Pending | Processing | Compensating) => turn.wake(hops, redelivered),
        (Event::Wake { redelivered, .. }, Processed | Compensated | Closed | Error) => turn.repeat_if(redelivered),
        (Event::Reply { reply, redelivered }, Pending | Processing | Compensating | Error) => {
            turn.reply(reply, redelivered)
        }
        (Event::Reply { redelivered, .. }, Processed | Compensated | Closed) => {
            turn.repeat_if(redelivered);
            Verdict::Dropped(Dropped::Finished)
        }
        (Event::Sweep, Pending | Processing | Compensating) => turn.sweep(),
        (Event::Sweep, Processed | Compensated | Closed | Error) => turn.sweep_unsent(),
        (Event::Command { command, .. }, _) => turn.command(command),
        (Event::DeadLetter { dead_letter }, Pending | Processing | Compensating) => turn.dead_letter(dead_letter),
        (Event::DeadLetter { .. }, Processed | Error | Compensated | Closed) => Verdict::Nothing,
        (Event::Sent { notices }, _) => turn.sent(notices),
    };
    if let (Event::Command { redelivered: true, .. }, Verdict::Refused(_)) = (event, &verdict) {
        // The first delivery may have carried out the command and died before it sent the messages that follow.
        turn.repeat(0);
    }
    Ok(turn.end(verdict))
}

/// The assumptions of `decide` about a stored task.
fn check(task: &Task, workflow: &Workflow) -> Result<(), Impossible> {
    let same_steps = task.steps.len() == workflow.steps.len()
        && task.steps.iter().zip(&workflow.steps).all(|(step, rule)| step.name == rule.name);
    if !same_steps || task.workflow != workflow.name || task.workflow_version != workflow.version {
        return Err(Impossible::OtherWorkflow { workflow: workflow.name.clone(), version: workflow.version });
    }
    // A counter that overflows starts again at 0, and a fencing token would repeat.
    let is_out = |count: fn(&Step) -> u32| task.steps.iter().any(|step| count(step) == u32::MAX);
    let counted_out = [
        ("Version", task.version == u64::MAX),
        ("Attempt", is_out(|step| step.attempt)),
        ("FailureCount", is_out(|step| step.failure_count)),
    ];
    if let Some((count, _)) = counted_out.into_iter().find(|(_, is_out)| *is_out) {
        return Err(Impossible::CountedOut { count });
    }
    match task
        .steps
        .iter()
        .find(|step| step.process_state == crate::task::StepState::Processing && step.complete_by.is_none())
    {
        Some(step) => Err(Impossible::ClaimWithoutDeadline { step: step.name.clone() }),
        None => Ok(()),
    }
}

impl Turn<'_> {
    /// Claims the steps that are ready.
    fn wake(&mut self, hops: u32, redelivered: bool) -> Verdict {
        let first = self.task.process_state == ProcessState::Pending;
        self.believe_times();
        self.claim_ready(hops);
        if redelivered {
            self.wake_for_all_waiting(hops);
        } else {
            self.wake_for_new_waiting(hops);
            if self.claimed.is_empty() && !self.has_skipped {
                self.wake_again(hops);
            }
        }
        if first || redelivered {
            self.repeat_notices();
        }
        if redelivered {
            self.repeat_requests(hops);
        }
        self.verdict()
    }

    /// Sends again the messages that follow from a settled state, if an earlier delivery may have died before it sent
    /// them.
    fn repeat_if(&mut self, redelivered: bool) -> Verdict {
        if redelivered {
            self.repeat_notices();
        }
        Verdict::Nothing
    }

    /// Stops an order whose messages loop (rule 15).
    pub(super) fn cut_chain(&mut self) -> Verdict {
        let limit = self.workflow.hops_max();
        self.hold(reason::HOP_LIMIT, &format!("a chain of more than {limit} messages was cut"), None);
        Verdict::Taken
    }

    /// Removes notices that were sent.
    fn sent(&mut self, notices: &[Notice]) -> Verdict {
        let before = self.task.unsent.len();
        let is_sent = |owed: &Notice| notices.iter().any(|sent| (sent.kind, sent.version) == (owed.kind, owed.version));
        self.task.unsent.retain(|owed| !is_sent(owed));
        if self.task.unsent.len() == before {
            return Verdict::Nothing;
        }
        self.changed = true;
        Verdict::Taken
    }
}
