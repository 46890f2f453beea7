//! What became of the orders of the last minutes, minute by minute.

use std::sync::Arc;

use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use serde::Serialize;

use super::Taken;

const MINUTES: usize = 30;
const MINUTE_MS: u64 = 60_000;

/// The orders that were submitted in one minute, and how they stand now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Minute {
    /// Its beginning.
    at: Timestamp,
    /// All of them; each is one of the others, too.
    accepted: u32,
    processed: u32,
    compensated: u32,
    error: u32,
    under_way: u32,
}

/// The minutes that are shown: the present one and those before it.
pub(super) struct Window {
    since: Timestamp,
}

impl Window {
    /// The last [`MINUTES`], the one of `now` included.
    pub(super) fn until(now: Timestamp) -> Self {
        let this_minute = now.minus_ms(u64::try_from(now.epoch_ms().rem_euclid(60_000)).unwrap_or(0));
        Self { since: this_minute.minus_ms((MINUTES as u64 - 1) * MINUTE_MS) }
    }

    /// Their beginning.
    pub(super) const fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether the order of a task was submitted in these minutes. One that does not tell any more when it was has
    /// changed so often that it is no recent one.
    pub(super) fn has(&self, task: &Task) -> bool {
        task.submitted_at().is_some_and(|at| at >= self.since)
    }

    /// Whether these newest orders are all of these minutes.
    pub(super) fn is_whole(&self, newest: &Taken) -> bool {
        !newest.more || newest.tasks.last().is_some_and(|task| !self.has(task))
    }

    /// The minutes, oldest first.
    pub(super) fn minutes(&self, tasks: &[Arc<Task>]) -> Vec<Minute> {
        let begun = |minute: usize| Minute::empty(self.since.plus_ms(minute as u64 * MINUTE_MS));
        let mut minutes: Vec<Minute> = (0..MINUTES).map(begun).collect();
        for task in tasks.iter().filter(|task| self.has(task)) {
            let at = task.submitted_at().unwrap_or(self.since);
            let place = usize::try_from(self.since.ms_until(at) / MINUTE_MS).unwrap_or(usize::MAX);
            // Another machine's clock may be ahead of this one's.
            minutes[place.min(MINUTES - 1)].count(task.process_state);
        }
        minutes
    }
}

impl Minute {
    const fn empty(at: Timestamp) -> Self {
        Self { at, accepted: 0, processed: 0, compensated: 0, error: 0, under_way: 0 }
    }

    const fn count(&mut self, state: ProcessState) {
        self.accepted += 1;
        *match state {
            ProcessState::Processed => &mut self.processed,
            ProcessState::Compensated => &mut self.compensated,
            ProcessState::Error => &mut self.error,
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => &mut self.under_way,
        } += 1;
    }
}
