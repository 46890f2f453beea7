//! How a show of Stepwarden ended.

use std::process::ExitCode;

/// Whether all came out as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All of it.
    AsItShould,
    /// Not all of it.
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
