//! Child orders (rule 49): the order that a step makes, and what its end means for the step.
//!
//! To the state machine such a step is one whose service takes the call on and tells its result later (rule 36). The
//! service is the order itself: its id follows from the order and the step, so each step makes one at most.

use std::sync::Arc;

use serde::Serialize;

use crate::id::{CommandId, OrderId};
use crate::json::{Json, JsonError};
use crate::limits::CHILDREN_DEEP_MAX;
use crate::machine::request;
use crate::message::{Acceptance, Action, Command, Failure, Outcome, Reply};
use crate::order::{Given, Order, Parent};
use crate::pin::Pin;
use crate::state::{Direction, ProcessState};
use crate::task::{Step, StepError, StepState, Task, reason};
use crate::time::Timestamp;
use crate::workflow::{NotAccepted, ORDERS, Workflow};

/// The stable codes of the failure of such a step, beside those of a post that is refused.
pub mod code {
    /// The child was compensated.
    pub const COMPENSATED: &str = "child-compensated";
    /// An operator closed the child.
    pub const CLOSED: &str = "child-closed";
    /// The child cannot be undone: it is processed.
    pub const PROCESSED: &str = "child-processed";
    /// The child cannot be undone: it only goes forward.
    pub const PAST_PIVOT: &str = "child-past-pivot";
    /// Those of the end of a child that was made.
    pub const OF_CHILDREN: [&str; 4] = [COMPENSATED, CLOSED, PROCESSED, PAST_PIVOT];
    /// It would be one child too many below each other.
    pub const TOO_DEEP: &str = "orders-too-deep";
}

/// The output of a step whose child is processed.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Ended {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    process_state: ProcessState,
}

/// The place of the child of a step.
///
/// # Errors
/// If it is one too many below each other.
pub fn parent(task: &Task, step: &Arc<str>) -> Result<Parent, Failure> {
    let depth = task.parent.as_ref().map_or(0, |parent| parent.depth).saturating_add(1);
    if depth > CHILDREN_DEEP_MAX {
        let words = format!("the order would be the {depth}th below each other, and {CHILDREN_DEEP_MAX} are allowed");
        return Err(failure(code::TOO_DEEP, words));
    }
    Ok(Parent { order_id: task.order_id, step: step.clone(), depth })
}

/// The child that the step at `index` makes, not pinned to a workflow yet. It is the same in either direction, and at each
/// attempt, but for its time. It has the submitter of its parent and, unless its document names others, the correlation and
/// priority.
///
/// # Errors
/// If the document cannot be made, or is not that of an order.
pub fn order(task: &Task, workflow: &Workflow, index: usize, order: &Order, now: Timestamp) -> Result<Order, Failure> {
    let mut forward = task.clone();
    forward.steps[index].direction = Direction::Forward;
    forward.steps[index].complete_by.get_or_insert(now);
    let body = match request(&forward, workflow, index, order, now, 0) {
        Some(Ok((_, request))) => request.body.unwrap_or_else(Json::empty),
        Some(Err(Reply { outcome: Outcome::Failed(failure), .. })) => return Err(failure),
        Some(Err(_)) | None => return Err(failure("unsendable", "the step sends nothing")),
    };
    let document = Json::document(body.text().as_bytes()).map_err(|error| failure(name_of(&error), error))?;
    let order_id = task.order_id.child(&task.steps[index].name);
    let given = Given::read(document, order.submitter.clone(), now, || order_id);
    let child = given.map_err(|error| failure("invalid-field", error))?.order;
    // The caller's channels were checked at the post.
    if child.reply_channel.is_some() && child.reply_channel != order.reply_channel {
        return Err(failure("invalid-field", "ReplyChannel must be that of the order that makes it, or be left out"));
    }
    let (correlation_id, priority) = (order.correlation_id.clone(), child.priority.or(Some(task.priority)));
    Ok(Order { correlation_id: child.correlation_id.clone().or(correlation_id), priority, ..child })
}

/// Stands for a child that was not made, and never will be: an undo stores it, cancelled.
#[must_use]
pub fn never_made(task: &Task, step: &str, of: &Order, pin: Pin, now: Timestamp) -> Order {
    let document = Json::empty();
    Order {
        order_id: task.order_id.child(step),
        fingerprint: document.fingerprint().into(),
        document,
        submitted_at: now,
        submitter: of.submitter.clone(),
        reply_channel: None,
        correlation_id: of.correlation_id.clone(),
        priority: Some(task.priority),
        workflow: Some(pin),
        terms: Vec::new(),
        again_of: None,
    }
}

/// The failure of a step whose child's workflow takes no such document: with the code of a refused post.
#[must_use]
pub fn not_accepted(workflow: &Workflow, fault: &NotAccepted) -> Failure {
    let code = match fault {
        NotAccepted::Refused(_) => "member-refused",
        NotAccepted::Misfits(_) => "schema-mismatch",
        NotAccepted::Missing { .. } => "member-missing",
        NotAccepted::Lines(_) | NotAccepted::Time(_) => "invalid-field",
    };
    failure(code, format!("workflow {}: {fault}", workflow.name))
}

/// The failure of a step that names a workflow without new orders.
#[must_use]
pub fn unknown_workflow(name: &str) -> Failure {
    failure("unknown-workflow", format!("no new order can have the workflow {name}"))
}

/// The failure of an undo of a child that only goes forward.
#[must_use]
pub fn past_pivot(pivot: &str) -> Failure {
    failure(code::PAST_PIVOT, format!("the child is past {pivot}: it only goes forward"))
}

/// The failure of an undo of a child that has done its work, whether or not it is still stored.
#[must_use]
pub fn processed(child: OrderId) -> Failure {
    failure(code::PROCESSED, format!("the child {child} is processed, and stays so"))
}

fn failure(code: &str, message: impl std::fmt::Display) -> Failure {
    Failure { code: code.into(), message: format!("{message}").into() }
}

const fn name_of(error: &JsonError) -> &'static str {
    match error {
        JsonError::Malformed(_) | JsonError::Repeated(_) => "malformed-json",
        JsonError::TooLarge { .. } => "body-too-large",
        JsonError::TooDeep => "too-deep",
        JsonError::NotAnObject(_) => "not-an-object",
    }
}

/// The command that undoes the child of a step. It has one id, so it is carried out once.
#[must_use]
pub fn cancel(parent: &Parent, child: OrderId) -> Command {
    let Parent { order_id, step, depth: _ } = parent;
    Command {
        order_id: child,
        action: Action::Cancel,
        by: format!("order {order_id}").into(),
        reason: format!("its step {step} is undone").into(),
        command_id: CommandId::of_child(child),
        version: None,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    }
}

/// What the state of a child means for the step that made it. A child in `Error` goes on: an operator works on it.
#[must_use]
pub fn outcome(child: &Task, direction: Direction) -> Outcome {
    let (order_id, process_state) = (child.order_id, child.process_state);
    match (process_state, direction) {
        (
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating | ProcessState::Error,
            Direction::Forward | Direction::Undo,
        ) => Outcome::Accepted(Acceptance::default()),
        (ProcessState::Processed, Direction::Forward) => Outcome::Done(Json::of(&Ended { order_id, process_state })),
        (ProcessState::Compensated, Direction::Forward) => {
            let why = child.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", reason.message));
            Outcome::Failed(failure(code::COMPENSATED, format!("the child {order_id} was compensated{why}")))
        }
        (ProcessState::Closed, Direction::Forward) => {
            Outcome::Failed(failure(code::CLOSED, format!("an operator closed the child {order_id}")))
        }
        (ProcessState::Processed, Direction::Undo) => Outcome::Failed(processed(order_id)),
        // Closed says nothing of its effects (rule 31).
        (ProcessState::Closed, Direction::Undo) => Outcome::Failed(failure(
            code::CLOSED,
            format!("an operator closed the child {order_id}: see what it left, and settle this step"),
        )),
        (ProcessState::Compensated, Direction::Undo) => Outcome::Done(Json::of(&Ended { order_id, process_state })),
    }
}

/// The id of the child that a step of this order has made, as far as the step shows. A refusal makes none.
#[must_use]
pub fn made(step: &Step, order_id: OrderId) -> Option<OrderId> {
    // The first attempt is under way.
    let is_open = step.direction == Direction::Forward
        && matches!(step.process_state, StepState::Pending | StepState::Processing)
        && step.last_error.is_none();
    // An attempt without an answer may have made it.
    let is_of_none = |error: &StepError| {
        !code::OF_CHILDREN.contains(&&*error.code) && ![StepError::EXPIRED, reason::DEAD_LETTER].contains(&&*error.code)
    };
    let is_known = step.is_awaited() || step.output.is_some();
    let is_made = is_known || !(is_open || step.last_error.as_ref().is_some_and(is_of_none));
    (*step.agent == *ORDERS && step.was_claimed() && is_made).then(|| order_id.child(&step.name))
}

/// What a child that has ended tells its parent, as the parent is now. `None`: its step waits for nothing, or asks anew
/// before it goes on.
///
/// It counts no hop: no request asked for it, so it does not come again (rule 36).
#[must_use]
pub fn told(child: &Task, parent: &Task) -> Option<Reply> {
    let (_, step) = parent.step(&child.parent.as_ref()?.step)?;
    let is_open = matches!(step.process_state, StepState::Pending | StepState::Processing);
    let outcome = outcome(child, step.direction);
    if !is_open || step.started_at.is_none() || parent.process_state.is_final() || !child.process_state.is_final() {
        return None;
    }
    Some(Reply {
        order_id: parent.order_id,
        step: step.name.clone(),
        direction: step.direction,
        attempt: step.attempt,
        outcome,
        hops: 0,
        may_run_until: None,
        call_ms: None,
    })
}
