//! What can be set about an engine. The defaults fit a machine of its own for some ten thousand orders under way.

use std::fmt;
use std::sync::Arc;

use domain::message::CloudEvent;

/// Is told every event that was published, once it is on disk.
pub type Observer = Arc<dyn Fn(&CloudEvent) + Send + Sync>;

/// What can be set about an engine.
#[derive(Clone)]
pub struct Options {
    /// The submission queue.
    pub submissions: QueueOptions,
    /// The scheduler queue.
    pub scheduler: QueueOptions,
    /// The queue of each agent. A request that is parked is received again and again, so it takes many receives.
    pub requests: QueueOptions,
    /// Orders kept in memory beyond those that are needed there.
    pub live_max: usize,
    /// Connections that read.
    pub readers_max: usize,
    /// Events kept on disk; the oldest go first.
    pub events_max: u64,
    /// How long to wait for the file while another program holds it, in milliseconds.
    pub busy_ms: u64,
    /// Page cache of the writing connection, in KiB.
    pub cache_kib: u32,
    /// How long a write that nobody waits for may wait for one to share a transaction with, in milliseconds.
    pub lazy_ms: u64,
    /// Told every published event.
    pub observer: Option<Observer>,
}

/// What can be set about a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Deliveries after which a message becomes a dead letter.
    pub receives_max: u32,
    /// How long a message that was received is hidden, in milliseconds.
    pub visibility_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            submissions: QueueOptions { receives_max: 10, visibility_ms: 60_000 },
            scheduler: QueueOptions { receives_max: 10, visibility_ms: 60_000 },
            requests: QueueOptions { receives_max: 1_000, visibility_ms: 15 * 60_000 },
            live_max: 20_000,
            readers_max: 4,
            events_max: 10_000,
            busy_ms: 5_000,
            cache_kib: 16 * 1_024,
            lazy_ms: 100,
            observer: None,
        }
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
            .field("observer", &self.observer.is_some())
            .finish()
    }
}
