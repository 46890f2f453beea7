//! The supervisor function: finds what is overdue, counts the failure, and asks for a retry, an undo or an operator.
//!
//! It knows no business, calls no service and claims no step. Any number of supervisors may run at once: each finding is
//! one conditional write, so whoever loses it reads again and finds nothing to do.

use domain::advance::{AdvancePorts, advance};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::limits::SHARDS;
use domain::machine::{Event, Verdict};
use domain::ports::{Due, PortError};
use futures_util::StreamExt;
use futures_util::stream;

/// What the supervisor needs.
pub trait SupervisorPorts: AdvancePorts {}

impl<P: AdvancePorts> SupervisorPorts for P {}

/// Entries read of the index at once.
const PAGE: usize = 100;
/// Orders looked after at the same time.
const CONCURRENCY_MAX: usize = 16;

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Orders that the index showed as due.
    pub due: u64,
    /// Orders that something was done for: an attempt counted, a wake or a notice sent again, a watch moved.
    pub taken: u64,
    /// Orders that could not be looked after; the next run comes back to them.
    pub failed: u64,
    /// How long the one due longest had waited, in milliseconds.
    pub lag_ms_max: u64,
}

/// Looks after every order that is due now, shard by shard, in each those first that are due longest.
///
/// A run that is killed has done what it has done; the next one finds the rest. It begins with another shard each time,
/// so that none of them starves behind a run that is always cut short.
///
/// # Errors
/// The first [`PortError`] of a shard whose index could not be read, after all other shards were looked after.
pub async fn handle(ports: &impl SupervisorPorts, instance: &Instance) -> Result<Report, PortError> {
    let mut report = Report::default();
    let mut unread = None;
    let first = u8::try_from(ports.random() % u64::from(SHARDS)).unwrap_or(0);
    for shard in (0..SHARDS).map(|place| (first + place) % SHARDS) {
        if let Err(error) = sweep_shard(ports, instance, shard, &mut report).await {
            tracing::warn!(shard, "shard not swept: {error}");
            unread.get_or_insert(error);
        }
    }
    unread.map_or(Ok(report), Err)
}

/// Looks after the due orders of one shard, page by page.
async fn sweep_shard(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    shard: u8,
    report: &mut Report,
) -> Result<(), PortError> {
    let now = ports.now();
    let mut after: Option<Due> = None;
    loop {
        let page = ports.due(shard, now, after, PAGE).await?;
        let lag_ms = page.first().map_or(0, |due| due.at.ms_until(now));
        report.lag_ms_max = report.lag_ms_max.max(lag_ms);
        report.due += page.len() as u64;
        after = page.last().copied();
        let is_last = page.len() < PAGE;
        let mut looks =
            stream::iter(page).map(|due| sweep_order(ports, instance, due.order_id)).buffer_unordered(CONCURRENCY_MAX);
        while let Some(found) = looks.next().await {
            match found {
                Found::Something => report.taken += 1,
                Found::Nothing => {}
                Found::Unreachable => report.failed += 1,
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

enum Found {
    Something,
    Nothing,
    Unreachable,
}

/// Looks after one order. One that cannot be helped now does not keep the others from being helped.
async fn sweep_order(ports: &impl SupervisorPorts, instance: &Instance, order_id: OrderId) -> Found {
    match advance(ports, instance, order_id, Event::Sweep).await {
        Ok(Some(Verdict::Taken)) => Found::Something,
        Ok(Some(Verdict::Nothing | Verdict::Dropped(_) | Verdict::Refused(_)) | None) => Found::Nothing,
        Err(error) => {
            tracing::warn!(%order_id, "not looked after: {error}");
            Found::Unreachable
        }
    }
}
