//! What happens to a task: the events, and the moment of one.

use std::sync::Arc;

use crate::message::{Command, Reply};
use crate::task::{Direction, Notice};
use crate::time::Timestamp;

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
