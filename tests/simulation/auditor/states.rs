//! What a record says of its order in one version: its state, its history, its watch and its alert (invariants 3, 7, 8 and 10,
//! rule 14).

use super::dossier::Dossier;
use super::ways::{is_gone, is_over};
use super::{Finding, Flow, Invariant, must};
use rehearsal::seen::{Kind, OrderState, Record, StepState};

/// The history names the state in which the order stops or ends.
pub(super) fn recorded(before: &Record, after: &Record) -> Finding {
    let has_stopped = after.state == OrderState::Error || after.state.is_final();
    let is_needed = has_stopped && before.state != after.state;
    must(!is_needed || after.entered == Some(after.state), Invariant::History, || {
        format!("the history does not have the change of state: {after}")
    })
}

pub(super) fn absorbing(before: &Record, after: &Record) -> Finding {
    let parts = |record: &Record| (record.state, record.steps.clone(), record.reason.clone(), record.paused);
    let is_same = !before.state.is_final() || parts(before) == parts(after);
    must(is_same, Invariant::Absorbing, || format!("it had ended: {before}; and now: {after}"))
}

/// Processed and compensated are true, in the record and at the services.
pub(super) fn ended_well(dossier: &Dossier, after: &Record) -> Finding {
    for (index, step) in after.steps.iter().enumerate() {
        match after.state {
            OrderState::Compensated => {
                let is_undone = is_gone(step);
                let is_confirmed = step.attempt == 0 || dossier.has_no_undo(index) || dossier.is_taken_back(index);
                must(is_undone && is_confirmed && dossier.is_even(index), Invariant::Undone, || {
                    format!("compensated, but step {index} is not undone: {after}")
                })?;
            }
            OrderState::Processed if step.dropped => {
                let is_confirmed = step.attempt == 0 || dossier.has_no_undo(index) || dossier.is_taken_back(index);
                must(is_gone(step) && is_confirmed && dossier.is_even(index), Invariant::Lines, || {
                    format!("processed, but step {index} of a dropped line is not undone: {after}")
                })?;
            }
            OrderState::Processed => {
                must(is_over(step), Invariant::Movers, || format!("processed, but step {index} is not: {after}"))?;
            }
            OrderState::Pending
            | OrderState::Processing
            | OrderState::Error
            | OrderState::Compensating
            | OrderState::Closed => {}
        }
    }
    Ok(())
}

/// The supervisor or an operator looks at the order in time.
pub(super) fn watched(flow: &Flow, record: &Record) -> Finding {
    let is_under_way = matches!(record.state, OrderState::Processing | OrderState::Compensating);
    let held = record.steps.iter().filter(|step| step.state == StepState::Processing && step.doubted_ms.is_none());
    let ends_ms = held.filter_map(|step| step.waits_until_ms.or(step.complete_by_ms));
    let latest_ms = ends_ms.min().map(|at_ms| at_ms + flow.grace_ms);
    let is_needed = is_under_way && (latest_ms.is_some() || !record.paused);
    let looks_ms = record.watch_ms.unwrap_or(i64::MAX);
    must(!is_needed || looks_ms <= latest_ms.unwrap_or(i64::MAX - 1), Invariant::Watched, || {
        format!("nobody looks at it in time: {record}")
    })
}

/// An alert is due, or arrived.
pub(super) fn has_alert(dossier: &Dossier, record: &Record) -> Finding {
    if record.state != OrderState::Error {
        return Ok(());
    }
    let Some((_, since)) = &record.reason else {
        return Err((Invariant::Alert, "it is in Error without a reason".to_owned()));
    };
    let alert = (Kind::NeedsOperator, *since);
    must(record.unsent.contains(&alert) || dossier.told.contains(&alert), Invariant::Alert, || {
        format!("in Error since v{since}, and nobody will ever be told: {record}")
    })
}
