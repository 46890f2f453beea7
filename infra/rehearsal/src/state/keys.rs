//! The keys that a service remembers, and drops.

use std::sync::Arc;

use domain::id::OrderId;
use domain::message::{Settled, Settlement, idempotency_key};
use domain::task::Direction;
use domain::workflow::{LINE, StepRule, step_of};

use crate::described::{Described, Words};
use crate::event::Event;
use crate::faults::Fault;
use crate::observe;
use crate::seen::{SettledStep, Try, Way};
use crate::shape::Shape;
use crate::state::{JUMPED_MS_MAX, State};

impl State {
    /// The index of a step in the record of its order: its own workflow alone says which steps the order has.
    pub(crate) fn index_of(&self, order: OrderId, step: &str) -> Option<usize> {
        let task = self.tables.task(order);
        let own = task.as_ref().and_then(|task| task.steps.iter().position(|own| *own.name == *step));
        own.or_else(|| self.by_shape(task.is_some())?.index_of(step))
    }

    /// The name of the step at an index of the record of its order.
    fn name_of(&self, order: OrderId, index: usize) -> Option<Arc<str>> {
        let task = self.tables.task(order);
        let own = task.as_ref().and_then(|task| Some(task.steps.get(index)?.name.clone()));
        own.or_else(|| self.by_shape(task.is_some())?.steps.get(index).cloned())
    }

    /// The shape, for steps that no record has. A workflow with lines says nothing of the steps of its orders.
    fn by_shape(&self, has_record: bool) -> Option<&Shape> {
        Some(&*self.setup.shape).filter(|shape| !(has_record && shape.has_lines()))
    }

    /// The name in its workflow of the step of an attempt.
    pub(crate) fn step_name(&self, of: Try) -> Option<Arc<str>> {
        let name = self.name_of(of.order, of.step)?;
        Some(if name.contains(LINE) { step_of(&name).into() } else { name })
    }

    /// What a service says of the step of an attempt.
    pub(crate) fn said_of<'d>(&self, described: &'d Described, of: Try) -> Option<&'d Words> {
        described.words(&self.step_name(of)?, of.way)
    }

    /// One attempt of one step; `None` for an unknown step.
    #[must_use]
    pub fn attempt_of(&self, order: OrderId, step: &str, direction: Direction, attempt: u32) -> Option<Try> {
        Some(Try { order, step: self.index_of(order, step)?, way: observe::way(direction), attempt })
    }

    /// What an operator settles; `None` for an unknown step.
    pub(crate) fn settled_of(&self, order: OrderId, settlement: &Settlement) -> Option<SettledStep> {
        Some(SettledStep {
            step: self.index_of(order, &settlement.step)?,
            way: observe::way(settlement.outcome.direction()),
            output: settlement.output.as_ref().map(observe::hash),
            is_skipped: settlement.outcome == Settled::Skipped,
            is_dropped: settlement.outcome == Settled::Dropped,
        })
    }

    /// Whether no call for this key is in flight or at work.
    pub(crate) fn is_quiet(&self, key: &Arc<str>) -> bool {
        let is_at_work = |agent: usize| self.remotes.books.work_on(&(agent, key.clone())).is_some();
        !self.remotes.has_under_way(key) && !(0..self.setup.shape.agents.len()).any(is_at_work)
    }

    /// A service without lasting memory may drop a key after the agent's reply. The agent wrote its memo before, unless
    /// the write failed.
    pub(crate) fn forget_what_is_replied(&mut self, of: Try) {
        let Some(step) = self.name_of(of.order, of.step) else { return };
        let key_of = |direction| idempotency_key(of.order, &step, direction);
        let forward = key_of(Direction::Forward);
        let key = match of.way {
            Way::Forward => forward.clone(),
            Way::Undo => key_of(Direction::Undo),
        };
        let Some(agent) = self.agent_of(of) else { return };
        let is_unwritten = |key: &Arc<str>| self.remotes.unwritten.contains(key);
        let is_written = !is_unwritten(&key) && (of.way == Way::Forward || !is_unwritten(&forward));
        // By a clock that is set back, a claim that is over holds again: its agent, paused until then, calls once more.
        let may_forget = self.setup.has_memo(agent)
            && !self.setup.clocks_jump()
            && is_written
            && self.is_quiet(&key)
            && self.is_quiet(&forward);
        let known_key = (agent, key);
        if !may_forget || !self.remotes.books.keys.contains(&known_key) || !self.strikes(Fault::ServiceForgot) {
            return;
        }
        self.remotes.books.keys.remove(&known_key);
        self.tell(&format!("the service forgets {}", known_key.1));
        if of.way == Way::Undo
            && let Some(ledger) = self.remotes.books.steps.get_mut(&(of.order, of.step, agent))
        {
            ledger.is_closed = false;
        }
    }

    /// The index of a step's present agent.
    pub(crate) fn agent_of(&self, of: Try) -> Option<usize> {
        let task = self.tables.task(of.order)?;
        let name = self.name_of(of.order, of.step)?;
        let step = task.steps.iter().find(|step| step.name == name)?;
        self.setup.shape.place_of(&step.agent)
    }

    pub(crate) fn rule_of(&self, of: Try) -> Option<&StepRule> {
        let task = self.tables.task(of.order)?;
        let workflow = self.setup.shape.workflow_of(&task)?;
        let name = self.step_name(of)?;
        workflow.steps.iter().find(|rule| rule.name == name)
    }

    /// A service that drops keys some time after the step's horizon, or when its user says so.
    pub(super) fn forget_in_time(&mut self, of: Try, agent: usize) {
        if let Some(described) = &self.setup.services[agent].described {
            if let Some(ms) = described.service.forgets_keys_after_ms {
                self.after(ms, Event::Forget(of.order, of.step, of.way == Way::Undo));
            }
            return;
        }
        let Some(rule) = self.rule_of(of) else { return };
        let has_memo = self.agent_of(of).is_some_and(|agent| self.setup.has_memo(agent));
        if has_memo || !self.setup.shape.short_horizon || !self.setup.plan.has(Fault::KeyExpired) {
            return;
        }
        let kept_ms = rule.horizon_ms + 2 * rule.complete_within_ms + 4 * self.setup.skew_ms + 20_000;
        // The time for which clocks are wrong does not count.
        let kept_ms = kept_ms + if self.setup.clocks_jump() { 2 * JUMPED_MS_MAX } else { 0 };
        let forget = Event::Forget(of.order, of.step, of.way == Way::Undo);
        self.after(kept_ms, forget);
    }

    /// The time for which a service keeps a key is over.
    pub fn forget(&mut self, order: OrderId, step: usize, direction: Direction) {
        let Some(step) = self.name_of(order, step) else { return };
        let key = idempotency_key(order, &step, direction);
        let is_kept = self.remotes.books.vouched.contains(&order) || !self.is_quiet(&key);
        if is_kept && !self.setup.is_described() {
            return;
        }
        let services = &self.setup.services;
        let is_of = |described: &Described| described.service.forgets_keys_after_ms.is_some();
        let may = |agent: &usize| services[*agent].described.as_deref().is_none_or(is_of);
        let agents: Vec<usize> = (0..services.len()).filter(may).collect();
        let forgets = |agent: usize| self.remotes.books.keys.remove(&(agent, key.clone()));
        if agents.into_iter().map(forgets).filter(|forgot| *forgot).count() == 0 {
            return;
        }
        self.counts.add(Fault::KeyExpired);
        self.remotes.books.forgotten.insert(order);
        self.tell(&format!("the service forgets {key}, which is old"));
    }

    /// Whether a service has dropped a key of the order.
    #[must_use]
    pub fn has_forgotten(&self, order: OrderId) -> bool {
        self.remotes.books.forgotten.contains(&order)
    }

    /// An operator vouches for an order's services, if they still have its keys.
    pub fn vouch(&mut self, order: OrderId) -> bool {
        let may = !self.has_forgotten(order);
        if may {
            self.remotes.books.vouched.insert(order);
        }
        may
    }

    /// Whether services drop old keys in this world.
    #[must_use]
    pub fn keys_expire(&self) -> bool {
        self.setup.shape.short_horizon && self.setup.plan.has(Fault::KeyExpired)
    }
}
