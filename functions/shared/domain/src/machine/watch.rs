//! `Watch` and `WatchAt`: the actor that looks after a task, and the time (rule 14).

use super::open_calls::believed_settled;
use super::turn::Turn;
use super::wait::own_wait_ms;
use crate::limits::{
    ALERT_RESEND_DOUBLINGS_MAX, DEFERRAL_MS_MAX, STATUS_RESEND_DOUBLINGS_MAX, UNWATCHED_MS_MAX, WAIT_MS_MAX,
    WAIT_WATCHED_MS_MAX, longest_wait_ms,
};
use crate::task::{Direction, ProcessState, StepState, Watch};
use crate::time::Timestamp;

/// Makes a watch of its shard.
type Key = fn(u8) -> Watch;

impl Turn<'_> {
    /// Whether the task is due. An index that lags shows tasks that need no look any more. A time beyond any that would
    /// be written now is due too: a wrong clock wrote it (rule 23).
    pub(super) fn is_due(&self) -> bool {
        let now = self.moment.now;
        let latest_ms = self.deadline().map_or(0, |(_, latest)| now.ms_until(latest));
        let latest_ms = latest_ms.clamp(UNWATCHED_MS_MAX, WAIT_WATCHED_MS_MAX);
        let is_wrong = |at: Timestamp| at.is_beyond(now, latest_ms);
        self.task.watch.is_some_and(Watch::is_of_supervisor)
            && self.task.watch_at.is_some_and(|at| at <= now || is_wrong(at))
    }

    /// Cuts the times of waiting steps that lie further ahead than they honestly may: a wrong clock wrote them, or this
    /// one was set back (rule 23). A back-off is over then. An undo still waits for the calls of its step.
    pub(super) fn believe_times(&mut self) {
        let now = self.moment.now;
        let wait_ms = DEFERRAL_MS_MAX.max(self.workflow.supervision.backoff.wait_ms_max());
        for (index, (step, rule)) in self.task.steps.iter_mut().zip(&self.workflow.steps).enumerate() {
            step.started_at = step.started_at.map(|at| if at.is_beyond(now, 0) { now } else { at });
            // A longer wait begins with the failure, so its end is known best. An order may name any time.
            let longer_ms = rule.longer_wait_ms(step.failure_count).filter(|_| step.waits_longer());
            let own_ms = longer_ms.or_else(|| own_wait_ms(index, step, rule, &self.task.history));
            if step.process_state == StepState::Pending
                && step.waits_until.is_some_and(|at| at.is_beyond(now, longest_wait_ms(own_ms.unwrap_or(WAIT_MS_MAX))))
            {
                // Nobody knows the true time, and too late does less harm than too early.
                let own_ms = own_ms.or(rule.waits.before_ms).unwrap_or(WAIT_MS_MAX);
                step.waits_until = Some(now.plus_ms(own_ms));
                self.changed = true;
            }
            let settled = step.may_run_until.map(|at| believed_settled(at, rule, now));
            let latest_ms = settled.map_or(0, |at| now.ms_until(at)).max(wait_ms);
            if step.process_state == StepState::Pending
                && step.not_before.is_some_and(|at| at.is_beyond(now, latest_ms))
            {
                step.may_run_until = settled;
                step.not_before = settled.filter(|&at| step.direction == Direction::Undo && now < at);
                self.waiting_before.retain(|&waiting| waiting != index);
                self.changed = true;
            }
        }
    }

    /// Whether an attempt is past its time.
    pub(super) fn is_expired(&self, index: usize) -> bool {
        self.expires_at(index).is_some_and(|at| at <= self.moment.now)
    }

    /// Whether an attempt is so long past its deadline that the supervisor's clock may be wrong, and no doubt is
    /// recorded yet. Or its deadline lies so far ahead that a wrong clock wrote it (rule 23).
    pub(super) fn is_doubtful(&self, index: usize) -> bool {
        if self.is_endless(index) {
            return true;
        }
        let late_ms = self.expires_at(index).map_or(0, |at| at.ms_until(self.moment.now));
        let doubts = self.workflow.supervision.doubt_after_ms.is_some_and(|limit_ms| late_ms > limit_ms);
        doubts && self.task.steps[index].doubted_at.is_none()
    }

    /// Whether the step has been tried for as long as its service is trusted to recognise the key.
    pub(super) fn is_past_horizon(&self, index: usize) -> bool {
        self.is_past_horizon_at(index, self.moment.now)
    }

    /// The same at another time.
    pub(super) fn is_past_horizon_at(&self, index: usize, time: Timestamp) -> bool {
        let horizon_ms = self.workflow.steps[index].horizon_ms;
        self.task.steps[index].started_at.is_some_and(|at| at.plus_ms(horizon_ms) <= time)
    }

    /// When an attempt in flight expires: at `CompleteBy` plus the grace, or when its result was awaited long enough. A
    /// doubted attempt expires when it has had its whole time once more.
    pub(super) fn expires_at(&self, index: usize) -> Option<Timestamp> {
        self.ends_at(index).map(|at| at.plus_ms(self.workflow.supervision.grace_ms))
    }

    /// The same without the grace.
    pub(super) fn ends_at(&self, index: usize) -> Option<Timestamp> {
        let (step, rule) = (&self.task.steps[index], &self.workflow.steps[index]);
        let again_ms = if step.is_awaited() { rule.awaited_ms() } else { rule.complete_within_ms };
        let end = step.waits_until.or(step.complete_by).filter(|_| step.process_state == StepState::Processing)?;
        Some(match step.doubted_at.map(|at| at.plus_ms(again_ms)) {
            Some(again) if end.is_beyond(self.moment.now, self.longest_ms(index)) => again,
            // A slow clock may have doubted it too early.
            again => again.map_or(end, |again| again.max(end)),
        })
    }

    /// How far ahead the end of an attempt in flight may lie.
    fn longest_ms(&self, index: usize) -> u64 {
        let rule = &self.workflow.steps[index];
        // A wait for a result is long, and a clock that is minutes ahead must not end it.
        if self.task.steps[index].is_awaited() { longest_wait_ms(rule.awaited_ms()) } else { rule.complete_within_ms }
    }

    /// Whether the end of an attempt in flight lies further ahead than that of one that begins now.
    pub(super) fn is_endless(&self, index: usize) -> bool {
        self.ends_at(index).is_some_and(|at| at.is_beyond(self.moment.now, self.longest_ms(index)))
    }

    /// Writes `Watch` and `WatchAt`. Leaves a watch alone that is earlier than the real deadline; only the supervisor
    /// moves it. So a healthy order writes the index twice, and not at each step.
    pub(super) fn settle_watch(&mut self) {
        // The task keeps its first shard. Only a finished task has no watch. If something is to be told of it still, its
        // watch is in the shard that every deployment has.
        let shard = self.task.watch.map_or(0, Watch::shard);
        let deadline = self.deadline();
        let watch = match (self.task.process_state, deadline) {
            (ProcessState::Error, None) => Some((Watch::Error(shard), self.moment.now)),
            (_, Some((watch, at))) => Some((watch(shard), at)),
            // The task waits for an operator's resume.
            (ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating, None)
                if self.task.paused.is_some() =>
            {
                Some((Watch::Error(shard), self.moment.now))
            }
            (
                ProcessState::Pending
                | ProcessState::Processing
                | ProcessState::Processed
                | ProcessState::Compensating
                | ProcessState::Compensated
                | ProcessState::Closed,
                None,
            ) => None,
        };
        let in_error = self.task.process_state == ProcessState::Error;
        let early_enough = match (self.task.watch, self.task.watch_at, watch) {
            (Some(Watch::Error(_)), Some(_), Some((Watch::Error(_), _))) => true,
            // Nothing but its deadline is left: an earlier look would find nothing to do, and not move the watch.
            (_, _, Some((Watch::Wait(_), _))) if in_error => false,
            (Some(Watch::Due(_)), Some(set), Some((Watch::Due(_) | Watch::Wait(_), real)))
            | (Some(Watch::Wait(_)), Some(set), Some((Watch::Wait(_), real))) => !self.exact_watch && set <= real,
            _ => false,
        };
        if !early_enough {
            self.task.watch = watch.map(|(key, _)| key);
            self.task.watch_at = watch.map(|(_, at)| at);
        }
    }

    /// The latest time for the supervisor's next look, if it needs one, and its kind. A task that does nothing but wait
    /// needs none before its wait is over, or before the deadline of its order.
    fn deadline(&self) -> Option<(Key, Timestamp)> {
        let patience = &self.workflow.supervision;
        let pauses_ms = self.task.unsent.iter().map(|notice| {
            let doublings_max =
                if notice.kind.is_status() { STATUS_RESEND_DOUBLINGS_MAX } else { ALERT_RESEND_DOUBLINGS_MAX };
            patience.resend_after_ms << notice.resends.min(doublings_max)
        });
        let resend = pauses_ms.min().map(|pause_ms| self.moment.now.plus_ms(pause_ms));
        let steps = (0..self.task.steps.len()).filter_map(|index| {
            let step = &self.task.steps[index];
            match step.process_state {
                StepState::Processing if self.is_endless(index) => Some(self.moment.now),
                _ if self.waits_long(index).is_some() => None,
                StepState::Processing => self.expires_at(index),
                StepState::Pending if self.is_ready(index) => {
                    let ready = step.not_before.map_or(self.moment.now, |at| at.max(self.moment.now));
                    Some(ready.plus_ms(patience.wake_lost_after_ms))
                }
                StepState::Pending | StepState::Processed | StepState::Error | StepState::Skipped => None,
            }
        });
        let late = self.task.deadline_ahead();
        let before_late = |at: Timestamp| late.map_or(at, |late| at.min(late));
        let until_late = || late.map(|at| (Watch::Wait as Key, at));
        match self.task.process_state {
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => {
                let paused = self.task.paused.is_some();
                // An unfinished order always has a time for the supervisor's next look, unless it is paused.
                let lost = (!paused).then(|| self.moment.now.plus_ms(patience.wake_lost_after_ms));
                let unwatched = self.moment.now.plus_ms(UNWATCHED_MS_MAX);
                let wait = (0..self.task.steps.len()).filter_map(|index| self.waits_long(index)).min().map(before_late);
                match (steps.chain(resend).min(), wait) {
                    (None, Some(at)) if unwatched < at => Some((Watch::Wait, at)),
                    (look, wait) => {
                        let look = look.into_iter().chain(wait).min().or(lost);
                        look.map_or_else(until_late, |at| Some((Watch::Due as Key, before_late(at).min(unwatched))))
                    }
                }
            }
            // The task waits for an operator, even with attempts in flight.
            ProcessState::Error => resend.map_or_else(until_late, |at| Some((Watch::Due as Key, before_late(at)))),
            ProcessState::Processed | ProcessState::Compensated | ProcessState::Closed => {
                resend.map(|at| (Watch::Due as Key, at))
            }
        }
    }
}
