//! Why a command did not succeed.

use std::io;

use domain::json::JsonError;

use crate::exit::Exit;
use crate::remote::RemoteError;
use crate::show::table::plain;

/// In words for people, and with the status for scripts.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// The API did not do it.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// There is nowhere to print to. What was asked for is done by then.
    #[error("done, but the answer could not be written: {0}")]
    Output(#[from] io::Error),
    /// The command line is wrong in a way that only shows when it is carried out.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read.
    #[error("{file} cannot be read: {source}")]
    File {
        file: String,
        #[source]
        source: io::Error,
    },
    /// What was to be posted is no document of an order.
    #[error("{file} is no order: it is {source}")]
    Document {
        file: String,
        #[source]
        source: JsonError,
    },
    /// It may or may not have been accepted.
    #[error("it is not known whether the order was accepted: {source}")]
    Unknown {
        /// With which it is safe to try again.
        key: String,
        #[source]
        source: RemoteError,
    },
    /// What was asked for may or may not have been done.
    #[error("it is not known whether {what}: {source}")]
    Unsure {
        /// In words: "ID was paused".
        what: String,
        /// What to look at.
        look: String,
        #[source]
        source: RemoteError,
    },
}

impl CommandError {
    /// The status to end with.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Remote(error) | Self::Unknown { source: error, .. } | Self::Unsure { source: error, .. } => {
                error.exit()
            }
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::OutputGone,
            Self::Output(_) => Exit::Unwritten,
            Self::Usage(_) | Self::File { .. } | Self::Document { .. } => Exit::Usage,
        }
    }

    /// Says it on stderr, and what to do. Whoever reads no further has seen enough.
    pub(super) fn tell(&self) {
        if self.exit() == Exit::OutputGone {
            return;
        }
        eprintln!("stepwarden: {}", plain(&self.to_string()));
        if let Some(advice) = self.advice() {
            eprintln!("stepwarden: {}", plain(&advice));
        }
    }

    fn advice(&self) -> Option<String> {
        match self {
            Self::Remote(error) => error.advice(),
            Self::Unknown { key, source } => {
                let again = format!("it is safe to submit it again with --key {key}");
                Some(source.advice().map_or_else(|| again.clone(), |advice| format!("{advice}; {again}")))
            }
            Self::Unsure { look, .. } => Some(format!("look at it with `{look}`")),
            Self::Output(_) | Self::Usage(_) | Self::File { .. } | Self::Document { .. } => None,
        }
    }
}
