//! Carries out the decisions of the state machine, in the one order that loses nothing (rule 2): commit, then send.
//! The caller then acknowledges the message that caused it.
//!
//! A crash before the commit leaves no trace, and the message comes again. After a crash between commit and send, the
//! message comes again as a redelivery. It finds the change made, and the messages that follow are sent again for the
//! same attempt.
//!
//! A new order begins in the same way: its insert is the commit, and its first steps are claimed in it.

use std::sync::Arc;

use futures_util::future::try_join_all;

use crate::batch::HasCause;
use crate::child;
use crate::id::OrderId;
use crate::instance::Instance;
use crate::limits::{CONFLICT_WAIT_MS_MAX, CONFLICTS_AT_ONCE_MAX, CONFLICTS_MAX};
use crate::machine::{
    Decision, Dropped, Effect, Event, Happened, Impossible, Moment, Verdict, decide, decide_together, look, request,
};
use crate::message::{ChildRequest, SchedulerMessage, Wake};
use crate::notice;
use crate::observe;
use crate::order::{Order, Parent};
use crate::pin::Pin;
use crate::ports::{
    Commit, Environment, Events, HasEnvironment, HasEvents, HasQueues, HasRecords, HasStore, Inserted, PortError,
    Queues, Store,
};
use crate::task::{Notice, NoticeKind, Task};
use crate::time::Timestamp;
use crate::trace;
use crate::workflow::Workflow;

/// The ports that advance a task.
pub trait AdvancePorts: HasStore + HasQueues + HasEvents + HasRecords + HasEnvironment {}

impl<P: HasStore + HasQueues + HasEvents + HasRecords + HasEnvironment> AdvancePorts for P {}

/// Why a task could not be advanced. The message that asked for it stays on its queue.
#[derive(Debug, thiserror::Error)]
pub enum AdvanceError {
    /// Store, queue or order is unavailable.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The task is pinned to a workflow that was never applied.
    #[error("order {order_id} needs workflow {pin}, which this deployment does not have")]
    UnknownWorkflow {
        /// The task's order.
        order_id: OrderId,
        /// The workflow.
        pin: Pin,
    },
    /// The stored record contradicts itself.
    #[error("order {order_id}: {source}")]
    Impossible {
        /// The task's order.
        order_id: OrderId,
        /// The contradiction.
        source: Impossible,
    },
    /// A task without its order: the store broke its promise.
    #[error("the order of task {0} is missing")]
    OrderMissing(OrderId),
    /// Too many instances change the same task.
    #[error("order {0}: lost {CONFLICTS_MAX} conditional writes in a row")]
    Contended(OrderId),
}

impl HasCause for AdvanceError {
    fn may_pass(&self) -> bool {
        match self {
            Self::Port(error) => error.may_pass(),
            Self::Contended(_) => true,
            Self::UnknownWorkflow { .. } | Self::Impossible { .. } | Self::OrderMissing(_) => false,
        }
    }
}

/// Applies an event to an order's task: reads, decides, commits, and sends the messages that follow. `None`: there is
/// no such task.
///
/// # Errors
/// [`AdvanceError`]. A repeat is always safe.
pub async fn advance(
    ports: &impl AdvancePorts,
    instance: &Instance,
    order_id: OrderId,
    event: Event<'_>,
) -> Result<Option<Verdict>, AdvanceError> {
    let verdicts = advance_together(ports, instance, order_id, vec![event], |_, _| Ok(())).await?;
    Ok(verdicts.and_then(|mut verdicts| verdicts.pop()))
}

/// Applies events that arrived together as [`advance`] does one, all in the same write, but for those that the stored task
/// forbids. The verdicts are in their order.
///
/// # Errors
/// [`AdvanceError`]. A repeat is always safe.
pub async fn advance_together(
    ports: &impl AdvancePorts,
    instance: &Instance,
    order_id: OrderId,
    mut events: Vec<Event<'_>>,
    allow: impl Fn(&Task, &Event<'_>) -> Result<(), Dropped> + Send + Sync,
) -> Result<Option<Vec<Verdict>>, AdvanceError> {
    let Some(settled) = settle(ports, instance, order_id, &mut events, allow).await? else {
        return Ok(None);
    };
    send_all(ports, instance, &settled, None).await?;
    Ok(Some(settled.verdicts))
}

/// What became of the insert of a new order, and what follows from it.
#[derive(Debug)]
pub struct Begun {
    /// Whether it was stored, or met a stored one.
    pub inserted: Inserted,
    order: Arc<Order>,
    settled: Settled,
}

/// Stores a new order with its task, in which the first steps are claimed. [`follow_up`] sends the messages that follow.
///
/// # Errors
/// [`AdvanceError`]. A repeat is always safe.
pub async fn begin(ports: &impl AdvancePorts, instance: &Instance, order: Order) -> Result<Begun, AdvanceError> {
    begin_with(ports, instance, order, None, Event::Wake { hops: 0, redelivered: false }).await
}

/// The same for the child of another order, or with another first event.
///
/// # Errors
/// [`AdvanceError`]. A repeat is always safe.
pub async fn begin_with(
    ports: &impl AdvancePorts,
    instance: &Instance,
    order: Order,
    parent: Option<Parent>,
    event: Event<'_>,
) -> Result<Begun, AdvanceError> {
    let order = Arc::new(order);
    let (settled, happened) = first(ports, instance, &order, parent, event).await?;
    let inserted = ports.store().insert(order.clone(), settled.task.clone()).await?;
    if inserted == Inserted::New {
        observe::tell(&settled.task, &happened);
        trace::committed(&settled.task);
    }
    Ok(Begun { inserted, order, settled })
}

/// Sends the messages that follow from a new order. An order that was stored before is woken instead. If its message is
/// `redelivered`, an earlier delivery may have died before it sent them: they are sent again.
///
/// # Errors
/// [`AdvanceError`]. A repeat is always safe.
pub async fn follow_up(
    ports: &impl AdvancePorts,
    instance: &Instance,
    begun: Begun,
    redelivered: bool,
) -> Result<(), AdvanceError> {
    let Begun { inserted, order, settled } = begun;
    match inserted {
        Inserted::New => send_all(ports, instance, &settled, Some(order)).await?,
        Inserted::Same => {
            let redelivered = redelivered || was_overtaken(ports, &settled.task).await?;
            // Boxed, so that the future of a new order stays small.
            Box::pin(advance(ports, instance, order.order_id, Event::Wake { hops: 0, redelivered })).await?;
        }
        Inserted::Different => {}
    }
    Ok(())
}

/// The task of a new order, which may have a parent, after its first event. This is version 2, and no earlier one is stored.
///
/// # Errors
/// [`AdvanceError`] if the order's workflow is missing, or the event does not fit it.
pub async fn first(
    ports: &impl AdvancePorts,
    instance: &Instance,
    order: &Order,
    parent: Option<Parent>,
    event: Event<'_>,
) -> Result<(Settled, Vec<Happened>), AdvanceError> {
    let workflow = instance.catalogue.of_order(ports, order).await?.of_accepted(&order.document);
    let task = Task::new(order, &workflow, instance.shards, ports.environment().random()).below(parent);
    let moment = moment(ports, instance);
    let (as_of, decision) = (moment.now, decide(&task, &workflow, event, moment));
    let Decision { change, effects, happened, verdicts } =
        decision.map_err(|source| AdvanceError::Impossible { order_id: order.order_id, source })?;
    Ok((Settled { task: Arc::new(change.unwrap_or(task)), as_of, workflow, effects, verdicts }, happened))
}

/// A task after an event, and what follows from it.
#[derive(Debug)]
pub struct Settled {
    /// The task.
    pub task: Arc<Task>,
    /// When the task was like this. This process may be stopped for a minute before it sends what follows.
    as_of: Timestamp,
    workflow: Arc<Workflow>,
    effects: Vec<Effect>,
    /// One for each event.
    verdicts: Vec<Verdict>,
}

/// Reads, decides and commits, until a write is won.
async fn settle(
    ports: &impl AdvancePorts,
    instance: &Instance,
    order_id: OrderId,
    events: &mut [Event<'_>],
    allow: impl Fn(&Task, &Event<'_>) -> Result<(), Dropped> + Send + Sync,
) -> Result<Option<Settled>, AdvanceError> {
    let mut lost_write: Option<Arc<Task>> = None;
    for lost in 0..CONFLICTS_MAX {
        if lost >= CONFLICTS_AT_ONCE_MAX {
            ports.environment().sleep(ports.environment().random() % CONFLICT_WAIT_MS_MAX).await;
        }
        let as_of = ports.environment().now();
        let Some(task) = ports.store().task(order_id).await? else {
            return Ok(None);
        };
        if lost_write.take().is_some_and(|after| has_happened(&after, &task)) {
            events.iter_mut().for_each(|event| *event = event.again());
        }
        let workflow = instance.catalogue.of_task(ports, &task).await?;
        let unknown = || AdvanceError::UnknownWorkflow { order_id, pin: task.pin() };
        let workflow = workflow.ok_or_else(unknown)?;
        let forbidden: Vec<Option<Dropped>> = events.iter().map(|event| allow(&task, event).err()).collect();
        let allowed: Vec<Event<'_>> =
            events.iter().zip(&forbidden).filter(|(_, why)| why.is_none()).map(|(event, _)| *event).collect();
        let decision = decide_together(&task, &workflow, &allowed, moment(ports, instance));
        let Decision { change, effects, happened, verdicts } =
            decision.map_err(|source| AdvanceError::Impossible { order_id, source })?;
        let mut verdicts = verdicts.into_iter();
        let verdicts = forbidden
            .into_iter()
            .filter_map(|why| why.map_or_else(|| verdicts.next(), |why| Some(Verdict::Dropped(why))));
        let verdicts = verdicts.collect();
        let Some(after) = change else {
            return Ok(Some(Settled { task, as_of, workflow, effects, verdicts }));
        };
        let after = Arc::new(after);
        match ports.store().commit(&task, after.clone()).await? {
            Commit::Committed => {
                observe::tell(&after, &happened);
                trace::committed(&after);
                return Ok(Some(Settled { task: after, as_of, workflow, effects, verdicts }));
            }
            Commit::Conflict => {
                tracing::debug!(
                    monotonic_counter.commit_conflicts = 1,
                    %order_id,
                    version = task.version,
                    "lost a conditional write"
                );
                trace::lost(lost + 1);
                lost_write = Some(after);
            }
        }
    }
    Err(AdvanceError::Contended(order_id))
}

fn moment<'a>(ports: &impl AdvancePorts, instance: &'a Instance) -> Moment<'a> {
    let environment = ports.environment();
    let (now, nonce, draw) = (environment.now(), environment.random(), environment.random());
    Moment { now, instance: &instance.name, nonce, draw }
}

/// Whether an insert that met a stored order was committed earlier. Its answer was lost, and another instance wrote the
/// next version.
async fn was_overtaken(ports: &impl AdvancePorts, inserted: &Task) -> Result<bool, PortError> {
    let stored = ports.store().task(inserted.order_id).await?;
    Ok(stored.is_some_and(|stored| stored.version > inserted.version && has_happened(inserted, &stored)))
}

/// Whether a write that ended in a conflict was committed all the same: its answer was lost, and another instance
/// wrote the next version. The store client's own retry then found neither the previous version nor its nonce. The
/// history then contains the line that this write added, and the messages that follow from it are still due.
fn has_happened(write: &Task, stored: &Task) -> bool {
    write.history.last().is_some_and(|line| stored.history.contains(line))
}

/// Sends the messages that follow from a committed state, and then removes the notices that were sent.
async fn send_all(
    ports: &impl AdvancePorts,
    instance: &Instance,
    settled: &Settled,
    order: Option<Arc<Order>>,
) -> Result<(), AdvanceError> {
    let order_id = settled.task.order_id;
    let sent = send(ports, settled, order).await?;
    if !sent.is_empty() {
        // If this write fails, the supervisor sends the notices again, which is a harmless repeat. Boxed, so that the
        // future of a message without notices stays small.
        let mut events = [Event::Sent { notices: &sent }];
        let strike = Box::pin(settle(ports, instance, order_id, &mut events, |_, _| Ok(())));
        if let Err(error) = strike.await {
            tracing::warn!(%order_id, "sent notices could not be removed: {error}");
        }
    }
    Ok(())
}

/// Sends the messages, and returns the notices that were sent. `order`: if it need not be read.
async fn send(
    ports: &impl AdvancePorts,
    settled: &Settled,
    order: Option<Arc<Order>>,
) -> Result<Vec<Notice>, AdvanceError> {
    let Settled { task, effects, .. } = settled;
    if effects.is_empty() {
        return Ok(Vec::new());
    }
    let order_id = task.order_id;
    let needs_order = effects.iter().any(|effect| match effect {
        Effect::Request { .. } | Effect::Notify(_) | Effect::Alert(_) => true,
        Effect::Wake { .. } | Effect::Look { .. } | Effect::TellParent(_) => false,
    });
    let order = match order {
        None if needs_order => Some(ports.store().order(order_id).await?.ok_or(AdvanceError::OrderMissing(order_id))?),
        known => known,
    };
    let outcomes = effects.iter().map(|&effect| send_one(ports, settled, order.as_deref(), effect));
    Ok(try_join_all(outcomes).await?.into_iter().flatten().collect())
}

/// Sends one message. A notice that cannot be sent does not hold up the order: the supervisor sends it until it is
/// confirmed.
async fn send_one(
    ports: &impl AdvancePorts,
    settled: &Settled,
    order: Option<&Order>,
    effect: Effect,
) -> Result<Option<Notice>, PortError> {
    let Settled { task, as_of, workflow, .. } = settled;
    let now = ports.environment().now();
    let (notice, sent) = match (effect, order) {
        (Effect::Wake { delay_ms, hops }, _) => {
            let wake = SchedulerMessage::Wake(Wake { order_id: task.order_id, hops });
            ports.queues().to_scheduler(wake, task.priority, delay_ms).await?;
            return Ok(None);
        }
        (Effect::Look { step, hops }, _) => {
            if let Some((agent, request)) = look(task, workflow, step, *as_of, hops) {
                ports.queues().to_agent(&agent, request).await?;
            }
            return Ok(None);
        }
        (Effect::Request { step, hops }, Some(_)) if workflow.steps[step].child.is_some() => {
            if let Some(request) = child_request(task, step, hops) {
                ports.queues().to_scheduler(SchedulerMessage::Child(request), task.priority, 0).await?;
            }
            return Ok(None);
        }
        (Effect::Request { step, hops }, Some(order)) => {
            match request(task, workflow, step, order, *as_of, hops) {
                Some(Ok((agent, request))) => ports.queues().to_agent(&agent, request).await?,
                Some(Err(failed)) => {
                    ports.queues().to_scheduler(SchedulerMessage::Reply(failed), task.priority, 0).await?;
                }
                None => {}
            }
            return Ok(None);
        }
        (Effect::TellParent(notice), _) => (notice, tell_parent(ports, task).await),
        (Effect::Alert(notice), Some(order)) => {
            (notice, ports.events().publish(notice::event(task, order, notice, now)).await)
        }
        (Effect::Notify(notice), Some(order)) => {
            let Some(channel) = &order.reply_channel else {
                return Ok(Some(notice));
            };
            (notice, ports.events().notify(channel, notice::event(task, order, notice, now)).await)
        }
        (Effect::Request { .. } | Effect::Notify(_) | Effect::Alert(_), None) => return Ok(None),
    };
    let (order_id, kind) = (task.order_id, notice.kind.name());
    match sent {
        Ok(()) if notice.kind == NoticeKind::ParentTold => Ok(Some(notice)),
        Ok(()) if notice.kind.is_status() => {
            tracing::debug!(monotonic_counter.notices_sent = 1, %order_id, kind, "notice sent");
            Ok(Some(notice))
        }
        Ok(()) => {
            tracing::debug!(monotonic_counter.alerts_sent = 1, %order_id, kind, "alert sent");
            Ok(Some(notice))
        }
        Err(error) => {
            tracing::warn!(
                monotonic_counter.notices_unsent = 1,
                %order_id,
                kind,
                "notice not sent, to be repeated: {error}"
            );
            Ok(None)
        }
    }
}

/// The message that has the current attempt of the step carried out by another order (rule 49).
fn child_request(task: &Task, index: usize, hops: u32) -> Option<ChildRequest> {
    let step = task.steps.get(index).filter(|step| step.complete_by.is_some())?;
    let (step, direction, attempt) = (step.name.clone(), step.direction, step.attempt);
    Some(ChildRequest { order_id: task.order_id, step, direction, attempt, hops })
}

/// Tells the step whose child this order is that the order has ended. If its parent is gone, or waits for nothing, there
/// is nothing to tell.
async fn tell_parent(ports: &impl AdvancePorts, task: &Task) -> Result<(), PortError> {
    let Some(parent) = &task.parent else { return Ok(()) };
    let Some(parent) = ports.store().task(parent.order_id).await? else { return Ok(()) };
    match child::told(task, &parent) {
        Some(reply) => ports.queues().to_scheduler(SchedulerMessage::Reply(reply), parent.priority, 0).await,
        None => Ok(()),
    }
}
