//! The supervisor function. It finds overdue tasks, counts the failure, and asks for a retry, a compensation or an
//! operator. It advances the bulk jobs of operators, posts the orders of schedules, settles dead letters, and sends alerts:
//! those about services, and those by cause.
//!
//! It knows no business, calls no service and claims no step. Any number of supervisors may run at once and share the
//! shards by leases (rule 13). A lease only saves work: each finding is one conditional write, and the loser reads
//! again and finds nothing to do.
//!
//! What must never happen here: correctness depends on a lease.

mod alerts;
mod bulk;
#[cfg(feature = "contract")]
pub mod contract;
mod dead_letter_alerts;
mod dead_letters;
mod schedules;
mod services;
mod sweep;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use domain::lease::Term;
use domain::ports::Environment;
use domain::time::Timestamp;

pub use alerts::{AlertPorts, alerts};
pub use bulk::{BulkPorts, BulkReport, bulk};
pub use dead_letters::{DeadLetterPorts, dead_letters};
pub use schedules::{SchedulePorts, schedules};
pub use services::{ServicePorts, services};
pub use sweep::{Report, SupervisorPorts, handle};

/// The settings of a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Lease term. A dead supervisor's shards stay unswept for this long.
    pub term_ms: u64,
    /// How long before the end of its term a lease is no longer trusted.
    pub margin_ms: u64,
    /// The time after which a run begins nothing new. It ends when its work in progress is done; the next run does the
    /// rest.
    pub run_ms_max: u64,
    /// The time to the next run: the work for this time is handed out at once.
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

/// The time at which a run begins nothing new any more.
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
