//! Colours for a terminal.

use std::fmt;
use std::time::Duration;

use anstyle::Style;
use domain::task::ProcessState;
use wire::OpenEnum;

use local::terminal::plain;

/// Colours text, or leaves it plain.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// Whether colours are on.
    pub colours: bool,
}

/// The styles of texts.
pub(crate) mod tint {
    use anstyle::{AnsiColor, Style};
    use domain::task::ProcessState;
    use wire::OpenEnum;

    pub(crate) const PLAIN: Style = Style::new();
    pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
    pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
    pub(crate) const RED: Style = AnsiColor::Red.on_default();
    pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
    pub(crate) const DIM: Style = Style::new().dimmed();
    pub(crate) const BOLD: Style = Style::new().bold();

    /// The colour of a state.
    pub(crate) const fn of(state: &OpenEnum<ProcessState>) -> Style {
        match state.known() {
            Some(ProcessState::Processed) => GREEN,
            Some(ProcessState::Compensated | ProcessState::Compensating | ProcessState::Closed) => YELLOW,
            Some(ProcessState::Error) => RED,
            Some(ProcessState::Pending | ProcessState::Processing) | None => CYAN,
        }
    }
}

impl Paint {
    /// The name of a state, padded to the width of the widest.
    #[must_use]
    pub fn state(self, state: &OpenEnum<ProcessState>) -> String {
        self.tint(tint::of(state), format_args!("{:<12}", plain(&state.to_string())))
    }

    /// Green if good, red otherwise.
    #[must_use]
    pub fn verdict(self, is_good: bool, text: &str) -> String {
        self.tint(if is_good { tint::GREEN } else { tint::RED }, text)
    }

    /// A time since the beginning, in seconds.
    #[must_use]
    pub fn elapsed(self, since: Duration) -> String {
        self.dim(format_args!("{:>8.3}s", since.as_secs_f64()))
    }

    /// Dim.
    #[must_use]
    pub fn dim(self, text: impl fmt::Display) -> String {
        self.tint(tint::DIM, text)
    }

    /// Bold.
    #[must_use]
    pub fn bold(self, text: impl fmt::Display) -> String {
        self.tint(tint::BOLD, text)
    }

    /// In this colour.
    #[must_use]
    pub fn tint(self, tint: Style, text: impl fmt::Display) -> String {
        let style = if self.colours { tint } else { tint::PLAIN };
        format!("{style}{text}{style:#}")
    }
}
