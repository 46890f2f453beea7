//! The message to an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::lines::outputs_for;
use crate::header;
use crate::json::Json;
use crate::limits::{HEADERS_BYTES_MAX, SENT_BYTES_MAX};
use crate::message::{Failure, Look, Outcome, Reply, Request, idempotency_key};
use crate::order::Order;
use crate::outputs::Outputs;
use crate::search::{Pointer, plain_text};
use crate::task::{Direction, Step, Task};
use crate::template::{PollPath, Template, Unfilled};
use crate::time::Timestamp;
use crate::workflow::{Comparison, Encoding, Mapping, Method, Root, StepRule, Workflow};

/// Code of the failure of a step whose mapping cannot be filled.
const UNSENDABLE: &str = "unsendable";

/// The request for the current attempt of the step at `index`, with its agent; `None` if no attempt is in flight. `as_of`:
/// when the task was like this. A request that is sent long after that is not taken for a new one (rule 6).
///
/// It carries what the step's mapping sends. Without a mapping these are the document, the outputs of the steps that
/// this one comes after and, for an undo, the step's own. They do not change between attempts, so that a remote service
/// sees the same call under the same key.
///
/// # Errors
/// If the mapping cannot be filled, the reply that ends the attempt instead: the step has failed, and no service is
/// called.
pub fn request(
    task: &Task,
    workflow: &Workflow,
    index: usize,
    order: &Order,
    as_of: Timestamp,
    hops: u32,
) -> Option<Result<(Arc<str>, Request), Reply>> {
    let step = task.steps.get(index)?;
    let complete_by = step.complete_by?;
    let rule = workflow.steps.get(index)?;
    let own = (step.direction == Direction::Undo).then_some(index);
    let outputs = outputs_for(task, rule, own);
    let mut request = Request {
        // A deadline that lies further ahead was written by a wrong clock (rule 23).
        budget_ms: as_of.ms_until(complete_by).min(rule.complete_within_ms),
        may_run_until: step.may_run_until,
        wait_within_ms: rule.waits.within_ms,
        // The first attempt says so by its number.
        may_decline: step.attempt > 1 && step.is_uncalled(),
        was_done: step.direction == Direction::Undo && step.output.is_some(),
        order: order.document.clone(),
        keep: rule.keep.clone().filter(|_| step.direction == Direction::Forward),
        ..of_attempt(task, step, rule, complete_by, hops)
    };
    let item = rule.item_in(&order.document);
    let applied = if step.direction == Direction::Forward { applies(order, rule, item, &outputs) } else { Ok(()) };
    let poll = rule.poll.as_ref().filter(|_| step.direction == Direction::Forward).map(|poll| &poll.path);
    let known = Known { order, item, outputs };
    let mapped = applied.and_then(|()| known.map(&mut request, rule.call(step.direction, step.dropped), poll));
    Some(match mapped {
        Ok(()) => Ok((step.agent.clone(), request)),
        Err((key, unfilled)) => {
            let message = format!("`{key}` {unfilled}").into();
            Err(request.reply(Outcome::Failed(Failure { code: UNSENDABLE.into(), message })))
        }
    })
}

/// Whether the comparisons of the step have a value: one that has none skips nothing, and sends nothing (rule 33).
fn applies(
    order: &Order,
    rule: &StepRule,
    item: Option<&RawValue>,
    outputs: &Outputs,
) -> Result<(), (&'static str, Unfilled)> {
    let find = |pointer: &Pointer| -> Option<&RawValue> {
        match Root::of(pointer)? {
            Root::Order(names) => Pointer::walk(names, order.document.raw()),
            Root::Item(names) => Pointer::walk(names, item?),
            Root::Output(step, names) => outputs.find(step, names),
            Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt => None,
        }
    };
    let fault = |comparison: &Comparison| Some(Unfilled::NoValue(comparison.text().into(), comparison.fault(&find)?));
    rule.when.iter().find_map(fault).map_or(Ok(()), |unfilled| Err(("when", unfilled)))
}

/// The request to look at the state of the call of the step at `index` that was taken on, with its agent; `None` if none is
/// asked for. It carries nothing of the order.
#[must_use]
pub fn look(
    task: &Task,
    workflow: &Workflow,
    index: usize,
    as_of: Timestamp,
    hops: u32,
) -> Option<(Arc<str>, Request)> {
    let (step, rule) = (task.steps.get(index)?, workflow.steps.get(index)?);
    let poll = step.poll.as_ref().filter(|_| step.is_awaited())?;
    let asked = rule.poll.as_ref()?;
    // Looks do not overlap. None follows the last one.
    let within_ms = poll.at.map_or(u64::MAX, |_| asked.every_ms).min(rule.complete_within_ms);
    let request = Request {
        budget_ms: within_ms,
        method: Method::Get,
        keep: rule.keep.clone(),
        look: Some(Look { path: poll.path.clone(), answers: asked.answers.clone() }),
        ..of_attempt(task, step, rule, as_of.plus_ms(within_ms), hops)
    };
    Some((step.agent.clone(), request))
}

/// A request for the current attempt of a step, which carries nothing yet.
fn of_attempt(task: &Task, step: &Step, rule: &StepRule, complete_by: Timestamp, hops: u32) -> Request {
    Request {
        order_id: task.order_id,
        step: step.name.clone(),
        agent: step.agent.clone(),
        direction: step.direction,
        attempt: step.attempt,
        idempotency_key: idempotency_key(task.order_id, &step.name, step.direction),
        complete_by,
        budget_ms: 0,
        settles_within_ms: rule.settles_within_ms,
        may_run_until: None,
        wait_within_ms: None,
        may_decline: false,
        was_done: false,
        hops,
        priority: task.priority,
        order: Json::empty(),
        outputs: BTreeMap::new(),
        method: Method::Post,
        body: None,
        encode: Encoding::Json,
        path: None,
        headers: BTreeMap::new(),
        keep: None,
        poll: None,
        look: None,
    }
}

/// What a step knows of its order.
struct Known<'a> {
    order: &'a Order,
    item: Option<&'a RawValue>,
    outputs: Outputs,
}

impl Known<'_> {
    /// Puts into the request what the mapping sends of it.
    fn map(
        self,
        request: &mut Request,
        mapping: &Mapping,
        poll: Option<&PollPath>,
    ) -> Result<(), (&'static str, Unfilled)> {
        let Mapping { method, send, path, headers, encode } = mapping;
        if *mapping == Mapping::default() && poll.is_none() {
            request.outputs = self.outputs.by_step();
            return Ok(());
        }
        let (order_id, key) = (Json::of(&request.order_id), Json::of(&request.idempotency_key));
        let submitted_at = Json::of(&self.order.submitted_at);
        let find = |pointer: &Pointer| -> Option<&RawValue> {
            match Root::of(pointer)? {
                Root::OrderId => Some(order_id.raw()),
                Root::IdempotencyKey => Some(key.raw()),
                Root::SubmittedAt => Some(submitted_at.raw()),
                Root::Order(names) => Pointer::walk(names, self.order.document.raw()),
                Root::Item(names) => Pointer::walk(names, self.item?),
                Root::Output(step, names) => self.outputs.find(step, names),
            }
        };
        let poll = poll.map(|poll| poll.for_agent(&find)).transpose().map_err(|unfilled| ("poll.path", unfilled))?;
        let path = path.as_ref().map(|path| path.fill(&find)).transpose().map_err(|unfilled| ("path", unfilled))?;
        let body = send.as_ref().map(|send| send.fill(&find, SENT_BYTES_MAX)).transpose();
        let body = body.map_err(|unfilled| ("send", unfilled))?;
        if let Some(body) = body.as_ref().filter(|body| *encode == Encoding::Form && body.kind() != "an object") {
            return Err(("send", Unfilled::NoForm(body.kind())));
        }
        let headers = headers.as_ref().map(|headers| filled_headers(headers, &find)).transpose();
        request.headers = headers.map_err(|unfilled| ("headers", unfilled))?.unwrap_or_default();
        match mapping.sends_all() {
            true => request.outputs = self.outputs.by_step(),
            false => request.order = Json::empty(),
        }
        request.poll = poll;
        // All its parameters may be left out.
        let path = path.filter(|path| !path.is_empty());
        (request.method, request.path, request.body, request.encode) = (*method, path, body, *encode);
        Ok(())
    }
}

/// The headers of a call. One that may be missing, and is, is left out.
fn filled_headers<'a>(
    headers: &Template,
    find: &impl Fn(&Pointer) -> Option<&'a RawValue>,
) -> Result<BTreeMap<Arc<str>, Arc<str>>, Unfilled> {
    let filled = headers.fill(find, HEADERS_BYTES_MAX)?;
    let values: BTreeMap<Arc<str>, &RawValue> = serde_json::from_str(filled.text()).unwrap_or_default();
    let header = |(name, value): (Arc<str>, &RawValue)| match plain_text(value) {
        Some(text) if header::is_value(&text) => Ok((name, Arc::from(&*text))),
        Some(_) | None => Err(Unfilled::NoHeader(name)),
    };
    // Null is no value.
    values.into_iter().filter(|(_, value)| value.get() != "null").map(header).collect()
}
