//! What is outside of the system, and outlasts it: customers, services, and what they saw. The worlds of the
//! [engine](super::engine) and of [AWS](super::aws) have it.

mod customers;
pub mod scene;
pub(super) mod services;
pub(super) mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use domain::id::OrderId;
use domain::message::{CloudEvent, decode};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use domain::workflow::{StepRule, Workflow, step_of};
use tokio::time::Instant;

use rehearsal::lines;
use rehearsal::rng::Rng;
use rehearsal::setup::Setup;
use rehearsal::state::EPOCH_MS;
use rehearsal::trace::Trace;

pub(super) use customers::{act, may_act, post};
pub(super) use scene::perform;
pub use scene::{Deed, Heard, Scene, Seen};
pub use services::{Client, Ledger};

/// A violation: the order, if any, and what is wrong.
pub type Found = (Option<OrderId>, String);

/// The registered reply channel.
pub const CHANNEL: &str = "shop";

/// The time of a world. It goes on from life to life.
#[derive(Debug, Default)]
pub struct Clock {
    past_ms: i64,
    started: Option<Instant>,
    /// How far the wall clock is off, in milliseconds.
    pub wrong_ms: i64,
    /// Whether it ever was.
    pub was_wrong: bool,
}

impl Clock {
    /// A life starts.
    #[expect(clippy::disallowed_methods, reason = "the runtime of a world has a clock of its own")]
    pub fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    /// A life ends.
    pub fn stop(&mut self) {
        self.past_ms = self.now_ms();
        self.started = None;
    }

    /// The wall clock is off by so much from now on.
    pub const fn set_wrong(&mut self, wrong_ms: i64) {
        self.wrong_ms = wrong_ms;
        self.was_wrong |= wrong_ms != 0;
    }

    /// Time without a process.
    pub const fn pass(&mut self, ms: u64) {
        self.past_ms = self.past_ms.saturating_add_unsigned(ms);
    }

    /// Milliseconds since the start of the world.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        let lived_ms = self.started.map_or(0, |started| started.elapsed().as_millis());
        self.past_ms + i64::try_from(lived_ms).unwrap_or(i64::MAX)
    }

    /// The wall-clock time of the machine.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        Timestamp::from_epoch_ms(EPOCH_MS + self.now_ms() + self.wrong_ms)
    }
}

/// What happened how often.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// Counts one.
    pub fn add(&mut self, what: &'static str) {
        self.more(what, 1);
    }

    /// Counts some.
    pub fn more(&mut self, what: &'static str, times: u64) {
        *self.0.entry(what).or_default() += times;
    }

    /// How often it happened.
    #[must_use]
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

/// A customer with one order.
#[derive(Debug, Clone)]
pub struct Customer {
    /// The order.
    pub document: Bytes,
    /// The idempotency key.
    pub key: String,
    /// When it posts first, in milliseconds since the start of the world.
    pub from_ms: i64,
    /// Once it is accepted.
    pub order: Option<OrderId>,
}

/// What a reader outside saw of an order.
#[derive(Debug, Default, Clone)]
pub struct Sight {
    /// The highest version.
    pub version: u64,
    /// Once it is final.
    pub is_final: Option<ProcessState>,
}

/// Everything outside.
pub struct Outside {
    /// The randomness.
    pub rng: Rng,
    /// The time.
    pub clock: Clock,
    /// Whether services work on some calls for a while.
    is_slow: bool,
    /// Whether the faults are over.
    pub is_calm: bool,
    /// Whether the process runs, or ran.
    pub has_started: bool,
    /// Whether any process ever ran.
    pub ever_started: bool,
    /// The customers.
    pub customers: Vec<Customer>,
    /// By order and step.
    pub books: BTreeMap<(OrderId, Arc<str>), Ledger>,
    /// What was seen of orders.
    pub sights: BTreeMap<OrderId, Sight>,
    /// The events that arrived: order and kind.
    pub told: BTreeSet<(Arc<str>, Arc<str>)>,
    /// What happened how often.
    pub counts: Counts,
    /// The trace.
    pub trace: Trace,
    /// What is wrong.
    pub violations: Vec<Found>,
    /// The script, if there is one.
    pub scene: Option<Scene>,
    /// What was seen while it was followed.
    pub seen: Seen,
    setup: Arc<Setup>,
    world: Arc<str>,
}

impl Outside {
    pub(super) fn new(mut rng: Rng, setup: Arc<Setup>, keeps_lines: bool) -> Self {
        let customers = (0..setup.orders).map(|number| {
            let channel = if rng.chance(7_000) { format!(",\"ReplyChannel\":\"{CHANNEL}\"") } else { String::new() };
            let from_ms = i64::try_from(rng.below(setup.posts_within_ms)).unwrap_or(0);
            let key = format!("key-{number}");
            let has_lines = setup.shape.has_lines();
            let lines = if has_lines { lines::draw(setup.calm_at_ms, number) } else { String::new() };
            let document = format!("{{\"Number\":{number},\"CorrelationID\":\"{key}\"{channel}{lines}}}");
            let document = Bytes::from(document);
            Customer { document, key, from_ms, order: None }
        });
        let customers = customers.collect();
        let is_slow = rng.chance(7_000);
        Self {
            customers,
            is_slow,
            rng,
            clock: Clock::default(),
            is_calm: false,
            has_started: false,
            ever_started: false,
            books: BTreeMap::new(),
            sights: BTreeMap::new(),
            told: BTreeSet::new(),
            counts: Counts::default(),
            trace: Trace::new(keeps_lines),
            violations: Vec::new(),
            scene: None,
            seen: Seen::default(),
            setup,
            world: "world".into(),
        }
    }

    /// The world follows a script from its start on.
    pub(super) fn follow(&mut self, scene: Scene) {
        self.is_slow = false;
        for (customer, (at_ms, document)) in self.customers.iter_mut().zip(&scene.posts) {
            let key = &customer.key;
            (customer.from_ms, customer.document) = (*at_ms, document.replace("KEY", key).into());
        }
        self.scene = Some(scene);
    }

    /// Whether the script says that the receiver refuses this message.
    pub(super) fn refuses(&self, message: &str) -> bool {
        let event = || decode::<CloudEvent>(message.as_bytes());
        self.scene.as_ref().is_some_and(|scene| event().is_ok_and(|event| (scene.refuses)(&event, self.clock.now_ms())))
    }

    /// A step as the workflow of an order has it.
    pub(super) fn rule(&self, task: &Task, step: usize) -> Option<&StepRule> {
        let is_meant = |workflow: &&Arc<Workflow>| workflow.version == task.workflow_version;
        let name = step_of(&task.steps.get(step)?.name);
        self.setup.shape.versions().find(is_meant)?.steps.iter().find(|rule| *rule.name == *name)
    }

    /// Whether something that happens so often, in 10,000 times, happens now.
    pub fn strikes(&mut self, what: &'static str, times: u64) -> bool {
        let strikes = !self.is_calm && self.rng.chance(times);
        if strikes {
            self.counts.add(what);
        }
        strikes
    }

    /// A line of the trace.
    pub fn note(&mut self, actor: &Arc<str>, order: Option<OrderId>, words: &str) {
        self.trace.note(self.clock.now_ms(), actor, order, words, || words.to_owned());
    }

    /// A line of the trace about the world.
    pub fn tell(&mut self, words: &str) {
        let world = self.world.clone();
        self.note(&world, None, words);
    }

    /// An invariant does not hold: its number, or a rule.
    pub fn complain(&mut self, invariant: &str, order: Option<OrderId>, words: &str) {
        let at_s = self.clock.now_ms() / 1_000;
        let world = self.world.clone();
        self.note(&world, order, &format!("WRONG: {words}"));
        self.violations.push((order, format!("invariant {invariant}: {words} (at {at_s} s)")));
    }

    /// Someone sees a task. What was seen once never goes back.
    pub fn see(&mut self, task: &Task) {
        let sight = self.sights.entry(task.order_id).or_default();
        let before = sight.clone();
        sight.version = sight.version.max(task.version);
        if task.version > before.version {
            self.note_wanted(task);
        }
        let sight = self.sights.entry(task.order_id).or_default();
        if task.process_state.is_final() {
            sight.is_final.get_or_insert(task.process_state);
        }
        if task.version < before.version {
            let words = format!("version {} is there, and {} was seen before", task.version, before.version);
            self.complain("12", Some(task.order_id), &words);
        }
        if before.is_final.is_some_and(|state| state != task.process_state) {
            self.complain("7", Some(task.order_id), &format!("{:?}, and it was final", task.process_state));
        }
    }

    /// An event is on disk, or arrived at its channel.
    pub fn heard(&mut self, event: &CloudEvent) {
        let world = self.world.clone();
        self.note(&world, event.subject.parse().ok(), &format!("told: {}", event.kind));
        self.told.insert(((*event.subject).into(), (*event.kind).into()));
        if self.scene.is_some() {
            self.seen.told.push((self.clock.wall(), event.clone()));
        }
    }
}

/// Everything outside, shared with the process. Cloning copies a pointer.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Outside>>);

impl Shared {
    pub(super) fn new(outside: Outside) -> Self {
        Self(Arc::new(Mutex::new(outside)))
    }

    /// As it is now.
    pub fn lock(&self) -> MutexGuard<'_, Outside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After the last life, when no process has a part in it.
    pub(super) fn into_inner(self) -> Outside {
        let mutex = Arc::into_inner(self.0).unwrap_or_else(|| panic!("a process outlived its world"));
        mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits, on the clock of the world.
#[expect(clippy::disallowed_methods, reason = "the runtime of a world has a clock of its own")]
pub(super) async fn sleep(ms: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
}
