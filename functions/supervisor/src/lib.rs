//! The supervisor function: finds what is overdue, counts the failure, and asks for a retry, an undo or an operator;
//! carries on the jobs that operators gave; and settles what ended in a dead-letter queue.
//!
//! It knows no business, calls no service and claims no step. Any number of supervisors may run at once and share the
//! shards by leases (rule 13), which only saves work: each finding is one conditional write, so whoever loses it reads
//! again and finds nothing to do.
//!
//! What must never happen here: anything is right only because a lease is held.

mod alerts;
mod bulk;
mod dead_letters;
mod sweep;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use domain::lease::Term;
use domain::ports::Environment;
use domain::time::Timestamp;

pub use bulk::{BulkPorts, BulkReport, bulk};
pub use dead_letters::{DeadLetterPorts, dead_letters};
pub use sweep::{Report, SupervisorPorts, handle};

/// How a supervisor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Term of its leases: so long the work of a supervisor that died stands still.
    pub term_ms: u64,
    /// How much earlier than at the term's end it stops to believe in a lease.
    pub margin_ms: u64,
    /// After so long a run begins nothing new; it ends when what it has begun is done. The rest is for the next run.
    pub run_ms_max: u64,
    /// How long it is to the next run: work for so long is handed out at once.
    pub tick_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { term_ms: 15_000, margin_ms: 2_000, run_ms_max: 45_000, tick_ms: 1_000 }
    }
}

impl Settings {
    const fn term(&self) -> Term {
        Term { term_ms: self.term_ms, margin_ms: self.margin_ms }
    }
}

/// When a run has to begin nothing new.
#[derive(Debug, Clone, Copy)]
struct Budget {
    until: Timestamp,
}

impl Budget {
    fn new(environment: &impl Environment, settings: &Settings) -> Self {
        Self { until: environment.now().plus_ms(settings.run_ms_max) }
    }

    fn is_spent(self, environment: &impl Environment) -> bool {
        environment.now() >= self.until
    }
}
