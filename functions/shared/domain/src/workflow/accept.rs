//! Whether a workflow takes an order, and what it gives the order.

use super::deadline::COMPLETE_BY;
use super::mapping::Root;
use super::waits::{NOT_BEFORE, time_at, time_of_order};
use super::{Comparison, NotATime, StepRule, Workflow};
use crate::header;
use crate::json::Json;
use crate::order::Order;
use crate::redaction::Redaction;
use crate::search::{Pointer, plain_text};
use crate::time::Timestamp;

const OVER: &str = "is over already: the order could not be in time";
const AFTER_DEADLINE: &str = "is not before the order's deadline: it could not be in time";

/// Why no order of the workflow may have this document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// It has members that no order of the workflow may carry (rule 19).
    #[error("the document has members that the workflow refuses: {}", .0.join(", "))]
    Refused(Vec<String>),
    /// It has nothing where a step sends something of it (rule 19).
    #[error("step {step:?} sends {pointer}, and the document has nothing there that can be sent")]
    Missing {
        /// The step.
        step: String,
        /// As the workflow has it.
        pointer: String,
    },
    /// It has a wrong time (rules 35 and 37).
    #[error("{place} {0}", place = .0.place)]
    Time(NotATime),
}

impl Workflow {
    /// Pins an order to this workflow, in whose priority it is if it names none, and gives it the terms that it is found by
    /// (rule 28). What is redacted has none. `now` is by the clock that the caller sees.
    ///
    /// # Errors
    /// [`NotAccepted`] if the workflow takes no such document. The order is then as it was.
    pub fn accept(&self, order: &mut Order, now: Timestamp, redaction: &Redaction) -> Result<(), NotAccepted> {
        let refused: Vec<String> = self.refuse.met_by(&order.document).into_iter().map(str::to_owned).collect();
        if !refused.is_empty() {
            return Err(NotAccepted::Refused(refused));
        }
        let applies = |rule: &&StepRule| rule.surely_applies_to(&order.document);
        let missing = self.steps.iter().filter(applies).find_map(|rule| rule.missing_in(&order.document));
        missing.map_or(Ok(()), Err)?;
        let times = self.not_before(&order.document, order.submitted_at).map(drop);
        times.and_then(|()| self.complete_by(order).map(drop)).map_err(NotAccepted::Time)?;
        self.can_be_in_time(order, now).map_err(NotAccepted::Time)?;
        order.workflow = Some(self.pin());
        order.terms = self.index.terms(order.correlation_id.as_deref(), &order.document, redaction);
        if order.priority.is_none() && !self.priority.is_normal() {
            order.priority = Some(self.priority);
        }
        Ok(())
    }

    /// Refuses a deadline that the order cannot keep, its own or that of the workflow. An order that is posted again has the
    /// times of the earlier one.
    fn can_be_in_time(&self, order: &Order, now: Timestamp) -> Result<(), NotATime> {
        let Order { document, submitted_at, .. } = order;
        let Some(deadline) = self.complete_by(order)?.filter(|_| order.again_of.is_none()) else { return Ok(()) };
        let own = time_of_order(document, COMPLETE_BY, *submitted_at)?;
        if own.is_some_and(|own| own <= now) {
            return Err(NotATime { place: format!("/{COMPLETE_BY}"), fault: OVER });
        }
        let begin = time_of_order(document, NOT_BEFORE, *submitted_at)?.map(|at| (format!("/{NOT_BEFORE}"), at));
        // The order may go on without a step that has a condition.
        let steps = self.steps.iter().filter(|rule| rule.when.is_empty());
        let of_step = |rule: &StepRule| {
            let place = rule.waits.not_before.as_ref()?;
            Some((place.text(), time_at(document, place, *submitted_at).ok()??))
        };
        let late = begin.into_iter().chain(steps.filter_map(of_step)).find(|(_, at)| deadline <= *at);
        late.map_or(Ok(()), |(place, _)| Err(NotATime { place, fault: AFTER_DEADLINE }))
    }
}

impl StepRule {
    /// Whether the document alone says that an order comes to this step.
    fn surely_applies_to(&self, document: &Json) -> bool {
        self.when.iter().all(Comparison::is_of_document) && self.unmet_by_document(document).is_none()
    }

    /// What the step sends of the document, in either direction, and the document has not.
    fn missing_in(&self, document: &Json) -> Option<NotAccepted> {
        let mappings = [&self.forward, &self.undo];
        let mut sent = mappings.into_iter().flat_map(|mapping| mapping.required());
        let is_missing = |(key, pointer): &(&str, &Pointer)| match Root::of(pointer) {
            Some(Root::Order(names)) => {
                let found = Pointer::walk(names, document.raw());
                // A path or a header has no place for an object, an array or null.
                match *key {
                    "send" => found.is_none(),
                    "headers" => !found.and_then(plain_text).is_some_and(|text| header::is_value(&text)),
                    _ => found.and_then(plain_text).is_none(),
                }
            }
            Some(Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt | Root::Output(..)) | None => false,
        };
        let (_, pointer) = sent.find(is_missing)?;
        Some(NotAccepted::Missing { step: self.name.to_string(), pointer: pointer.text() })
    }
}
