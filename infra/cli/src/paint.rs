//! Colours for a terminal.

use std::fmt;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use domain::task::ProcessState;
use wire::OpenEnum;

use local::terminal::plain;

/// Colours text, or leaves it plain.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// Whether colours are on.
    pub colours: bool,
}

/// A colour or another style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// Plain.
    None,
    /// Green.
    Green,
    /// Yellow.
    Yellow,
    /// Red.
    Red,
    /// Cyan.
    Cyan,
    /// Dim.
    Dim,
    /// Bold.
    Bold,
}

impl Tint {
    /// The colour of a state.
    #[must_use]
    pub const fn of(state: &OpenEnum<ProcessState>) -> Self {
        match state.known() {
            Some(ProcessState::Processed) => Self::Green,
            Some(ProcessState::Compensated | ProcessState::Compensating | ProcessState::Closed) => Self::Yellow,
            Some(ProcessState::Error) => Self::Red,
            Some(ProcessState::Pending | ProcessState::Processing) | None => Self::Cyan,
        }
    }

    const fn style(self) -> Style {
        match self {
            Self::None => Style::new(),
            Self::Green => AnsiColor::Green.on_default(),
            Self::Yellow => AnsiColor::Yellow.on_default(),
            Self::Red => AnsiColor::Red.on_default(),
            Self::Cyan => AnsiColor::Cyan.on_default(),
            Self::Dim => Style::new().dimmed(),
            Self::Bold => Style::new().bold(),
        }
    }
}

impl Paint {
    /// The name of a state, padded to the width of the widest.
    #[must_use]
    pub fn state(self, state: &OpenEnum<ProcessState>) -> String {
        self.tint(Tint::of(state), format_args!("{:<12}", plain(&state.to_string())))
    }

    /// Green if good, red otherwise.
    #[must_use]
    pub fn verdict(self, is_good: bool, text: &str) -> String {
        self.tint(if is_good { Tint::Green } else { Tint::Red }, text)
    }

    /// A time since the beginning, in seconds.
    #[must_use]
    pub fn elapsed(self, since: Duration) -> String {
        self.dim(format_args!("{:>8.3}s", since.as_secs_f64()))
    }

    /// Dim.
    #[must_use]
    pub fn dim(self, text: impl fmt::Display) -> String {
        self.tint(Tint::Dim, text)
    }

    /// Bold.
    #[must_use]
    pub fn bold(self, text: impl fmt::Display) -> String {
        self.tint(Tint::Bold, text)
    }

    /// In this colour.
    #[must_use]
    pub fn tint(self, tint: Tint, text: impl fmt::Display) -> String {
        let style = if self.colours { tint.style() } else { Style::new() };
        format!("{style}{text}{style:#}")
    }
}
