//! The outcome of a demo or an outage.

use std::process::ExitCode;

/// Whether all checks passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All checks passed.
    AsItShould,
    /// A check failed.
    Wrong,
}

impl Ending {
    pub(crate) const fn of(is_good: bool) -> Self {
        if is_good { Self::AsItShould } else { Self::Wrong }
    }
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::AsItShould => Self::SUCCESS,
            Ending::Wrong => Self::FAILURE,
        }
    }
}
