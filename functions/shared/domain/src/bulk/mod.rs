//! The same action on many orders at once, as a durable job.
//!
//! A job begins with a dry run that counts, and waits for its start. It sends a few canaries first, then the other
//! orders at a rate. It stops by itself if too many fail again. It has no state in memory: the supervisor advances it
//! at each of its runs, and [`carry_on`] decides each step from the stored records.
//!
//! No order is handled twice, even if the supervisor is killed at any time. The job is written with the list of
//! its orders in flight *before* their commands are sent. A command names the version that the job saw, so the state
//! machine refuses its repeat. An order counts as handled when its own history shows it, not when a message was
//! sent. If a command was listed and never sent, its order is unchanged, and the command is sent again.
//!
//! A job with the action [`Again`](BulkAction::Again) posts `Compensated` orders again as new orders. It sends no commands:
//! its entries are old orders, and each is judged by the task of its new order. The id of the new order follows from the
//! old one, so there is one at most.
//!
//! What must never happen here: a command or a new order is sent that the stored job does not list; a job handles an
//! order that failed, or was compensated, after the job was planned.

mod action;
mod again;
mod candidates;
mod job;
mod step;
#[cfg(test)]
mod tests;

pub use action::BulkAction;
pub use again::again_state;
pub use candidates::{DRY_RUN_READ_MAX, dry_run};
pub use job::{DryRun, Entry, Job, JobState, NotNow, Selector, Spec, SpecError, Tally};
pub use step::{EntryState, Errand, Next, Outgoing, PAGES_AT_ONCE, carry_on, entry_state};

/// Largest number of a job's orders in flight: the list is part of the job's record.
pub const UNDER_WAY_MAX: usize = 500;
/// The scan continues while fewer orders than this are found and not begun.
const FOUND_MIN: usize = 100;
/// The time after which a command without effect is sent again, in milliseconds. It doubles with each repeat.
pub const RESEND_AFTER_MS: u64 = 15_000;
/// Largest number of repeats of a command.
pub const RESENDS_MAX: u8 = 5;
/// Shortest time in which an order that is no canary must be settled, in milliseconds. After it the order counts as
/// failed again, so that every job ends. A longer `CanaryTimeoutMs` holds for all orders.
pub const SETTLE_TIMEOUT_MS: u64 = 60 * 60 * 1_000;
/// Smallest number of settled orders for which a share is computed while others are in flight.
const SAMPLE_MIN: u64 = 10;
