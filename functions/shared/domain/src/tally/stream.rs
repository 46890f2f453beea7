//! Numbers that are counted from a stream of changes (rule 26).
//!
//! The stream has shards, and each shard delivers its changes in order, at least once. Each stored [`Count`] knows the
//! last change of each shard that is in it. So a change that is delivered again is counted once, also if the delivery
//! before was cut short between two counts.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Grain, States, Tally};
use crate::task::Task;
use crate::time::Timestamp;

/// How long after its last change the cursor of a shard is kept. A stream keeps a change for 24 hours.
const CURSOR_KEPT_MS: u64 = 30 * 60 * 60 * 1_000;
/// A change of this age may come after others that the stream has dropped.
const LATE_MS: u64 = 23 * 60 * 60 * 1_000;
/// The time that a stored span outlives its place among the kept ones.
const MARGIN_MS: u64 = 60 * 60 * 1_000;

/// Changes of one shard, in order.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The stream. Another one begins when a stream is turned off and on.
    pub stream: Arc<str>,
    /// The shard.
    pub shard: Arc<str>,
    /// The changes.
    pub changes: Vec<Change>,
}

/// A committed change of a task.
#[derive(Debug, Clone)]
pub struct Change {
    /// Its place in its shard.
    pub sequence: Sequence,
    /// When it was committed.
    pub at: Timestamp,
    /// The task before. `None`: the order is new.
    pub before: Option<Task>,
    /// The task after. `None`: it was removed, which no actor does.
    pub after: Option<Task>,
}

/// A place in a shard: a decimal number of any length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sequence(Arc<str>);

/// Numbers that are stored as one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Those of a span of this length, by its beginning.
    Span(Grain, Timestamp),
    /// Those since the count began.
    Total,
}

/// The numbers of a [`Part`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Count {
    /// What happened.
    pub tally: Tally,
    /// By shard, up to where its changes are counted.
    pub cursors: BTreeMap<Arc<str>, Cursor>,
    /// Of the total: the first minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Of the total: the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Arc<str>>,
    /// Of the total: the orders in each state. `None`: not every change was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<States>,
}

/// The last change of a shard that is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor(Sequence, Timestamp);

impl Batch {
    /// The parts that the changes are in. The total is the last.
    #[must_use]
    pub fn parts(&self) -> BTreeSet<Part> {
        let grains = [Grain::Minute, Grain::Hour].into_iter();
        let spans =
            grains.flat_map(|grain| self.changes.iter().map(move |change| Part::Span(grain, grain.of(change.at))));
        let total = self.changes.first().map(|_| Part::Total);
        spans.chain(total).collect()
    }
}

impl Part {
    fn has(self, at: Timestamp) -> bool {
        match self {
            Self::Span(grain, begin) => grain.of(at) == begin,
            Self::Total => true,
        }
    }

    /// The time after which it may be deleted.
    #[must_use]
    pub fn expires_at(self) -> Option<Timestamp> {
        match self {
            Self::Span(grain, begin) => Some(begin.plus_ms(grain.ms() * u64::from(grain.kept()) + MARGIN_MS)),
            Self::Total => None,
        }
    }
}

impl Count {
    /// The empty total of a stream. `is_whole`: the stream has each change since the first order.
    #[must_use]
    pub fn begun(stream: &Arc<str>, is_whole: bool) -> Self {
        Self { stream: Some(stream.clone()), states: is_whole.then(States::default), ..Self::default() }
    }

    /// Counts the changes of a part that are not counted yet. Returns whether there were any.
    pub fn add(&mut self, part: Part, batch: &Batch, now: Timestamp) -> bool {
        let seen = self.cursors.get(&batch.shard).map(|Cursor(sequence, _)| sequence.clone());
        let is_new = |change: &&Change| seen.as_ref().is_none_or(|seen| change.sequence > *seen);
        let new: Vec<&Change> = batch.changes.iter().filter(|change| part.has(change.at)).filter(is_new).collect();
        let (Some(first), Some(last)) = (new.first(), new.last()) else { return false };
        if part == Part::Total {
            if self.stream.as_ref() != Some(&batch.stream) || first.at.ms_until(now) >= LATE_MS {
                self.states = None;
            }
            self.stream = Some(batch.stream.clone());
            let minute = Grain::Minute.of(first.at);
            self.since = Some(self.since.map_or(minute, |since| since.min(minute)));
        }
        for change in &new {
            change.count(&mut self.tally, self.states.as_mut());
        }
        self.cursors.insert(batch.shard.clone(), Cursor(last.sequence.clone(), last.at));
        self.cursors.retain(|_, Cursor(_, at)| at.ms_until(last.at) < CURSOR_KEPT_MS);
        true
    }

    /// Leaves the numbers of steps out, where they would be too much for one record.
    pub fn forget_steps(&mut self) {
        self.tally.workflows.values_mut().for_each(|flow| flow.steps.clear());
    }
}

impl Change {
    fn count(&self, tally: &mut Tally, states: Option<&mut States>) {
        let from = self.before.as_ref().map(|task| task.process_state);
        if let Some(after) = &self.after {
            tally.count(self.before.as_ref(), after);
        }
        match (states, from, &self.after) {
            (Some(states), from, Some(after)) => states.moved(from, after.process_state),
            (Some(states), Some(from), None) => states.left(from),
            _ => {}
        }
    }
}

impl From<&str> for Sequence {
    fn from(digits: &str) -> Self {
        Self(digits.trim_start_matches('0').into())
    }
}

impl Ord for Sequence {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
    }
}

impl PartialOrd for Sequence {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
