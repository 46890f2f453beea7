//! The orders of the last minutes by state, minute by minute.

use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use wire::Minute;

/// The number of minutes.
pub(super) const MINUTES: usize = 30;
const MINUTE_MS: u64 = 60_000;

/// The displayed minutes: the present one and those before it.
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

    /// Whether the order of a task was submitted in these minutes. A task without a known submission time has changed
    /// too often to be recent.
    fn has(&self, task: &Task) -> bool {
        task.submitted_at().is_some_and(|at| at >= self.since)
    }
}

/// The orders of the displayed minutes, added from the newest on.
pub(super) struct Newest {
    window: Window,
    /// Oldest first.
    minutes: Vec<Minute>,
    /// Whether the last added order is older than these minutes.
    is_behind: bool,
}

impl Newest {
    /// Without orders.
    pub(super) fn of(window: Window) -> Self {
        let begun = |minute: usize| empty(window.since.plus_ms(minute as u64 * MINUTE_MS));
        Self { minutes: (0..MINUTES).map(begun).collect(), window, is_behind: false }
    }

    /// Counts the next order; returns whether there may be more of these minutes after it.
    pub(super) fn take(&mut self, task: &Task) -> bool {
        self.is_behind = !self.window.has(task);
        let Some(at) = task.submitted_at() else {
            return true;
        };
        if !self.is_behind {
            let place = usize::try_from(self.window.since.ms_until(at) / MINUTE_MS).unwrap_or(usize::MAX);
            // Another machine's clock may be ahead of this one's.
            count(&mut self.minutes[place.min(MINUTES - 1)], task.process_state);
        }
        !self.is_behind
    }

    /// The minutes of the window.
    pub(super) const fn window(&self) -> &Window {
        &self.window
    }

    /// Whether the window is complete; `more`: there are other orders after these.
    pub(super) const fn is_whole(&self, more: bool) -> bool {
        !more || self.is_behind
    }

    /// How many of them are in a final state.
    pub(super) fn finished(&self, state: ProcessState) -> usize {
        let count = |minute: &Minute| *place(&mut minute.clone(), state) as usize;
        self.minutes.iter().map(count).sum()
    }

    /// The minutes, oldest first.
    pub(super) fn into_minutes(self) -> Vec<Minute> {
        self.minutes
    }
}

const fn empty(at: Timestamp) -> Minute {
    Minute { at, accepted: 0, processed: 0, compensated: 0, closed: 0, error: 0, under_way: 0 }
}

const fn count(minute: &mut Minute, state: ProcessState) {
    minute.accepted += 1;
    *place(minute, state) += 1;
}

/// The count of a state.
const fn place(minute: &mut Minute, state: ProcessState) -> &mut u32 {
    match state {
        ProcessState::Processed => &mut minute.processed,
        ProcessState::Compensated => &mut minute.compensated,
        ProcessState::Closed => &mut minute.closed,
        ProcessState::Error => &mut minute.error,
        ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => &mut minute.under_way,
    }
}
