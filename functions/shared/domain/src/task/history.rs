//! The history of a task: each event is one typed value. Words are made of it where it is shown, and nowhere else.
//!
//! [`stored`] has the form in which every store keeps it.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Step, Task};
use crate::author;
use crate::id::CommandId;
use crate::message::Action;
use crate::state::{Direction, ProcessState};
use crate::time::Timestamp;

pub mod stored;

/// One attempt of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "stored::Short", from = "stored::Short")]
pub struct Attempt {
    /// The index of the step.
    pub step: usize,
    /// Carry out, or undo.
    pub direction: Direction,
    /// The fencing token of its claim.
    pub number: u32,
}

/// Something that happened to a task, under the letter with which it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// The order was accepted.
    #[serde(rename = "S")]
    Submitted,
    /// An attempt began.
    #[serde(rename = "C")]
    Claimed(Attempt),
    /// The step is done in its direction.
    #[serde(rename = "P")]
    Processed(Attempt),
    /// The attempt was given back, and no failure is counted.
    #[serde(rename = "D")]
    Deferred(Attempt),
    /// The attempt had no answer in time, and another follows.
    #[serde(rename = "X")]
    Expired(Attempt),
    /// The step is given up. The order is compensated, or an operator must act.
    #[serde(rename = "G")]
    GivenUp(Attempt),
    /// The service, or a person, rejected the step for good.
    #[serde(rename = "J")]
    Rejected(Attempt),
    /// An operator said that the step is done in its direction (rule 27).
    #[serde(rename = "T")]
    Settled(Attempt),
    /// A person approved the step (rule 40).
    #[serde(rename = "Y")]
    Approved(Attempt),
    /// The step waits before its first claim (rule 35).
    #[serde(rename = "W")]
    Waiting(Attempt),
    /// The service took the call of the attempt on, and tells the result later (rule 36).
    #[serde(rename = "A")]
    Accepted(Attempt),
    /// The step needs no call: it does not apply, is optional and was rejected, or has no undo (rule 33).
    #[serde(rename = "K")]
    Skipped(Attempt),
    /// The line of the step is undone, and the order goes on without it (rule 50).
    #[serde(rename = "U")]
    Dropped(Attempt),
    /// A result came against the end of the step or of its order (rule 5).
    #[serde(rename = "V")]
    Contradicted(Attempt),
    /// The order came into a state.
    #[serde(rename = "E")]
    Entered(ProcessState),
    /// An operator resubmitted the order.
    #[serde(rename = "R")]
    Resubmitted,
    /// An operator cancelled the order.
    #[serde(rename = "Q")]
    Cancelled,
    /// An operator paused the order.
    #[serde(rename = "H")]
    Paused,
    /// The pause ended.
    #[serde(rename = "O")]
    Resumed,
    /// The order was not finished at its deadline (rule 37).
    #[serde(rename = "L")]
    Late,
    /// An operator wrote a note (rule 30), and took the order on with it or let it go, if there is a value.
    #[serde(rename = "N")]
    Noted(Option<bool>),
    /// The personal data of the order were erased (rule 46).
    #[serde(rename = "Z")]
    Erased,
    /// Another version wrote it. It is kept as it was.
    #[serde(untagged)]
    Other(Box<serde_json::Value>),
}

/// One line of a task's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// When.
    pub at: Timestamp,
    /// An instance, an operator, or the submitter of the order.
    pub who: Arc<str>,
    /// What happened.
    pub what: What,
    /// The reason, where one was given.
    pub why: Option<Arc<str>>,
    /// The command that did it.
    pub command_id: Option<CommandId>,
    /// The bulk job that did it: that sent this command, or posted the order again as this one.
    pub bulk: Option<Arc<str>>,
}

impl What {
    /// Its name for programs, its words or verb, and the attempt that it is about.
    const fn parts(&self) -> (&'static str, &'static str, Option<&Attempt>) {
        match self {
            Self::Submitted => ("Submitted", "submitted", None),
            Self::Claimed(attempt) => ("Claimed", "claimed", Some(attempt)),
            Self::Processed(attempt) => ("Processed", "processed", Some(attempt)),
            Self::Deferred(attempt) => ("Deferred", "put off", Some(attempt)),
            Self::Expired(attempt) => ("Expired", "failed, to be tried again", Some(attempt)),
            Self::GivenUp(attempt) => ("GivenUp", "given up", Some(attempt)),
            Self::Rejected(attempt) => ("Rejected", "rejected", Some(attempt)),
            Self::Settled(attempt) => ("Settled", "settled", Some(attempt)),
            Self::Approved(attempt) => ("Approved", "approved", Some(attempt)),
            Self::Waiting(attempt) => ("Waiting", "waits", Some(attempt)),
            Self::Accepted(attempt) => ("Accepted", "accepted", Some(attempt)),
            Self::Skipped(attempt) => ("Skipped", "skipped", Some(attempt)),
            Self::Dropped(attempt) => ("Dropped", "dropped", Some(attempt)),
            Self::Contradicted(attempt) => ("Contradicted", "contradicted", Some(attempt)),
            Self::Entered(state) => ("Entered", state.name(), None),
            Self::Resubmitted => ("Resubmitted", "resubmitted", None),
            Self::Cancelled => ("Cancelled", "cancelled", None),
            Self::Paused => ("Paused", "paused", None),
            Self::Resumed => ("Resumed", "resumed", None),
            Self::Late => ("Late", "late", None),
            Self::Noted(None) => ("Noted", "noted", None),
            Self::Noted(Some(true)) => ("Noted", "taken on", None),
            Self::Noted(Some(false)) => ("Noted", "let go", None),
            Self::Erased => ("Erased", "erased", None),
            Self::Other(_) => ("Other", "", None),
        }
    }

    /// The name of the kind, for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        self.parts().0
    }

    /// The attempt that it is about.
    #[must_use]
    pub const fn attempt(&self) -> Option<&Attempt> {
        self.parts().2
    }

    /// Whether it is a note.
    #[must_use]
    pub const fn is_note(&self) -> bool {
        matches!(self, Self::Noted(_))
    }

    /// Whether it is what becomes of a command with this action.
    #[must_use]
    pub const fn is_by(&self, action: Action) -> bool {
        matches!(
            (action, self),
            (Action::Resubmit, Self::Resubmitted)
                | (Action::Cancel, Self::Cancelled)
                | (Action::Pause, Self::Paused)
                | (Action::Resume, Self::Resumed)
                | (Action::Settle, Self::Settled(_) | Self::Dropped(_))
                | (Action::Note, Self::Noted(_))
                | (Action::Close, Self::Entered(ProcessState::Closed))
                | (Action::Approve, Self::Approved(_))
                | (Action::Reject, Self::Rejected(_))
                | (Action::Erase, Self::Erased)
        )
    }

    /// Whether the history keeps the line for ever: a note, and the first line. The first line has the time of acceptance,
    /// from which the duration is counted (rule 26).
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        matches!(self, Self::Submitted | Self::Noted(_))
    }

    /// The words for people, of a task with these steps.
    #[must_use]
    pub fn words(&self, steps: &[Step]) -> Cow<'static, str> {
        match (self, self.parts()) {
            (Self::Other(value), _) => Cow::Owned(value.to_string()),
            // The reason in the same line names the attempt; a wait is before the first one.
            (Self::Expired(attempt) | Self::Waiting(attempt), (_, verb, _)) => {
                Cow::Owned(format!("{}{} {verb}", attempt.undo_of(), attempt.name(steps)))
            }
            (_, (_, verb, Some(attempt))) => Cow::Owned(attempt.words(steps, verb)),
            (_, (_, words, None)) => Cow::Borrowed(words),
        }
    }
}

impl Attempt {
    /// The current attempt of the step at this index.
    #[must_use]
    pub fn current(step: usize, of: &Step) -> Self {
        Self { step, direction: of.direction, number: of.attempt }
    }

    /// The name of its step.
    #[must_use]
    pub fn name<'a>(&self, steps: &'a [Step]) -> &'a str {
        steps.get(self.step).map_or("unknown step", |step| &step.name)
    }

    /// The words for an outcome of it.
    pub(crate) fn words(&self, steps: &[Step], verb: &str) -> String {
        format!("{}{} {verb} #{}", self.undo_of(), self.name(steps), self.number)
    }

    const fn undo_of(&self) -> &'static str {
        match self.direction {
            Direction::Forward => "",
            Direction::Undo => "undo of ",
        }
    }
}

/// A line for display: words, and the typed members beside them.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "HistoryLine"))]
#[serde(rename_all = "PascalCase")]
pub struct Line<'a> {
    /// When.
    pub at: Timestamp,
    /// An instance, an operator, or the submitter of the order.
    pub who: &'a str,
    /// The authenticated caller of that operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<&'a str>,
    /// What happened, in words. Empty in the audit stream.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub what: Cow<'a, str>,
    /// The reason, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'a str>,
    /// The kind of change, for programs. More kinds may be added.
    pub kind: &'static str,
    /// The step of this line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<&'a str>,
    /// The direction of that step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The number of the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The state that the order entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ProcessState>,
    /// Of a note: whether the operator took the order on, or let it go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<bool>,
    /// The command that did it.
    #[serde(rename = "CommandID", skip_serializing_if = "Option::is_none")]
    pub command_id: Option<&'a CommandId>,
    /// The bulk job that did it: that sent this command, or posted the order again as this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bulk: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// The line for people, of a task with these steps.
    #[must_use]
    pub fn of(line: &'a Transition, steps: &'a [Step]) -> Self {
        Self { what: line.what.words(steps), ..Self::typed(line, steps) }
    }

    /// The same without words, for programs. What another version wrote stays as it was.
    #[must_use]
    pub fn typed(line: &'a Transition, steps: &'a [Step]) -> Self {
        let Transition { at, who, what, why, command_id, bulk } = line;
        let attempt = what.attempt();
        let (who, caller) = author::parts(who);
        Self {
            at: *at,
            who,
            caller,
            what: if let What::Other(value) = what { Cow::Owned(value.to_string()) } else { Cow::Borrowed("") },
            why: why.as_deref(),
            kind: what.kind(),
            step: attempt.map(|attempt| attempt.name(steps)),
            direction: attempt.map(|attempt| attempt.direction),
            attempt: attempt.map(|attempt| attempt.number),
            state: if let What::Entered(state) = what { Some(*state) } else { None },
            take: if let What::Noted(take) = what { *take } else { None },
            command_id: command_id.as_ref(),
            bulk: bulk.as_deref(),
        }
    }
}

impl Task {
    /// The history, line by line, for display.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.history.iter().map(|line| Line::of(line, &self.steps))
    }
}

#[cfg(test)]
mod tests;
