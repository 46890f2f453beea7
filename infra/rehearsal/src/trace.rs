//! The trace of a world: always a hash, and lines on request.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use domain::id::OrderId;

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// The time, in milliseconds since the start of the world.
    pub at_ms: i64,
    /// The actor.
    pub actor: Arc<str>,
    /// The order, if any.
    pub order: Option<OrderId>,
    /// The event.
    pub what: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hours, rest) = (self.at_ms / 3_600_000, self.at_ms % 3_600_000);
        let (minutes, ms) = (rest / 60_000, rest % 60_000);
        write!(f, "{hours}:{minutes:02}:{:02}.{:03} ", ms / 1_000, ms % 1_000)?;
        match self.order {
            Some(order) => write!(f, "[{}] ", &order.to_string()[..8])?,
            None => write!(f, "[        ] ")?,
        }
        write!(f, "{}: {}", self.actor, self.what)
    }
}

/// The trace of one world.
#[derive(Debug)]
pub struct Trace {
    hasher: DefaultHasher,
    lines: Option<Vec<Line>>,
}

impl Trace {
    /// An empty trace, with or without lines.
    #[must_use]
    pub fn new(keeps_lines: bool) -> Self {
        // Its keys are fixed, so that the same events give the same hash in every process.
        Self { hasher: DefaultHasher::new(), lines: keeps_lines.then(Vec::new) }
    }

    /// Adds an event.
    pub fn note<T: Hash + ?Sized>(
        &mut self,
        at_ms: i64,
        actor: &Arc<str>,
        order: Option<OrderId>,
        what: &T,
        words: impl FnOnce() -> String,
    ) {
        (at_ms, &**actor).hash(&mut self.hasher);
        what.hash(&mut self.hasher);
        if let Some(lines) = &mut self.lines {
            lines.push(Line { at_ms, actor: actor.clone(), order, what: words() });
        }
    }

    /// The hash of all events so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    /// The lines, if kept.
    #[must_use]
    pub fn into_lines(self) -> Vec<Line> {
        self.lines.unwrap_or_default()
    }
}
