//! The message to an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::json::Json;
use crate::limits::SENT_BYTES_MAX;
use crate::message::{Failure, Outcome, Reply, Request, idempotency_key};
use crate::order::Order;
use crate::search::Pointer;
use crate::task::{Direction, Task};
use crate::template::Unfilled;
use crate::time::Timestamp;
use crate::workflow::{Encoding, Mapping, Root, Workflow};

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
    let sources = rule.ancestors.iter().copied().chain(own);
    let outputs: BTreeMap<Arc<str>, Json> = sources
        .filter_map(|source| task.steps.get(source))
        .filter_map(|source| Some((source.name.clone(), source.output.clone()?)))
        .collect();
    let mut request = Request {
        order_id: task.order_id,
        step: step.name.clone(),
        agent: step.agent.clone(),
        direction: step.direction,
        attempt: step.attempt,
        idempotency_key: idempotency_key(task.order_id, &step.name, step.direction),
        complete_by,
        // A deadline that lies further ahead was written by a wrong clock (rule 23).
        budget_ms: as_of.ms_until(complete_by).min(rule.complete_within_ms),
        settles_within_ms: rule.settles_within_ms,
        may_run_until: step.may_run_until,
        wait_within_ms: rule.waits.within_ms,
        // The first attempt says so by its number.
        may_decline: step.attempt > 1 && step.is_uncalled(),
        was_done: step.direction == Direction::Undo && step.output.is_some(),
        hops,
        priority: task.priority,
        order: order.document.clone(),
        outputs,
        body: None,
        encode: Encoding::Json,
        path: None,
        keep: rule.keep.clone().filter(|_| step.direction == Direction::Forward),
    };
    Some(match map(&mut request, rule.mapping(step.direction)) {
        Ok(()) => Ok((step.agent.clone(), request)),
        Err((key, unfilled)) => {
            let message = format!("`{key}` {unfilled}").into();
            Err(request.reply(Outcome::Failed(Failure { code: UNSENDABLE.into(), message })))
        }
    })
}

/// Replaces the document and the outputs by what the mapping sends.
fn map(request: &mut Request, mapping: &Mapping) -> Result<(), (&'static str, Unfilled)> {
    let Mapping { send, path, encode } = mapping;
    if send.is_none() && path.is_none() {
        return Ok(());
    }
    let order_id = Json::of(&request.order_id);
    let find = |pointer: &Pointer| -> Option<&RawValue> {
        match Root::of(pointer)? {
            Root::OrderId => Some(order_id.raw()),
            Root::Order(names) => Pointer::walk(names, request.order.raw()),
            Root::Output(step, names) => Pointer::walk(names, request.outputs.get(step)?.raw()),
        }
    };
    let path = path.as_ref().map(|path| path.fill(&find)).transpose().map_err(|unfilled| ("path", unfilled))?;
    let body = send.as_ref().map(|send| send.fill(&find, SENT_BYTES_MAX)).transpose();
    let body = body.map_err(|unfilled| ("send", unfilled))?;
    if let Some(body) = &body {
        if *encode == Encoding::Form && body.kind() != "an object" {
            return Err(("send", Unfilled::NoForm(body.kind())));
        }
        request.order = Json::empty();
        request.outputs.clear();
    }
    (request.path, request.body, request.encode) = (path, body, *encode);
    Ok(())
}
