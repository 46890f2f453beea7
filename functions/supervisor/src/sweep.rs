//! Sweeps the due orders, shard by shard.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::advance::{AdvancePorts, advance};
use domain::id::OrderId;
use domain::instance::Instance;
use domain::lease::{self, Held, hold};
use domain::limits::{CLOCKS_DIFFER_MS, UNWATCHED_MS_MAX, WAIT_WATCHED_MS_MAX};
use domain::machine::{Event, Verdict};
use domain::ports::{Due, Environment, PortError, Store};
use domain::task::Watch;
use domain::time::Timestamp;
use domain::trace;
use futures_util::{StreamExt, stream};
use tracing::Instrument;

use crate::{Budget, Settings};

/// The ports that sweep orders.
pub trait SupervisorPorts: AdvancePorts {}

impl<P: AdvancePorts> SupervisorPorts for P {}

/// Index entries read at once.
const PAGE: usize = 100;
/// A larger index is not read as a whole.
const ENTRIES_MAX: usize = 500;
/// The name under which each run is written down.
const RUN: &str = "supervisor/run";
/// Orders of a shard that are swept at the same time.
const ORDERS_AT_ONCE: usize = 8;
/// Expired orders that are deleted at once.
const FORGOTTEN_AT_ONCE: usize = 16;
/// Shards swept at the same time.
const SHARDS_AT_ONCE: usize = 4;

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Due orders whose sweep was begun.
    pub due: u64,
    /// Orders with a change: an attempt counted, a wake or a notice sent again, a watch moved.
    pub taken: u64,
    /// Orders whose sweep failed; the next run retries them.
    pub failed: u64,
    /// The longest delay of a due order, in milliseconds.
    pub lag_ms_max: u64,
    /// Shards that were swept to the end, or where nothing was due.
    pub shards_swept: u64,
    /// Shards that other supervisors sweep.
    pub shards_held_by_others: u64,
    /// Shards left before the start or in the middle, because the time was up or the lease was lost.
    pub shards_cut_short: u64,
}

/// Sweeps every order that is due now. It looks first, and acquires only the shards where an order is due. In each it
/// begins with the order that is due longest. At its end, the run is written down.
///
/// A killed run keeps its results; the next run finds the rest, once the leases of the killed one are over. Each run
/// begins with a random shard, so that no shard starves behind runs that are always cut short.
///
/// # Errors
/// The first [`PortError`] of a shard whose lease or index is unavailable, after all other shards were swept.
pub async fn handle(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    settings: &Settings,
) -> Result<Report, PortError> {
    let budget = Budget::new(ports.environment(), settings);
    let entries = entries(ports).await;
    let entries = entries.as_deref();
    let all = u64::from(instance.shards.max(1));
    let first = ports.environment().random() % all;
    let mut shards = stream::iter((0..all).filter_map(|place| u8::try_from((first + place) % all).ok()))
        .map(|shard| async move { (shard, take_shard(ports, instance, settings, budget, shard, entries).await) })
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
    let Report { due, taken, failed, lag_ms_max, .. } = report;
    if taken > 0 || failed > 0 {
        tracing::info!(instance = %instance.name, due, taken, failed, lag_ms_max, "supervisor");
    }
    let health = report.health(shards_unreached);
    if let Err(error) = lease::report(ports, RUN, &instance.name, &health).await {
        tracing::warn!("run not written down: {error}");
    }
    forget_expired(ports, budget).await?;
    unreached.map_or(Ok(report), Err)
}

/// Deletes the orders that expired (rule 44), a few with each transaction, so that new orders wait for none of them.
async fn forget_expired(ports: &impl SupervisorPorts, budget: Budget) -> Result<(), PortError> {
    let mut forgotten = 0_u64;
    while !budget.is_spent(ports.environment()) {
        let some = ports.store().forget_expired(ports.environment().now(), FORGOTTEN_AT_ONCE).await?;
        forgotten += some as u64;
        if some < FORGOTTEN_AT_ONCE {
            break;
        }
    }
    if forgotten > 0 {
        tracing::info!(forgotten, "expired orders deleted");
    }
    Ok(())
}

/// An entry of the index of watched orders.
type Entry = (Watch, Timestamp);

/// The whole index, if it is small. Otherwise each shard is asked for the orders that are due.
async fn entries(ports: &impl SupervisorPorts) -> Option<Vec<Entry>> {
    let read = ports.store().watches(ENTRIES_MAX).await;
    read.inspect_err(|error| tracing::warn!("index not read as a whole: {error}")).ok().flatten()
}

/// Sweeps one shard, unless nothing is due there or another supervisor sweeps it.
async fn take_shard(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    settings: &Settings,
    budget: Budget,
    shard: u8,
    entries: Option<&[Entry]>,
) -> Result<Report, PortError> {
    if budget.is_spent(ports.environment()) {
        return Ok(Report { shards_cut_short: 1, ..Report::default() });
    }
    let spans = spans(ports.environment().now(), instance, settings, shard);
    let has_due = match entries {
        Some(entries) => entries.iter().any(|entry| spans.iter().any(|span| span.has(entry))),
        None => has_due(ports, &spans).await?,
    };
    if !has_due {
        return Ok(Report { shards_swept: 1, ..Report::default() });
    }
    let counts = Counts::default();
    let name = format!("supervisor/{shard:02}");
    let sweeping = sweep_shard(ports, instance, budget, &spans, &counts);
    let held = hold(ports, &name, &instance.name, settings.term(), || counts.to_string(), sweeping).await?;
    let report = counts.report();
    match held {
        Held::NotAcquired => Ok(Report { shards_held_by_others: 1, ..report }),
        Held::Done(Ok(Through::ToTheEnd)) => Ok(Report { shards_swept: 1, ..report }),
        Held::Done(Ok(Through::CutShort)) | Held::Lost(_) => Ok(Report { shards_cut_short: 1, ..report }),
        Held::Done(Err(error)) => Err(error),
    }
}

/// Whether a shard was swept to the end.
enum Through {
    ToTheEnd,
    CutShort,
}

/// A part of the index: the entries of a key after an entry and up to a time.
#[derive(Debug, Clone, Copy)]
struct Span {
    watch: Watch,
    after: Option<Due>,
    until: Timestamp,
}

impl Span {
    fn has(&self, (watch, at): &Entry) -> bool {
        *watch == self.watch && *at <= self.until && self.after.is_none_or(|after| *at > after.at)
    }
}

/// The parts of the index with the due orders of a shard. In turn, one shard also has those whose time lies further ahead
/// than that of any order in flight: a wrong clock wrote it (rule 23).
fn spans(now: Timestamp, instance: &Instance, settings: &Settings, shard: u8) -> Vec<Span> {
    let turn = now.epoch_ms().unsigned_abs() / settings.tick_ms.max(1) % u64::from(instance.shards.max(1));
    let is_in_turn = turn == u64::from(shard);
    let mut spans = Vec::with_capacity(4);
    for (watch, ahead_ms) in [(Watch::Due(shard), UNWATCHED_MS_MAX), (Watch::Wait(shard), WAIT_WATCHED_MS_MAX)] {
        spans.push(Span { watch, after: None, until: now });
        if is_in_turn {
            let last = Due { at: now.plus_ms(ahead_ms + CLOCKS_DIFFER_MS), order_id: OrderId::generate(now, [0; 2]) };
            spans.push(Span { watch, after: Some(last), until: now.plus_ms(u64::MAX) });
        }
    }
    spans
}

/// Whether one of these parts has an entry.
async fn has_due(ports: &impl SupervisorPorts, spans: &[Span]) -> Result<bool, PortError> {
    for Span { watch, after, until } in spans {
        if !ports.store().due(*watch, *until, *after, 1).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sweeps the due orders of one shard until the time is up.
async fn sweep_shard(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    budget: Budget,
    spans: &[Span],
    counts: &Counts,
) -> Result<Through, PortError> {
    for span in spans {
        if let Through::CutShort = sweep_span(ports, instance, budget, counts, *span).await? {
            return Ok(Through::CutShort);
        }
    }
    Ok(Through::ToTheEnd)
}

/// Sweeps the orders of a part of the index, page by page.
async fn sweep_span(
    ports: &impl SupervisorPorts,
    instance: &Instance,
    budget: Budget,
    counts: &Counts,
    Span { watch, mut after, until }: Span,
) -> Result<Through, PortError> {
    let now = ports.environment().now();
    loop {
        let page = ports.store().due(watch, until, after, PAGE).await?;
        counts.lag_ms_max.fetch_max(page.first().map_or(0, |due| due.at.ms_until(now)), Ordering::Relaxed);
        after = page.last().copied();
        let is_last = page.len() < PAGE;
        // The time is checked when an order's turn comes, not when the page is read.
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

/// Sweeps one order. A failure does not hold up the other orders.
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
            tracing::warn!(%order_id, "order not swept: {error}");
        }
    }
}

/// The results in one shard so far; they survive a cancelled sweep. As text they are the health of the lease.
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
        f.write_str(&self.report().health(0))
    }
}

impl Report {
    /// What a lease, or the record of the run, says of it.
    fn health(&self, shards_unreached: u64) -> String {
        let Self { due, taken, failed, shards_cut_short, .. } = self;
        let mut health = format!("swept {due}, took {taken}");
        let faults =
            [("failed", *failed), ("shards cut short", *shards_cut_short), ("shards not reached", shards_unreached)];
        for (what, count) in faults {
            if count > 0 {
                health.push_str(&format!(", {what} {count}"));
            }
        }
        health
    }

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
