//! The engine as a whole: it is opened, used through its ports, and closed.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use domain::ports::PortError;

use crate::clock::System;
use crate::connections::{self, Readers};
use crate::core::{Core, Counters, State};
use crate::directory::{Directory, OpenError};
use crate::events::EngineEvents;
use crate::leases::EngineLeases;
use crate::live::Live;
use crate::lock::lock;
use crate::log::Log;
use crate::options::Options;
use crate::queues::{AllQueues, EngineQueues};
use crate::records::{EngineRecords, Kept};
use crate::store::EngineStore;
use crate::writer::Writer;

/// Every port on one data directory: a struct of parts that share the log. Cloning copies a pointer.
///
/// Dropping the last clone still writes the queued writes. [`Engine::close`] does the same and returns when they are
/// durable.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    store: EngineStore,
    queues: EngineQueues,
    records: EngineRecords,
    events: EngineEvents,
    leases: EngineLeases,
    core: Arc<Core>,
    all_queues: Arc<AllQueues>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

domain::has_parts!([] Engine {
    HasStore, Store = EngineStore, store: |engine| &engine.0.store;
    HasQueues, Queues = EngineQueues, queues: |engine| &engine.0.queues;
    HasEvents, Events = EngineEvents, events: |engine| &engine.0.events;
    HasLeases, Leases = EngineLeases, leases: |engine| &engine.0.leases;
    HasRecords, Records = EngineRecords, records: |engine| &engine.0.records;
    HasDeadLetterRecords, DeadLetterRecords = EngineRecords, dead_letter_records: |engine| &engine.0.records;
    HasEnvironment, Environment = System, environment: |_engine| &System;
});

/// The counters of an engine. "Syncs per order" is `transactions` divided by the number of orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions committed, each with one sync of the disk.
    pub transactions: u64,
    /// Writes in these transactions.
    pub writes: u64,
    /// Transactions that failed.
    pub failures: u64,
    /// Callers that wait for their write to be durable.
    pub waiting: usize,
    /// Orders in memory.
    pub live: usize,
    /// Messages on the submission queue, including those in flight.
    pub submissions: usize,
    /// Messages on the scheduler queue, including those in flight.
    pub scheduler: usize,
    /// Messages on all agents' queues, including those in flight.
    pub requests: usize,
    /// Dead letters that are not settled.
    pub dead_letters: usize,
}

impl Engine {
    /// Opens a data directory, creates it if it is missing, and starts the writer. Earlier messages are delivered only
    /// after [`Engine::recover`].
    ///
    /// # Errors
    /// [`OpenError`] if another process owns the directory, if it cannot be written, or if its file cannot be used.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        let directory = Directory::take(directory)?;
        let connection = connections::open_writer(&directory.database, &options)?;
        let unreadable = |source| OpenError::Database { file: directory.database.clone(), source };
        let all_queues = Arc::new(AllQueues::new(&connection, &options).map_err(unreadable)?);
        let kept = Arc::new(Kept::load(&connection).map_err(unreadable)?);
        let (sender, receiver) = mpsc::channel();
        let core = Arc::new(Core {
            state: Mutex::new(State { live: Live::new(options.live_max), log: Log::new(sender) }),
            readers: Arc::new(Readers::new(directory.database.clone(), &options)),
            counters: Counters::default(),
        });
        let writer =
            Writer::new(core.clone(), all_queues.clone(), kept.clone(), connection, receiver, directory, &options);
        let writer =
            thread::Builder::new().name("writer".to_owned()).spawn(|| writer.run()).map_err(OpenError::System)?;
        Ok(Self(Arc::new(Inner {
            store: EngineStore::new(core.clone()),
            queues: EngineQueues::new(core.clone(), all_queues.clone()),
            records: EngineRecords::new(core.clone(), kept),
            events: EngineEvents::new(core.clone(), options),
            leases: EngineLeases::default(),
            core,
            all_queues,
            writer: Mutex::new(Some(writer)),
        })))
    }

    /// Ends every present and later wait for an order to be settled. The caller then gets the order as it is.
    pub fn end_waits(&self) {
        self.0.store.end_waits();
    }

    /// Writes the queued writes, moves them into the database file, and releases the directory. Later writes fail.
    ///
    /// # Errors
    /// [`PortError`] if the writer failed before.
    pub async fn close(&self) -> Result<(), PortError> {
        lock(&self.core().state).log.close();
        let writer = lock(&self.0.writer).take();
        let joined = tokio::task::spawn_blocking(move || writer.map_or(Ok(()), JoinHandle::join)).await;
        match joined {
            Ok(Ok(())) => {
                let Stats { transactions, writes, failures, .. } = self.stats();
                tracing::info!(transactions, writes, failures, "closed");
                Ok(())
            }
            Ok(Err(_)) => Err(PortError::unavailable("engine.close", "the writer panicked")),
            Err(stopped) => Err(PortError::unavailable("engine.close", stopped)),
        }
    }

    /// The counters of this engine.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Counters { transactions, writes, failures } = &self.core().counters;
        let (waiting, live) = {
            let state = lock(&self.core().state);
            (state.log.waiting(), state.live.len())
        };
        let queues = self.all_queues();
        Stats {
            transactions: transactions.load(Relaxed),
            writes: writes.load(Relaxed),
            failures: failures.load(Relaxed),
            waiting,
            live,
            submissions: queues.submissions.len(),
            scheduler: queues.scheduler.len(),
            requests: queues.agents().iter().map(|queue| queue.len()).sum(),
            dead_letters: queues.dead_letters.len(),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    pub(crate) fn all_queues(&self) -> &AllQueues {
        &self.0.all_queues
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        lock(&self.core.state).log.close();
        if let Some(writer) = lock(&self.writer).take() {
            // A writer that panicked has nothing more to write.
            let _ = writer.join();
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
