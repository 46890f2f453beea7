//! The scheduler function: the only one that advances a task. Takes wakes, replies and operators' commands off the
//! scheduler queue; claims what is ready and sends the requests to the agents.
//!
//! Many instances run at once. What must never happen here: a message is sent that does not follow from committed state;
//! a lost conditional write is an error.

use domain::advance::{AdvanceError, AdvancePorts, advance};
use domain::batch::{Failures, Handled, Record, each};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::machine::{Event, Verdict};
use domain::message::{Action, Delivery, SchedulerMessage};

/// What the scheduler needs.
pub trait SchedulerPorts: AdvancePorts {}

impl<P: AdvancePorts> SchedulerPorts for P {}

/// Handles a batch of the scheduler queue.
pub async fn handle(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    batch: Vec<Delivery<SchedulerMessage>>,
) -> Failures {
    each(batch, |record| async move {
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
    let redelivered = record.redelivered;
    let event = match &record.message {
        SchedulerMessage::Wake(wake) => Event::Wake { hops: wake.hops, redelivered },
        SchedulerMessage::Reply(reply) => Event::Reply { reply, redelivered },
        SchedulerMessage::Command(command) => match command.action {
            Action::Resubmit => Event::Resubmit { by: &command.by, why: &command.reason, seen: command.version },
            Action::Cancel => Event::Cancel { by: &command.by, why: &command.reason, seen: command.version },
            Action::Pause => Event::Pause { by: &command.by, why: &command.reason, seen: command.version },
            Action::Resume => Event::Resume { by: &command.by, why: &command.reason, seen: command.version },
        },
    };
    let order_id = record.message.order_id();
    let verdict = advance(ports, instance, order_id, event).await?;
    if redelivered && matches!(verdict, Some(Verdict::Refused(_))) {
        // The first delivery may have done what was wished and died before it could send what follows.
        advance(ports, instance, order_id, Event::Wake { hops: 0, redelivered }).await?;
    }
    Ok(verdict)
}

fn tell(order_id: OrderId, verdict: Option<Verdict>) {
    match verdict {
        Some(Verdict::Taken | Verdict::Nothing) => {}
        Some(Verdict::Dropped(why)) => tracing::info!(%order_id, "reply dropped: {why}"),
        Some(Verdict::Refused(why)) => tracing::warn!(%order_id, "command refused: {why}"),
        None => tracing::warn!(%order_id, "message dropped: there is no such order"),
    }
}
