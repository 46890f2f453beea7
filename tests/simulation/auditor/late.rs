//! The deadline of an order: rule 37.

use super::dossier::Dossier;
use super::ways::is_past_pivot;
use super::{Finding, Flow, Invariant, must};
use rehearsal::seen::{Kind, OrderState, Record};

/// What a version of a workflow says about the deadline of its orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deadline {
    /// The time from the acceptance, in milliseconds.
    pub within_ms: Option<i64>,
    /// Whether a late order is compensated.
    pub turns: bool,
    /// Whether a late order waits for an operator.
    pub holds: bool,
}

/// A new order has the deadline that its workflow says.
pub(super) fn has_its_deadline(flow: &Flow, record: &Record) -> Finding {
    must(record.complete_by_ms.is_some() == flow.deadline.within_ms.is_some(), Invariant::Late, || {
        format!("it begins with another deadline than its workflow says: {record}")
    })
}

/// An order is found late once: after its deadline, by the writer's clock, and before its end. The alert is due with it.
pub(super) fn is_late_well(flow: &Flow, dossier: &Dossier, records: [&Record; 2], clock_ms: i64) -> Finding {
    let [before, after] = records;
    must(before.complete_by_ms == after.complete_by_ms, Invariant::Late, || format!("its deadline changed: {after}"))?;
    if before.late_ms == after.late_ms {
        return is_watched(after, clock_ms);
    }
    let is_over = after.complete_by_ms.is_some_and(|at_ms| at_ms <= clock_ms);
    must(before.late_ms.is_none() && is_over && !before.state.is_final(), Invariant::Late, || {
        format!("it is found late, and is not: {before}; and now: {after}")
    })?;
    must(after.unsent.contains(&(Kind::Late, after.version)), Invariant::Late, || {
        format!("it is late, and nobody will be told: {after}")
    })?;
    let goes_on = |record: &Record| matches!(record.state, OrderState::Pending | OrderState::Processing);
    let has_way_back = !is_past_pivot(dossier, before, None);
    let must_stop = flow.deadline.holds || (flow.deadline.turns && has_way_back);
    must(!must_stop || !goes_on(before) || !goes_on(after), Invariant::Late, || {
        format!("it is late, and goes on against its workflow: {before}; and now: {after}")
    })
}

/// Whether an order stops or turns round since it is late: only one that went on, and in the version that says so.
pub(super) fn is_cause(flow: &Flow, [before, after]: [&Record; 2]) -> bool {
    let went_on = matches!(before.state, OrderState::Pending | OrderState::Processing);
    let is_meant = if after.state == OrderState::Error { flow.deadline.holds } else { flow.deadline.turns };
    went_on && is_meant && before.late_ms.is_none() && after.late_ms.is_some()
}

/// The supervisor looks at an order that may still be late no later than at its deadline.
fn is_watched(record: &Record, clock_ms: i64) -> Finding {
    let Some(at_ms) = record.complete_by_ms.filter(|_| record.late_ms.is_none() && !record.state.is_final()) else {
        return Ok(());
    };
    must(record.watch_ms.is_some_and(|looks_ms| looks_ms <= at_ms.max(clock_ms)), Invariant::Watched, || {
        format!("nobody looks at it at its deadline: {record}")
    })
}
