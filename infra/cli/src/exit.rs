//! The exit statuses of the commands that talk to an API. They are a contract: scripts rely on them.

use std::process::ExitCode;

/// What a script is told of how a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Fine,
    /// Done, but not with the outcome that was asked for: an order ended in another state, a check of the doctor failed.
    Otherwise,
    /// The command line or what it names (a file, a document) is wrong; nothing was done.
    Usage,
    /// There is no such order or job.
    NotFound,
    /// The API refused it: the state, a version seen before or a key used before forbids it (409, 412, 422).
    Refused,
    /// The API cannot be reached, or does not work (5xx).
    Away,
    /// Who calls may not do that (401, 403), or has no credentials.
    NotAllowed,
    /// What was waited for did not come about in time.
    TimedOut,
    /// Done, but the answer could not be written: no room left.
    Unwritten,
    /// Nobody reads the output any more.
    OutputGone,
}

/// What `--help` says about them.
pub const HELP: &str = "\
Exit status:
  0  done
  1  an order ended otherwise than it should, a job stopped, or the doctor found something wrong
  2  wrong usage; nothing was done
  3  there is no such order or job
  4  refused: the state, the version or the idempotency key forbids it
  5  the API cannot be reached or does not work
  6  not authorised
  7  what was waited for did not come about in time
  8  done, but the answer could not be written
  141 nobody reads the output any more; 130 Ctrl-C and 143 SIGTERM, but 0 for serve and console";

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::Otherwise => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::Away => 5,
            Self::NotAllowed => 6,
            Self::TimedOut => 7,
            Self::Unwritten => 8,
            Self::OutputGone => 141,
        }
    }

    /// Of two orders or checks: the first that did not go well counts.
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
        use Exit::{Away, Fine, NotAllowed, NotFound, Otherwise, OutputGone, Refused, TimedOut, Unwritten, Usage};
        for exit in [Fine, Otherwise, Usage, NotFound, Refused, Away, NotAllowed, TimedOut, Unwritten, OutputGone] {
            assert!(HELP.contains(&format!("{} ", exit.code())), "{exit:?}");
        }
    }

    #[test]
    fn the_first_that_did_not_go_well_counts() {
        assert_eq!(Exit::Fine.and(Exit::Refused).and(Exit::NotFound), Exit::Refused);
        assert_eq!(Exit::Fine.and(Exit::Fine), Exit::Fine);
    }
}
