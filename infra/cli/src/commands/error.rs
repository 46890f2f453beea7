//! The error of a command.

use std::io;

use local::BadSetting;

use super::dialogue::note;
use crate::exit::Exit;
use crate::remote::RemoteError;

/// The error: a message for people, an exit status for scripts.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// The API call failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The output could not be written. The command itself is done.
    #[error("done, but the output could not be written: {0}")]
    Output(#[from] io::Error),
    /// The command line is wrong, which shows only at execution.
    #[error(transparent)]
    Usage(#[from] BadSetting),
    /// What is named is not there.
    #[error("{what}")]
    NotThere {
        what: String,
        /// The remedy, if any.
        advice: Option<&'static str>,
    },
    /// The order may have been accepted.
    #[error("it is not known whether the order was accepted: {source}")]
    Unknown {
        /// The key for a safe retry.
        key: String,
        #[source]
        source: RemoteError,
    },
    /// The command may have been carried out.
    #[error("it is not known whether {what}: {source}")]
    Unsure {
        /// The command's effect, such as "ID was paused".
        what: String,
        /// The command that shows it.
        look: String,
        #[source]
        source: RemoteError,
    },
}

impl CommandError {
    /// The command line is wrong, or a file that it names.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(BadSetting::new(message))
    }

    /// Of a call that changes something. Where an answer was lost, `what` may be done, and `look` shows it.
    pub(super) fn of_change(source: RemoteError, what: impl Into<String>, look: impl Into<String>) -> Self {
        match source.may_be_done() || source.is_refused_repeat() {
            true => Self::Unsure { what: what.into(), look: look.into(), source },
            false => Self::Remote(source),
        }
    }

    /// The exit status.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Remote(error) | Self::Unknown { source: error, .. } | Self::Unsure { source: error, .. } => {
                error.exit()
            }
            Self::NotThere { .. } => Exit::NotFound,
            Self::Output(error) => Exit::unwritten(error),
            Self::Usage(_) => Exit::Usage,
        }
    }

    /// Prints the error and the remedy on stderr.
    pub(super) fn tell(&self) {
        if self.exit() == Exit::OutputGone {
            return;
        }
        self.lines().iter().chain(&self.advice()).for_each(|line| note(line));
    }

    /// The message: a line, or those of each fault.
    fn lines(&self) -> Vec<String> {
        let problem = if let Self::Remote(error) = self { error.problem() } else { None };
        let faults = problem.into_iter().flat_map(|problem| &problem.faults).flat_map(|fault| fault.lines());
        let faults: Vec<String> = faults.map(str::to_owned).collect();
        if faults.is_empty() { vec![self.to_string()] } else { faults }
    }

    fn advice(&self) -> Option<String> {
        match self {
            Self::Remote(error) => error.advice(),
            Self::Unknown { key, source } => {
                let again = format!("it is safe to submit it again with --key {key}");
                Some(source.advice().map_or_else(|| again.clone(), |advice| format!("{advice}; {again}")))
            }
            Self::Unsure { look, .. } => Some(format!("check with `{look}`")),
            Self::NotThere { advice, .. } => advice.map(str::to_owned),
            Self::Output(_) | Self::Usage(_) => None,
        }
    }
}
