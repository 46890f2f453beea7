//! The exit statuses of the commands that call an API. They are a contract: scripts rely on them.

use std::io;
use std::process::ExitCode;

/// The outcome of a command, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Fine = 0,
    /// Done, with another outcome than requested: an order ended in another state, or a check of the doctor failed.
    Otherwise = 1,
    /// The command line, or a file that it names, is wrong; nothing was done.
    Usage = 2,
    /// There is no such order, job or service.
    NotFound = 3,
    /// The API refused the command: the state, the version or the idempotency key forbids it (409, 412, 422).
    Refused = 4,
    /// The API is unreachable or fails (5xx).
    Away = 5,
    /// The caller is not authorised (401, 403), or has no credentials.
    NotAllowed = 6,
    /// The wait timed out.
    TimedOut = 7,
    /// Done, but the output could not be written: the disk is full.
    Unwritten = 8,
    /// The reader of the output is gone.
    OutputGone = 141,
    /// Ctrl-C ended the command, which left nothing behind.
    Interrupted = 130,
    /// The same by SIGTERM.
    Terminated = 143,
}

/// The part of `--help` about exit statuses.
pub const HELP: &str = "\
Exit status:
  0  done
  1  an order ended in another state, a job stopped, the doctor, check, try, probe or rehearse found a problem, or a backup is damaged
  2  wrong usage; nothing was done
  3  no such order, job or service
  4  refused: the state, the version or the idempotency key forbids it
  5  the API is unreachable or fails; a backup or restore was given up, and nothing is left of it
  6  not authorised
  7  the order was not settled in time (--wait)
  8  done, but the output could not be written
  141 the reader of the output is gone; 130 Ctrl-C and 143 SIGTERM, but 0 for serve and console";

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The outcome where the output could not be written.
    #[must_use]
    pub fn unwritten(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::OutputGone } else { Self::Unwritten }
    }

    /// Combines two outcomes: the first failure counts.
    #[must_use]
    pub const fn and(self, then: Self) -> Self {
        if matches!(self, Self::Fine) { then } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_status() {
        use Exit::{Away, Fine, Interrupted, NotAllowed, NotFound, Otherwise, OutputGone, Refused};
        use Exit::{Terminated, TimedOut, Unwritten, Usage};
        let of_calls = [Fine, Otherwise, Usage, NotFound, Refused, Away, NotAllowed, TimedOut, Unwritten];
        for exit in of_calls.into_iter().chain([OutputGone, Interrupted, Terminated]) {
            assert!(
                HELP.contains(&format!("{} ", exit.code())) || HELP.contains(&format!("{},", exit.code())),
                "{exit:?}"
            );
        }
    }

    #[test]
    fn the_first_that_did_not_go_well_counts() {
        assert_eq!(Exit::Fine.and(Exit::Refused).and(Exit::NotFound), Exit::Refused);
        assert_eq!(Exit::Fine.and(Exit::Fine), Exit::Fine);
    }
}
