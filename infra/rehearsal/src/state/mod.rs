//! The world behind the ports: stores, queues, pending events, who judges it, and the trace.
//!
//! One lock guards all of it, since ports are shared. It is never contended: a world runs on one thread.

pub mod books;
pub mod by_hand;
mod dead_letters;
pub mod keys;
mod mishap;
pub mod queues;
pub mod records;
pub mod services;
pub mod store;
pub mod tokens;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use domain::id::OrderId;
use domain::ports::{Memo, MemoState};
use domain::time::Timestamp;

use crate::event::Event;
use crate::faults::{Counts, Fault};
use crate::rng::Rng;
use crate::seen::Seen;
use crate::setup::Setup;
use crate::state::by_hand::ByHand;
use crate::state::queues::QueueSet;
use crate::state::records::Records;
use crate::state::services::Remotes;
use crate::state::store::Tables;
use crate::trace::Trace;
use crate::watcher::Watcher;

/// The wall-clock time at the start of every world, in epoch milliseconds.
pub const EPOCH_MS: i64 = 1_795_195_600_000;
/// The largest jump of a clock, in milliseconds.
pub const JUMP_MS_MAX: u64 = 4 * 3_600_000;
/// The longest time for which it is wrong after a jump, in milliseconds.
pub const JUMPED_MS_MAX: u64 = 3 * 3_600_000;

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

/// The sleeping tasks.
#[derive(Default)]
struct Timers {
    /// Generation and waker.
    slots: Vec<(u32, Option<Waker>)>,
    free: Vec<u32>,
}

/// The world behind the ports.
pub struct State {
    /// Milliseconds since the start of the world.
    pub now_ms: i64,
    /// The randomness.
    pub rng: Rng,
    /// The randomness of what HTTP adds. Its stream is its own: all else of a world stays as it is.
    pub(crate) of_http: Rng,
    /// The constants.
    pub setup: Arc<Setup>,
    /// The count of each fault.
    pub counts: Counts,
    /// Whether the faults have stopped.
    pub is_calm: bool,
    /// The order database and the state store.
    pub tables: Tables,
    /// The queues.
    pub queues: QueueSet,
    /// Leases, memos, health, jobs, dead letters and others.
    pub records: Records,
    /// The remote services.
    pub remotes: Remotes,
    /// By invocation of the API: the time at which it knows at least what was applied, in milliseconds since the start of
    /// the world.
    pub known_ms: BTreeMap<u32, i64>,
    /// The earliest time at which an invocation read or inserted an order's task, by its clock, in milliseconds.
    pub read_ms: BTreeMap<(u32, OrderId), i64>,
    /// What operators did by hand.
    pub by_hand: ByHand,
    /// Writes that still fail in a row.
    pub failing_writes: u64,
    /// Until when something goes wrong, in milliseconds since the start of the world.
    troubled_until_ms: i64,
    /// Invocations whose reply could not be sent.
    pub unsent_by: BTreeSet<u32>,
    /// Who judges it.
    pub watcher: Box<dyn Watcher>,
    /// The trace.
    pub trace: Trace,
    /// The world's own name in the trace.
    pub world: Arc<str>,
    /// The jump of all clocks, in milliseconds, and its end in milliseconds since the start of the world.
    jumped: (i64, i64),
    /// From then on all clocks are right, in milliseconds since the start of the world.
    pub jumped_until_ms: i64,
    events: BinaryHeap<Reverse<Entry>>,
    next_number: u64,
    timers: Timers,
}

impl State {
    /// A new world.
    pub fn new(rng: Rng, setup: Arc<Setup>, mut watcher: Box<dyn Watcher>, keeps_lines: bool) -> Self {
        // Instances with wrong clocks are replaced when they are free.
        let troubled_until_ms = if setup.skew_ms > 0 { setup.calm_at_ms + 60_000 } else { 0 };
        watcher.troubled(troubled_until_ms);
        Self {
            now_ms: 0,
            of_http: Rng::new(!rng.clone().bits()),
            rng,
            counts: Counts::default(),
            is_calm: false,
            tables: Tables::default(),
            queues: QueueSet::of(setup.shape.agents.len()),
            records: Records::with_a_key(setup.shape.compiled()),
            remotes: Remotes::of(setup.shape.agents.len()),
            by_hand: ByHand::default(),
            known_ms: BTreeMap::new(),
            read_ms: BTreeMap::new(),
            failing_writes: 0,
            unsent_by: BTreeSet::new(),
            troubled_until_ms,
            watcher,
            trace: Trace::new(keeps_lines),
            world: "world".into(),
            jumped: (0, 0),
            jumped_until_ms: 0,
            events: BinaryHeap::new(),
            next_number: 0,
            timers: Timers::default(),
            setup,
        }
    }

    /// Whether a fault occurs now; if so, it is counted.
    pub fn strikes(&mut self, fault: Fault) -> bool {
        let rate = self.setup.plan.rate(fault);
        let rng = if fault.is_of_http() { &mut self.of_http } else { &mut self.rng };
        let strikes = !self.is_calm && rng.chance(rate);
        if strikes {
            self.counts.add(fault);
            self.trouble(0);
        }
        strikes
    }

    /// Something goes wrong for this long, in milliseconds.
    pub fn trouble(&mut self, ms: u64) {
        self.trouble_until(self.now_ms.saturating_add_unsigned(ms));
    }

    /// Something goes wrong until this time, in milliseconds since the start of the world.
    fn trouble_until(&mut self, until_ms: i64) {
        self.troubled_until_ms = self.troubled_until_ms.max(until_ms);
        self.watcher.troubled(self.troubled_until_ms);
    }

    /// A claim by a clock that jumped is believed until its end, by the right clocks (rule 23).
    pub fn see_claim(&mut self, memo: &Memo) {
        if let MemoState::InProgress(until) = memo.state
            && self.now_ms < self.jumped_until_ms
        {
            self.trouble_until(until.epoch_ms() - EPOCH_MS);
        }
    }

    /// Schedules an event this many milliseconds from now.
    pub fn after(&mut self, ms: u64, event: Event) {
        self.at(self.now_ms.saturating_add_unsigned(ms), event);
    }

    /// Schedules an event.
    pub fn at(&mut self, at_ms: i64, event: Event) {
        self.next_number += 1;
        let entry = Entry { at_ms: at_ms.max(self.now_ms), number: self.next_number, event };
        self.events.push(Reverse(entry));
    }

    /// Advances the clock to the next event and returns it.
    pub fn next_event(&mut self) -> Option<Event> {
        let Reverse(entry) = self.events.pop()?;
        self.now_ms = entry.at_ms;
        Some(entry.event)
    }

    /// Sets a timer; returns its handle for cancellation.
    pub(crate) fn wake_after(&mut self, ms: u64, waker: Waker) -> (u32, u32) {
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

    /// Cancels a timer; returns its waker.
    pub(crate) fn end_timer(&mut self, (slot, generation): (u32, u32)) -> Option<Waker> {
        let (present, waiting) = self.timers.slots.get_mut(slot as usize)?;
        if *present != generation {
            return None;
        }
        *present += 1;
        self.timers.free.push(slot);
        waiting.take()
    }

    /// Replaces the waker.
    pub(crate) fn change_timer(&mut self, (slot, generation): (u32, u32), waker: &Waker) {
        if let Some((present, waiting)) = self.timers.slots.get_mut(slot as usize)
            && *present == generation
            && !waiting.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            *waiting = Some(waker.clone());
        }
    }

    /// Draws the one-way time of a port call.
    pub fn latency_ms(&mut self) -> u64 {
        let is_slow = self.setup.ports_are_slow && self.rng.chance(30);
        let most = if is_slow { 3_000 } else { self.setup.latency_ms };
        let ms = self.rng.between(0, most);
        if is_slow {
            self.trouble(ms);
        }
        ms
    }

    /// Records an observation, for who judges and for the trace.
    pub fn see(&mut self, actor: &Arc<str>, seen: &Seen) {
        let (tables, shape) = (&self.tables, &self.setup.shape);
        let words = || match seen.order().and_then(|order| tables.task(order)) {
            Some(task) => seen.words(&task.steps.iter().map(|step| step.name.clone()).collect::<Vec<_>>()),
            None => seen.words(&shape.steps),
        };
        self.trace.note(self.now_ms, actor, seen.order(), seen, words);
        self.watcher.see(self.now_ms, seen);
    }

    /// Records an event in the trace only.
    pub fn note(
        &mut self,
        actor: &Arc<str>,
        order: Option<OrderId>,
        what: &(impl Hash + ?Sized),
        words: impl FnOnce() -> String,
    ) {
        self.trace.note(self.now_ms, actor, order, what, words);
    }

    /// The same, for the world itself.
    pub fn tell(&mut self, what: &str) {
        let world = self.world.clone();
        self.note(&world, None, what, || what.to_owned());
    }

    /// The wall-clock time of an instance with this clock error.
    #[must_use]
    pub fn clock(&self, skew_ms: i64) -> Timestamp {
        let (jump_ms, until_ms) = self.jumped;
        let jump_ms = if self.now_ms < until_ms { jump_ms } else { 0 };
        // An error beyond the usual ones is a jump too.
        let has_jumped = skew_ms.unsigned_abs() > self.setup.skew_ms;
        let skew_ms = if has_jumped && self.now_ms >= self.jumped_until_ms { 0 } else { skew_ms };
        Timestamp::from_epoch_ms(EPOCH_MS + self.now_ms + jump_ms + skew_ms)
    }

    /// The clocks of all instances jump, in place of an earlier jump.
    pub fn jump(&mut self) {
        let jump_ms = self.draw_jump();
        self.jumped = (jump_ms, self.jumped_until_ms);
        self.tell(&format!("all clocks jump by {jump_ms} ms"));
    }

    /// All clocks are right from now on.
    pub fn end_jumps(&mut self) {
        let now_ms = self.now_ms;
        self.jumped_until_ms = self.jumped_until_ms.min(now_ms);
        self.jumped.1 = self.jumped.1.min(now_ms);
        self.watcher.jumped(self.jumped_until_ms);
    }

    /// Draws the error of a clock that jumps, in milliseconds. All clocks that jumped are right again at the same time.
    pub fn draw_jump(&mut self) -> i64 {
        let longest_ms = self.rng.pick(&[60_000, 20 * 60_000, JUMPED_MS_MAX]);
        let until_ms = self.now_ms.saturating_add_unsigned(self.rng.between(1_000, longest_ms));
        self.jumped_until_ms = self.jumped_until_ms.max(until_ms);
        self.watcher.jumped(self.jumped_until_ms);
        self.trouble_until(self.jumped_until_ms);
        self.tables.is_watch_changed = true;
        let longest_ms = self.rng.pick(&[10_000, 600_000, JUMP_MS_MAX]);
        let ms = self.rng.between(0, 2 * longest_ms);
        i64::try_from(ms).unwrap_or(0) - i64::try_from(longest_ms).unwrap_or(0)
    }
}

/// The shared world. Cloning copies a pointer.
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

    /// The state, after all other references are dropped.
    #[must_use]
    pub fn into_inner(self) -> Option<State> {
        Arc::into_inner(self.0).map(|mutex| mutex.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
