//! Who has to look after a task, and when (design §3 `Watch`, rule 14).

use super::turn::Turn;
use crate::task::{ProcessState, StepState, Watch};
use crate::time::Timestamp;

impl Turn<'_> {
    /// Whether the supervisor was right to come: an index that lags shows tasks that need nobody any more.
    pub(super) fn is_due(&self) -> bool {
        matches!(self.task.watch, Some(Watch::Due(_))) && self.task.watch_at.is_some_and(|at| at <= self.moment.now)
    }

    /// Whether an attempt is past `CompleteBy` plus the grace.
    pub(super) fn is_expired(&self, place: usize) -> bool {
        let step = &self.task.steps[place];
        let deadline = step.complete_by.map(|at| at.plus_ms(self.workflow.supervision.grace_ms));
        step.process_state == StepState::Processing && deadline.is_some_and(|at| at <= self.moment.now)
    }

    /// Writes `Watch` and `WatchAt`. A watch that is earlier than the real deadline is left alone, but for the
    /// supervisor, who moves it: so a healthy order writes the index twice, not at each step.
    pub(super) fn settle_watch(&mut self) {
        let shard = self.task.order_id.shard();
        let deadline = self.deadline();
        let watch = match (self.task.process_state, deadline) {
            (ProcessState::Error, None) => Some((Watch::Error(shard), self.moment.now)),
            (_, Some(at)) => Some((Watch::Due(shard), at)),
            (
                ProcessState::Pending
                | ProcessState::Processing
                | ProcessState::Processed
                | ProcessState::Compensating
                | ProcessState::Compensated,
                None,
            ) => None,
        };
        let early_enough = match (self.task.watch, self.task.watch_at, watch) {
            (Some(Watch::Error(_)), Some(_), Some((Watch::Error(_), _))) => true,
            (Some(Watch::Due(_)), Some(set), Some((Watch::Due(_), real))) => !self.exact_watch && set <= real,
            _ => false,
        };
        if !early_enough {
            self.task.watch = watch.map(|(key, _)| key);
            self.task.watch_at = watch.map(|(_, at)| at);
        }
    }

    /// When the supervisor has to look at the latest, if at all.
    fn deadline(&self) -> Option<Timestamp> {
        let patience = &self.workflow.supervision;
        let resend = (!self.task.unsent.is_empty()).then(|| self.moment.now.plus_ms(patience.resend_after_ms));
        let steps = (0..self.task.steps.len()).filter_map(|place| {
            let step = &self.task.steps[place];
            match step.process_state {
                StepState::Processing => step.complete_by.map(|at| at.plus_ms(patience.grace_ms)),
                StepState::Pending if self.is_ready(place) => {
                    let ready = step.not_before.map_or(self.moment.now, |at| at.max(self.moment.now));
                    Some(ready.plus_ms(patience.wake_lost_after_ms))
                }
                StepState::Pending | StepState::Processed | StepState::Error => None,
            }
        });
        match self.task.process_state {
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => steps.chain(resend).min(),
            // It stands still until an operator acts, whatever attempts are still under way.
            ProcessState::Processed | ProcessState::Error | ProcessState::Compensated => resend,
        }
    }
}
