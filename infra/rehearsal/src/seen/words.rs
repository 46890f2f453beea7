//! The observations in words, for the trace.

use std::fmt;
use std::sync::Arc;

use super::{Record, Seen, Try, Way};

/// An observation with the names of the steps.
struct Words<'a> {
    seen: &'a Seen,
    steps: &'a [Arc<str>],
}

impl Seen {
    /// In words. `steps`: the names of the steps, by their index.
    #[must_use]
    pub fn words(&self, steps: &[Arc<str>]) -> String {
        Words { seen: self, steps }.to_string()
    }
}

impl Try {
    /// In words. `steps`: the names of the steps, by their index.
    #[must_use]
    pub fn words(&self, steps: &[Arc<str>]) -> String {
        let undo = if self.way == Way::Undo { "undo of " } else { "" };
        match steps.get(self.step) {
            Some(name) => format!("{undo}{name} #{}", self.attempt),
            None => self.to_string(),
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
        if self.late_ms.is_some() {
            write!(f, " late")?;
        }
        for step in &self.steps {
            let way = if step.way == Way::Undo { "undo " } else { "" };
            write!(f, " | {} {way}{:?} #{}", step.name, step.state, step.attempt)?;
            if step.failures > 0 {
                write!(f, " failed {}", step.failures)?;
            }
            if step.dropped {
                write!(f, " dropped")?;
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

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = |of: &Try| of.words(self.steps);
        let name = |step: &usize| self.steps.get(*step).map_or_else(|| step.to_string(), ToString::to_string);
        match self.seen {
            Seen::Accepted { .. } => write!(f, "accepted"),
            Seen::Posted { pinned: Some(pinned), .. } => write!(f, "posted, begins with version {}", pinned.version),
            Seen::Posted { .. } => write!(f, "posted"),
            Seen::PostsAgain { of, .. } => write!(f, "posts {of} again"),
            Seen::Applied { choices } => write!(f, "applied: new orders begin with {choices:?}"),
            Seen::Kept { .. } => write!(f, "on the submission queue"),
            Seen::LetGo { .. } => write!(f, "let go from the submission queue"),
            Seen::Inserted { record, .. } => write!(f, "inserted {record}"),
            Seen::Written { record, by, .. } => write!(f, "written by {by}: {record}"),
            Seen::TakenForOwn { is_same, .. } => {
                write!(f, "a repeated write met its own mark, same content: {is_same}")
            }
            Seen::Requested { of, .. } => write!(f, "requested {}", attempt(of)),
            Seen::Handed { of, to, .. } => write!(f, "{to} is given {}", attempt(of)),
            Seen::FetchesToken { by, .. } => write!(f, "{by} fetches a token"),
            Seen::SendsAgain { of, .. } => write!(f, "sends the call for {} again", attempt(of)),
            Seen::AskedToWait { of, until_ms, .. } => {
                write!(f, "asked not to call for {} before {until_ms} ms", attempt(of))
            }
            Seen::Replied { of, ending, .. } => write!(f, "replies {ending:?} to {}", attempt(of)),
            Seen::Unsent { of, .. } => write!(f, "could not send its reply to {}", attempt(of)),
            Seen::Dismissed { of, .. } => write!(f, "is done with {}", attempt(of)),
            Seen::Buried { of } => write!(f, "dead letter about {}", attempt(of)),
            Seen::Called { of, call, .. } => write!(f, "calls for {}, call {call}", attempt(of)),
            Seen::Answered { of, call, heard } => write!(f, "hears {heard:?} for {}, call {call}", attempt(of)),
            Seen::Looked { by, .. } => write!(f, "{by} looks at the task"),
            Seen::Refused { of } => write!(f, "the service says NO to {}", attempt(of)),
            Seen::Effect { of } => write!(f, "EFFECT of {}", attempt(of)),
            Seen::Confirmed { of } => write!(f, "service confirms {}", attempt(of)),
            Seen::Telling { kind, version, channel, .. } => {
                write!(f, "tells {kind:?} of v{version} to {}", channel.as_deref().unwrap_or("the event bus"))
            }
            Seen::Told { kind, version, .. } => write!(f, "{kind:?} of v{version} arrived"),
            Seen::DeadLetterDue { id } => write!(f, "somebody has to be told of dead letter {id}"),
            Seen::LetterTold { id } => write!(f, "an alert about dead letter {id} arrived"),
            Seen::DeadLetterGone { id } => write!(f, "dead letter {id} is let go"),
            Seen::Decided { step, approves: true, .. } => write!(f, "a person approves {}", name(step)),
            Seen::Decided { step, approves: false, .. } => write!(f, "a person rejects {}", name(step)),
            Seen::Wished { action, .. } => write!(f, "an operator wishes: {action}"),
            Seen::Promised { action, .. } => write!(f, "an operator is told that the {action} is accepted"),
            Seen::Granted { action, looked_at, .. } => write!(f, "is done with the {action} wished at v{looked_at}"),
            Seen::Acknowledged { by, .. } => write!(f, "invocation {by} is done with its message"),
            Seen::Panicked { words } => write!(f, "panicked: {words}"),
            Seen::EndIsDue { bound_ms, .. } => write!(f, "every order ought to end within {bound_ms} ms"),
            Seen::NoteQueued { words, .. } => write!(f, "the note {words:?} is queued"),
            Seen::NoteHandled { words, looked_at, .. } => {
                write!(f, "the note {words:?} of who saw v{looked_at} is done")
            }
            Seen::DrainIsDue { queued } => write!(f, "by now all ought to be told; {queued} messages on queues"),
        }
    }
}
