//! The scheduler function: the only one that advances a task. It takes wakes, replies and operators' commands off the
//! scheduler queue, claims the steps that are ready, and sends the requests to the agents.
//!
//! Many instances run at once. What must never happen here: a message is sent that does not follow from committed
//! state; a lost conditional write is an error.

use domain::advance::{AdvanceError, AdvancePorts, advance};
use domain::batch::{Failures, Handled, Record, each};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::machine::{Event, Verdict};
use domain::message::{Delivery, SchedulerMessage};
use domain::trace;

/// The ports of the scheduler.
pub trait SchedulerPorts: AdvancePorts {}

impl<P: AdvancePorts> SchedulerPorts for P {}

/// Handles a batch of the scheduler queue.
pub async fn handle(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    batch: Vec<Delivery<SchedulerMessage>>,
) -> Failures {
    let span = |record: &Record<SchedulerMessage>| trace::handled("scheduler", record.message.order_id(), record);
    each(batch, span, |record| async move {
        let order_id = record.message.order_id();
        tell(order_id, schedule(ports, instance, &record).await?);
        Ok::<Handled, AdvanceError>(Handled::Done)
    })
    .await
}

/// Applies one message to its order's task. `None`: there is no such order.
///
/// # Errors
/// [`AdvanceError`]; the message then stays on its queue.
pub async fn schedule(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    record: &Record<SchedulerMessage>,
) -> Result<Option<Verdict>, AdvanceError> {
    trace::is_event(&record.message);
    let redelivered = record.redelivered;
    let event = match &record.message {
        SchedulerMessage::Wake(wake) => Event::Wake { hops: wake.hops, redelivered },
        SchedulerMessage::Reply(reply) => Event::Reply { reply, redelivered },
        SchedulerMessage::Command(command) => Event::Command { command, redelivered },
    };
    advance(ports, instance, record.message.order_id(), event).await
}

fn tell(order_id: OrderId, verdict: Option<Verdict>) {
    trace::ended(match verdict {
        Some(Verdict::Taken) => "taken",
        Some(Verdict::Nothing) => "nothing-to-do",
        Some(Verdict::Dropped(_)) => "dropped",
        Some(Verdict::Refused(_)) => "refused",
        None => "no-order",
    });
    match verdict {
        Some(Verdict::Taken | Verdict::Nothing) => {}
        Some(Verdict::Dropped(why)) => {
            tracing::info!(monotonic_counter.replies_dropped = 1, reason = ?why, %order_id, "reply dropped: {why}");
        }
        Some(Verdict::Refused(why)) => {
            let reason = why.name();
            tracing::warn!(monotonic_counter.commands_refused = 1, reason, %order_id, "command refused: {why}");
        }
        None => {
            tracing::warn!(
                monotonic_counter.messages_without_order = 1,
                %order_id,
                "message dropped: there is no such order"
            );
        }
    }
}
