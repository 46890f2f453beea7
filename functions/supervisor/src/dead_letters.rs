//! Settles dead letters with their orders.
//!
//! A dead letter that its order no longer needs is dropped. One that its order still needs puts the order in `Error`
//! and alerts an operator, whose resubmit makes a new attempt. A command or an unreadable body has no order that could
//! alert, so an alert is published for the dead letter itself. In each case a record is written before the dead letter
//! is acknowledged.

use std::sync::Arc;

use domain::advance::{AdvanceError, AdvancePorts, advance, first};
use domain::batch::{Failures, Handled, Record, each};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::machine::{DeadLetterSubject, Event, Verdict};
use domain::message::{
    ChildRequest, CloudEvent, Command, Deferral, Delivery, Outcome, Reply, Request, SchedulerMessage, Undecodable,
    decode,
};
use domain::observe;
use domain::order::Order;
use domain::ports::{
    DEAD_LETTER_BYTES_MAX, DeadLetter, DeadLetterOutcome, DeadLetterRecord, Environment, Events, Inserted, PortError,
    Records, Seen, SourceQueue, Store,
};
use domain::task::{ProcessState, Task, reason};

use crate::dead_letter_alerts::{lost_command, unreadable, words};

/// What is written down of a message that only said what was wrong with an attempt.
const TROUBLE: &str = "what was wrong with a call of an attempt; the attempt went on without it";

/// The same of a look.
const LOOK: &str = "a look at the state of a call; while its result is awaited, another one follows";

/// The ports that settle dead letters.
pub trait DeadLetterPorts: AdvancePorts {}

impl<P: AdvancePorts> DeadLetterPorts for P {}

/// Handles a batch of the dead-letter queues. A dead letter that could not be settled stays on its queue.
pub async fn dead_letters(
    ports: &impl DeadLetterPorts,
    instance: &Instance,
    batch: Vec<Delivery<DeadLetter>>,
) -> Failures {
    // An unreadable frame is settled as well: this queue has no dead-letter queue of its own.
    let batch = batch.into_iter().map(|Delivery { receipt, receive_count, parent, body }| Delivery {
        receipt,
        receive_count,
        parent,
        body: Ok(body),
    });
    // The order, and so the trace, is known only after decoding.
    let span = |_: &Record<_>| tracing::Span::none();
    each(batch.collect(), span, |record: Record<Result<DeadLetter, Undecodable>>| async move {
        let record = match record.message {
            Ok(dead_letter) => settle(ports, instance, dead_letter).await?,
            Err(undecodable) => {
                let message_id = record.receipt.message_id;
                tracing::error!(%message_id, "dead letter without a frame: {undecodable}");
                let now = ports.environment().now();
                alert(ports, unreadable(&message_id, None, &undecodable.problem, now)).await?;
                DeadLetterRecord {
                    message_id,
                    queue: None,
                    order_id: None,
                    receive_count: record.receive_count,
                    at: now,
                    settled_at: now,
                    outcome: DeadLetterOutcome::Unreadable,
                    message: undecodable.problem,
                    body: None,
                }
            }
        };
        let outcome = record.outcome;
        // A conflict: an earlier delivery wrote it, with what it found.
        ports.records().put(Seen::nothing(record.settled_at), &record).await?;
        tracing::debug!(monotonic_counter.dead_letters = 1, outcome = outcome.name(), "settled");
        Ok::<Handled, AdvanceError>(Handled::Done)
    })
    .await
}

/// The content of a dead letter.
enum Content {
    Order(Box<Order>),
    Attempt(OrderId, DeadLetterSubject),
    Wake(OrderId),
    /// A look at a call that was taken on (rule 36), as the reply that defers it.
    Look(Box<Reply>),
    /// What was wrong with a call (rule 32). Nothing rests on it.
    Trouble(OrderId),
    Command(Command),
}

/// Applies a dead letter to its order, and returns its outcome.
async fn settle(
    ports: &impl DeadLetterPorts,
    instance: &Instance,
    dead_letter: DeadLetter,
) -> Result<DeadLetterRecord, AdvanceError> {
    let (order_id, outcome, words) = match read(&dead_letter) {
        Ok(content) => settle_content(ports, instance, &dead_letter.message_id, content).await?,
        Err(undecodable) => {
            let problem = undecodable.to_string();
            alert(
                ports,
                unreadable(&dead_letter.message_id, Some(&dead_letter.queue), &problem, ports.environment().now()),
            )
            .await?;
            (None, DeadLetterOutcome::Unreadable, problem)
        }
    };
    let message_id = &*dead_letter.message_id;
    let shown = order_id.map(tracing::field::display);
    match outcome {
        DeadLetterOutcome::Stored | DeadLetterOutcome::Held => {
            tracing::warn!(message_id, order_id = shown, outcome = outcome.name(), "dead letter: {words}");
        }
        DeadLetterOutcome::LostCommand => {
            tracing::warn!(message_id, order_id = shown, "an operator's command was lost: {words}");
        }
        DeadLetterOutcome::Stale | DeadLetterOutcome::NoOrder => {
            tracing::info!(message_id, order_id = shown, outcome = outcome.name(), "dead letter: {words}");
        }
        // The scheduler writes `Refused`, and nothing here does.
        DeadLetterOutcome::Unreadable | DeadLetterOutcome::Refused => {
            tracing::error!(message_id, queue = %dead_letter.queue, "dead letter: {words}");
        }
    }
    let body = (outcome == DeadLetterOutcome::Unreadable).then(|| kept(&dead_letter.body));
    Ok(DeadLetterRecord {
        message_id: dead_letter.message_id,
        queue: Some(dead_letter.queue),
        order_id,
        receive_count: dead_letter.receive_count,
        at: dead_letter.at,
        settled_at: ports.environment().now(),
        outcome,
        message: words.into(),
        body,
    })
}

fn read(dead_letter: &DeadLetter) -> Result<Content, Undecodable> {
    let body = dead_letter.body.as_bytes();
    match &dead_letter.queue {
        SourceQueue::Submission => decode(body).map(|order| Content::Order(Box::new(order))),
        SourceQueue::Agent(_) => decode(body).map(|request: Request| match request {
            request @ Request { look: Some(_), .. } => {
                Content::Look(Box::new(request.reply(Outcome::Deferred(Deferral::after(0)))))
            }
            Request { order_id, step, direction, attempt, look: None, .. } => {
                Content::Attempt(order_id, DeadLetterSubject::Attempt { step, direction, attempt })
            }
        }),
        SourceQueue::Scheduler => decode(body).map(|message| match message {
            SchedulerMessage::Wake(wake) => Content::Wake(wake.order_id),
            SchedulerMessage::Reply(Reply {
                order_id, outcome: Outcome::Retrying(_) | Outcome::Accepted(_), ..
            }) => Content::Trouble(order_id),
            SchedulerMessage::Reply(Reply { order_id, step, direction, attempt, .. }) => {
                Content::Attempt(order_id, DeadLetterSubject::Attempt { step, direction, attempt })
            }
            SchedulerMessage::Command(command) => Content::Command(command),
            SchedulerMessage::Child(ChildRequest { order_id, step, direction, attempt, .. }) => {
                Content::Attempt(order_id, DeadLetterSubject::Attempt { step, direction, attempt })
            }
        }),
    }
}

/// The body, cut where its JSON text would be longer than that of any message.
fn kept(body: &Arc<str>) -> Arc<str> {
    let mut bytes = 0;
    let end = body.char_indices().find(|(_, next)| {
        bytes += json_bytes(*next);
        bytes > DEAD_LETTER_BYTES_MAX
    });
    end.map_or_else(|| body.clone(), |(end, _)| body[..end].into())
}

/// The length of a character in a JSON text, in bytes.
const fn json_bytes(character: char) -> usize {
    match character {
        '"' | '\\' | '\t' | '\n' | '\r' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => character.len_utf8(),
    }
}

async fn settle_content(
    ports: &impl DeadLetterPorts,
    instance: &Instance,
    message_id: &str,
    content: Content,
) -> Result<(Option<OrderId>, DeadLetterOutcome, String), AdvanceError> {
    let (order_id, (outcome, words)) = match content {
        Content::Order(order) => (order.order_id, settle_submission(ports, instance, *order).await?),
        Content::Attempt(order_id, dead_letter) => {
            (order_id, settle_dead_letter(ports, instance, order_id, &dead_letter).await?)
        }
        Content::Look(reply) => {
            advance(ports, instance, reply.order_id, Event::Reply { reply: &reply, redelivered: false }).await?;
            (reply.order_id, (DeadLetterOutcome::Stale, LOOK.to_owned()))
        }
        Content::Trouble(order_id) => (order_id, (DeadLetterOutcome::Stale, TROUBLE.to_owned())),
        Content::Wake(order_id) => {
            (order_id, settle_dead_letter(ports, instance, order_id, &DeadLetterSubject::Wake).await?)
        }
        Content::Command(command) => {
            alert(ports, lost_command(message_id, &command, ports.environment().now())).await?;
            (command.order_id, (DeadLetterOutcome::LostCommand, words(&command)))
        }
    };
    Ok((Some(order_id), outcome, words))
}

/// Puts an alert on the event bus that no task keeps.
async fn alert(ports: &impl DeadLetterPorts, event: CloudEvent) -> Result<(), PortError> {
    let kind = event.kind.clone();
    ports.events().publish(event).await?;
    tracing::debug!(monotonic_counter.alerts_sent = 1, kind = &*kind, "alert sent");
    Ok(())
}

/// A message about a stored order: its task decides whether the message still matters.
async fn settle_dead_letter(
    ports: &impl DeadLetterPorts,
    instance: &Instance,
    order_id: OrderId,
    dead_letter: &DeadLetterSubject,
) -> Result<(DeadLetterOutcome, String), AdvanceError> {
    let verdict = advance(ports, instance, order_id, Event::DeadLetter { dead_letter }).await?;
    match verdict {
        Some(Verdict::Taken) => Ok((DeadLetterOutcome::Held, "the order waits for an operator".into())),
        Some(Verdict::Nothing | Verdict::Dropped(_) | Verdict::Refused(_)) => {
            // An earlier delivery of this dead letter may have held the order and died before it wrote the record.
            match ports.store().task(order_id).await? {
                Some(task) if is_held_for(&task, dead_letter) => {
                    Ok((DeadLetterOutcome::Held, "the order waits for an operator".into()))
                }
                Some(_) | None => Ok((DeadLetterOutcome::Stale, "the order does not need it any more".into())),
            }
        }
        None => Ok((DeadLetterOutcome::NoOrder, "there is no such order".into())),
    }
}

/// Whether this dead letter put the task in `Error`.
fn is_held_for(task: &Task, dead_letter: &DeadLetterSubject) -> bool {
    let Some(reason) = task.reason.as_ref().filter(|reason| &*reason.code == reason::DEAD_LETTER) else {
        return false;
    };
    let is_about_it = match dead_letter {
        DeadLetterSubject::Wake => reason.step.is_none(),
        DeadLetterSubject::Attempt { step, direction, attempt } => task.step(step).is_some_and(|(_, stored)| {
            reason.step.as_ref() == Some(step) && (stored.direction, stored.attempt) == (*direction, *attempt)
        }),
    };
    task.process_state == ProcessState::Error && is_about_it
}

/// An accepted order that could not be stored. It is stored now, held in `Error`, in one write. So nothing is lost,
/// and no step starts before an operator has looked.
async fn settle_submission(
    ports: &impl DeadLetterPorts,
    instance: &Instance,
    order: Order,
) -> Result<(DeadLetterOutcome, String), AdvanceError> {
    let order_id = order.order_id;
    // Its task is stopped before its first step.
    let dead = Event::DeadLetter { dead_letter: &DeadLetterSubject::Wake };
    let (held, happened) = first(ports, instance, &order, None, dead).await?;
    match ports.store().insert(order.into(), held.task.clone()).await? {
        Inserted::New => {
            tracing::debug!(monotonic_counter.orders_submitted = 1, %order_id, "stored");
            observe::tell(&held.task, &happened);
        }
        Inserted::Same => {
            let was_this =
                ports.store().task(order_id).await?.is_some_and(|task| is_held_for(&task, &DeadLetterSubject::Wake));
            if !was_this {
                return Ok((DeadLetterOutcome::Stale, "the order is stored".into()));
            }
        }
        Inserted::Different => {
            return Ok((DeadLetterOutcome::Stale, "another order is stored under the same idempotency key".into()));
        }
    }
    // Notices of the stored task are sent as after any redelivery. If that fails, the supervisor sends them later.
    let repeat = Event::Wake { hops: 0, redelivered: true };
    if let Err(error) = advance(ports, instance, order_id, repeat).await {
        tracing::warn!(%order_id, "alert not sent, to be repeated: {error}");
    }
    Ok((DeadLetterOutcome::Stored, "the order is stored and waits for an operator".into()))
}
