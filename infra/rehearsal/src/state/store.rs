//! The order database and the state store in memory, with an index that lags.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use domain::id::OrderId;
use domain::order::Order;
use domain::ports::{Commit, Due, Inserted, ListError, Page, PortError, Store};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;
use futures_util::FutureExt;
use memory::Memory;

use crate::faults::Fault;
use crate::observe;
use crate::seen::Seen;
use crate::state::State;
use crate::who::Who;

/// Changes of an order's place in the index that are remembered.
const WATCHES_KEPT: usize = 6;
/// The largest lag of the index, in milliseconds.
const LAG_MS_MAX: u64 = 60_000;

/// An order's place in the index, since a time.
type Watched = (i64, Option<(Watch, Timestamp)>);

/// The stored orders.
#[derive(Default)]
pub struct Tables {
    memory: Memory,
    /// The last places of each order in the index.
    watched: BTreeMap<OrderId, Vec<Watched>>,
    /// The watch of some order has changed.
    pub is_watch_changed: bool,
    /// The end of the store's outage, in milliseconds since the start of the world.
    pub away_until_ms: i64,
}

impl Tables {
    /// A stored order.
    #[must_use]
    pub fn order(&self, order_id: OrderId) -> Option<Arc<Order>> {
        now(self.memory.order(order_id))
    }

    /// Its task as last written.
    #[must_use]
    pub fn task(&self, order_id: OrderId) -> Option<Arc<Task>> {
        now(self.memory.task(order_id))
    }

    /// All tasks.
    #[must_use]
    pub fn tasks(&self) -> Vec<Arc<Task>> {
        self.memory.tasks()
    }

    /// The earliest watch that the index may show.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let watched = self.watched.values().filter_map(|watched| watched.last()?.1);
        watched.filter(|(watch, _)| watch.is_of_supervisor()).map(|(_, at)| at).min()
    }

    /// Tasks in a state, newest first.
    ///
    /// # Errors
    /// [`ListError::Cursor`] if `after` is not a cursor of this list.
    pub fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.memory.list(state, after, limit).now_or_never().expect("no wait")
    }

    /// Notes the place of a task in the index.
    fn watch(&mut self, now_ms: i64, task: &Task) {
        self.is_watch_changed = true;
        let places = self.watched.entry(task.order_id).or_default();
        let place = task.watch.zip(task.watch_at);
        if places.last().is_none_or(|(_, last)| *last != place) {
            if places.len() == WATCHES_KEPT {
                places.remove(0);
            }
            places.push((now_ms, place));
        }
    }

    /// The index as it was, with each order's place now.
    fn index_as_of(
        &self,
        at_ms: i64,
    ) -> impl Iterator<Item = (OrderId, (Watch, Timestamp), Option<(Watch, Timestamp)>)> {
        self.watched.iter().filter_map(move |(order_id, places)| {
            let (_, place) = places.iter().rev().find(|(since_ms, _)| *since_ms <= at_ms)?;
            Some((*order_id, (*place)?, places.last()?.1))
        })
    }
}

/// The answer of a port that never waits and has no faults of its own.
fn now<T>(answer: impl Future<Output = Result<T, PortError>>) -> T {
    answer.now_or_never().expect("no wait").expect("no fault")
}

impl State {
    /// Whether the store is unreachable.
    #[must_use]
    pub const fn is_store_away(&self) -> bool {
        !self.is_calm && self.now_ms < self.tables.away_until_ms
    }

    /// Starts an outage of the store.
    pub fn take_store_away(&mut self) {
        let ms = self.rng.between(3_000, 6 * 60_000);
        self.tables.away_until_ms = self.now_ms.saturating_add_unsigned(ms);
        self.trouble(ms);
        self.tell(&format!("the store is away for {ms} ms"));
    }

    /// Inserts order and task, once.
    pub fn insert(&mut self, who: &Who, order: &Arc<Order>, task: &Arc<Task>) -> Inserted {
        let inserted = now(self.tables.memory.insert(order.clone(), task.clone()));
        if inserted == Inserted::New && !self.tables.watched.contains_key(&order.order_id) {
            self.tables.watch(self.now_ms, task);
            let record = observe::record(task);
            let (fingerprint, by) = (order.fingerprint.clone(), who.invocation);
            let clock_ms = task.updated_at().unwrap_or_else(|| self.clock(who.skew_ms)).epoch_ms();
            self.see(&who.name, &Seen::Inserted { fingerprint, record, by, clock_ms });
        }
        inserted
    }

    /// A conditional write; a repeat that meets its own nonce has succeeded.
    pub fn commit(&mut self, who: &Who, before: &Task, after: &Arc<Task>) -> Commit {
        let Some(stored) = self.tables.task(before.order_id) else { return Commit::Conflict };
        let commit = now(self.tables.memory.commit(before, after.clone()));
        if (stored.version, stored.nonce) == (after.version, after.nonce) {
            self.see(&who.name, &Seen::TakenForOwn { order: before.order_id, is_same: stored == *after });
            return commit;
        }
        if commit == Commit::Conflict {
            return commit;
        }
        // The writer decided by the clock as it was then. It may have jumped since.
        let decided = after.updated_at().filter(|at| stored.updated_at() != Some(*at));
        self.tables.watch(self.now_ms, after);
        let record = observe::record(after);
        let by = who.invocation;
        let clock_ms = decided.unwrap_or_else(|| self.clock(who.skew_ms)).epoch_ms();
        self.see(&who.name, &Seen::Written { record, by, clock_ms });
        Commit::Committed
    }

    /// The index, current or stale.
    pub fn due(&mut self, watch: Watch, now: Timestamp, after: Option<Due>, limit: usize) -> Vec<Due> {
        let lag_ms = if self.strikes(Fault::IndexStale) { self.rng.between(100, LAG_MS_MAX) } else { 0 };
        let as_of_ms = self.now_ms.saturating_sub_unsigned(lag_ms);
        let place = |due: &Due| (due.at, due.order_id);
        let mut ghosts = 0;
        let mut found: Vec<Due> = Vec::new();
        for (order_id, (of, at), present) in self.tables.index_as_of(as_of_ms) {
            let due = Due { at, order_id };
            if of == watch && at <= now && after.is_none_or(|after| place(&due) > place(&after)) {
                ghosts += u64::from(present != Some((of, at)));
                found.push(due);
            }
        }
        (0..ghosts).for_each(|_| self.counts.add(Fault::IndexGhost));
        found.sort_by_key(place);
        found.truncate(limit);
        found
    }

    /// All entries of the index, current or stale, if there are fewer than `max`.
    pub fn watches(&mut self, max: usize) -> Option<Vec<(Watch, Timestamp)>> {
        let lag_ms = if self.strikes(Fault::IndexStale) { self.rng.between(100, LAG_MS_MAX) } else { 0 };
        let as_of_ms = self.now_ms.saturating_sub_unsigned(lag_ms);
        // In some looks there are too many.
        if self.rng.between(0, 3) == 0 {
            return None;
        }
        let all: Vec<_> = self.tables.index_as_of(as_of_ms).map(|(_, place, _)| place).collect();
        Some(all).filter(|all| all.len() < max)
    }
}
