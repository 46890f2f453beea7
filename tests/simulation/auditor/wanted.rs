//! Calls for attempts that are over: invariant 18.

use std::sync::Arc;

use domain::id::OrderId;

use super::dossier::Dossier;
use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::{OrderState, Record, StepSeen, StepState, Try, WANTED_MS, Way};

/// What an agent's instance knows of an attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    /// When it looked at the task last, or received the request, in milliseconds since the start of the world. `None`:
    /// it has called since.
    at_ms: Option<i64>,
    /// Of each request that was delivered for the first time, and not called for: the end of the second in which it was
    /// sent, by the instance's clock.
    fresh_until_ms: Vec<i64>,
    /// What the last call was based on: a look at this time, and whether the request had just been sent.
    used: Option<(i64, bool)>,
    /// That call is sent again.
    is_again: bool,
}

impl Dossier {
    /// Notes which attempts are over with this record, and since when.
    pub(super) fn note_wanted(&mut self, record: &Record, at_ms: i64) {
        for (index, step) in record.steps.iter().enumerate() {
            for attempt in 1..step.attempt {
                self.over_ms.entry((index, attempt)).or_insert(at_ms);
            }
            let is_its_way = self.claims.get(&(index, step.attempt)).is_some_and(|claim| claim.way == step.way);
            if is_its_way && is_wanted(record, step) {
                // An operator resumed the order.
                self.over_ms.remove(&(index, step.attempt));
            } else {
                self.over_ms.entry((index, step.attempt)).or_insert(at_ms);
            }
        }
    }
}

/// Whether a call for the present attempt of a step may begin.
fn is_wanted(record: &Record, step: &StepSeen) -> bool {
    let is_its_way = match step.way {
        Way::Forward => matches!(record.state, OrderState::Pending | OrderState::Processing | OrderState::Error),
        Way::Undo => {
            let is_of_line = step.dropped && matches!(record.state, OrderState::Pending | OrderState::Processing);
            is_of_line || matches!(record.state, OrderState::Compensating | OrderState::Error)
        }
    };
    is_its_way && !record.paused && step.state == StepState::Processing && step.waits_until_ms.is_none()
}

impl Auditor {
    /// An agent's instance receives a request.
    pub(super) fn receives(&mut self, of: Try, by: &Arc<str>, fresh_until_ms: Option<i64>) {
        let at_ms = self.at_ms;
        // It may have several requests of the attempt.
        let look = self.dossier(of.order).looks.entry((of.step, of.attempt, by.clone())).or_default();
        look.at_ms = Some(at_ms);
        look.fresh_until_ms.extend(fresh_until_ms);
    }

    /// An agent's instance looks at the task.
    pub(super) fn looks(&mut self, order: OrderId, by: &Arc<str>) {
        let at_ms = self.at_ms;
        for ((_, _, instance), look) in &mut self.dossier(order).looks {
            if instance == by {
                look.at_ms = Some(at_ms);
            }
        }
    }

    /// An agent's instance sends a call again, whose token was refused.
    pub(super) fn sends_again(&mut self, of: Try, by: &Arc<str>) {
        if let Some(look) = self.dossier(of.order).looks.get_mut(&(of.step, of.attempt, by.clone())) {
            look.is_again = true;
        }
    }

    /// No call begins for an attempt that was over for more than a second when its agent looked last. A look serves for one
    /// call. So does the sending of the request, for a second by the clocks of both sides.
    pub(super) fn is_wanted_still(&mut self, of: Try, by: &Arc<str>, clock_ms: i64) -> Finding {
        let now_ms = self.at_ms;
        let dossier = self.dossier(of.order);
        let look = dossier.looks.get_mut(&(of.step, of.attempt, by.clone()));
        let (looked_ms, is_fresh) = look.map_or((now_ms, false), |look| {
            if let Some(used) = look.used.filter(|_| std::mem::take(&mut look.is_again)) {
                return used;
            }
            let fresh = look.fresh_until_ms.iter().position(|until_ms| clock_ms <= *until_ms);
            let is_fresh = fresh.map(|place| look.fresh_until_ms.swap_remove(place)).is_some();
            *look.used.insert((look.at_ms.take().unwrap_or(now_ms), is_fresh))
        });
        let over_ms = dossier.over_ms.get(&(of.step, of.attempt)).copied();
        let is_late = over_ms.is_some_and(|over_ms| looked_ms > over_ms + WANTED_MS);
        must(is_fresh || !is_late, Invariant::Wanted, || {
            let ms = now_ms - over_ms.unwrap_or(now_ms);
            format!("a call for {of} begins, {ms} ms after the attempt was over")
        })
    }
}
