//! What becomes of a state once the faults stop (invariants 14 and 15).

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use domain::task::ProcessState;

use super::action::{Action, Then, Who};
use super::bounds::{Clocks, STEPS};
use super::message::{Answer, Message};
use super::protocol::{Protocol, busy, worker};
use super::state::{IN_FLIGHT, OrderState, Seen, State, Worker};
use super::task::{Care, Late};

/// More than any order of two steps takes to its end.
const ACTIONS_MAX: usize = 500;
/// A state is looked up in one of so many parts, so that the checker's threads rarely wait for each other.
const PARTS: usize = 64;

/// The states from which the orders are known to end.
#[derive(Debug)]
pub(super) struct Drain {
    known: Vec<Mutex<HashSet<u64>>>,
}

impl Default for Drain {
    fn default() -> Self {
        Self { known: (0..PARTS).map(|_| Mutex::default()).collect() }
    }
}

impl Drain {
    fn part(&self, hash: u64) -> &Mutex<HashSet<u64>> {
        &self.known[usize::try_from(hash % PARTS as u64).unwrap_or(0)]
    }

    fn knows(&self, hash: u64) -> bool {
        self.part(hash).lock().unwrap_or_else(PoisonError::into_inner).contains(&hash)
    }

    fn learn(&self, hash: u64) {
        self.part(hash).lock().unwrap_or_else(PoisonError::into_inner).insert(hash);
    }
}

/// Whether every order ends if from here on nothing is lost, nobody dies, every service answers and time goes on. Each
/// message is handled once, by whoever is free; the supervisor looks when nothing else is left to do.
pub(super) fn ends(protocol: &Protocol, state: &State) -> bool {
    let mut way = Vec::new();
    let mut at = *state;
    while way.len() < ACTIONS_MAX {
        let hash = hash(&at);
        if protocol.drain.knows(hash) || has_ended(protocol, &at) {
            way.push(hash);
            way.into_iter().for_each(|hash| protocol.drain.learn(hash));
            return true;
        }
        way.push(hash);
        match step(protocol, &at) {
            Some(next) if next.breach.is_none() => at = next,
            Some(_) | None => return false,
        }
    }
    false
}

/// Whether nothing is left to do, for anybody but an operator who was told.
pub(super) fn has_ended(protocol: &Protocol, state: &State) -> bool {
    let is_idle = busy(state).next().is_none();
    is_idle && protocol.orders().all(|order| order_has_ended(&state.orders[usize::from(order)]))
}

fn order_has_ended(order: &OrderState) -> bool {
    // It is not posted.
    if order.pinned.is_none() {
        return true;
    }
    let Some(task) = &order.task else { return false };
    let is_at_rest = match task.state {
        ProcessState::Processed | ProcessState::Compensated | ProcessState::Closed => task.care == Care::Nobody,
        ProcessState::Error => task.care == Care::Operator && order.told == task.alerts,
        ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => {
            task.paused && task.care == Care::Operator
        }
    };
    is_at_rest && task.owed.is_none() && order.messages.is_empty()
}

/// The next thing that happens when nothing goes wrong.
fn step(protocol: &Protocol, state: &State) -> Option<State> {
    let apply = |action| protocol.apply(state, action, IN_FLIGHT);
    if let Some(by) = busy(state).next() {
        return apply(finish(state, by));
    }
    for order in protocol.orders() {
        // A reply before the request that may lead to another of it.
        if let Some(message) = state.orders[usize::from(order)].messages.iter().max_by_key(rank) {
            return match message {
                Message::Submission => {
                    apply(Action::Store { order, view: state.applied.newest(), sends: true, acknowledges: true })
                }
                Message::Wake | Message::Reply(..) | Message::Command(_) => apply(Action::Receive { order, message }),
                Message::Request(attempt, left, _) => {
                    let its = &state.orders[usize::from(order)];
                    let answers = [Answer::Done, Answer::Failed].into_iter();
                    let answer = answers.into_iter().find(|&answer| protocol.may_answer(its, attempt, answer))?;
                    let answered = apply(Action::Call { order, attempt, left, answer });
                    let state = answered.as_ref().unwrap_or(state);
                    protocol.apply(state, Action::Lose { order, message }, IN_FLIGHT)
                }
            };
        }
    }
    if protocol.bounds.clocks == Clocks::One
        && let Some(later) = apply(Action::Tick)
    {
        return Some(later);
    }
    protocol.orders().find_map(|order| {
        let is_due = state.orders[usize::from(order)].task.is_some_and(|task| task.care == Care::Supervisor);
        is_due.then(|| apply(Action::Look { order })).flatten()
    })
}

/// What an instance does next that goes on with its work.
fn finish(state: &State, by: Who) -> Action {
    match worker(state, by) {
        Worker::Idle => Action::Die { by },
        // Deadlines are over by the time at which somebody comes back to them.
        Worker::Read(_, Seen::Fresh | Seen::Stale | Seen::Kept(_)) => Action::Decide {
            by,
            view: state.applied.newest(),
            redelivered: false,
            late: Late([true; STEPS]),
            then: Then::LetGo,
        },
        Worker::Decided(..) => Action::Send { by, then: Then::LetGo },
        Worker::Sent(..) => Action::Strike { by, can: true },
    }
}

const fn rank(message: &Message) -> u8 {
    match message {
        Message::Submission => 4,
        Message::Command(_) => 3,
        Message::Reply(..) => 2,
        Message::Wake => 1,
        Message::Request(..) => 0,
    }
}

fn hash(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
