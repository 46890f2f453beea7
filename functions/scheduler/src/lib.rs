//! The scheduler function: all claims but the first are made here. It takes wakes, replies and operators' commands off the
//! scheduler queue, claims the steps that are ready, and sends the requests to the agents.
//!
//! Many instances run at once. What must never happen here: a message is sent that does not follow from committed
//! state; a lost conditional write is an error; a message counts that its sender may not send.

mod child;
mod erase;

use domain::advance::{AdvanceError, AdvancePorts, advance, advance_together};
use domain::batch::{Failures, Handled, Record, each_group};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::machine::{Dropped, Event, Verdict};
use domain::message::{Action, Delivery, SchedulerMessage};
use domain::ports::{DeadLetterOutcome, DeadLetterRecord, Environment, Records, Seen, SourceQueue};
use domain::task::Task;
use domain::trace;
use domain::trust::{Senders, Untrusted};
use tracing::{Instrument, Span};

/// The ports of the scheduler.
pub trait SchedulerPorts: AdvancePorts {}

impl<P: AdvancePorts> SchedulerPorts for P {}

/// Handles messages of one sender. A message that this sender may not send is refused (rule 45): it is written down for
/// the operators, and nothing else changes. It is not delivered again.
pub async fn handle_from(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    senders: &Senders,
    sender: &str,
    batch: Vec<Delivery<SchedulerMessage>>,
) -> Failures {
    if senders.is_of_system(sender) {
        return handle(ports, instance, batch).await;
    }
    each_group(batch, group, span, |records| async move {
        if let [record] = records.as_slice()
            && let Err(why) = Senders::reply(&record.message)
        {
            return refuse(ports, sender, record, why).await;
        }
        let allow = |task: &Task, event: &Event<'_>| match event {
            Event::Reply { reply, .. } => senders.allow(sender, reply, task),
            Event::Wake { .. }
            | Event::Sweep
            | Event::Command { .. }
            | Event::DeadLetter { .. }
            | Event::Sent { .. } => Ok(()),
        };
        for (record, verdict) in records.iter().zip(take_together(ports, instance, &records, allow).await?) {
            let work = async {
                match verdict {
                    Some(Verdict::Dropped(Dropped::Untrusted)) => {
                        refuse(ports, sender, record, Untrusted::OtherAgent).await.map(drop)
                    }
                    verdict => {
                        tell(record.message.order_id(), verdict);
                        Ok(())
                    }
                }
            };
            work.instrument(own_span(&records, record)).await?;
        }
        Ok(Handled::Done)
    })
    .await
}

/// Writes a refused message down, of which the supervisor makes an alert (rule 29).
async fn refuse(
    ports: &impl SchedulerPorts,
    sender: &str,
    record: &Record<SchedulerMessage>,
    why: Untrusted,
) -> Result<Handled, AdvanceError> {
    let (order_id, message_id) = (record.message.order_id(), &record.receipt.message_id);
    let kind = record.message.name();
    trace::ended("refused");
    tracing::error!(
        monotonic_counter.messages_refused = 1,
        sender,
        %order_id,
        message_id = &**message_id,
        "{kind} refused: {why}"
    );
    let now = ports.environment().now();
    let refused = DeadLetterRecord {
        message_id: message_id.clone(),
        queue: Some(SourceQueue::Scheduler),
        order_id: Some(order_id),
        receive_count: record.receive_count,
        at: now,
        settled_at: now,
        outcome: DeadLetterOutcome::Refused,
        message: format!("{kind} of {sender}: {why}").into(),
        body: None,
    };
    // An earlier delivery may have written it.
    ports.records().put(Seen::nothing(now), &refused).await?;
    Ok(Handled::Done)
}

fn span(record: &Record<SchedulerMessage>) -> Span {
    trace::handled("scheduler", record.message.order_id(), record)
}

/// Handles a batch of the scheduler queue. Replies about one order make one write: an order of many lines has many at once.
pub async fn handle(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    batch: Vec<Delivery<SchedulerMessage>>,
) -> Failures {
    each_group(batch, group, span, |records| async move {
        match records.as_slice() {
            [record] => tell(record.message.order_id(), schedule(ports, instance, record).await?),
            _ => {
                for (record, verdict) in
                    records.iter().zip(take_together(ports, instance, &records, |_, _| Ok(())).await?)
                {
                    own_span(&records, record).in_scope(|| tell(record.message.order_id(), verdict));
                }
            }
        }
        Ok::<Handled, AdvanceError>(Handled::Done)
    })
    .await
}

/// How often a reply may be delivered together with others. A kill costs all of them one delivery, and what failed twice
/// may be wrong by itself: then it harms no other.
const TOGETHER_MAX: u32 = 2;

fn group(record: &Record<SchedulerMessage>) -> Option<OrderId> {
    order_of_reply(&record.message).filter(|_| record.receive_count <= TOGETHER_MAX)
}

/// The span of a record that is handled together with others: the work runs in that of the first.
fn own_span(records: &[Record<SchedulerMessage>], record: &Record<SchedulerMessage>) -> Span {
    if records.first().is_some_and(|first| first.receipt == record.receipt) { Span::current() } else { span(record) }
}

/// The order of a reply, if it is handled together with others about it.
#[must_use]
pub fn together(delivery: &Delivery<SchedulerMessage>) -> Option<OrderId> {
    delivery.body.as_ref().ok().filter(|_| delivery.receive_count <= TOGETHER_MAX).and_then(order_of_reply)
}

fn order_of_reply(message: &SchedulerMessage) -> Option<OrderId> {
    match message {
        SchedulerMessage::Reply(reply) => Some(reply.order_id),
        SchedulerMessage::Wake(_) | SchedulerMessage::Command(_) | SchedulerMessage::Child(_) => None,
    }
}

/// Applies replies about one order to its task. `None`: there is no such order.
async fn take_together<'r>(
    ports: &impl SchedulerPorts,
    instance: &Instance,
    records: &'r [Record<SchedulerMessage>],
    allow: impl Fn(&Task, &Event<'_>) -> Result<(), Dropped> + Send + Sync,
) -> Result<Vec<Option<Verdict>>, AdvanceError> {
    let Some(order_id) = records.first().map(|record| record.message.order_id()) else { return Ok(Vec::new()) };
    let reply = |record: &'r Record<SchedulerMessage>| {
        own_span(records, record).in_scope(|| trace::is_event(&record.message));
        let reply = Senders::reply(&record.message).ok()?;
        Some(Event::Reply { reply, redelivered: record.redelivered })
    };
    let replies = records.iter().filter_map(reply).collect();
    let verdicts = advance_together(ports, instance, order_id, replies, allow).await?;
    Ok(verdicts.map_or_else(|| vec![None; records.len()], |verdicts| verdicts.into_iter().map(Some).collect()))
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
        SchedulerMessage::Command(command) => {
            if command.action == Action::Erase {
                // Boxed, so that the future of another message stays small.
                Box::pin(erase::others(ports, command)).await?;
            }
            Event::Command { command, redelivered }
        }
        SchedulerMessage::Child(request) => {
            return Box::pin(child::carry_out(ports, instance, request, redelivered)).await;
        }
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
