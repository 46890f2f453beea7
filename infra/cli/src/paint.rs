//! A little colour, where somebody sees it.

use std::fmt;

use domain::task::ProcessState;

/// Paints, or leaves everything plain.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// Whether to.
    pub colours: bool,
}

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";
const CYAN: &str = "36";
const DIM: &str = "2";
const BOLD: &str = "1";

impl Paint {
    /// The name of a state, padded to the width of the widest.
    pub(crate) fn state(self, state: ProcessState) -> String {
        let colour = match state {
            ProcessState::Processed => GREEN,
            ProcessState::Compensated | ProcessState::Compensating => YELLOW,
            ProcessState::Error => RED,
            ProcessState::Pending | ProcessState::Processing => CYAN,
        };
        self.with(colour, format_args!("{:<12}", state.name()))
    }

    pub(crate) fn verdict(self, is_good: bool, text: &str) -> String {
        self.with(if is_good { GREEN } else { RED }, text)
    }

    pub(crate) fn dim(self, text: impl fmt::Display) -> String {
        self.with(DIM, text)
    }

    pub(crate) fn bold(self, text: impl fmt::Display) -> String {
        self.with(BOLD, text)
    }

    fn with(self, code: &str, text: impl fmt::Display) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
}
