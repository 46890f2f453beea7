//! Carries out and undoes the steps whose service is another order (rule 49).
//!
//! The order is stored under the id that follows from its parent, if there is none. An undo stores it too, cancelled
//! before its first step: a request that comes later finds that, and makes no order after its undo.

use domain::advance::{AdvanceError, advance, begin_with, follow_up};
use domain::child::{self, cancel, never_made, not_accepted, outcome, past_pivot, processed, unknown_workflow};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::machine::{Event, Refused, Verdict, Wanted, child_wanted};
use domain::message::{ChildRequest, Command, Deferral, Failure, Outcome, Reply};
use domain::order::{Order, Parent};
use domain::ports::{Environment, Inserted, Store};
use domain::task::{Direction, Task};
use domain::workflow::Workflow;

use crate::SchedulerPorts;

/// Carries out the attempt, if it is still wanted, and applies its outcome to the task. `None`: there is no such order.
///
/// # Errors
/// [`AdvanceError`]; the message then stays on its queue. A repeat is always safe.
pub(crate) async fn carry_out(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    request: &ChildRequest,
    redelivered: bool,
) -> Result<Option<Verdict>, AdvanceError> {
    let order_id = request.order_id;
    let Some(task) = ports.store().task(order_id).await? else { return Ok(None) };
    let is_in_time = task.step(&request.step).and_then(|(_, step)| step.complete_by);
    let is_in_time = is_in_time.is_some_and(|at| ports.environment().now() < at);
    let outcome = match child_wanted(&task, request) {
        Wanted::Yes if is_in_time => ended(ports, instance, request, &task, redelivered).await?,
        // The next attempt, or the undo, begins sooner.
        Wanted::NoMore => Outcome::Deferred(Deferral::after(0)),
        Wanted::Yes | Wanted::Over => return Ok(Some(Verdict::Nothing)),
    };
    let ChildRequest { step, direction, attempt, hops, .. } = request.clone();
    let hops = hops.saturating_add(1);
    let reply = Reply { order_id, step, direction, attempt, outcome, hops, may_run_until: None, call_ms: None };
    // Boxed, so that the future of another message stays small.
    Box::pin(advance(ports, instance, order_id, Event::Reply { reply: &reply, redelivered })).await
}

/// The outcome of a wanted attempt.
async fn ended(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    request: &ChildRequest,
    task: &Task,
    redelivered: bool,
) -> Result<Outcome, AdvanceError> {
    let order_id = request.order_id;
    let workflow = instance.catalogue.of_task(ports, task).await?;
    let workflow = workflow.ok_or_else(|| AdvanceError::UnknownWorkflow { order_id, pin: task.pin() })?;
    let Some((index, step)) = task.step(&request.step) else { return Ok(Outcome::Deferred(Deferral::after(0))) };
    let child = order_id.child(&step.name);
    if step.direction == Direction::Undo && step.output.is_some() && ports.store().task(child).await?.is_none() {
        // It was processed, and deleted since (rule 44).
        return Ok(Outcome::Failed(processed(child)));
    }
    let (parent, order) = match given(ports, instance, task, &workflow, index).await? {
        Ok(given) => given,
        Err(Refusal::Now(parent, _)) if step.direction == Direction::Undo => {
            let of = ports.store().order(order_id).await?.ok_or(AdvanceError::OrderMissing(order_id))?;
            (parent, never_made(task, &step.name, &of, task.pin(), ports.environment().now()))
        }
        Err(Refusal::Always(_)) if step.direction == Direction::Undo => {
            return Ok(Outcome::Done(domain::json::Json::empty()));
        }
        Err(Refusal::Always(failure) | Refusal::Now(_, failure)) => return Ok(Outcome::Failed(failure)),
    };
    match step.direction {
        Direction::Forward => {
            let wake = Event::Wake { hops: 0, redelivered: false };
            let begun = begin_with(ports, instance, order, Some(parent), wake).await?;
            Box::pin(follow_up(ports, instance, begun, redelivered)).await?;
        }
        Direction::Undo => {
            let command = cancel(&parent, child);
            if let Some(failure) = undo(ports, instance, order, parent, &command).await? {
                return Ok(Outcome::Failed(failure));
            }
        }
    }
    // Without its task, another delivery of the request is about to store it: this one comes again.
    let child = ports.store().task(child).await?.ok_or(AdvanceError::Contended(child))?;
    Ok(outcome(&child, step.direction))
}

/// Cancels the child once; one that was not made is stored as cancelled. Returns why it cannot be undone.
async fn undo(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    order: Order,
    parent: Parent,
    command: &Command,
) -> Result<Option<Failure>, AdvanceError> {
    let event = Event::Command { command, redelivered: false };
    let begun = begin_with(ports, instance, order, Some(parent), event).await?;
    if begun.inserted == Inserted::New {
        Box::pin(follow_up(ports, instance, begun, false)).await?;
        return Ok(None);
    }
    match Box::pin(advance(ports, instance, command.order_id, event)).await? {
        Some(Verdict::Refused(Refused::PastPivot { step })) => Ok(Some(past_pivot(&step))),
        Some(Verdict::Taken | Verdict::Nothing | Verdict::Dropped(_) | Verdict::Refused(_)) | None => Ok(None),
    }
}

/// Why a child cannot be made.
enum Refusal {
    /// No order was ever stored for it, and none will be.
    Always(Failure),
    /// A workflow refuses it now. It was perhaps taken before, and a request from then may come still.
    Now(Parent, Failure),
}

/// The child with its place: as it is stored, or as it is to be stored. An error: there is none.
async fn given(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    task: &Task,
    workflow: &Workflow,
    index: usize,
) -> Result<Result<(Parent, Order), Refusal>, AdvanceError> {
    let parent = match child::parent(task, &task.steps[index].name) {
        Ok(parent) => parent,
        Err(failure) => return Ok(Err(Refusal::Always(failure))),
    };
    let child: OrderId = task.order_id.child(&parent.step);
    // The version and the time of the first request count: on DynamoDB it may have died before the child had its task.
    if let Some(stored) = ports.store().order(child).await? {
        return Ok(Ok((parent, (*stored).clone())));
    }
    let of = ports.store().order(task.order_id).await?.ok_or(AdvanceError::OrderMissing(task.order_id))?;
    let mut order = match child::order(task, workflow, index, &of, ports.environment().now()) {
        Ok(order) => order,
        Err(failure) => return Ok(Err(Refusal::Always(failure))),
    };
    let name = workflow.steps[index].child.as_deref().unwrap_or_default();
    let chosen = match instance.catalogue.choose(ports, Some(name), child).await? {
        Ok(chosen) => chosen,
        Err(unknown) => return Ok(Err(Refusal::Now(parent, unknown_workflow(&unknown.name)))),
    };
    let accepted = chosen.accept(&mut order, ports.environment().wall(), instance.catalogue.redaction());
    Ok(match accepted {
        Ok(()) => Ok((parent, order)),
        Err(fault) => Err(Refusal::Now(parent, not_accepted(&chosen, &fault))),
    })
}
