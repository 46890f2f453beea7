//! Every port in memory, on a clock that moves only when a caller advances it.
//!
//! The design is one lock and one bell: each change rings the bell, and every waiting caller looks again. That is slow
//! and simple to verify. This crate is the reference for the other adapters.

mod content;
mod faults;
pub mod faulty;
mod outside;
mod queue;
mod records;
pub mod sample;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::id::OrderId;
use domain::index::Term;
use domain::message::{CloudEvent, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, MemoryRecords};
use domain::tally::Numbers;
use domain::task::Task;
use domain::time::Timestamp;
use tokio::sync::Notify;

pub use faults::Fault;
pub use queue::{DeadLetters, RECEIVES_MAX, Requests, Scheduler, Submissions, VISIBILITY_MS};

use faults::Faults;
use queue::MemoryQueue;

/// All ports in memory. Cloning copies a pointer.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    bell: Notify,
}

struct State {
    now: Timestamp,
    /// By how much others see a later time.
    jump_ms: u64,
    random: u64,
    /// In the order of insertion, oldest first.
    arrivals: Vec<OrderId>,
    orders: BTreeMap<OrderId, (Arc<Order>, Arc<Task>)>,
    /// What orders are found by.
    terms: BTreeSet<(Term, OrderId)>,
    submissions: MemoryQueue<Order>,
    scheduler: MemoryQueue<SchedulerMessage>,
    requests: BTreeMap<String, MemoryQueue<Request>>,
    request_receives_max: u32,
    dead_letters: MemoryQueue<DeadLetter>,
    records: MemoryRecords,
    channels: BTreeSet<String>,
    published: Vec<CloudEvent>,
    notified: Vec<(String, CloudEvent)>,
    faults: Faults,
    knows_orders: bool,
    /// Tasks that a page shows at most.
    page_max: usize,
    /// Tasks that a page takes in at most, without an index by state.
    scanned_max: Option<usize>,
    numbers: Option<Numbers>,
    /// Whether a read has changed the state.
    rings: bool,
}

impl Default for Memory {
    /// Empty, at the beginning of time.
    fn default() -> Self {
        Self::new(Timestamp::default(), 0)
    }
}

impl Memory {
    /// Empty, at the given time, with randomness from a seed.
    #[must_use]
    pub fn new(now: Timestamp, seed: u64) -> Self {
        let state = State {
            now,
            jump_ms: 0,
            random: seed,
            arrivals: Vec::new(),
            orders: BTreeMap::new(),
            terms: BTreeSet::new(),
            submissions: MemoryQueue::default(),
            scheduler: MemoryQueue::default(),
            requests: BTreeMap::new(),
            request_receives_max: RECEIVES_MAX,
            dead_letters: MemoryQueue::default(),
            records: MemoryRecords::default(),
            channels: BTreeSet::new(),
            published: Vec::new(),
            notified: Vec::new(),
            faults: Faults::default(),
            knows_orders: false,
            page_max: usize::MAX,
            scanned_max: None,
            numbers: None,
            rings: false,
        };
        Self(Arc::new(Inner { state: Mutex::new(state), bell: Notify::new() }))
    }

    /// Advances the clock and wakes the callers that wait for it.
    pub fn advance(&self, ms: u64) {
        self.change(|state| state.now = state.now.plus_ms(ms));
    }

    /// The clock is set back.
    pub fn set_back(&self, ms: u64) {
        self.change(|state| state.now = state.now.minus_ms(ms));
    }

    /// The wall clock jumps, and is not believed.
    pub fn jump(&self, ms: u64) {
        self.state().jump_ms += ms;
    }

    /// The submission queue knows the orders from now on ([`domain::ports::Queues::knows_orders`]).
    pub fn queue_knows_orders(&self) {
        self.state().knows_orders = true;
    }

    /// Registers a reply channel.
    pub fn register_channel(&self, name: &str) {
        self.change(|state| state.channels.insert(name.to_owned()));
    }

    /// Removes a reply channel.
    pub fn unregister_channel(&self, name: &str) {
        self.change(|state| state.channels.remove(name));
    }

    /// The events on the event bus, oldest first.
    #[must_use]
    pub fn published(&self) -> Vec<CloudEvent> {
        self.state().published.clone()
    }

    /// The events sent to reply channels, with the channel's name, oldest first.
    #[must_use]
    pub fn notified(&self) -> Vec<(String, CloudEvent)> {
        self.state().notified.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and rings the bell.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state());
        self.0.bell.notify_waiters();
        result
    }

    /// Looks now and after every change until `look` returns a result.
    async fn until<R>(&self, mut look: impl FnMut(&mut State) -> Option<R>) -> R {
        loop {
            // Created before the look, so that a change after the look is noticed.
            let bell = self.0.bell.notified();
            let (found, rings) = {
                let state = &mut *self.state();
                (look(state), std::mem::take(&mut state.rings))
            };
            if rings {
                self.0.bell.notify_waiters();
            }
            match found {
                Some(found) => return found,
                None => bell.await,
            }
        }
    }
}
