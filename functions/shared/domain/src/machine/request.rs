//! The message to an agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::Json;
use crate::message::{Request, idempotency_key};
use crate::order::Order;
use crate::task::{Direction, Task};
use crate::time::Timestamp;
use crate::workflow::Workflow;

/// The request for the current attempt of the step at `index`; `None` if no attempt is in flight.
///
/// It carries the outputs of the steps that this one comes after and, for an undo, the step's own. They do not change
/// between attempts, so that a remote service sees the same call under the same key.
#[must_use]
pub fn request(
    task: &Task,
    workflow: &Workflow,
    index: usize,
    order: &Order,
    now: Timestamp,
    hops: u32,
) -> Option<(Arc<str>, Request)> {
    let step = task.steps.get(index)?;
    let complete_by = step.complete_by?;
    let own = (step.direction == Direction::Undo).then_some(index);
    let sources = workflow.steps.get(index)?.ancestors.iter().copied().chain(own);
    let outputs: BTreeMap<Arc<str>, Json> = sources
        .filter_map(|source| task.steps.get(source))
        .filter_map(|source| Some((source.name.clone(), source.output.clone()?)))
        .collect();
    let request = Request {
        order_id: task.order_id,
        step: step.name.clone(),
        direction: step.direction,
        attempt: step.attempt,
        idempotency_key: idempotency_key(task.order_id, &step.name, step.direction),
        complete_by,
        budget_ms: now.ms_until(complete_by),
        settles_within_ms: workflow.steps.get(index)?.settles_within_ms,
        may_run_until: step.may_run_until,
        hops,
        priority: task.priority,
        order: order.document.clone(),
        outputs,
    };
    Some((step.agent.clone(), request))
}
