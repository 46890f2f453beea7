//! The engine as a whole: it is opened, used through its ports, and closed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use domain::ports::PortError;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout_at;

use crate::clock::{Clock, later};
use crate::connections::{self, NOT_RUN, Readers};
use crate::core::{Core, Counters, State};
use crate::directory::{Directory, OpenError};
use crate::events::EngineEvents;
use crate::flight::{Flight, Share};
use crate::generation;
use crate::live::Live;
use crate::lock::lock;
use crate::log::Log;
use crate::options::{Channel, Options};
use crate::queues::{AllQueues, EngineQueues};
use crate::records::{EngineRecords, Kept};
use crate::steady::Steady;
use crate::store::EngineStore;
use crate::tallies;
use crate::write::Write;
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
    core: Arc<Core>,
    all_queues: Arc<AllQueues>,
    writer: Mutex<Option<Running>>,
}

domain::has_parts!([] Engine {
    HasStore, Store = EngineStore, store: |engine| &engine.0.store;
    HasQueues, Queues = EngineQueues, queues: |engine| &engine.0.queues;
    HasEvents, Events = EngineEvents, events: |engine| &engine.0.events;
    HasRecords, Records = EngineRecords, records: |engine| &engine.0.records;
    HasEnvironment, Environment = Clock, environment: |engine| &engine.0.core.clock;
});

/// The writer at work.
enum Running {
    Thread(JoinHandle<()>, oneshot::Receiver<()>),
    /// On a simulated machine.
    Task(tokio::task::JoinHandle<()>),
}

impl Running {
    fn start(writer: Writer, is_simulated: bool) -> Result<Self, OpenError> {
        if is_simulated {
            return Ok(Self::Task(tokio::spawn(writer.run())));
        }
        let runtime = Builder::new_current_thread().enable_time().build().map_err(OpenError::System)?;
        let thread = thread::Builder::new().name("writer".to_owned());
        let (ended, end) = oneshot::channel();
        let work = move || {
            runtime.block_on(writer.run());
            // Dropped by a panic.
            let _ = ended.send(());
        };
        Ok(Self::Thread(thread.spawn(work).map_err(OpenError::System)?, end))
    }

    /// Returns false if the writer panicked.
    async fn ended(self) -> bool {
        match self {
            // No thread is asked for here: the system may have none.
            Self::Thread(_, end) => end.await.is_ok(),
            Self::Task(task) => task.await.is_ok(),
        }
    }
}
/// The name of the question in errors.
const READY: &str = "engine.ready";
/// The longest time for a write that shows that the disk works, in milliseconds.
const READY_MS_MAX: u64 = 5_000;

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
        let is_simulated = options.simulated.is_some();
        let mut directory = match &options.simulated {
            Some(machine) => Directory::simulated(directory, machine),
            None => Directory::take(directory)?.whole()?,
        };
        let found = directory.generation.look(&directory.database);
        let connection = connections::open_writer(&directory.database, &options, &found)?;
        let file = directory.database.clone();
        let unreadable = |source| OpenError::Database { file: file.clone(), source };
        let number = generation::count(&connection).map_err(unreadable)?;
        let under_way = tallies::under_way(&connection).map_err(unreadable)?.into();
        let flight = Flight::read(&connection).map_err(unreadable)?;
        found.report(number);
        directory.count_after(number)?;
        let all_queues = Arc::new(AllQueues::new(&connection, &options).map_err(unreadable)?);
        let kept = Arc::new(Kept::load(&connection).map_err(unreadable)?);
        let (sender, receiver) = mpsc::unbounded_channel();
        let core = Arc::new(Core {
            state: Mutex::new(State { live: Live::new(options.live_max, flight), log: Log::new(sender) }),
            readers: Arc::new(Readers::new(directory.database.clone(), &options).map_err(OpenError::System)?),
            counters: Counters { under_way, ..Counters::default() },
            clock: Clock::new(options.now.clone()),
            steady: Mutex::new(Steady::new(options.clock_rest_ms)),
        });
        let writer =
            Writer::new(core.clone(), all_queues.clone(), kept.clone(), connection, receiver, directory, &options);
        let writer = Running::start(writer, is_simulated)?;
        Ok(Self(Arc::new(Inner {
            store: EngineStore::new(core.clone()),
            queues: EngineQueues::new(core.clone(), all_queues.clone()),
            records: EngineRecords::new(core.clone(), kept),
            events: EngineEvents::new(core.clone(), options),
            core,
            all_queues,
            writer: Mutex::new(Some(writer)),
        })))
    }

    /// Sets the reply channels, if its options had none: the records may name them. Called before the first order.
    pub fn set_channels(&self, channels: BTreeMap<Arc<str>, Channel>) {
        let _ = self.0.events.channels.set(channels);
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
        if let Some(writer) = writer
            && !writer.ended().await
        {
            return Err(PortError::unavailable("engine.close", "the writer panicked"));
        }
        let Stats { transactions, writes, failures, .. } = self.stats();
        tracing::info!(transactions, writes, failures, "closed");
        Ok(())
    }

    /// Whether a write reaches the disk now, and a read is answered. It makes a write of its own, which shares its sync
    /// with others.
    ///
    /// # Errors
    /// [`PortError`] if one of them fails or takes too long, or the engine is closing.
    pub async fn ready(&self) -> Result<(), PortError> {
        let probe = lock(&self.core().state).log.append_awaited(Write::Barrier);
        match timeout_at(later(READY_MS_MAX), probe.reached(READY)).await {
            Ok(reached) => reached?,
            Err(_) => {
                let words = format!("a write to the disk takes longer than {READY_MS_MAX} ms");
                return Err(PortError::unavailable(READY, words));
            }
        }
        self.reads().await
    }

    /// Whether a read gets its turn and its answer, as those of orders do, and an order has room on the disk: the write
    /// above may still have had some.
    pub(crate) async fn reads(&self) -> Result<(), PortError> {
        let readers = self.core().readers.clone();
        let Ok(permit) = timeout_at(later(READY_MS_MAX), readers.permit(READY)).await else {
            return Err(PortError::unavailable(
                READY,
                format!("a read waits longer than {READY_MS_MAX} ms for its turn"),
            ));
        };
        let (permit, reader) = (permit?, readers.clone());
        let look = move || {
            let read = reader.read_here(permit, |connection| Ok(generation::count(connection)?));
            read.map(|_| reader.has_room())
        };
        let room = readers.run(look).await.ok_or_else(|| PortError::unavailable(READY, NOT_RUN))?;
        let room = room.map_err(|error| error.of(READY))?;
        room.map_err(|error| PortError::unavailable(READY, format!("there is no room: {error}")))
    }

    /// Orders that were accepted and are not settled. One that is being stored may count twice.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.core().counters.under_way.load(Relaxed) + self.all_queues().submissions.len() as u64
    }

    /// All orders under way that are stored, and those of this submitter.
    #[must_use]
    pub fn shares(&self, submitter: &str) -> [Share; 2] {
        lock(&self.core().state).live.flight.shares(submitter)
    }

    /// The counters of this engine.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let Counters { transactions, writes, failures, under_way: _ } = &self.core().counters;
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
        if let Some(Running::Thread(writer, _)) = lock(&self.writer).take() {
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
