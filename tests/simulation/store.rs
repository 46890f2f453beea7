//! The order database and the state store, with an index that lags.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::id::OrderId;
use domain::order::Order;
use domain::ports::{Commit, Due, Inserted, ListError, Page};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;

use super::auditor::seen::Seen;
use super::faults::Fault;
use super::observe;
use super::ports::Who;
use super::state::State;

/// Changes of an order's place in the index that are remembered.
const WATCHES_KEPT: usize = 6;
/// The largest lag of the index, in milliseconds.
const LAG_MS_MAX: u64 = 60_000;

/// An order's place in the index, since a time.
type Watched = (i64, Option<(Watch, Timestamp)>);

/// An order and its task.
#[derive(Debug)]
pub struct Row {
    /// The order.
    pub order: Arc<Order>,
    /// The task as last written.
    pub task: Arc<Task>,
    watched: Vec<Watched>,
}

/// The stored orders.
#[derive(Debug, Default)]
pub struct Tables {
    rows: BTreeMap<OrderId, Row>,
    arrivals: Vec<OrderId>,
    /// The watch of some order has changed.
    pub is_watch_changed: bool,
    /// The end of the store's outage, in milliseconds since the start of the world.
    pub away_until_ms: i64,
}

impl Tables {
    /// A stored order.
    #[must_use]
    pub fn row(&self, order_id: OrderId) -> Option<&Row> {
        self.rows.get(&order_id)
    }

    /// All tasks, in the order of insertion.
    pub fn tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.arrivals.iter().filter_map(|order_id| self.rows.get(order_id).map(|row| &row.task))
    }

    /// The earliest watch that the index may show.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let watched = self.rows.values().filter(|row| row.task.watch.is_some_and(Watch::is_of_supervisor));
        watched.filter_map(|row| row.task.watch_at).min()
    }
}

impl Row {
    fn as_of(&self, at_ms: i64) -> Option<(Watch, Timestamp)> {
        let known = self.watched.iter().rev().find(|(since_ms, _)| *since_ms <= at_ms);
        known.and_then(|(_, watched)| *watched)
    }

    fn write(&mut self, now_ms: i64, task: Arc<Task>) {
        let watched = task.watch.zip(task.watch_at);
        if self.watched.last().is_none_or(|(_, last)| *last != watched) {
            if self.watched.len() == WATCHES_KEPT {
                self.watched.remove(0);
            }
            self.watched.push((now_ms, watched));
        }
        self.task = task;
    }
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
        match self.tables.rows.get(&order.order_id) {
            Some(row) => Inserted::on_conflict((&row.order, &row.task), (order, task)),
            None => {
                let row = Row {
                    order: order.clone(),
                    task: task.clone(),
                    watched: vec![(self.now_ms, task.watch.zip(task.watch_at))],
                };
                self.tables.is_watch_changed = true;
                self.tables.arrivals.push(order.order_id);
                self.tables.rows.insert(order.order_id, row);
                let record = observe::record(task);
                let (fingerprint, by) = (order.fingerprint.clone(), who.invocation);
                let clock_ms = task.updated_at().unwrap_or_else(|| self.clock(who.skew_ms)).epoch_ms();
                self.see(&who.name, &Seen::Inserted { fingerprint, record, by, clock_ms });
                Inserted::New
            }
        }
    }

    /// A conditional write; a repeat that meets its own nonce has succeeded.
    pub fn commit(&mut self, who: &Who, before: (OrderId, u64), after: &Arc<Task>) -> Commit {
        let now_ms = self.now_ms;
        let (order_id, version) = before;
        let Some(row) = self.tables.rows.get_mut(&order_id) else { return Commit::Conflict };
        if (row.task.version, row.task.nonce) == (after.version, after.nonce) {
            let is_same = row.task == *after;
            self.see(&who.name, &Seen::TakenForOwn { order: order_id, is_same });
            return Commit::Committed;
        }
        if row.task.version != version {
            return Commit::Conflict;
        }
        // The writer decided by the clock as it was then. It may have jumped since.
        let decided = after.updated_at().filter(|at| row.task.updated_at() != Some(*at));
        row.write(now_ms, after.clone());
        self.tables.is_watch_changed = true;
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
        for (order_id, row) in &self.tables.rows {
            let Some((of, at)) = row.as_of(as_of_ms) else { continue };
            let due = Due { at, order_id: *order_id };
            if of == watch && at <= now && after.is_none_or(|after| place(&due) > place(&after)) {
                ghosts += u64::from(row.task.watch.zip(row.task.watch_at) != Some((of, at)));
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
        let all: Vec<_> = self.tables.rows.values().filter_map(|row| row.as_of(as_of_ms)).collect();
        Some(all).filter(|all| all.len() < max)
    }

    /// Tasks in a state, newest first.
    ///
    /// # Errors
    /// [`ListError::Cursor`] if `after` is not a cursor of this list.
    pub fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        let arrivals = &self.tables.arrivals;
        let end = match after {
            Some(cursor) => cursor.parse().map_err(|_| ListError::Cursor)?,
            None => arrivals.len(),
        };
        let newest_first = arrivals.iter().enumerate().take(end).rev();
        let tasks = newest_first.filter_map(|(place, id)| self.tables.row(*id).map(|row| (place, &row.task)));
        let mut found = tasks.filter(|(_, task)| state.is_none_or(|state| task.process_state == state)).peekable();
        let (mut page, mut last) = (Page::default(), 0);
        for (place, task) in found.by_ref().take(limit) {
            page.tasks.push(task.clone());
            last = place;
        }
        page.next = found.peek().map(|_| last.to_string());
        page.read = page.tasks.len();
        Ok(page)
    }
}
