//! What is outside of the system, and outlasts it: customers, services, and what they saw. The worlds of the
//! [engine](super::engine) and of [AWS](super::aws) have it.

mod customers;
pub(super) mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::{Answer, Call, Service};
use bytes::Bytes;
use domain::id::OrderId;
use domain::json::Json;
use domain::message::CloudEvent;
use domain::task::{Direction, ProcessState, Task};
use domain::time::Timestamp;
use domain::workflow::{StepRule, Workflow};
use tokio::time::Instant;

use crate::simulation::observe;
use crate::simulation::rng::Rng;
use crate::simulation::setup::Setup;
use crate::simulation::state::EPOCH_MS;
use crate::simulation::trace::Trace;

pub(super) use customers::{act, may_act, post};

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

/// The state of one step of one order at its service.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// The effect is there.
    pub is_done: bool,
    /// Undone, or blocked by an undo before it.
    pub is_closed: bool,
    declines: Option<bool>,
    /// The highest attempt of a call.
    pub attempt: u32,
    /// The hash of what each direction's calls carry.
    bodies: BTreeMap<Arc<str>, u64>,
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
    setup: Arc<Setup>,
    world: Arc<str>,
}

impl Outside {
    pub(super) fn new(mut rng: Rng, setup: Arc<Setup>, keeps_lines: bool) -> Self {
        let customers = (0..setup.orders).map(|number| {
            let channel = if rng.chance(7_000) { format!(",\"ReplyChannel\":\"{CHANNEL}\"") } else { String::new() };
            let from_ms = i64::try_from(rng.below(setup.posts_within_ms)).unwrap_or(0);
            let key = format!("key-{number}");
            let document = Bytes::from(format!("{{\"Number\":{number},\"CorrelationID\":\"{key}\"{channel}}}"));
            Customer { document, key, from_ms, order: None }
        });
        Self {
            customers: customers.collect(),
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
            setup,
            world: "world".into(),
        }
    }

    /// A step as the workflow of an order has it.
    pub(super) fn rule(&self, task: &Task, step: usize) -> Option<&StepRule> {
        let is_meant = |workflow: &&Workflow| workflow.version == task.workflow_version;
        self.setup.shape.versions().find(is_meant)?.steps.get(step)
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
    }

    /// A service hears a call. Returns what becomes of it.
    fn called(&mut self, agent: &Arc<str>, direction: Direction, call: &Call<'_>) -> Course {
        let hash = observe::hash_of(&format!("{:?}", observe::body(call)));
        let ledger = self.books.entry((call.order_id, call.step.into())).or_default();
        ledger.attempt = ledger.attempt.max(call.attempt);
        if *ledger.bodies.entry(call.idempotency_key.into()).or_insert(hash) != hash {
            let words = format!("another call under the key {}", call.idempotency_key);
            self.complain("rule 4", Some(call.order_id), &words);
        }
        self.note(agent, Some(call.order_id), &format!("{direction:?} {} {}", call.step, call.attempt));
        let (service_ms, timeout_ms) = (self.setup.service_ms, call.timeout_ms);
        let late = self.strikes("late answer", 200);
        Course {
            there_ms: self.rng.between(0, service_ms),
            back_ms: if late {
                self.rng.between(timeout_ms / 2, 2 * timeout_ms)
            } else {
                self.rng.between(0, service_ms)
            },
            is_refused: self.strikes("call refused for a while", 500),
            is_unanswered: self.strikes("call without an answer", 300),
        }
    }

    /// The call arrives: its effect, and the answer.
    fn serve(&mut self, direction: Direction, (order, step): (OrderId, &str)) -> Answer {
        let declines = self.strikes("call declined", 400);
        let ledger = self.books.entry((order, step.into())).or_default();
        let declines = *ledger.declines.get_or_insert(declines);
        match direction {
            Direction::Forward if ledger.is_closed => return Answer::fail("undone", "it was undone before"),
            Direction::Forward if declines => return Answer::fail("declined", "no"),
            Direction::Forward => ledger.is_done = true,
            Direction::Undo => ledger.is_closed = true,
        }
        Answer::Done(Json::of(&step.len()))
    }
}

/// What becomes of a call.
struct Course {
    there_ms: u64,
    back_ms: u64,
    is_refused: bool,
    is_unanswered: bool,
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

/// An agent's client of its service.
pub struct Client {
    /// The world outside.
    pub outside: Shared,
    /// The agent.
    pub agent: Arc<str>,
}

impl Service for Client {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.call(Direction::Forward, call).await
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        self.call(Direction::Undo, call).await
    }
}

impl Client {
    async fn call(&self, direction: Direction, call: &Call<'_>) -> Answer {
        let course = self.outside.lock().called(&self.agent, direction, call);
        sleep(course.there_ms).await;
        if course.is_refused {
            return Answer::retry("503");
        }
        let answer = self.outside.lock().serve(direction, (call.order_id, call.step));
        sleep(course.back_ms).await;
        if course.is_unanswered { Answer::unknown("connection reset") } else { answer }
    }
}

/// Waits, on the clock of the world.
#[expect(clippy::disallowed_methods, reason = "the runtime of a world has a clock of its own")]
pub(super) async fn sleep(ms: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
}
