//! A scripted remote service; by default it succeeds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::{Answer, Call, Service};
use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Failure, idempotency_key};
use domain::ports::Environment;
use domain::task::Direction;
use domain::time::Timestamp;

use memory::Memory;

/// One received call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Whose step.
    pub order_id: OrderId,
    /// The step's name.
    pub step: String,
    /// Forward or undo.
    pub direction: Direction,
    /// The idempotency key.
    pub key: String,
    /// The attempt.
    pub attempt: u32,
    /// The document that it carries.
    pub document: Json,
    /// When it began, by the agent's clock.
    pub started_at: Timestamp,
    /// When it came, by the clock of the world.
    pub at: Timestamp,
}

/// The scripted act for one call.
#[derive(Debug, Clone)]
pub enum Act {
    /// Answers this, and does nothing.
    Answers(Answer),
    /// Carries it out; the answer takes this many milliseconds.
    Late(u64),
    /// Carries it out, and the answer is lost on its way: the agent cannot know what happened.
    LosesAnswer,
    /// Carries it out, and never answers.
    Hangs,
    /// Panics in the agent.
    Panics,
    /// Begins the work, which takes this many milliseconds, and has its effect at the end, even if its caller is gone or
    /// the step was undone meanwhile. A repeat meanwhile is told that the service is at work.
    Works(u64),
}

/// All services in one. Cloning copies a pointer.
#[derive(Clone)]
pub struct Remote {
    memory: Memory,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    acts: BTreeMap<(String, &'static str), VecDeque<Act>>,
    /// What it does at every call for a step that has no act of its own.
    habits: BTreeMap<String, Act>,
    /// The same for the step of one order.
    own_habits: BTreeMap<(OrderId, String), Act>,
    ignores_keys: bool,
    forgets_after_ms: Option<u64>,
    /// When each key was seen first.
    keys: BTreeMap<String, Timestamp>,
    undone: BTreeSet<(OrderId, String)>,
    /// When the work for a key ends.
    works: BTreeMap<String, Timestamp>,
    /// By key and attempt: a repeat is answered the same, and who asks anew is heard anew.
    refusals: BTreeMap<(String, u32), Answer>,
    called: Vec<Called>,
    /// Idempotency keys in the order of their effects.
    effects: Vec<String>,
}

impl Remote {
    /// Services that keep their keys for ever.
    #[must_use]
    pub fn new(memory: Memory) -> Self {
        Self { memory, state: Arc::default() }
    }

    /// From now on every call that is carried out has an effect, whatever its key.
    pub fn ignore_keys(&self) {
        self.state().ignores_keys = true;
    }

    /// From now on a key counts as new again when it is so old, in milliseconds.
    pub fn forget_keys_after(&self, ms: u64) {
        self.state().forgets_after_ms = Some(ms);
    }

    /// What it does at the next call for this step in this direction.
    pub fn next(&self, step: &str, direction: Direction, act: Act) {
        self.state().acts.entry((step.to_owned(), direction.name())).or_default().push_back(act);
    }

    /// Rejects the next call.
    pub fn declines(&self, step: &str, direction: Direction) {
        self.next(step, direction, Act::Answers(Answer::fail("no", "for good")));
    }

    /// What it does at every call for this step from now on, where no single act comes first.
    pub fn always(&self, step: &str, act: Act) {
        self.state().habits.insert(step.to_owned(), act);
    }

    /// The same for this step of one order.
    pub fn always_of(&self, order_id: OrderId, step: &str, act: Act) {
        self.state().own_habits.insert((order_id, step.to_owned()), act);
    }

    /// Succeeds for this step again.
    pub fn recovers(&self, step: &str) {
        self.state().habits.remove(step);
    }

    /// All calls so far, oldest first.
    #[must_use]
    pub fn called(&self) -> Vec<Called> {
        self.state().called.clone()
    }

    /// The calls for one step so far, in both directions.
    #[must_use]
    pub fn calls(&self, step: &str) -> Vec<Called> {
        self.called().into_iter().filter(|called| called.step == step).collect()
    }

    /// Steps and directions of all calls, oldest first.
    #[must_use]
    pub fn story(&self) -> Vec<(String, Direction)> {
        self.called().into_iter().map(|called| (called.step, called.direction)).collect()
    }

    /// Effects for each idempotency key.
    #[must_use]
    pub fn effects(&self) -> BTreeMap<String, u32> {
        let mut counts = BTreeMap::new();
        for key in self.effects_in_order() {
            *counts.entry(key).or_default() += 1;
        }
        counts
    }

    /// A person has the effect of a step at the service, under its key.
    pub fn acts_by_hand(&self, order_id: OrderId, step: &str, direction: Direction) {
        let key = idempotency_key(order_id, step, direction).to_string();
        let state = &mut *self.state();
        state.keys.insert(key.clone(), self.memory.now());
        state.effects.push(key);
    }

    /// The idempotency key of each effect, in their order.
    #[must_use]
    pub fn effects_in_order(&self) -> Vec<String> {
        let state = &mut *self.state();
        state.end_works(self.memory.now());
        state.effects.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn act(&self, direction: Direction, call: &Call<'_>) -> Answer {
        let act = {
            let state = &mut *self.state();
            let step = call.step.to_owned();
            state.called.push(Called {
                order_id: call.order_id,
                step: step.clone(),
                direction,
                key: call.idempotency_key.to_owned(),
                attempt: call.attempt,
                document: call.order.clone(),
                started_at: call.started_at,
                at: self.memory.now(),
            });
            if let Some(refusal) = state.refusals.get(&(call.idempotency_key.to_owned(), call.attempt)) {
                return refusal.clone();
            }
            let own = state.own_habits.get(&(call.order_id, step.clone())).cloned();
            let own = own.or_else(|| state.acts.get_mut(&(step, direction.name())).and_then(VecDeque::pop_front));
            own.or_else(|| state.habits.get(call.step).cloned())
        };
        match act {
            None => self.state().carry_out(direction, call, self.memory.now()),
            Some(Act::Answers(answer)) => {
                if let Answer::Fail(_) = answer {
                    let key = (call.idempotency_key.to_owned(), call.attempt);
                    self.state().refusals.insert(key, answer.clone());
                }
                answer
            }
            Some(Act::Late(ms)) => {
                self.memory.advance(ms);
                self.state().carry_out(direction, call, self.memory.now())
            }
            Some(Act::LosesAnswer) => {
                self.state().carry_out(direction, call, self.memory.now());
                Answer::retry("connection reset")
            }
            Some(Act::Hangs) => {
                self.state().carry_out(direction, call, self.memory.now());
                pending().await
            }
            Some(Act::Panics) => panic!("as the test says"),
            Some(Act::Works(ms)) => {
                let answer = self.state().work(direction, call, ms, self.memory.now());
                match answer {
                    Some(answer) => answer,
                    None if ms < call.timeout_ms => {
                        self.memory.advance(ms);
                        self.state().end_works(self.memory.now());
                        Answer::Done(Json::of(&call.idempotency_key))
                    }
                    None => pending().await,
                }
            }
        }
    }
}

impl State {
    /// Has the effects of the works that are over.
    fn end_works(&mut self, now: Timestamp) {
        let over: Vec<String> = self.works.extract_if(.., |_, end| *end <= now).map(|(key, _)| key).collect();
        for key in over {
            self.keys.insert(key.clone(), now);
            self.effects.push(key);
        }
    }

    /// The answer of a service that takes its time; `None` if it has just begun.
    fn work(&mut self, direction: Direction, call: &Call<'_>, ms: u64, now: Timestamp) -> Option<Answer> {
        self.end_works(now);
        let key = call.idempotency_key.to_owned();
        let done = Answer::Done(Json::of(&key));
        if self.keys.contains_key(&key) {
            return Some(done);
        }
        let forward = idempotency_key(call.order_id, call.step, Direction::Forward);
        match direction {
            Direction::Forward if self.works.contains_key(&key) => {
                let in_use = Failure { code: "in-use".into(), message: "an earlier call is at work".into() };
                Some(Answer::UnderWay { after_ms: None, unless_alone: Some(in_use), poll: None })
            }
            Direction::Forward => {
                self.works.insert(key, now.plus_ms(ms));
                None
            }
            // There is something to take back only if the effect is there already.
            Direction::Undo if self.keys.contains_key(&*forward) => {
                self.keys.insert(key.clone(), now);
                self.effects.push(key);
                Some(done)
            }
            Direction::Undo => Some(done),
        }
    }

    fn carry_out(&mut self, direction: Direction, call: &Call<'_>, now: Timestamp) -> Answer {
        let (key, step) = (call.idempotency_key.to_owned(), (call.order_id, call.step.to_owned()));
        match direction {
            // A service that recognises keys knows of the undo too, and so does one that looks at its own books.
            Direction::Forward if !self.ignores_keys && self.undone.contains(&step) => {
                return Answer::fail("undone", "the step was taken back");
            }
            Direction::Forward => {}
            Direction::Undo => {
                self.undone.insert(step);
            }
        }
        let known = self.keys.get(&key).is_some_and(|first| {
            self.forgets_after_ms.is_none_or(|forgets_after_ms| first.ms_until(now) < forgets_after_ms)
        });
        if self.ignores_keys || !known {
            self.keys.insert(key.clone(), now);
            self.effects.push(key.clone());
        }
        Answer::Done(Json::of(&key))
    }
}

impl Service for Remote {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Forward, call).await
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Undo, call).await
    }
}
