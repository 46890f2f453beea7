//! All states of a small world, in memory: for questions about the states themselves.

use std::collections::{HashSet, VecDeque};

use stateright::Model as _;

use super::action::Action;
use super::bounds::STEPS;
use super::protocol::Protocol;
use super::state::{OrderState, Service, State};
use super::task::Task;

/// An order as a store and the services see it, whoever is at it and whatever is in flight.
pub type Seen = (Option<Task>, [Service; STEPS], u8);

/// What is seen of an order.
#[must_use]
pub const fn seen(order: &OrderState) -> Seen {
    (order.task, order.services, order.told)
}

/// Every state within the bounds. `look` sees each transition once.
pub fn explore(protocol: &Protocol, mut look: impl FnMut(&State, Action, &State)) -> HashSet<State> {
    let mut known: HashSet<State> = protocol.init_states().into_iter().collect();
    let mut open: VecDeque<State> = known.iter().copied().collect();
    let mut actions = Vec::new();
    while let Some(state) = open.pop_front() {
        protocol.actions(&state, &mut actions);
        for action in actions.drain(..) {
            if let Some(next) = protocol.next_state(&state, action) {
                look(&state, action, &next);
                if known.insert(next) {
                    open.push_back(next);
                }
            }
        }
    }
    known
}
