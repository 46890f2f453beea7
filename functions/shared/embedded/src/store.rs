//! The order database and the state store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::id::OrderId;
use domain::index::Term;
use domain::order::Order;
use domain::ports::{Commit, Due, Inserted, ListError, Page, PortError, Store, Watched};
use domain::tally::{Grain, Numbers};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;
use tokio::select;
use tokio::sync::{Notify, watch};
use tokio::time::timeout_at;

use crate::clock::later;
use crate::core::{Core, State};
use crate::erase::Traces;
use crate::index;
use crate::live::{Entry, Seen, Settling};
use crate::lock::lock;
use crate::log::{Durable, Log, Urgency};
use crate::rows::{self, Stored};
use crate::tallies;
use crate::write::Write;

/// How long a reader waits for an order that was accepted and is not stored yet, in milliseconds.
const ARRIVAL_MS: u64 = 2_000;

/// The order database and the state store.
#[derive(Debug)]
pub struct EngineStore {
    core: Arc<Core>,
    waits_ended: watch::Sender<bool>,
}

impl EngineStore {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, waits_ended: watch::Sender::new(false) }
    }

    /// Ends every present and later wait for an order to be settled.
    pub(crate) fn end_waits(&self) {
        self.waits_ended.send_replace(true);
    }

    /// Returns once waits must end.
    async fn waits_ended(&self) {
        // The sender lives as long as this store.
        let mut ended = self.waits_ended.subscribe();
        let all = ended.wait_for(|ended| *ended);
        match GONE.try_with(Arc::clone) {
            Ok(gone) => select! {
                _ = all => {}
                () = gone.notified() => {}
            },
            Err(_) => drop(all.await),
        }
    }
}

tokio::task_local! {
    /// Tells when nobody may be there any more for whom this task waits.
    static GONE: Arc<Notify>;
}

/// Does this work. Its next wait for an order to be settled ends when `gone` tells so.
pub fn attended<T>(gone: Arc<Notify>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    GONE.scope(gone, work)
}

impl Store for EngineStore {
    async fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> Result<Inserted, PortError> {
        const OPERATION: &str = "store.insert";
        let order_id = order.order_id;
        let is_known = Arc::<AtomicBool>::default();
        let written = {
            let State { live, log } = &mut *lock(&self.core.state);
            // Of an unknown order the disk need not be read: its writer decides.
            live.begin_load(order_id, log).then(|| {
                let write = Write::Insert { order: order.clone(), task: task.clone(), is_known: is_known.clone() };
                let appended = log.append(write, Urgency::Awaited);
                if appended.is_err() {
                    live.not_loaded(order_id, log);
                }
                appended.map_or_else(Durable::never, |seq| log.wait(seq))
            })
        };
        if let Some(durable) = written {
            durable.reached(OPERATION).await?;
            if !is_known.load(Ordering::Relaxed) {
                return Ok(Inserted::New);
            }
        }
        let insert = move |entry: &mut Entry, log: &mut Log| insert(entry, log, order, task);
        let (inserted, durable) = self.core.with(OPERATION, order_id, insert).await?;
        durable.reached(OPERATION).await?;
        Ok(inserted)
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        read(&self.core, "store.order", order_id, Entry::see_order, |stored| stored.order).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        read(&self.core, "store.task", order_id, Entry::see_task, |stored| stored.task).await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        let (order_id, version_before) = (before.order_id, before.version);
        let traces = match (before.erased_at, after.erased_at) {
            (None, Some(_)) => {
                let quoted = before.quoted();
                let find = move |connection: &rusqlite::Connection| Traces::find(connection, order_id, quoted);
                Some(self.core.readers.read("store.commit", find).await?)
            }
            _ => None,
        };
        let commit = move |entry: &mut Entry, log: &mut Log| commit(entry, log, version_before, after, traces);
        let (commit, durable) = self.core.with("store.commit", before.order_id, commit).await?;
        durable.reached("store.commit").await?;
        Ok(commit)
    }

    async fn due(&self, watch: Watch, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        let due = move |connection: &rusqlite::Connection| index::due(connection, watch, now, after, limit);
        self.core.readers.read("store.due", due).await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        let before =
            after.map(|cursor| index::place(cursor, index::name(state)).ok_or(ListError::Cursor)).transpose()?;
        let list = move |connection: &rusqlite::Connection| index::list(connection, state, before, limit);
        Ok(self.core.readers.read("store.list", list).await?)
    }

    async fn found(&self, term: &Term, after: Option<&str>, limit: usize) -> Result<Option<Page>, ListError> {
        let before = after.map(|cursor| index::place(cursor, index::FOUND).ok_or(ListError::Cursor)).transpose()?;
        let term = term.clone();
        let found = move |connection: &rusqlite::Connection| index::found(connection, &term, before, limit);
        Ok(Some(self.core.readers.read("store.found", found).await?))
    }

    async fn numbers(&self, grain: Grain, since: Timestamp) -> Result<Option<Numbers>, PortError> {
        let numbers = move |connection: &rusqlite::Connection| Ok(tallies::numbers(connection, grain, since)?);
        self.core.readers.read("store.numbers", numbers).await.map(Some)
    }

    async fn forget_expired(&self, now: Timestamp, limit: usize) -> Result<usize, PortError> {
        const OPERATION: &str = "store.forget_expired";
        if !self.core.is_steady(now) {
            return Ok(0);
        }
        let expired = move |connection: &rusqlite::Connection| index::expired(connection, now, limit);
        let expired = self.core.readers.read(OPERATION, expired).await?;
        let mut last = Durable::ALREADY;
        for order_id in &expired {
            let forget = move |entry: &mut Entry, log: &mut Log| forget(entry, log, now);
            last = self.core.with(OPERATION, *order_id, forget).await?;
        }
        last.reached(OPERATION).await?;
        Ok(expired.len())
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Watched>, PortError> {
        let watched = |Stored { order, task }| Watched { task, order: Some(order) };
        let present = async || Ok(self.task(order_id).await?.map(|task| Watched { task, order: None }));
        if wait_ms == 0 {
            return present().await;
        }
        let until = later(wait_ms);
        loop {
            let settling = |entry: &mut Entry, log: &mut Log| entry.see_settled(log);
            match self.core.with("store.settled", order_id, settling).await? {
                Settling::Now(stored) => return Ok(Some(watched(stored))),
                Settling::Absent => return Ok(None),
                Settling::Later(settled) => select! {
                    settled = timeout_at(until, settled) => match settled {
                        Ok(Ok(stored)) => return Ok(Some(watched(stored))),
                        Ok(Err(_)) => {}
                        Err(_) => return present().await,
                    },
                    () = self.waits_ended() => return present().await,
                },
            }
        }
    }
}

/// Returns the result of `see` once it is durable. Waits briefly for an accepted order that is not stored yet. If the
/// write that it waits for fails, the disk still has what was there before.
async fn read<T: Send + 'static>(
    core: &Arc<Core>,
    operation: &'static str,
    order_id: OrderId,
    see: fn(&mut Entry, &mut Log) -> Seen<T>,
    part: fn(Stored) -> T,
) -> Result<Option<T>, PortError> {
    let mut until = None;
    loop {
        match core.with(operation, order_id, see).await? {
            Seen::Stored(found, durable) => {
                if durable.reached(operation).await.is_ok() {
                    return Ok(Some(found));
                }
                let stored = move |connection: &rusqlite::Connection| rows::stored(connection, order_id);
                return Ok(core.readers.read(operation, stored).await?.map(part));
            }
            Seen::Absent => return Ok(None),
            Seen::Arriving(arrival) => {
                let until = *until.get_or_insert_with(|| later(ARRIVAL_MS));
                if timeout_at(until, arrival).await.is_err() {
                    return Ok(None);
                }
            }
        }
    }
}

/// Inserts into a loaded entry.
fn insert(entry: &mut Entry, log: &mut Log, order: Arc<Order>, task: Arc<Task>) -> (Inserted, Durable) {
    if let Some(stored) = &entry.stored {
        return (Inserted::on_conflict((&stored.order, &stored.task), (&order, &task)), log.wait(entry.inserted));
    }
    let write = Write::Task { before: None, task: task.clone(), order: Some(order.clone()), indexed: true };
    let seq = match log.append(write, Urgency::Awaited) {
        Ok(seq) => seq,
        Err(error) => return (Inserted::New, Durable::never(error)),
    };
    entry.stored = Some(Stored { order, task });
    (entry.written, entry.inserted) = (seq, seq);
    entry.arrive();
    (Inserted::New, log.wait(seq))
}

/// Deletes the order of a loaded entry if it expired. An order of the same id may be inserted from then on.
fn forget(entry: &mut Entry, log: &mut Log, now: Timestamp) -> Durable {
    let is_expired = |stored: &mut Stored| stored.task.expires_at.is_some_and(|at| at <= now);
    let Some(Stored { task, .. }) = entry.stored.take_if(is_expired) else { return Durable::ALREADY };
    match log.append(Write::Forget { task }, Urgency::Awaited) {
        Ok(seq) => {
            (entry.written, entry.inserted) = (seq, seq);
            log.wait(seq)
        }
        Err(error) => Durable::never(error),
    }
}

/// Replaces the task of a loaded entry, if its version is still `version_before`. With `traces` it is erased.
fn commit(
    entry: &mut Entry,
    log: &mut Log,
    version_before: u64,
    after: Arc<Task>,
    traces: Option<Traces>,
) -> (Commit, Durable) {
    let Some(Stored { order, task }) = &mut entry.stored else {
        return (Commit::Conflict, Durable::ALREADY);
    };
    if (task.version, task.nonce) == (after.version, after.nonce) {
        return (Commit::Committed, log.wait(entry.written));
    }
    if task.version != version_before {
        return (Commit::Conflict, Durable::ALREADY);
    }
    let key = |task: &Task| (task.process_state, task.watch, task.watch_at, task.expires_at);
    let indexed = key(task) != key(&after);
    let erased = traces.is_some().then(|| Arc::new(order.erased()));
    let write = match (traces, &erased) {
        (Some(traces), Some(order)) => {
            Write::Erase { before: task.clone(), task: after.clone(), order: order.clone(), traces }
        }
        _ => Write::Task { before: Some(task.clone()), task: after.clone(), order: None, indexed },
    };
    match log.append(write, Urgency::Awaited) {
        Ok(seq) => {
            *task = after;
            *order = erased.unwrap_or_else(|| order.clone());
            entry.written = seq;
            (Commit::Committed, log.wait(seq))
        }
        Err(error) => (Commit::Committed, Durable::never(error)),
    }
}
