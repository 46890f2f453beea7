//! Advances the jobs that handle many orders, one step at each run (see [`domain::bulk`]).

use std::future::ready;
use std::sync::Arc;

use domain::bulk::{
    BulkAction, Entry, EntryState, Errand, Job, Next, Outgoing, PAGES_AT_ONCE, again_state, carry_on, entry_state,
};
use domain::instance::Instance;
use domain::lease::{Held, hold};
use domain::limits::PAGE_MAX;
use domain::message::SchedulerMessage;
use domain::order::AgainOf;
use domain::ports::{
    Commit, Environment, HasEnvironment, HasQueues, HasRecords, HasStore, ListError, Page, PortError, Queues, Records,
    Seen, Store,
};
use domain::redaction::Redaction;
use domain::task::Task;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{Budget, Settings};

/// The ports that advance jobs. Nothing here changes a task: commands go to the scheduler, and new orders to the submission.
pub trait BulkPorts: HasRecords + HasStore + HasQueues + HasEnvironment {}

impl<P: HasRecords + HasStore + HasQueues + HasEnvironment> BulkPorts for P {}

/// Orders read, or sent for, at the same time.
const AT_ONCE: usize = 16;

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkReport {
    /// Jobs that are neither planned nor ended.
    pub active: u64,
    /// Jobs whose step ran without an error.
    pub carried_on: u64,
    /// Jobs that other supervisors advance.
    pub held_by_others: u64,
    /// Commands and new orders sent.
    pub sent: u64,
}

/// Advances the active jobs by a step each, under their leases, until the time is up. A new order is found by no member
/// that is redacted (rule 28).
///
/// # Errors
/// The first [`PortError`], after all other jobs had their turn. The next run continues from there.
pub async fn bulk(
    ports: &impl BulkPorts,
    instance: &Instance,
    settings: &Settings,
    redaction: &Redaction,
) -> Result<BulkReport, PortError> {
    let posting = Posting { instance, redaction };
    let budget = Budget::new(ports.environment(), settings);
    let mut report = BulkReport::default();
    let mut unreached = None;
    for job in ports.records().list(usize::MAX).await?.into_iter().filter(|job: &Job| job.state.is_active()) {
        report.active += 1;
        if budget.is_spent(ports.environment()) {
            continue;
        }
        let name = format!("bulk/{}", job.id);
        let note = || format!("{:?}, begun {}", job.state, job.tally.begun);
        let step = take_step(ports, posting, &job.id, settings.tick_ms);
        match hold(ports, &name, &instance.name, settings.term(), note, step).await {
            Ok(Held::Done(Ok(sent))) => {
                report.carried_on += 1;
                report.sent += sent;
            }
            Ok(Held::NotAcquired) => report.held_by_others += 1,
            Ok(Held::Lost(_)) => {}
            Ok(Held::Done(Err(error))) | Err(error) => {
                tracing::warn!(job_id = &*job.id, "job not advanced: {error}");
                unreached.get_or_insert(error);
            }
        }
    }
    unreached.map_or(Ok(report), Err)
}

/// What a new order is made with.
#[derive(Debug, Clone, Copy)]
struct Posting<'a> {
    instance: &'a Instance,
    redaction: &'a Redaction,
}

/// One step of a job: reads, decides, writes, and only then sends. Returns the number of messages sent.
async fn take_step(ports: &impl BulkPorts, posting: Posting<'_>, job_id: &str, tick_ms: u64) -> Result<u64, PortError> {
    let Some(job) = ports.records().get::<Job>(job_id).await? else {
        return Ok(0);
    };
    let entry_states = entry_states(ports, &job).await?;
    let pages = pages(ports, posting.instance, &job).await?;
    let Next { job: after, send } = carry_on(&job, &entry_states, &pages, ports.environment().now(), tick_ms);
    let Some(after) = after else {
        return Ok(0);
    };
    let state = after.state.clone();
    let seen = Seen::version(job.version, ports.environment().now());
    if ports.records().put(seen, &after).await? == Commit::Conflict {
        // An operator was first, or another supervisor in spite of the lease. The next step sees that write.
        return Ok(0);
    }
    if state != job.state {
        tracing::info!(job_id, ?state, "bulk job");
    }
    let sending = stream::iter(send).map(|outgoing| self::send(ports, posting, outgoing));
    // An error may be of one order. The others go on.
    let results: Vec<_> = sending.buffer_unordered(AT_ONCE).collect().await;
    let sent = results.iter().filter(|result| matches!(result, Ok(true))).count() as u64;
    if sent > 0 {
        tracing::debug!(monotonic_counter.bulk_commands_sent = sent, job_id, "commands sent");
    }
    results.into_iter().find_map(Result::err).map_or(Ok(sent), Err)
}

/// Sends a command, or posts an order again. Returns whether anything was sent.
async fn send(ports: &impl BulkPorts, posting: Posting<'_>, outgoing: Outgoing) -> Result<bool, PortError> {
    let Outgoing { entry, errand, delay_ms } = outgoing;
    match errand {
        Errand::Command(command) => {
            let message = SchedulerMessage::Command(command);
            ports.queues().to_scheduler(message, entry.priority, delay_ms).await.map(|()| true)
        }
        Errand::Again(origin) => post_again(ports, posting, entry, origin, delay_ms).await,
    }
}

/// Queues the new order, unless the order may no longer be posted again, or its new order is stored.
async fn post_again(
    ports: &impl BulkPorts,
    Posting { instance, redaction }: Posting<'_>,
    entry: Entry,
    origin: AgainOf,
    delay_ms: u64,
) -> Result<bool, PortError> {
    let (store, order_id) = (ports.store(), origin.order_id);
    let task = store.task(order_id).await?.filter(|task| task.may_be_posted_again());
    let Some(task) = task else { return Ok(false) };
    if store.task(order_id.again()).await?.is_some() {
        return Ok(false);
    }
    // It may have been erased since the task was read.
    let Some(order) = store.order(order_id).await?.filter(|order| !order.is_erased()) else { return Ok(false) };
    // The same time at each repeat, so that every repeat is the same order (rule 3).
    let mut again = order.again(origin, entry.at);
    let workflow = match instance.catalogue.choose(ports, Some(&task.workflow), again.order_id).await? {
        Ok(workflow) => workflow,
        Err(_) => {
            tracing::warn!(%order_id, "not posted again: its workflow {} takes no new orders", task.workflow);
            return Ok(false);
        }
    };
    if let Err(fault) = workflow.accept(&mut again, ports.environment().wall(), redaction) {
        tracing::warn!(%order_id, "not posted again: {fault}");
        return Ok(false);
    }
    ports.queues().submit(again, delay_ms).await?;
    Ok(true)
}

/// The progress of the orders in flight, in their order.
async fn entry_states(ports: &impl BulkPorts, job: &Job) -> Result<Vec<EntryState>, PortError> {
    let looks = job.under_way.iter().map(|entry| async move {
        let store = ports.store();
        if job.spec.action != BulkAction::Again {
            let task = store.task(entry.order_id).await?;
            return Ok(entry_state(job, entry, task.as_deref()));
        }
        let again = store.task(entry.order_id.again()).await?;
        let task = if again.is_none() { store.task(entry.order_id).await? } else { None };
        Ok(again_state(job, again.as_deref(), task.as_deref()))
    });
    stream::iter(looks.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await
}

/// The next pages of the scan, if the job needs more orders.
async fn pages(ports: &impl BulkPorts, instance: &Instance, job: &Job) -> Result<Vec<Page>, PortError> {
    let mut pages = Vec::new();
    if !job.wants_more() {
        return Ok(pages);
    }
    let mut cursor = job.cursor.clone();
    while pages.len() < PAGES_AT_ONCE {
        let mut page = match ports.store().list(Some(job.spec.action.state()), cursor.as_deref(), PAGE_MAX).await {
            Ok(page) => page,
            // The scan begins again: an order that it shows twice is recognised.
            Err(ListError::Cursor) if cursor.is_some() => {
                cursor = None;
                continue;
            }
            Err(ListError::Cursor) => return Err(PortError::refused("store.list", "a list without a cursor")),
            Err(ListError::Port(error)) => return Err(error),
        };
        cursor.clone_from(&page.next);
        if job.spec.action == BulkAction::Again {
            page.tasks = without_new_order(ports, instance, job, page.tasks).await?;
        }
        pages.push(page);
        if cursor.is_none() {
            break;
        }
    }
    Ok(pages)
}

/// The candidates without a new order. A candidate that has one would only be passed over. If this job has posted it, a
/// second look of the scan would count it twice. A new order may also have been deleted by its age. Then no record tells
/// whether there was one, and another one could have every effect again.
async fn without_new_order(
    ports: &impl BulkPorts,
    instance: &Instance,
    job: &Job,
    mut tasks: Vec<Arc<Task>>,
) -> Result<Vec<Arc<Task>>, PortError> {
    let now = ports.environment().now();
    tasks.retain(|task| job.is_candidate(task, now));
    let looks = tasks.into_iter().map(|task| async move {
        let again_id = task.order_id.again();
        if ports.store().task(again_id).await?.is_some() {
            return Ok(None);
        }
        let workflow = instance.catalogue.choose(ports, Some(&task.workflow), again_id).await?;
        let kept_ms = workflow.ok().and_then(|workflow| workflow.retain.shortest_ms());
        let ended_at = task.compensated_at().unwrap_or(now);
        Ok(kept_ms.is_none_or(|kept_ms| now < ended_at.plus_ms(kept_ms)).then_some(task))
    });
    let looks = stream::iter(looks.collect::<Vec<_>>()).buffered(AT_ONCE);
    looks.try_filter_map(|task| ready(Ok(task))).try_collect().await
}
