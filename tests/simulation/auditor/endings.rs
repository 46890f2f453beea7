//! The end state after the faults: invariants 14 and 15, and the agreement of services and records, invariant 16.

use domain::id::OrderId;

use super::dossier::Dossier;
use super::lines::carries;
use super::{Auditor, Finding, Invariant, must};
use rehearsal::seen::{Kind, OrderState, StepState};

/// The time after the end of an order from which on its books are even, in milliseconds.
const SETTLED_MS: i64 = 3_600_000;

impl Auditor {
    /// Every stored order has ended, if it has had the time.
    pub(super) fn end_is_due(&mut self, since_ms: i64, bound_ms: i64) -> Finding {
        let now_ms = self.at_ms;
        self.each(|dossier| {
            if dossier.final_since_ms.is_some_and(|since_ms| since_ms + SETTLED_MS <= now_ms) {
                books_are_even(dossier)?;
            }
            if now_ms <= since_ms.max(dossier.going_since_ms).saturating_add(bound_ms) {
                return Ok(());
            }
            // An order whose message is hours late is still on its queue, and is stored later.
            let Some(last) = &dossier.last else { return Ok(()) };
            let has_ended = match last.state {
                OrderState::Processed | OrderState::Compensated | OrderState::Closed | OrderState::Error => true,
                OrderState::Pending | OrderState::Processing | OrderState::Compensating => false,
            };
            must(has_ended, Invariant::Ends, || format!("it has not ended in time: {last}"))
        })
    }

    /// All due messages are sent, the queues are empty, and the records agree with the services.
    pub(super) fn drain_is_due(&mut self, queued: u64) -> Finding {
        self.each(|dossier| {
            must(dossier.last.is_some() || !dossier.accepted, Invariant::Ends, || "it was never stored".to_owned())?;
            let Some(last) = &dossier.last else { return Ok(()) };
            must(last.unsent.is_empty(), Invariant::Drains, || format!("something was never told: {last}"))?;
            if dossier.channel.is_some() {
                for status in statuses(dossier) {
                    must(dossier.told.contains(&status), Invariant::Drains, || {
                        format!("{:?} of version {} never arrived", status.0, status.1)
                    })?;
                }
            }
            for (version, _) in dossier.past.iter().filter(|(_, past)| past.is_found_late) {
                must(dossier.told.contains(&(Kind::Late, *version)), Invariant::Drains, || {
                    format!("nobody was told that it is late: {last}")
                })?;
                let is_told = dossier.channel.is_none() || dossier.told.contains(&(Kind::LateStatus, *version));
                must(is_told, Invariant::Drains, || format!("its channel was not told that it is late: {last}"))?;
            }
            // No call is under way any more.
            books_are_even(dossier)?;
            carries(dossier, last)
        })?;
        must(queued == 0, Invariant::Drains, || format!("{queued} messages are still on queues"))
    }

    /// Checks every order, and reports each violation.
    fn each(&mut self, look: impl Fn(&Dossier) -> Finding) -> Finding {
        let found: Vec<(OrderId, (Invariant, String))> =
            self.dossiers.iter().filter_map(|(order, dossier)| Some((*order, look(dossier).err()?))).collect();
        for (order, (invariant, words)) in found {
            self.complain(invariant, Some(order), words);
        }
        Ok(())
    }
}

/// The services have each effect that the order says, and no other.
fn books_are_even(dossier: &Dossier) -> Finding {
    let Some(last) = &dossier.last else { return Ok(()) };
    for (step, seen) in last.steps.iter().enumerate() {
        let effects = dossier.effects(step);
        let is_so = match last.state {
            // An attempt without an answer may have had its effect before the step was skipped.
            OrderState::Processed if seen.state == StepState::Skipped => {
                effects.forward <= seen.attempt.min(1) && effects.undo == 0
            }
            OrderState::Processed if seen.dropped => dossier.is_even(step),
            OrderState::Processed if dossier.ways(step).approval => effects.forward == 0 && effects.undo == 0,
            OrderState::Processed => (effects.forward, effects.undo) == (1, 0),
            OrderState::Compensated => dossier.is_even(step),
            OrderState::Error
            | OrderState::Closed
            | OrderState::Pending
            | OrderState::Processing
            | OrderState::Compensating => true,
        };
        must(is_so, Invariant::EvenBooks, || {
            let (forward, undo) = (effects.forward, effects.undo);
            format!("{:?}, but step {step} has {forward} effects and {undo} undos", last.state)
        })?;
    }
    Ok(())
}

/// The status messages that the reply channel must get: the receipt, and each state in which the order stayed.
fn statuses(dossier: &Dossier) -> Vec<(Kind, u64)> {
    let mut statuses = vec![(Kind::Received, 1)];
    let mut before = OrderState::Pending;
    for (version, past) in &dossier.past {
        let status = match past.state {
            OrderState::Processed => Some(Kind::Processed),
            OrderState::Compensated => Some(Kind::Compensated),
            OrderState::Closed => Some(Kind::Closed),
            OrderState::Error => Some(Kind::Failed),
            OrderState::Pending | OrderState::Processing | OrderState::Compensating => None,
        };
        statuses.extend(status.filter(|_| past.state != before).map(|kind| (kind, *version)));
        before = past.state;
    }
    statuses
}
