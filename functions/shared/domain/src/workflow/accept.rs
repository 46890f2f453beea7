//! Whether a workflow takes an order, and what it gives the order.

use serde_json::value::RawValue;

use super::deadline::COMPLETE_BY;
use super::mapping::Root;
use super::waits::{NOT_BEFORE, time_at, time_of_order};
use super::{BadLines, Comparison, Mapping, NotATime, StepRule, Workflow};
use crate::header;
use crate::id::{OrderId, idempotency_key};
use crate::json::Json;
use crate::order::{Given, Order};
use crate::redaction::Redaction;
use crate::schema::Misfit;
use crate::search::{Pointer, plain_text};
use crate::state::Direction;
use crate::template::{Known, Place, Template};
use crate::time::Timestamp;

const OVER: &str = "is over already: the order could not be in time";
const AFTER_DEADLINE: &str = "is not before the order's deadline: it could not be in time";

/// The first day of 2026, for what is checked whatever the day.
pub const SOME_DAY: Timestamp = Timestamp::from_epoch_ms(1_767_225_600_000);
/// The first day of 9998. Whether a time of a document lies too far ahead depends on the day, and by then none does.
pub const FAR_AHEAD: Timestamp = Timestamp::from_epoch_ms(253_339_228_800_000);

/// Why no order of the workflow may have this document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    /// It has members that no order of the workflow may carry (rule 19).
    #[error("the document has members that the workflow refuses: {}", .0.join(", "))]
    Refused(Vec<String>),
    /// It does not fit the schema of the workflow.
    #[error("the document does not fit the schema: {}", .0.iter().map(Misfit::to_string).collect::<Vec<_>>().join("; "))]
    Misfits(Vec<Misfit>),
    /// It has nothing where a step sends something of it (rule 19).
    #[error("step {step:?} sends {pointer}, and {why}")]
    Missing {
        /// The step.
        step: String,
        /// A pointer or an expression, as the workflow has it.
        pointer: String,
        /// Why it cannot be sent.
        why: String,
    },
    /// It has no lines for a step (rule 50).
    #[error(transparent)]
    Lines(BadLines),
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
        self.schema.as_ref().map_or(Ok(()), |schema| schema.check(&order.document)).map_err(NotAccepted::Misfits)?;
        let applies = |rule: &&StepRule| rule.surely_applies_to(&order.document);
        let own = self.of_document(&order.document).map_err(NotAccepted::Lines)?;
        let missing = own.steps.iter().filter(applies).find_map(|rule| rule.missing_in(order));
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

    /// Why it takes no document that a step of another workflow makes of this template, whatever is filled in (rule 49).
    /// `None`: it may take some.
    #[must_use]
    pub fn refuses_all_of(&self, sent: &Template) -> Option<String> {
        if !sent.may_be_object() {
            return Some("it is no object: write a table of members, or a pointer to an object".to_owned());
        }
        let known = sent.known();
        let Known { document, is_whole } = known.unwrap_or(Known { document: Json::empty(), is_whole: false });
        let order_id = OrderId::of_installation("", "", &self.name);
        let order = match Given::read(document, "".into(), FAR_AHEAD, || order_id) {
            Ok(given) => given.order,
            Err(bad) => return Some(bad.to_string()),
        };
        if order.reply_channel.is_some() {
            return Some(
                "ReplyChannel must be that of the parent: write \"/Order/ReplyChannel?\", or leave it out".to_owned(),
            );
        }
        let accepted = match is_whole {
            true => self.never_accepts(&order, SOME_DAY).map_or(Ok(()), Err),
            false => self.may_accept(&order, sent),
        };
        accepted.err().map(|refused| refused.to_string())
    }

    /// Why it takes no such order at this time, nor later where only its times stand against it.
    #[must_use]
    pub fn never_accepts(&self, order: &Order, at: Timestamp) -> Option<NotAccepted> {
        let refused = |submitted_at| {
            let mut order = Order { submitted_at, ..order.clone() };
            // Nothing is over yet.
            self.accept(&mut order, Timestamp::from_epoch_ms(0), &Redaction::default()).err()
        };
        let is_of_times = |refused: &NotAccepted| matches!(refused, NotAccepted::Time(_));
        refused(at).filter(|first| !is_of_times(first) || refused(FAR_AHEAD).as_ref().is_some_and(is_of_times))
    }

    /// What can be said of a document of which the filled-in values are null.
    fn may_accept(&self, order: &Order, sent: &Template) -> Result<(), NotAccepted> {
        let refused: Vec<String> = self.refuse.met_by(&order.document).into_iter().map(str::to_owned).collect();
        if !refused.is_empty() {
            return Err(NotAccepted::Refused(refused));
        }
        let steps = self.steps.iter().filter(|rule| rule.when.is_empty());
        let missing = |rule: &StepRule| {
            let mappings = [Direction::Forward, Direction::Undo].into_iter().flat_map(|of| rule.mappings(of));
            let mut needed = mappings.flat_map(Mapping::places).filter(|(_, of)| !of.is_optional && !of.is_conditional);
            let is_missing = |place: &Place| match Root::of(&place.pointer) {
                Some(Root::Order(names)) => !sent.may_fill(names),
                Some(Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt | Root::Item(_) | Root::Output(..))
                | None => false,
            };
            let (_, place) = needed.find(|(_, place)| is_missing(place))?;
            let (step, pointer) = (rule.name.to_string(), place.pointer.text());
            Some(NotAccepted::Missing { step, pointer, why: NOTHING.to_owned() })
        };
        steps.into_iter().find_map(missing).map_or(Ok(()), Err)?;
        let times = self.not_before(&order.document, order.submitted_at).map(drop);
        times.and_then(|()| self.complete_by(order).map(drop)).map_err(NotAccepted::Time)
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
    fn missing_in(&self, order: &Order) -> Option<NotAccepted> {
        let missing = |pointer: String, why: &str| {
            Some(NotAccepted::Missing { step: self.name.to_string(), pointer, why: why.to_owned() })
        };
        let (document, item) = (order.document.raw(), self.item_in(&order.document));
        for direction in [Direction::Forward, Direction::Undo] {
            for (key, place) in self.mappings(direction).flat_map(Mapping::places) {
                let found = match Root::of(&place.pointer) {
                    Some(Root::Order(names)) => Pointer::walk(names, document),
                    Some(Root::Item(names)) => item.and_then(|item| Pointer::walk(names, item)),
                    Some(Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt | Root::Output(..)) | None => {
                        continue;
                    }
                };
                if !is_sendable(key, place, found) {
                    return missing(place.pointer.text(), NOTHING);
                }
            }
            // With what does not come from steps before, the value is known.
            let key = Json::of(&idempotency_key(order.order_id, &self.name, direction));
            let (order_id, submitted_at) = (Json::of(&order.order_id), Json::of(&order.submitted_at));
            let find = |pointer: &Pointer| match Root::of(pointer)? {
                Root::Order(names) => Pointer::walk(names, document),
                Root::Item(names) => Pointer::walk(names, item?),
                Root::OrderId => Some(order_id.raw()),
                Root::IdempotencyKey => Some(key.raw()),
                Root::SubmittedAt => Some(submitted_at.raw()),
                Root::Output(..) => None,
            };
            let is_known = |place: &&Place| !matches!(Root::of(&place.pointer), Some(Root::Output(..)) | None);
            let expressions = self.calls(direction).flat_map(Mapping::expressions);
            for (key, expression) in expressions.filter(|(_, of)| of.places().iter().all(is_known)) {
                match expression.value(&find) {
                    Err(problem) => return missing(expression.text().to_owned(), &problem.to_string()),
                    Ok(value) if &*value == "null" && key == "headers" => {}
                    Ok(value) if key != "send" && !is_plain(key, serde_json::from_str(&value).ok()) => {
                        return missing(expression.text().to_owned(), NOTHING);
                    }
                    Ok(_) => {}
                }
            }
        }
        None
    }
}

const NOTHING: &str = "there is nothing that can be sent";

/// Whether what is found for a place can be sent there. A place in an expression may find any value.
fn is_sendable(key: &str, place: &Place, found: Option<&RawValue>) -> bool {
    match found {
        None => place.is_optional || place.is_conditional,
        Some(_) if place.is_within || key == "send" => true,
        Some(found) => (place.is_optional && found.get() == "null") || is_plain(key, Some(found)),
    }
}

/// Whether a path or a header can have a value. Neither has a place for an object, an array or null.
fn is_plain(key: &str, value: Option<&RawValue>) -> bool {
    let text = value.and_then(plain_text);
    text.is_some_and(|text| key == "path" || header::is_value(&text))
}
