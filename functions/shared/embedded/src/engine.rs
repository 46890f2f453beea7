//! The engine as a whole: opened, used through its ports, closed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use domain::ports::{LeaseRecord, PortError};
use tokio::sync::watch;

use crate::connections::{self, Readers};
use crate::core::{Core, Counters, State, lock};
use crate::directory::{Directory, OpenError};
use crate::live::Live;
use crate::log::Log;
use crate::options::{Channel, Observer, Options};
use crate::queues::AllQueues;
use crate::writer::Writer;

/// Every port on one data directory. Cloning copies a pointer.
///
/// When the last clone goes, what is queued is still written; [`Engine::close`] does the same and says when it is done.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    core: Arc<Core>,
    writer: Mutex<Option<JoinHandle<()>>>,
    leases: Mutex<BTreeMap<Arc<str>, LeaseRecord>>,
    observer: Option<Observer>,
    channels: BTreeMap<Arc<str>, Channel>,
    channel_ms: u64,
    waits_ended: watch::Sender<bool>,
}

/// What an engine has done and what it holds. "Syncs per order" is `transactions` over orders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transactions committed, each with one sync of the disk.
    pub transactions: u64,
    /// Writes that they carried.
    pub writes: u64,
    /// Transactions that failed.
    pub failures: u64,
    /// Callers that wait for their write to be durable.
    pub waiting: usize,
    /// Orders in memory.
    pub live: usize,
    /// Messages on the submission queue, those being handled included.
    pub submissions: usize,
    /// Messages on the scheduler queue, those being handled included.
    pub scheduler: usize,
    /// Messages on all agents' queues, those being handled included.
    pub requests: usize,
    /// Dead letters that are not settled.
    pub dead_letters: usize,
}

impl Engine {
    /// Takes a data directory, which is made when it is missing, and starts the writer. Nothing is delivered from before
    /// until [`Engine::recover`].
    ///
    /// # Errors
    /// [`OpenError`] when another process has the directory, it cannot be written, or its file is not ours to read.
    pub fn open(directory: &Path, options: Options) -> Result<Self, OpenError> {
        let directory = Directory::take(directory)?;
        let connection = connections::open_writer(&directory.database, &options)?;
        let unreadable = |source| OpenError::Database { file: directory.database.clone(), source };
        let queues = AllQueues::new(&connection, &options).map_err(unreadable)?;
        let (sender, receiver) = mpsc::channel();
        let core = Arc::new(Core {
            state: Mutex::new(State { live: Live::new(options.live_max), log: Log::new(sender) }),
            readers: Arc::new(Readers::new(directory.database.clone(), &options)),
            queues,
            counters: Counters::default(),
        });
        let writer = Writer::new(core.clone(), connection, receiver, directory, &options);
        let writer =
            thread::Builder::new().name("writer".to_owned()).spawn(|| writer.run()).map_err(OpenError::System)?;
        Ok(Self(Arc::new(Inner {
            core,
            writer: Mutex::new(Some(writer)),
            leases: Mutex::default(),
            observer: options.observer,
            channels: options.channels,
            channel_ms: options.channel_ms,
            waits_ended: watch::Sender::new(false),
        })))
    }

    /// Ends every wait for an order to be settled, now and later: the order is given as it is.
    pub fn end_waits(&self) {
        self.0.waits_ended.send_replace(true);
    }

    /// Returns once waits have to end.
    pub(crate) async fn waits_ended(&self) {
        // The sender lives as long as this engine.
        let _ = self.0.waits_ended.subscribe().wait_for(|ended| *ended).await;
    }

    /// Writes what is queued, moves it all into the database file, and lets go of the directory. Later writes fail.
    ///
    /// # Errors
    /// [`PortError`] when the writer came to grief before.
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

    /// What it has done and what it holds.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Counters { transactions, writes, failures } = &self.core().counters;
        let (waiting, live) = {
            let state = lock(&self.core().state);
            (state.log.waiting(), state.live.len())
        };
        let queues = self.queues();
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

    pub(crate) fn queues(&self) -> &AllQueues {
        &self.0.core.queues
    }

    pub(crate) fn leases(&self) -> &Mutex<BTreeMap<Arc<str>, LeaseRecord>> {
        &self.0.leases
    }

    pub(crate) fn observer(&self) -> Option<&Observer> {
        self.0.observer.as_ref()
    }

    /// The reply channel of this name, and how long it may take, in milliseconds.
    pub(crate) fn channel(&self, name: &str) -> Option<(&Channel, u64)> {
        self.0.channels.get(name).map(|channel| (channel, self.0.channel_ms))
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
