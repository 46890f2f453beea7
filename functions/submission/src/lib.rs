//! The submission function: takes accepted orders off the submission queue, writes each with its task, in which the first
//! steps are claimed, and sends their requests to the agents.
//!
//! What must never happen here: a message is acknowledged before its order is stored; a stored order is changed; a
//! request is sent that does not follow from the stored task.

use domain::advance::{AdvanceError, AdvancePorts, Begun, begin, follow_up};
use domain::batch::{Failures, Handled, Record, each};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::message::Delivery;
use domain::order::Order;
use domain::ports::Inserted;
use domain::trace;

/// Handles a batch of the submission queue.
pub async fn handle(ports: &impl AdvancePorts, instance: &Instance, batch: Vec<Delivery<Order>>) -> Failures {
    let span = |record: &Record<Order>| trace::handled("submission", record.message.order_id, record);
    each(batch, span, |record| async move {
        let begun = store(ports, instance, record.message).await?;
        follow_up(ports, instance, begun, record.redelivered).await?;
        Ok::<Handled, AdvanceError>(Handled::Done)
    })
    .await
}

/// Stores one accepted order. If another document is stored under the same idempotency key, that order is untouched.
///
/// A redelivered message finds its order stored. [`follow_up`] then sends again what may not have been sent, which is
/// harmless (rule 2).
///
/// # Errors
/// [`AdvanceError`]; the message then stays on its queue.
pub async fn store(ports: &impl AdvancePorts, instance: &Instance, order: Order) -> Result<Begun, AdvanceError> {
    let order_id = order.order_id;
    let begun = begin(ports, instance, order).await?;
    report(order_id, begun.inserted);
    Ok(begun)
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
