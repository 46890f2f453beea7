//! A remote service that does what a test says, and good work where it says nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use agent::{Answer, Call, Service};
use domain::json::Json;
use domain::task::Direction;
use tests::memory::Memory;

/// One call as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Called {
    pub(crate) step: String,
    pub(crate) direction: Direction,
    pub(crate) key: String,
    pub(crate) attempt: u32,
}

/// What it does at one call.
pub(crate) enum Act {
    /// Answers this.
    Answers(Answer),
    /// Carries it out; so much time passes before the answer, in milliseconds.
    Late(u64),
}

/// All services in one. Cloning copies a pointer.
#[derive(Clone)]
pub(crate) struct Remote {
    memory: Memory,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    acts: BTreeMap<(String, &'static str), VecDeque<Act>>,
    called: Vec<Called>,
    effects: BTreeMap<String, u32>,
}

impl Remote {
    pub(crate) fn new(memory: Memory) -> Self {
        Self { memory, state: Arc::default() }
    }

    /// What it does at the next call for this step in this direction.
    pub(crate) fn next(&self, step: &str, direction: Direction, act: Act) {
        let mut state = self.state.lock().unwrap();
        state.acts.entry((step.to_owned(), direction.name())).or_default().push_back(act);
    }

    pub(crate) fn declines(&self, step: &str, direction: Direction) {
        self.next(step, direction, Act::Answers(Answer::fail("no", "for good")));
    }

    /// All calls so far, oldest first.
    pub(crate) fn called(&self) -> Vec<Called> {
        self.state.lock().unwrap().called.clone()
    }

    /// Steps and directions of all calls, oldest first.
    pub(crate) fn story(&self) -> Vec<(String, Direction)> {
        self.called().into_iter().map(|called| (called.step, called.direction)).collect()
    }

    /// Effects for each idempotency key: a repeat has none, as with any service that honours the key.
    pub(crate) fn effects(&self) -> BTreeMap<String, u32> {
        self.state.lock().unwrap().effects.clone()
    }

    fn act(&self, direction: Direction, call: &Call<'_>) -> Answer {
        let mut state = self.state.lock().unwrap();
        let (step, key) = (call.step.to_owned(), call.idempotency_key.to_owned());
        state.called.push(Called { step: step.clone(), direction, key: key.clone(), attempt: call.attempt });
        let act = state.acts.get_mut(&(step, direction.name())).and_then(VecDeque::pop_front);
        match act {
            Some(Act::Answers(answer)) => return answer,
            Some(Act::Late(ms)) => self.memory.advance(ms),
            None => {}
        }
        state.effects.entry(key.clone()).or_insert(1);
        Answer::Done(Json::of(&key))
    }
}

impl Service for Remote {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Forward, call)
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Undo, call)
    }
}
