//! The remote services: what they answer, what they tell later, and their effects.

use domain::task::ProcessState;

use super::audit::Breach;
use super::bounds::Clocks;
use super::message::{Answer, Attempt, Message};
use super::protocol::{LATER, Protocol};
use super::state::{OrderState, Service, State};
use super::versions::COMPILED;

impl Protocol {
    /// Whether an agent can come to this answer. A service that has done something under a key answers with it again.
    pub(super) fn may_answer(&self, order: &OrderState, attempt: Attempt, answer: Answer) -> bool {
        let Service { forward, undo, refused, runs, accepted: _ } = order.services[usize::from(attempt.step)];
        let is_done = if attempt.undo { undo > 0 } else { forward > 0 };
        let is_refused = !attempt.undo
            && match self.bounds.clocks {
                Clocks::Any => undo > 0,
                Clocks::One => refused,
            };
        let declines = if attempt.undo { self.bounds.undo_declines } else { self.bounds.declines };
        match answer {
            Answer::Done => !is_refused,
            // A service that is at work says so, and no agent that made that call takes it for a no.
            Answer::Failed => is_refused || (declines && !is_done && (attempt.undo || runs == 0)),
            Answer::FailedUnderWay => !attempt.undo && runs > 0,
            Answer::Deferred => order.deferrals > 0,
            Answer::Accepted => {
                self.bounds.callbacks && attempt.step == LATER && !attempt.undo && forward == 0 && undo == 0
            }
        }
    }

    /// Whether the service of a step can tell this result later. After its undo it has no effect any more.
    pub(super) fn may_tell(&self, service: Service, answer: Answer) -> bool {
        let is_open = service.accepted && service.undo == 0;
        match answer {
            Answer::Done => is_open,
            Answer::Failed => is_open && service.forward == 0 && self.bounds.declines,
            Answer::FailedUnderWay | Answer::Deferred | Answer::Accepted => false,
        }
    }

    /// Whether a call can go on after its caller left, and have an effect.
    pub(super) fn may_linger(&self, order: &OrderState, attempt: Attempt) -> bool {
        let Service { forward, refused, .. } = order.services[usize::from(attempt.step)];
        self.bounds.settles > 0 && !attempt.undo && forward == 0 && !refused
    }

    /// A call at the service that is answered. That the answer comes late, or never, is up to the bag.
    pub(super) fn call(&self, state: &mut State, order: u8, attempt: Attempt, answer: Answer) -> Option<()> {
        if answer == Answer::Done {
            self.have_effect(state, order, attempt);
        }
        let order = &mut state.orders[usize::from(order)];
        let service = &mut order.services[usize::from(attempt.step)];
        service.refused |= answer == Answer::Failed && !attempt.undo && self.bounds.clocks == Clocks::One;
        service.accepted |= answer == Answer::Accepted;
        order.deferrals -= u8::from(answer == Answer::Deferred);
        order.messages.add(Message::Reply(attempt, answer)).then_some(())
    }

    /// A service tells the result of a call that it took on. The API reads the task, and queues what counts.
    pub(super) fn tell(&self, state: &mut State, order: u8, step: u8, answer: Answer) -> Option<()> {
        let task = state.orders[usize::from(order)].task?;
        if answer == Answer::Done {
            self.have_effect(state, order, Attempt { step, undo: false, number: 0 });
        }
        if answer == Answer::Failed {
            // It is done with the call.
            state.orders[usize::from(order)].services[usize::from(step)].accepted = false;
        }
        let reply = self.decider.told(&task, step, answer);
        let room = reply.is_none_or(|reply| state.orders[usize::from(order)].messages.add(reply));
        room.then_some(())
    }

    /// An operator does by hand what the service refused.
    pub(super) fn mend(&self, state: &mut State, order: u8, attempt: Attempt) {
        self.have_effect(state, order, attempt);
        state.orders[usize::from(order)].services[usize::from(attempt.step)].refused = false;
    }

    /// What a call does, unless it was done before under its key.
    pub(super) fn have_effect(&self, state: &mut State, order: u8, attempt: Attempt) {
        let pinned = state.orders[usize::from(order)].pinned.unwrap_or(COMPILED);
        let rules = &self.decider.versions.at(pinned).steps;
        let rule = &rules[usize::from(attempt.step)];
        let comes_after = |index: &usize| rules[*index].after.contains(&usize::from(attempt.step));
        let is_closed = state.orders[usize::from(order)].task.is_some_and(|task| task.state == ProcessState::Closed);
        let services = &mut state.orders[usize::from(order)].services;
        let is_there = |index: &usize| services[*index].forward > 0 && services[*index].undo == 0;
        let Service { forward, undo, .. } = services[usize::from(attempt.step)];
        let is_new = (if attempt.undo { undo } else { forward }) == 0;
        let breach = match (is_new, attempt.undo) {
            (true, _) if is_closed && self.bounds.clocks == Clocks::One => Some(Breach::Closed),
            (true, false) if undo > 0 => Some(Breach::Undone),
            (true, false) if !rule.after.iter().all(is_there) => Some(Breach::Order),
            (true, true) if (0..rules.len()).any(|index| comes_after(&index) && is_there(&index)) => {
                Some(Breach::Order)
            }
            _ => None,
        };
        let service = &mut services[usize::from(attempt.step)];
        let effects = if attempt.undo { &mut service.undo } else { &mut service.forward };
        *effects += u8::from(is_new);
        service.runs = if attempt.undo { service.runs } else { 0 };
        state.breach = state.breach.or(breach);
    }
}
