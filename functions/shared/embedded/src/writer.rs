//! The writer: the one thread that changes the database file. It commits writes that arrive together in one
//! transaction.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use domain::id::OrderId;
use domain::message::CloudEvent;
use domain::ports::{DeadLetter, Environment};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout_at;

use crate::audit::Chain;
use crate::checkpoints::{self, Checkpoints};
use crate::clock::later;
use crate::core::{Core, State};
use crate::directory::Directory;
use crate::disk::Disk;
use crate::lock::lock;
use crate::log::{Queued, Urgency, WriteError};
use crate::options::Options;
use crate::queue::Arrival;
use crate::queues::AllQueues;
use crate::records::Kept;
use crate::rows::json;
use crate::tallies::Present;
use crate::tasks::{Large, Last};
use crate::write::Write;
use crate::{dead_letters, messages, tasks};

/// The maximum number of writes in one transaction.
const BATCH_MAX: usize = 4_096;
/// How long messages stay hidden after a failed transaction, in milliseconds. The disk needs time to recover.
const REDELIVERY_MS: u64 = 1_000;

/// The writer and what it owns.
#[derive(Debug)]
pub(crate) struct Writer {
    core: Arc<Core>,
    queues: Arc<AllQueues>,
    kept: Arc<Kept>,
    connection: Connection,
    receiver: UnboundedReceiver<Queued>,
    /// Its lock is released after the last write.
    directory: Directory,
    disk: Disk,
    checkpoints: Checkpoints,
    /// The numbers of the present minute, after the last transaction.
    present: Option<Present>,
    /// The end of the audit stream, after the last transaction.
    chain: Option<Chain>,
    /// The large tasks, after the last transaction.
    large: Large,
    audit_kept_ms: Option<u64>,
    /// Whether the log may have data of an order that was erased.
    has_traces: bool,
    busy: Duration,
    events_max: i64,
    /// How long a lazy write waits for a write to join, in milliseconds.
    lazy_ms: u64,
}

impl Writer {
    pub(crate) fn new(
        core: Arc<Core>,
        queues: Arc<AllQueues>,
        kept: Arc<Kept>,
        connection: Connection,
        receiver: UnboundedReceiver<Queued>,
        directory: Directory,
        options: &Options,
    ) -> Self {
        let events_max = i64::try_from(options.events_max).unwrap_or(i64::MAX);
        let checkpoints = Checkpoints::new(&directory.database, options);
        let (disk, busy, lazy_ms) = (Disk::default(), Duration::from_millis(options.busy_ms), options.lazy_ms);
        Self {
            core,
            queues,
            kept,
            connection,
            receiver,
            directory,
            disk,
            checkpoints,
            present: None,
            chain: None,
            large: Large::new(options.whole_bytes),
            audit_kept_ms: options.audit_kept_ms,
            has_traces: false,
            busy,
            events_max,
            lazy_ms,
        }
    }

    /// Writes until the log is closed and empty.
    pub(crate) async fn run(mut self) {
        while let Some(batch) = self.gather().await {
            match self.apply(&batch) {
                Ok(found) => {
                    self.without_traces(found.has_erased);
                    self.committed(batch, found);
                }
                Err(error) => self.failed(batch, error),
            }
        }
        if let Err(error) = self.end() {
            tracing::warn!("the write-ahead log stays beside the database file: {error}");
        }
    }

    /// Empties the log once an order was erased, since it has earlier versions of the pages. Where another program reads
    /// from it, the next transactions try again.
    fn without_traces(&mut self, has_erased: bool) {
        self.has_traces |= has_erased;
        if self.has_traces {
            self.idle();
            self.has_traces = self.checkpoints.due_at().is_some();
        }
    }

    /// Moves the log into the database file.
    fn end(&mut self) -> Result<(), Box<dyn Error>> {
        if let Err(gone) = self.core.readers.identity.check() {
            // The open files get what is in the log. SQLite would delete the file that now has the log's name.
            self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
            self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            return Err(gone.into());
        }
        self.directory.generation.without_log()?;
        if checkpoints::empty(&self.connection)? { Ok(()) } else { Err("another program reads it".into()) }
    }

    /// Nothing is written at the moment: empties the log. What fails here is tried again.
    fn idle(&mut self) {
        let emptied = self.empty_log().unwrap_or_else(|error| {
            tracing::debug!("the write-ahead log cannot be emptied: {error}");
            false
        });
        self.checkpoints.tried(emptied);
    }

    fn empty_log(&mut self) -> Result<bool, Box<dyn Error>> {
        self.core.readers.identity.check()?;
        self.directory.generation.without_log()?;
        Ok(checkpoints::empty_now(&self.connection, self.busy)?)
    }

    /// The next write. The log is emptied before, if the write is long in coming.
    async fn next(&mut self) -> Option<Queued> {
        while let Some(due_at) = self.checkpoints.due_at() {
            match timeout_at(due_at, self.receiver.recv()).await {
                Ok(next) => return next,
                Err(_) => self.idle(),
            }
        }
        self.receiver.recv().await
    }

    /// The queued writes, once a caller waits for one of them or lazy writes have waited long enough.
    async fn gather(&mut self) -> Option<Vec<Queued>> {
        let first = self.next().await?;
        let mut awaited = first.urgency == Urgency::Awaited;
        let mut batch = vec![first];
        let until = later(self.lazy_ms);
        while batch.len() < BATCH_MAX {
            let next = if awaited {
                self.receiver.try_recv().ok()
            } else {
                timeout_at(until, self.receiver.recv()).await.ok().flatten()
            };
            let Some(next) = next else { break };
            awaited |= next.urgency == Urgency::Awaited;
            batch.push(next);
        }
        Some(batch)
    }

    /// Writes a batch and syncs.
    fn apply(&mut self, batch: &[Queued]) -> Result<Found, WriteError> {
        let identity = &self.core.readers.identity;
        identity.check()?;
        // SQLite waits for another program only at the start of a transaction, not between a read and the next write.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now = self.core.clock.now();
        // These are gone after a failure, and then read again.
        let mut present = match self.present.take() {
            Some(present) => present,
            None => Present::load(&transaction, now)?,
        };
        present.enter(&transaction, now)?;
        let mut chain = match self.chain.take() {
            Some(chain) => chain,
            None => Chain::load(&transaction)?,
        };
        let large = &mut self.large;
        let mut tasks = last_versions(batch);
        let mut found = Found::default();
        for Queued { write, .. } in batch {
            let mut erased_entries = Vec::new();
            match write {
                Write::Task { before, task, .. } => {
                    present.count(before.as_deref(), task);
                    // Of several versions in the batch, the last is written in place of the first.
                    if let Some(last) = tasks.remove(&task.order_id) {
                        last.write(&transaction, large)?;
                    }
                }
                Write::Insert { order, task, is_known } => {
                    if tasks::insert(&transaction, order, task, large)? {
                        present.count(None, task);
                    } else {
                        is_known.store(true, Relaxed);
                    }
                }
                Write::Erase { before, task, order, traces } => {
                    present.count(Some(before), task);
                    if let Some(last) = tasks.remove(&task.order_id) {
                        last.write(&transaction, large)?;
                    }
                    let removed = traces.erase(&transaction, order)?;
                    found.erased.extend(removed.dead_letters);
                    found.has_erased = true;
                    erased_entries = removed.entries;
                }
                Write::Forget { task } => {
                    present.forget(task);
                    tasks::forget(&transaction, task)?;
                }
                Write::Accept { message_id, order, .. } => {
                    if messages::accept(&transaction, *message_id, order)? {
                        found.new.push(order.order_id);
                    }
                }
                Write::Remove { message_id, .. } => messages::remove(&transaction, *message_id)?,
                Write::Send { message_id, message, priority, not_before, .. } => {
                    messages::send(&transaction, *message_id, message, *priority, *not_before)?;
                }
                Write::RemoveSent { message_id } => messages::remove_sent(&transaction, *message_id)?,
                Write::Bury(burial) => found.dead_letters.extend(burial.write(&transaction)?),
                Write::RemoveDeadLetter { dead_letter_id } => dead_letters::remove(&transaction, *dead_letter_id)?,
                Write::Event(event) => publish(&transaction, event, self.events_max)?,
                Write::Record(record) => record.apply(&transaction)?,
                Write::Barrier => {}
            }
            chain.add(&transaction, now, write, &self.kept, &erased_entries)?;
        }
        let since = self.audit_kept_ms.filter(|_| self.core.is_steady(now)).map(|kept_ms| now.minus_ms(kept_ms));
        chain.forget(&transaction, since, now)?;
        let number = present.write(&transaction)?;
        transaction.commit()?;
        (self.present, self.chain) = (Some(present), Some(chain));
        self.directory.generation.committed(number);
        identity.check()?;
        Ok(found)
    }

    /// A batch is durable: updates the memory, and then wakes the callers.
    fn committed(&mut self, batch: Vec<Queued>, found: Found) {
        self.disk.committed();
        self.checkpoints.written();
        let (counters, queues) = (&self.core.counters, &*self.queues);
        counters.transactions.fetch_add(1, Relaxed);
        counters.writes.fetch_add(batch.len() as u64, Relaxed);
        if let Some(present) = &self.present {
            counters.under_way.store(present.under_way(), Relaxed);
        }
        let waiters = {
            let State { live, log } = &mut *lock(&self.core.state);
            let waiters = log.committed(batch.last().map_or(0, |queued| queued.seq));
            found.new.iter().for_each(|order_id| live.is_new(*order_id));
            for Queued { write, .. } in batch {
                match write {
                    Write::Task { task, .. } | Write::Erase { task, .. } => live.written(&task, log),
                    Write::Insert { order, is_known, .. } if is_known.load(Relaxed) => {
                        live.not_loaded(order.order_id, log);
                    }
                    Write::Insert { order, task, .. } => live.inserted(order, &task, log),
                    Write::Forget { task } => live.forgotten(task.order_id, log),
                    Write::Accept { message_id, order, visible_at, parent } => {
                        let priority = order.priority.unwrap_or_default();
                        queues.submissions.put(Arrival::stored(message_id, order, priority, visible_at, parent));
                    }
                    Write::Remove { message_id, order_id } => {
                        queues.submissions.finish(message_id);
                        order_id.into_iter().for_each(|order_id| live.submission_over(order_id, log));
                    }
                    Write::Send { message_id, message, priority, visible_at, .. } => {
                        queues.scheduler.put(Arrival::stored(message_id, message, priority, visible_at, None));
                    }
                    Write::RemoveSent { message_id } => queues.scheduler.finish(message_id),
                    Write::Bury(burial) => {
                        queues.buried(&burial.queue, burial.message_id);
                        burial.submission_of().into_iter().for_each(|order_id| live.submission_over(order_id, log));
                    }
                    Write::RemoveDeadLetter { dead_letter_id } => queues.dead_letters.finish(dead_letter_id),
                    Write::Record(record) => self.kept.written(record),
                    Write::Event(_) | Write::Barrier => {}
                }
            }
            found.erased.into_iter().for_each(|dead_letter_id| queues.dead_letters.finish(dead_letter_id));
            found.dead_letters.into_iter().for_each(|dead_letter| queues.dead_letters.put(dead_letter));
            waiters
        };
        waiters.tell();
    }

    /// A batch is lost, and all writes behind it are lost too. The memory returns to the state on disk.
    fn failed(&mut self, mut batch: Vec<Queued>, error: WriteError) {
        self.disk.failed(&error);
        self.large.forget();
        self.core.counters.failures.fetch_add(1, Relaxed);
        let waiters = {
            let State { live, log } = &mut *lock(&self.core.state);
            // Writes are queued under this lock, so these are all of them.
            batch.extend(std::iter::from_fn(|| self.receiver.try_recv().ok()));
            let waiters = log.failed(error);
            for Queued { write, .. } in &batch {
                live.lost(write);
            }
            live.forget();
            for Queued { write, .. } in batch {
                if let Write::Accept { order, .. } = write {
                    live.submission_over(order.order_id, log);
                } else if let Write::Insert { order, .. } = write {
                    live.not_loaded(order.order_id, log);
                }
            }
            self.queues.not_written(REDELIVERY_MS);
            waiters
        };
        waiters.tell();
    }
}

/// The results of a transaction.
#[derive(Debug, Default)]
struct Found {
    /// Orders that were accepted and are not stored.
    new: Vec<OrderId>,
    /// Messages that are now dead letters.
    dead_letters: Vec<Arrival<DeadLetter>>,
    /// Whether an order was erased.
    has_erased: bool,
    /// The dead letters of such orders.
    erased: Vec<i64>,
}

fn last_versions(batch: &[Queued]) -> HashMap<OrderId, Last<'_>> {
    let mut tasks: HashMap<OrderId, Last<'_>> = HashMap::new();
    for Queued { write, .. } in batch {
        let (before, task, order, indexed) = if let Write::Task { before, task, order, indexed } = write {
            (before.as_deref(), task, order.as_deref(), *indexed)
        } else if let Write::Erase { task, .. } = write {
            // Nothing of an earlier version stays.
            (None, task, None, true)
        } else {
            continue;
        };
        let last = tasks.entry(task.order_id).or_insert(Last { task, before, order: None, indexed: false });
        last.task = task;
        last.before = last.before.filter(|_| before.is_some());
        last.order = last.order.or(order);
        last.indexed |= indexed;
    }
    tasks
}

fn publish(connection: &Connection, event: &CloudEvent, events_max: i64) -> rusqlite::Result<()> {
    const INSERT: &str = "INSERT INTO events (event_id, body) VALUES (?1, ?2)";
    connection.prepare_cached(INSERT)?.execute(params![event.id, json(event)?])?;
    let newest_to_go = connection.last_insert_rowid().saturating_sub(events_max);
    connection.prepare_cached("DELETE FROM events WHERE seq <= ?1")?.execute([newest_to_go])?;
    Ok(())
}
