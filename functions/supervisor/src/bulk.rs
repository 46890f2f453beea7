//! Advances the jobs that resubmit many orders, one step at each run (see [`domain::bulk`]).

use std::future::ready;

use domain::bulk::{EntryState, Job, Next, Outgoing, PAGES_AT_ONCE, carry_on, entry_state};
use domain::instance::Instance;
use domain::lease::{Held, hold};
use domain::limits::PAGE_MAX;
use domain::ports::{
    Commit, Environment, HasEnvironment, HasLeases, HasQueues, HasRecords, HasStore, ListError, Page, PortError,
    Queues, Records, Seen, Store,
};
use domain::task::ProcessState;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{Budget, Settings};

/// The ports that advance jobs. Nothing here changes a task: commands go to the scheduler.
pub trait BulkPorts: HasRecords + HasStore + HasQueues + HasLeases + HasEnvironment {}

impl<P: HasRecords + HasStore + HasQueues + HasLeases + HasEnvironment> BulkPorts for P {}

/// Tasks read, or commands sent, at the same time.
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
    /// Commands sent.
    pub sent: u64,
}

/// Advances the active jobs by a step each, under their leases, until the time is up.
///
/// # Errors
/// The first [`PortError`], after all other jobs had their turn. The next run continues from there.
pub async fn bulk(ports: &impl BulkPorts, instance: &Instance, settings: &Settings) -> Result<BulkReport, PortError> {
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
        let step = take_step(ports, &job.id, settings.tick_ms);
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

/// One step of a job: reads, decides, writes, and only then sends. Returns the number of commands sent.
async fn take_step(ports: &impl BulkPorts, job_id: &str, tick_ms: u64) -> Result<u64, PortError> {
    let Some(job) = ports.records().get::<Job>(job_id).await? else {
        return Ok(0);
    };
    let entry_states = entry_states(ports, &job).await?;
    let pages = pages(ports, &job).await?;
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
    let sent = send.len() as u64;
    let sending = stream::iter(send).map(|Outgoing { message, priority, delay_ms }| async move {
        ports.queues().to_scheduler(message, priority, delay_ms).await
    });
    sending.buffer_unordered(AT_ONCE).try_for_each(|()| ready(Ok(()))).await?;
    if sent > 0 {
        tracing::debug!(monotonic_counter.bulk_commands_sent = sent, job_id, "commands sent");
    }
    Ok(sent)
}

/// The progress of the orders in flight, in their order.
async fn entry_states(ports: &impl BulkPorts, job: &Job) -> Result<Vec<EntryState>, PortError> {
    let looks = job.under_way.iter().map(|entry| async move {
        let task = ports.store().task(entry.order_id).await?;
        Ok(entry_state(job, entry, task.as_deref()))
    });
    stream::iter(looks.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await
}

/// The next pages of the scan, if the job needs more orders.
async fn pages(ports: &impl BulkPorts, job: &Job) -> Result<Vec<Page>, PortError> {
    let mut pages = Vec::new();
    if !job.wants_more() {
        return Ok(pages);
    }
    let mut cursor = job.cursor.clone();
    while pages.len() < PAGES_AT_ONCE {
        let page = match ports.store().list(Some(ProcessState::Error), cursor.as_deref(), PAGE_MAX).await {
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
        pages.push(page);
        if cursor.is_none() {
            break;
        }
    }
    Ok(pages)
}
