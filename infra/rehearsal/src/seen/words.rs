//! The observations in words, for the trace.

use std::fmt;

use super::{Record, Seen, Try, Way};

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
        if self.late_ms.is_some() {
            write!(f, " late")?;
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
            Self::PostsAgain { of, .. } => write!(f, "posts {of} again"),
            Self::Applied { choices } => write!(f, "applied: new orders begin with {choices:?}"),
            Self::Kept { .. } => write!(f, "on the submission queue"),
            Self::LetGo { .. } => write!(f, "let go from the submission queue"),
            Self::Inserted { record, .. } => write!(f, "inserted {record}"),
            Self::Written { record, by, .. } => write!(f, "written by {by}: {record}"),
            Self::TakenForOwn { is_same, .. } => {
                write!(f, "a repeated write met its own mark, same content: {is_same}")
            }
            Self::Requested { of, .. } => write!(f, "requested {of}"),
            Self::Handed { of, to, .. } => write!(f, "{to} is given {of}"),
            Self::FetchesToken { by, .. } => write!(f, "{by} fetches a token"),
            Self::SendsAgain { of, .. } => write!(f, "sends the call for {of} again"),
            Self::AskedToWait { of, until_ms, .. } => write!(f, "asked not to call for {of} before {until_ms} ms"),
            Self::Replied { of, ending, .. } => write!(f, "replies {ending:?} to {of}"),
            Self::Unsent { of, .. } => write!(f, "could not send its reply to {of}"),
            Self::Dismissed { of, .. } => write!(f, "is done with {of}"),
            Self::Buried { of } => write!(f, "dead letter about {of}"),
            Self::Called { of, call, .. } => write!(f, "calls for {of}, call {call}"),
            Self::Answered { of, call, heard } => write!(f, "hears {heard:?} for {of}, call {call}"),
            Self::Looked { by, .. } => write!(f, "{by} looks at the task"),
            Self::Refused { of } => write!(f, "the service says NO to {of}"),
            Self::Effect { of } => write!(f, "EFFECT of {of}"),
            Self::Confirmed { of } => write!(f, "service confirms {of}"),
            Self::Telling { kind, version, channel, .. } => {
                write!(f, "tells {kind:?} of v{version} to {}", channel.as_deref().unwrap_or("the event bus"))
            }
            Self::Told { kind, version, .. } => write!(f, "{kind:?} of v{version} arrived"),
            Self::DeadLetterDue { id } => write!(f, "somebody has to be told of dead letter {id}"),
            Self::LetterTold { id } => write!(f, "an alert about dead letter {id} arrived"),
            Self::DeadLetterGone { id } => write!(f, "dead letter {id} is let go"),
            Self::Decided { step, approves: true, .. } => write!(f, "a person approves step {step}"),
            Self::Decided { step, approves: false, .. } => write!(f, "a person rejects step {step}"),
            Self::Wished { action, .. } => write!(f, "an operator wishes: {action}"),
            Self::Promised { action, .. } => write!(f, "an operator is told that the {action} is accepted"),
            Self::Granted { action, looked_at, .. } => write!(f, "is done with the {action} wished at v{looked_at}"),
            Self::Acknowledged { by, .. } => write!(f, "invocation {by} is done with its message"),
            Self::Panicked { words } => write!(f, "panicked: {words}"),
            Self::EndIsDue { bound_ms, .. } => write!(f, "every order ought to end within {bound_ms} ms"),
            Self::NoteQueued { words, .. } => write!(f, "the note {words:?} is queued"),
            Self::NoteHandled { words, looked_at, .. } => {
                write!(f, "the note {words:?} of who saw v{looked_at} is done")
            }
            Self::DrainIsDue { queued } => write!(f, "by now all ought to be told; {queued} messages on queues"),
        }
    }
}
