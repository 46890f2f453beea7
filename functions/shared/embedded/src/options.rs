//! The options of an engine. The defaults fit a dedicated machine with about ten thousand orders in flight.

use std::collections::BTreeMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::{fmt, io};

use domain::message::CloudEvent;

use crate::clock::Now;

/// The largest body of a task that is written whole at each change, in bytes: with its other columns, such a row takes a page.
pub(crate) const WHOLE_BYTES: usize = 3_970;

/// The size of a write-ahead log above which a start of it is overdue, in bytes.
pub const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Receives every published event, once it is on disk.
pub type Observer = Arc<dyn Fn(&CloudEvent) + Send + Sync>;

/// Takes an event for the listeners of a reply channel. After an error the delivery is unknown, and the event is sent
/// again.
pub type Channel = Arc<dyn Fn(CloudEvent) -> Sending + Send + Sync>;

/// The delivery of an event to a reply channel.
pub type Sending = Pin<Box<dyn Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send>>;

/// A machine that is simulated, for tests. The engine then has no thread of its own, and takes no lock on the data
/// directory. The writer is a task of the present runtime, and reads happen in place, so one seed can decide over all of
/// it.
#[derive(Clone)]
pub struct Simulated {
    /// The name of SQLite's VFS.
    pub vfs: &'static str,
    /// The file beside the database.
    pub number: Arc<dyn NumberFile>,
}

/// The file that the engine uses without SQLite: the number of transactions.
pub trait NumberFile: Send + Sync {
    /// The content of the number's file.
    ///
    /// # Errors
    /// The system's error, also if there is no such file.
    fn number(&self) -> io::Result<String>;

    /// Writes the number's file from the beginning, and creates it if it is missing. All contents are of one length.
    ///
    /// # Errors
    /// The system's error.
    fn write_number(&self, text: &str) -> io::Result<()>;

    /// Makes the number's last write durable.
    ///
    /// # Errors
    /// The system's error.
    fn sync_number(&self) -> io::Result<()>;
}

/// The options of an engine.
#[derive(Clone)]
pub struct Options {
    /// The submission queue. A failed record is delivered again soon, long before its step's time is over. It has
    /// enough deliveries to outlast a disk that is full for some minutes.
    pub submissions: QueueOptions,
    /// The scheduler queue, with the same defaults.
    pub scheduler: QueueOptions,
    /// The queue of each agent. A parked request is received again and again, so it needs many receives.
    pub requests: QueueOptions,
    /// Orders in memory above which idle ones are removed.
    pub live_max: usize,
    /// The size of a task up to which all of it is written at each change, in bytes.
    pub whole_bytes: usize,
    /// The number of reading connections.
    pub readers_max: usize,
    /// The number of events kept on disk. The oldest are deleted first.
    pub events_max: u64,
    /// How long to wait while another program locks the file, in milliseconds.
    pub busy_ms: u64,
    /// Page cache of the writing connection, in KiB.
    pub cache_kib: u32,
    /// How long a lazy write waits for another write to share a transaction with, in milliseconds.
    pub lazy_ms: u64,
    /// The size at which the write-ahead log is moved into the database, and to which a larger one is cut, in bytes.
    pub log_bytes_kept: u64,
    /// How long nothing is written before the write-ahead log is emptied, in milliseconds.
    pub checkpoint_idle_ms: u64,
    /// The size above which a write-ahead log that cannot be emptied is logged, in bytes.
    pub log_bytes_max: u64,
    /// Whether to go on where committed transactions are missing.
    pub accept_loss: bool,
    /// How long the clock must have gone on evenly before what is too old is deleted, in milliseconds.
    pub clock_rest_ms: u64,
    /// How long an entry of the audit stream is kept, in milliseconds. `None`: for ever.
    pub audit_kept_ms: Option<u64>,
    /// The observer of all published events.
    pub observer: Option<Observer>,
    /// How long a received dead letter is hidden, in milliseconds. It is delivered until it is deleted.
    pub dead_letter_visibility_ms: u64,
    /// The reply channels, by the names that orders give.
    pub channels: BTreeMap<Arc<str>, Channel>,
    /// Time limit of a reply channel for one event, in milliseconds. The caller must continue with its order.
    pub channel_ms: u64,
    /// The wall clock, for tests. `None`: the real one, without its short jumps.
    pub now: Option<Now>,
    /// The machine, for tests. `None`: the real one.
    pub simulated: Option<Simulated>,
}

/// The options of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Deliveries after which a message becomes a dead letter.
    pub receives_max: u32,
    /// How long a received message is hidden, in milliseconds (visibility time-out).
    pub visibility_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            submissions: QueueOptions { receives_max: 100, visibility_ms: 10_000 },
            scheduler: QueueOptions { receives_max: 100, visibility_ms: 10_000 },
            requests: QueueOptions { receives_max: 1_000, visibility_ms: 15 * 60_000 },
            live_max: 20_000,
            whole_bytes: WHOLE_BYTES,
            readers_max: 4,
            events_max: 10_000,
            busy_ms: 5_000,
            cache_kib: 16 * 1_024,
            lazy_ms: 100,
            log_bytes_kept: 16 * 1024 * 1024,
            checkpoint_idle_ms: 1_000,
            log_bytes_max: LOG_BYTES_MAX,
            accept_loss: false,
            clock_rest_ms: 60 * 60_000,
            audit_kept_ms: None,
            observer: None,
            dead_letter_visibility_ms: 60_000,
            channels: BTreeMap::new(),
            channel_ms: 5_000,
            now: None,
            simulated: None,
        }
    }
}

impl Options {
    /// The VFS of a simulated machine.
    pub(crate) fn vfs(&self) -> Option<&'static str> {
        self.simulated.as_ref().map(|machine| machine.vfs)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("submissions", &self.submissions)
            .field("scheduler", &self.scheduler)
            .field("requests", &self.requests)
            .field("live_max", &self.live_max)
            .field("readers_max", &self.readers_max)
            .field("events_max", &self.events_max)
            .field("busy_ms", &self.busy_ms)
            .field("cache_kib", &self.cache_kib)
            .field("lazy_ms", &self.lazy_ms)
            .field("log_bytes_kept", &self.log_bytes_kept)
            .field("checkpoint_idle_ms", &self.checkpoint_idle_ms)
            .field("log_bytes_max", &self.log_bytes_max)
            .field("accept_loss", &self.accept_loss)
            .field("observer", &self.observer.is_some())
            .field("letter_visibility_ms", &self.dead_letter_visibility_ms)
            .field("channels", &self.channels.keys())
            .field("channel_ms", &self.channel_ms)
            .field("simulated", &self.vfs())
            .finish()
    }
}
