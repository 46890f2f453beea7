//! Resubmitting many orders at once, as a durable job.
//!
//! A job begins with a dry run that counts, waits for its start, sends a few canaries first, then the others at a rate,
//! and stops by itself where too many fail again. Nothing of it lives in memory: the supervisor carries it on a step at
//! each of its runs, and [`carry_on`] decides each step from what is stored.
//!
//! Why no order is resubmitted twice, whenever the supervisor is killed: the job is written with the list of the orders
//! under way *before* their commands are sent; a command names the version that the job saw, so the state machine
//! refuses its repeat; and an order counts as resubmitted when its own history says so, not when a message was sent. A
//! command that was written down and never sent shows as an order that nothing happened to, and is sent again.
//!
//! What must never happen here: a command is sent that the stored job does not list; an order that failed after the job
//! was planned is resubmitted by it.

mod candidates;
mod job;
mod step;
#[cfg(test)]
mod tests;

pub use candidates::{DRY_RUN_PAGES_MAX, dry_run};
pub use job::{DryRun, Entry, Job, JobState, NotNow, Selector, Spec, SpecError, Tally};
pub use step::{EntryState, Next, Outgoing, PAGES_AT_ONCE, carry_on, entry_state};

/// Orders of one job under way at the same time: the list is part of the job's record.
pub const UNDER_WAY_MAX: usize = 500;
/// The scan for more orders goes on when fewer than so many are found and not begun.
const FOUND_MIN: usize = 100;
/// A command that nothing came of is sent again after so long, in milliseconds; each time it takes twice as long.
pub const RESEND_AFTER_MS: u64 = 15_000;
/// So often at most a command is sent again.
pub const RESENDS_MAX: u8 = 5;
/// An order that is no canary has at least so long to be settled, in milliseconds; then it counts as failed again, so
/// that every job ends. A longer `CanaryTimeoutMs` holds for all orders.
pub const SETTLE_TIMEOUT_MS: u64 = 60 * 60 * 1_000;
/// Of fewer settled orders no share is made while others are still under way.
const SAMPLE_MIN: u64 = 10;
