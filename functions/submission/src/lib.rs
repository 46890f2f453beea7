//! The submission function: takes accepted orders off the submission queue, writes each with its task, and wakes the
//! scheduler.
//!
//! What must never happen here: a message is acknowledged before its order is stored; a stored order is changed.

use domain::batch::{Failures, Handled, Record, each};
use domain::id::OrderId;
use domain::index::Term;
use domain::instance::Instance;
use domain::message::{Delivery, SchedulerMessage, Wake};
use domain::order::Order;
use domain::ports::{Environment, HasEnvironment, HasQueues, HasRecords, HasStore, Inserted, PortError, Queues, Store};
use domain::task::Task;
use domain::trace;

/// The ports of the submission.
pub trait SubmissionPorts: HasStore + HasQueues + HasRecords + HasEnvironment {}

impl<P: HasStore + HasQueues + HasRecords + HasEnvironment> SubmissionPorts for P {}

/// Handles a batch of the submission queue.
pub async fn handle(ports: &impl SubmissionPorts, instance: &Instance, batch: Vec<Delivery<Order>>) -> Failures {
    let span = |record: &Record<Order>| trace::handled("submission", record.message.order_id, record);
    each(batch, span, |record| async {
        submit(ports, instance, record.message).await?;
        Ok::<Handled, PortError>(Handled::Done)
    })
    .await
}

/// Stores one accepted order with its task, then wakes the scheduler. If another document is stored under the same
/// idempotency key, that order is untouched.
///
/// A redelivered message finds its order stored and wakes the scheduler again, which is harmless (rule 2).
///
/// # Errors
/// [`PortError`] if store or queue is unavailable, or the order's workflow is missing; the message then stays on its queue.
pub async fn submit(
    ports: &impl SubmissionPorts,
    instance: &Instance,
    mut order: Order,
) -> Result<Inserted, PortError> {
    let order_id = order.order_id;
    if order.terms.is_empty() {
        // An API of an earlier version gave it none.
        order.terms.extend(order.correlation_id.as_deref().map(Term::correlation));
    }
    let workflow = instance.catalogue.of_order(ports, &order).await?;
    let task = Task::new(&order, &workflow, instance.shards, ports.environment().random());
    let priority = task.priority;
    let inserted = ports.store().insert(order, task).await?;
    report(order_id, inserted);
    if inserted != Inserted::Different {
        ports.queues().to_scheduler(SchedulerMessage::Wake(Wake { order_id, hops: 0 }), priority, 0).await?;
    }
    Ok(inserted)
}

/// Counts and logs the outcome.
fn report(order_id: OrderId, inserted: Inserted) {
    trace::ended(match inserted {
        Inserted::New => "stored",
        Inserted::Same => "stored-before",
        Inserted::Different => "refused",
    });
    match inserted {
        Inserted::New => tracing::debug!(monotonic_counter.orders_submitted = 1, %order_id, "stored"),
        Inserted::Same => tracing::debug!(monotonic_counter.submissions_repeated = 1, %order_id, "stored before"),
        Inserted::Different => tracing::warn!(
            monotonic_counter.submissions_refused = 1,
            %order_id,
            "refused: the same idempotency key with another document"
        ),
    }
}
