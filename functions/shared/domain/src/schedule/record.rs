//! What is remembered of a schedule.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Timing;
use crate::id::OrderId;
use crate::limits::MISSED_AFTER_MS;
use crate::ports::{Listed, Record, RecordKind};
use crate::time::Timestamp;

/// Gaps that are kept: those that end last, since only a gap that has not ended is looked at.
const GAPS_MAX: usize = 8;

/// The mark of a schedule, and its last order. It stays when its schedule is gone, so no due time comes twice if the
/// schedule comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ScheduleRecord {
    /// The name of the schedule.
    pub name: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// The last due time that was decided: posted, or passed over. It never goes back.
    pub through: Timestamp,
    /// Due times before it that were passed over, at most `GAPS_MAX` gaps. The clock that did so may have been ahead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// The last order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Posted>,
    /// Why the last due time has no order yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
}

/// Due times after one time and before another one, none of which was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Gap {
    /// Due times are after it.
    pub after: Timestamp,
    /// Due times are before it.
    pub before: Timestamp,
}

/// An order of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Posted {
    /// Its due time.
    pub due_at: Timestamp,
    /// Its id.
    #[serde(rename = "OrderID")]
    pub order_id: OrderId,
    /// When it was posted.
    pub at: Timestamp,
}

/// A due time without an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Refused {
    /// The due time.
    pub due_at: Timestamp,
    /// When it was refused.
    pub at: Timestamp,
    /// Why.
    pub problem: Arc<str>,
}

impl ScheduleRecord {
    /// The time after which due times are open at `now`, of a schedule that counts from `since` on. A mark ahead of `now` is
    /// of a wrong clock (rule 23): what that clock passed over is open, what it posted is not.
    #[must_use]
    pub fn mark(stored: Option<&Self>, since: Timestamp, now: Timestamp) -> Timestamp {
        // A clock that was ahead may have applied it (rule 23).
        let since = if since.is_beyond(now, 0) { now.minus_ms(MISSED_AFTER_MS) } else { since };
        // A due time at the moment from which the schedule counts is none of the past.
        let since = since.minus_ms(1);
        let Some(stored) = stored else { return since };
        let is_at = |gap: &&Gap| gap.after <= now && now < gap.before;
        let gap = stored.gaps.iter().find(is_at).filter(|_| stored.through.is_beyond(now, 0));
        gap.map_or(stored.through, |gap| gap.after).max(since)
    }

    /// The next due time after `now` that is open.
    #[must_use]
    pub fn next_due(&self, timing: &Timing, now: Timestamp) -> Option<Timestamp> {
        let of_gap = |gap: &Gap| timing.next(gap.after.max(now)).filter(|at| *at < gap.before);
        self.gaps.iter().filter_map(of_gap).chain(timing.next(self.through.max(now))).min()
    }

    /// When an order was posted last. A time ahead of `now` is of a wrong clock (rule 23), and says nothing.
    #[must_use]
    pub fn handled_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.posted.as_ref().map(|posted| posted.at).filter(|at| !at.is_beyond(now, 0))
    }

    /// The record without its refusal.
    #[must_use]
    pub fn refusing_nothing(&self) -> Self {
        Self { version: self.version + 1, refused: None, ..self.clone() }
    }

    /// The next record, with the mark at the last order, or where it is if that is later. `outcomes` are those of the due
    /// times that were tried after the `mark`, in their order; `passed` was passed over with the first one. What was refused
    /// after the last order is open: the next look tries it again.
    #[must_use]
    pub fn next(
        stored: Option<&Self>,
        name: &Arc<str>,
        mark: Timestamp,
        passed: Option<Gap>,
        outcomes: Vec<Result<Posted, Refused>>,
    ) -> Self {
        let before = stored.and_then(|stored| stored.refused.clone());
        let refused = match outcomes.last() {
            // The first time of a refusal counts.
            Some(Err(last)) => Some(before.filter(|before| before.is_same(last)).unwrap_or_else(|| last.clone())),
            Some(Ok(_)) => None,
            None => before,
        };
        let posted = outcomes.into_iter().rev().find_map(Result::ok);
        let through = posted.as_ref().map_or(mark, |posted| posted.due_at);
        let mut gaps = stored.map(|stored| stored.gaps.clone()).unwrap_or_default();
        if posted.is_some() {
            decide(&mut gaps, through, passed);
        }
        Self {
            name: name.clone(),
            version: stored.map_or(0, |stored| stored.version) + 1,
            through: stored.map_or(through, |stored| stored.through.max(through)),
            gaps,
            posted: posted.or_else(|| stored.and_then(|stored| stored.posted.clone())),
            refused,
        }
    }
}

/// The gaps after a look that came as far as `through`.
fn decide(gaps: &mut Vec<Gap>, through: Timestamp, passed: Option<Gap>) {
    for gap in gaps.iter_mut().filter(|gap| gap.after < through && through < gap.before) {
        gap.after = through;
    }
    gaps.extend(passed);
    let first = gaps.iter().min_by_key(|gap| gap.before).copied();
    if gaps.len() > GAPS_MAX {
        gaps.retain(|gap| Some(*gap) != first);
    }
}

impl Refused {
    /// Whether both are of one due time, for the same reason.
    fn is_same(&self, other: &Self) -> bool {
        self.due_at == other.due_at && self.problem == other.problem
    }
}

impl Record for ScheduleRecord {
    const KIND: RecordKind = RecordKind::Schedule;

    fn key(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Listed for ScheduleRecord {}
