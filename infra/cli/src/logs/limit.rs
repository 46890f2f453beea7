//! Keeps a line that is repeated from flooding the log, as every message does while a disk fails.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use local::terminal::tell;
use serde_json::json;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata};
use tracing_subscriber::layer::{Context, Filter};

use crate::args::LogFormat;
use crate::remote::clock;

/// The lines of one place in the code within a window.
const LINES_MAX: u64 = 10;
const WINDOW: Duration = Duration::from_secs(10);

/// A filter for warnings and errors.
#[derive(Debug, Default)]
pub(super) struct Limit {
    windows: Mutex<HashMap<Identifier, Window>>,
    format: LogFormat,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    lines: u64,
}

impl Limit {
    /// A filter for lines of this form.
    pub(super) fn of(format: LogFormat) -> Self {
        Self { format, ..Self::default() }
    }

    /// Whether this line is shown, and how many were left out before it.
    fn admits(&self, place: Identifier, now: Instant) -> (bool, u64) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let window = windows.entry(place).or_insert(Window { began: now, lines: 0 });
        let mut left_out = 0;
        if now.duration_since(window.began) >= WINDOW {
            left_out = window.lines.saturating_sub(LINES_MAX);
            *window = Window { began: now, lines: 0 };
        }
        window.lines += 1;
        (window.lines <= LINES_MAX, left_out)
    }
}

impl<S> Filter<S> for Limit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return true;
        }
        let (is_shown, left_out) = self.admits(metadata.callsite(), clock::instant());
        if left_out > 0 {
            let message = format!("{left_out} lines of {} like the next one were left out", metadata.target());
            match self.format {
                LogFormat::Text => tell(format_args!("stepwarden: {message}")),
                LogFormat::Json => tell(
                    json!({"timestamp": clock::now(), "level": "WARN", "target": "logs", "fields": {"message": message}}),
                ),
            }
        }
        is_shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f68_a_repeated_line_is_left_out_and_counted() {
        tracing::subscriber::with_default(tracing_subscriber::registry(), || {
            let span = tracing::error_span!("a place");
            let place = span.metadata().unwrap().callsite();
            let (limit, began) = (Limit::default(), clock::instant());
            let shown = (0..5_000).filter(|_| limit.admits(place.clone(), began).0).count();
            assert_eq!(shown, 10);
            assert_eq!(limit.admits(place.clone(), began + WINDOW), (true, 4_990));
            assert_eq!(limit.admits(place, began + WINDOW), (true, 0));
        });
    }
}
