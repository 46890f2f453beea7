//! What happened in a turn, as lines of the task's history and for the metrics.

use std::sync::Arc;

use super::decision::Happened;
use super::turn::Turn;
use crate::message::Command;
use crate::task::{Attempt, Transition, What};

impl Turn<'_> {
    pub(super) const fn next_version(&self) -> u64 {
        self.task.version + 1
    }

    /// Records what happened to the task, as a line of history by this instance.
    pub(super) fn record(&mut self, what: What, why: Option<Arc<str>>) {
        self.add(Transition {
            at: self.moment.now,
            who: self.moment.instance.clone(),
            what,
            why,
            command_id: None,
            bulk: None,
        });
    }

    /// Records what a command did to the task, as a line of history by its operator. Without a command, by this instance.
    pub(super) fn record_by(&mut self, command: Option<&Command>, what: What) {
        let Some(Command { by, reason, command_id, bulk, .. }) = command else { return self.record(what, None) };
        let (who, why, bulk) = (by.clone(), Some(reason.clone()), bulk.clone());
        let command_id = Some(command_id.clone());
        self.add(Transition { at: self.moment.now, who, what, why, command_id, bulk });
    }

    fn add(&mut self, line: Transition) {
        self.changed = true;
        self.happened.push(Happened::What(line.what.clone()));
        self.task.record(line);
    }

    /// Records what happened to a step's attempt, as a line of history by this instance.
    pub(super) fn record_step(&mut self, index: usize, kind: fn(Attempt) -> What) {
        self.record(kind(self.attempt(index)), None);
    }

    /// Notes an event for the metrics. The history shows it in other lines.
    pub(super) fn note(&mut self, happened: Happened) {
        self.happened.push(happened);
    }

    /// Records that an attempt was deferred. A long outage repeats this often: the line replaces the one before, so
    /// that it does not push out earlier lines.
    pub(super) fn record_deferred(&mut self, index: usize, why: Option<Arc<str>>) {
        let attempt = self.attempt(index);
        let is_its_claim = |what: &What| matches!(what, What::Claimed(claimed) if *claimed == attempt);
        let is_deferred_before = |what: &What| {
            let What::Deferred(earlier) = what else { return false };
            (earlier.step, earlier.direction) == (attempt.step, attempt.direction)
        };
        self.task.history.pop_if(|last| is_its_claim(&last.what));
        self.task.history.pop_if(|last| is_deferred_before(&last.what));
        self.record(What::Deferred(attempt), why);
    }

    /// The current attempt of a step.
    pub(super) fn attempt(&self, index: usize) -> Attempt {
        Attempt::current(index, &self.task.steps[index])
    }
}
