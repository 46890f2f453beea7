//! Looking after what is due, shard by shard.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::advance::{AdvancePorts, advance};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::lease::{Held, hold};
use domain::machine::{Event, Verdict};
use domain::ports::{Due, Environment, HasLeases, PortError, Store};
use domain::trace;
use futures_util::{StreamExt, stream};
use tracing::Instrument;

use crate::{Budget, Settings};

/// What the supervisor needs to look after orders.
pub trait SupervisorPorts: AdvancePorts + HasLeases {}

impl<P: AdvancePorts + HasLeases> SupervisorPorts for P {}

/// Entries read of the index at once.
const PAGE: usize = 100;
/// Orders of a shard looked after at the same time.
const ORDERS_AT_ONCE: usize = 8;
/// Shards swept at the same time.
const SHARDS_AT_ONCE: usize = 4;

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
    /// Shards looked through to the end.
    pub shards_swept: u64,
    /// Shards that other supervisors look after.
    pub shards_held_by_others: u64,
    /// Shards left, in the middle or before the start, because the time was up or the lease was lost.
    pub shards_cut_short: u64,
}

/// Looks after every order that is due now: takes the shards that it can get, and in each those first that are due
/// longest.
///
/// A run that is killed has done what it has done; the next one finds the rest, once the killed one's leases are over. It
/// begins with another shard each time, so that none of them starves behind a run that is always cut short.
///
/// # Errors
/// The first [`PortError`] of a shard whose lease or index could not be reached, after all other shards were looked after.
pub async fn handle(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    settings: &Settings,
) -> Result<Report, PortError> {
    let budget = Budget::new(ports.environment(), settings);
    let all = u64::from(instance.shards.max(1));
    let first = ports.environment().random() % all;
    let mut shards = stream::iter((0..all).filter_map(|place| u8::try_from((first + place) % all).ok()))
        .map(|shard| async move { (shard, take_shard(ports, instance, settings, budget, shard).await) })
        .buffer_unordered(SHARDS_AT_ONCE);
    let mut report = Report::default();
    let (mut unreached, mut shards_unreached) = (None, 0_u64);
    while let Some((shard, swept)) = shards.next().await {
        match swept {
            Ok(of_shard) => report.add(of_shard),
            Err(error) => {
                tracing::warn!(shard, "shard not swept: {error}");
                shards_unreached += 1;
                unreached.get_or_insert(error);
            }
        }
    }
    report.tell(shards_unreached);
    unreached.map_or(Ok(report), Err)
}

/// Sweeps one shard, if nobody else does.
async fn take_shard(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    settings: &Settings,
    budget: Budget,
    shard: u8,
) -> Result<Report, PortError> {
    if budget.is_spent(ports.environment()) {
        return Ok(Report { shards_cut_short: 1, ..Report::default() });
    }
    let counts = Counts::default();
    let name = format!("supervisor/{shard:02}");
    let sweeping = sweep_shard(ports, instance, budget, shard, &counts);
    let held = hold(ports, &name, &instance.name, settings.term(), || counts.to_string(), sweeping).await?;
    let report = counts.report();
    match held {
        Held::NotAcquired => Ok(Report { shards_held_by_others: 1, ..report }),
        Held::Done(Ok(Through::ToTheEnd)) => Ok(Report { shards_swept: 1, ..report }),
        Held::Done(Ok(Through::CutShort)) | Held::Lost(_) => Ok(Report { shards_cut_short: 1, ..report }),
        Held::Done(Err(error)) => Err(error),
    }
}

/// Whether a shard was looked through.
enum Through {
    ToTheEnd,
    CutShort,
}

/// Looks after the due orders of one shard, page by page, until the time is up.
async fn sweep_shard(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    budget: Budget,
    shard: u8,
    counts: &Counts,
) -> Result<Through, PortError> {
    let now = ports.environment().now();
    let mut after: Option<Due> = None;
    loop {
        let page = ports.store().due(shard, now, after, PAGE).await?;
        counts.lag_ms_max.fetch_max(page.first().map_or(0, |due| due.at.ms_until(now)), Ordering::Relaxed);
        after = page.last().copied();
        let is_last = page.len() < PAGE;
        // The condition is asked when an order's turn comes, not when the page is read.
        let in_time = page.into_iter().take_while(|_| !budget.is_spent(ports.environment()));
        let mut looks = stream::iter(in_time)
            .map(|due| sweep_order(ports, instance, due.order_id, counts).instrument(trace::found(due.order_id)))
            .buffer_unordered(ORDERS_AT_ONCE);
        while looks.next().await.is_some() {}
        if budget.is_spent(ports.environment()) {
            return Ok(Through::CutShort);
        }
        if is_last {
            return Ok(Through::ToTheEnd);
        }
    }
}

/// Looks after one order. One that cannot be helped now does not keep the others from being helped.
async fn sweep_order(ports: &impl SupervisorPorts, instance: &Instance, order_id: OrderId, counts: &Counts) {
    counts.due.fetch_add(1, Ordering::Relaxed);
    match advance(ports, instance, order_id, Event::Sweep).await {
        Ok(Some(Verdict::Taken)) => {
            counts.taken.fetch_add(1, Ordering::Relaxed);
            trace::ended("taken");
        }
        Ok(Some(Verdict::Nothing | Verdict::Dropped(_) | Verdict::Refused(_)) | None) => {}
        Err(error) => {
            counts.failed.fetch_add(1, Ordering::Relaxed);
            trace::failed(&error);
            tracing::warn!(%order_id, "not looked after: {error}");
        }
    }
}

/// What was done in one shard so far, counted where a cancelled sweep leaves it. As text it is the health note.
#[derive(Default)]
struct Counts {
    due: AtomicU64,
    taken: AtomicU64,
    failed: AtomicU64,
    lag_ms_max: AtomicU64,
}

impl Counts {
    fn report(&self) -> Report {
        let [due, taken, failed, lag_ms_max] =
            [&self.due, &self.taken, &self.failed, &self.lag_ms_max].map(|count| count.load(Ordering::Relaxed));
        Report { due, taken, failed, lag_ms_max, ..Report::default() }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { due, taken, failed, .. } = self.report();
        write!(f, "swept {due}, took {taken}")?;
        if failed > 0 {
            write!(f, ", failed {failed}")?;
        }
        Ok(())
    }
}

impl Report {
    fn tell(&self, shards_unreached: u64) {
        tracing::debug!(
            monotonic_counter.supervisor_runs = 1,
            monotonic_counter.supervisor_due = self.due,
            monotonic_counter.supervisor_taken = self.taken,
            monotonic_counter.supervisor_failed = self.failed,
            monotonic_counter.supervisor_shards_cut_short = self.shards_cut_short,
            monotonic_counter.supervisor_shards_unreached = shards_unreached,
            gauge.supervisor_lag_ms = self.lag_ms_max,
            "swept"
        );
    }

    fn add(&mut self, other: Self) {
        self.due += other.due;
        self.taken += other.taken;
        self.failed += other.failed;
        self.lag_ms_max = self.lag_ms_max.max(other.lag_ms_max);
        self.shards_swept += other.shards_swept;
        self.shards_held_by_others += other.shards_held_by_others;
        self.shards_cut_short += other.shards_cut_short;
    }
}
