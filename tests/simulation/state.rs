//! The world behind the ports: what is stored, queued and known, the events to come, and the onlookers.
//!
//! One lock around all of it. Nobody waits for it, since a world runs on one thread; it is there because ports are shared.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use domain::id::OrderId;
use domain::time::Timestamp;

use super::auditor::seen::Seen;
use super::auditor::{Auditor, Rules};
use super::faults::{Counts, Fault};
use super::operators::{Blow, Meddling};
use super::queues::QueueSet;
use super::records::Records;
use super::rng::Rng;
use super::services::Remotes;
use super::setup::Setup;
use super::shapes::flow;
use super::store::Tables;
use super::trace::Trace;

/// The time of day at which every world begins, in epoch milliseconds.
pub const EPOCH_MS: i64 = 1_795_195_600_000;

/// Something to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Somebody's sleep is over: place and generation among the timers.
    Timer(u32, u32),
    /// Somebody may take a batch off a queue.
    Pump(usize),
    /// A paused invocation goes on.
    Resume(u32),
    /// An instance is there (again), by its place.
    Started(usize),
    /// An instance makes way for one of the present deployment.
    Recycled(usize),
    /// A supervisor's tick, by its number. Only the one that is due counts.
    Tick(usize, i64),
    /// A customer posts.
    Post(usize),
    /// An operator does something in the middle.
    Meddle(Meddling),
    /// An outage or an intrusion begins.
    Strike(Blow),
    /// A call reaches its service.
    Arrive(u64),
    /// The answer of a service reaches its caller.
    Answer(u64),
    /// A service has kept a key for long enough: order, step, and whether it is that of the undo.
    Forget(OrderId, usize, bool),
    /// The second version of the workflow is there.
    Deploy,
    /// Faults stop.
    Calm,
    /// The next look at what ought to have ended.
    Look,
}

struct Entry {
    at_ms: i64,
    number: u64,
    event: Event,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// Who waits for the time to pass.
#[derive(Default)]
struct Timers {
    /// Generation and who waits.
    slots: Vec<(u32, Option<Waker>)>,
    free: Vec<u32>,
}

/// The world behind the ports.
pub struct State {
    /// Milliseconds since the world began.
    pub now_ms: i64,
    /// Chance.
    pub rng: Rng,
    /// What does not change.
    pub setup: Arc<Setup>,
    /// How often each fault struck.
    pub counts: Counts,
    /// Faults have stopped.
    pub is_calm: bool,
    /// The order database and the state store.
    pub tables: Tables,
    /// The queues.
    pub queues: QueueSet,
    /// Leases, memos, health, jobs, dead letters.
    pub records: Records,
    /// The remote services.
    pub remotes: Remotes,
    /// Invocations that were told that a reply could not be sent.
    pub unsent_by: BTreeSet<u32>,
    /// Who complains.
    pub auditor: Auditor,
    /// What happened.
    pub trace: Trace,
    /// The world's own name in the trace.
    pub world: Arc<str>,
    events: BinaryHeap<Reverse<Entry>>,
    next_number: u64,
    timers: Timers,
}

impl State {
    /// A new world.
    pub fn new(rng: Rng, setup: Arc<Setup>, keeps_lines: bool) -> Self {
        let workflows = setup.shape.versions().map(|workflow| (workflow.version, flow(workflow))).collect();
        let margins_ms = setup.policies.iter().map(|policy| i64::try_from(policy.margin_ms).unwrap_or(0));
        let rules = Rules {
            workflows,
            margins_ms: margins_ms.collect(),
            wrong_clocks: setup.skew_ms > 0 || setup.plan.has(Fault::TwoLeaders),
        };
        Self {
            now_ms: 0,
            rng,
            counts: Counts::default(),
            is_calm: false,
            tables: Tables::default(),
            queues: QueueSet::default(),
            records: Records::default(),
            remotes: Remotes::default(),
            unsent_by: BTreeSet::new(),
            auditor: Auditor::new(rules),
            trace: Trace::new(keeps_lines),
            world: "world".into(),
            events: BinaryHeap::new(),
            next_number: 0,
            timers: Timers::default(),
            setup,
        }
    }

    /// Whether a fault strikes at this occasion; if so it is counted.
    pub fn strikes(&mut self, fault: Fault) -> bool {
        let rate = self.setup.plan.rate(fault);
        let strikes = !self.is_calm && self.rng.chance(rate);
        if strikes {
            self.counts.add(fault);
        }
        strikes
    }

    /// Plans an event, so many milliseconds from now.
    pub fn after(&mut self, ms: u64, event: Event) {
        self.at(self.now_ms.saturating_add_unsigned(ms), event);
    }

    /// Plans an event.
    pub fn at(&mut self, at_ms: i64, event: Event) {
        self.next_number += 1;
        let entry = Entry { at_ms: at_ms.max(self.now_ms), number: self.next_number, event };
        self.events.push(Reverse(entry));
    }

    /// Moves the clock to the next event and gives it.
    pub fn next_event(&mut self) -> Option<Event> {
        let Reverse(entry) = self.events.pop()?;
        self.now_ms = entry.at_ms;
        Some(entry.event)
    }

    /// Has somebody woken after a time. Gives what it takes to call that off.
    pub(super) fn wake_after(&mut self, ms: u64, waker: Waker) -> (u32, u32) {
        let slot = match self.timers.free.pop() {
            Some(slot) => slot,
            None => {
                self.timers.slots.push((0, None));
                u32::try_from(self.timers.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        let (generation, waiting) = &mut self.timers.slots[slot as usize];
        *waiting = Some(waker);
        let key = (slot, *generation);
        self.after(ms, Event::Timer(key.0, key.1));
        key
    }

    /// Nobody waits on this timer any more; gives who did.
    pub(super) fn end_timer(&mut self, (slot, generation): (u32, u32)) -> Option<Waker> {
        let (present, waiting) = self.timers.slots.get_mut(slot as usize)?;
        if *present != generation {
            return None;
        }
        *present += 1;
        self.timers.free.push(slot);
        waiting.take()
    }

    /// Puts another waker in place.
    pub(super) fn change_timer(&mut self, (slot, generation): (u32, u32), waker: &Waker) {
        if let Some((present, waiting)) = self.timers.slots.get_mut(slot as usize)
            && *present == generation
            && !waiting.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            *waiting = Some(waker.clone());
        }
    }

    /// How long a call of a port is on its way, once.
    pub fn latency_ms(&mut self) -> u64 {
        let most = if self.rng.chance(30) { 3_000 } else { self.setup.latency_ms };
        self.rng.between(0, most)
    }

    /// Something was seen: the auditor looks at it, and it is written down.
    pub fn see(&mut self, actor: &Arc<str>, seen: &Seen) {
        self.trace.note(self.now_ms, actor, seen.order(), seen, || seen.to_string());
        self.auditor.see(self.now_ms, seen);
    }

    /// Something happened that the auditor need not know.
    pub fn note(
        &mut self,
        actor: &Arc<str>,
        order: Option<OrderId>,
        what: &(impl Hash + ?Sized),
        words: impl FnOnce() -> String,
    ) {
        self.trace.note(self.now_ms, actor, order, what, words);
    }

    /// The same, by the world itself.
    pub fn tell(&mut self, what: &str) {
        let world = self.world.clone();
        self.note(&world, None, what, || what.to_owned());
    }

    /// The time of day of somebody whose clock is off by so much.
    #[must_use]
    pub fn clock(&self, skew_ms: i64) -> Timestamp {
        Timestamp::from_epoch_ms(EPOCH_MS + self.now_ms + skew_ms)
    }
}

/// The world, shared by all who live in it. Cloning copies a pointer.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<State>>);

impl Shared {
    /// Of a new world.
    #[must_use]
    pub fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    /// The world as it is.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, once nobody else holds it.
    #[must_use]
    pub fn into_inner(self) -> Option<State> {
        Arc::into_inner(self.0).map(|mutex| mutex.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
