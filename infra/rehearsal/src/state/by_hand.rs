//! Operators who mend a step by hand at its service, and settle it (rule 27).
//!
//! The service knows what was done by hand by the step's key, as if an agent had called. Nobody mends a step for whose
//! order another command may be under way: what a person does at a service, no cancelled order takes back.

use std::collections::BTreeSet;

use agent::Answer;
use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Action, Settled, Settlement, idempotency_key};
use domain::task::{Direction, ProcessState, StepState};
use domain::workflow::LINE;
use serde_json::json;

use crate::faults::Fault;
use crate::observe;
use crate::seen::Try;
use crate::state::State;
use crate::state::books::Made;

/// What operators did, and at which services.
#[derive(Debug, Default)]
pub struct ByHand {
    /// Orders that were resubmitted or cancelled.
    commanded: BTreeSet<OrderId>,
    /// Steps that were carried out by hand.
    done: BTreeSet<(OrderId, usize)>,
}

impl State {
    /// Whether another command than a settle may be sent for an order.
    pub(crate) fn may_command(&mut self, order: OrderId, action: Action) -> bool {
        let is_by_hand = self.tables.task(order).is_some_and(|task| {
            let is_open = |(index, _): &(usize, _)| self.by_hand.done.contains(&(order, *index));
            let mut failed = task
                .steps
                .iter()
                .enumerate()
                .filter(|(_, step)| (step.process_state, step.direction) == (StepState::Error, Direction::Forward));
            failed.any(|one| is_open(&one))
        });
        if !is_by_hand && matches!(action, Action::Resubmit | Action::Cancel) {
            self.by_hand.commanded.insert(order);
        }
        !is_by_hand
    }

    /// Carries the failed step of an order out at its service, or takes it back there, and says what to settle. A
    /// careless service is left alone: a late call could have its effect once more.
    pub(crate) fn mend(&mut self, order: OrderId) -> Option<Settlement> {
        let task = self.tables.task(order)?;
        let is_failed = task.process_state == ProcessState::Error;
        let mut failed = task.steps.iter().enumerate().filter(|(_, step)| step.process_state == StepState::Error);
        let (index, step) = failed.next().filter(|_| is_failed)?;
        let of = Try { order, step: index, way: observe::way(step.direction), attempt: step.attempt };
        if step.name.contains(LINE) && step.direction == Direction::Forward && self.rng.chance(4_000) {
            let settlement = Settlement { step: step.name.clone(), outcome: Settled::Dropped, output: None };
            return self.vouch(order).then(|| {
                self.counts.add(Fault::Settled);
                settlement
            });
        }
        let key_of = |direction| idempotency_key(order, &step.name, direction);
        let agent = self.agent_of(of)?;
        let is_over = step.may_run_until.is_none_or(|until| until <= self.clock(0));
        let is_free = step.direction == Direction::Undo || !self.by_hand.commanded.contains(&order);
        let is_quiet = [Direction::Forward, Direction::Undo].iter().all(|direction| self.is_quiet(&key_of(*direction)));
        if is_over && step.optional && step.direction == Direction::Forward && self.rng.chance(5_000) {
            self.counts.add(Fault::Settled);
            return Some(Settlement { step: step.name.clone(), outcome: Settled::Skipped, output: None });
        }
        if !is_over || !is_free || !is_quiet || self.setup.services[agent].is_careless || !self.vouch(order) {
            return None;
        }
        let key = key_of(step.direction);
        self.tell(&format!("an operator mends {} by hand", of.words(&self.setup.shape.steps)));
        let call = Made {
            id: 0,
            of,
            agent,
            key,
            timeout_ms: 0,
            started_ms: self.now_ms,
            callback: None,
            authorization: None,
            is_polled: false,
        };
        self.recall(&call);
        let done = self.carry_out(&call);
        if !matches!(done, Answer::Done(_)) {
            return None;
        }
        self.counts.add(Fault::Settled);
        let (outcome, output) = match step.direction {
            Direction::Forward => {
                self.by_hand.done.insert((order, index));
                (Settled::Done, Some(Json::of(&json!({"Step": index, "By": "hand"}))))
            }
            Direction::Undo => (Settled::Undone, None),
        };
        Some(Settlement { step: step.name.clone(), outcome, output })
    }
}
