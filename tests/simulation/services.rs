//! The remote services and their true effects. A started call proceeds even if its caller no longer waits.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent::{Answer, Call, Service};
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::OUTPUT_BYTES_MAX;
use domain::message::idempotency_key;
use domain::task::Direction;
use domain::workflow::StepRule;

use super::auditor::seen::{Body, Seen, Try, Way};
use super::faults::Fault;
use super::observe;
use super::ports::Who;
use super::shapes::AGENTS;
use super::state::{Event, Shared, State};

/// The delay of a late call, in milliseconds.
const LATE_MS: (u64, u64) = (5_000, 30 * 60_000);

/// The effects of the services, and the calls in flight.
#[derive(Debug, Default)]
pub struct Remotes {
    calls: BTreeMap<u64, Under>,
    last_call: u64,
    steps: BTreeMap<(OrderId, usize), Ledger>,
    /// Keys that a service remembers.
    keys: BTreeSet<Arc<str>>,
    away_until_ms: [i64; AGENTS.len()],
    /// The documents that customers post, each with the channel it names.
    pub channels: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Keys whose agent could not write its memo.
    pub unwritten: BTreeSet<Arc<str>>,
    /// Resubmitted orders: their services keep the keys.
    vouched: BTreeSet<OrderId>,
    /// Orders of which a service dropped an old key.
    forgotten: BTreeSet<OrderId>,
}

/// The state of one step of one order at its service.
#[derive(Debug, Default)]
struct Ledger {
    effects: u32,
    undos: u32,
    /// Undone, or blocked by an undo before it.
    is_closed: bool,
    character: Option<Character>,
}

/// The service's outcome for a step.
#[derive(Debug, Clone, Copy)]
struct Character {
    declines_until_ms: i64,
    declines_undo: bool,
    says_too_much: bool,
}

/// A call in flight.
#[derive(Debug)]
struct Under {
    of: Try,
    agent: usize,
    key: Arc<str>,
    timeout_ms: u64,
    has_arrived: bool,
    /// The end of its agent's wait, in milliseconds since the start of the world; `None` if the agent no longer waits.
    alive_until_ms: Option<i64>,
    answer: Option<Said>,
    waiting: Option<Waker>,
}

/// The answer.
#[derive(Debug, Clone)]
enum Said {
    Answers(Answer),
    Panics,
}

/// An agent's client of a service.
pub struct Remote {
    /// The world.
    pub shared: Shared,
    /// The agent's instance.
    pub who: Who,
    /// The index of the agent.
    pub agent: usize,
}

impl Service for Remote {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.call(Direction::Forward, call).await
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        self.call(Direction::Undo, call).await
    }
}

impl Remote {
    async fn call(&self, direction: Direction, call: &Call<'_>) -> Answer {
        let Some(of) = observe::of(call.order_id, call.step, direction, call.attempt) else {
            return Answer::fail("no-such-step", "there is no such step");
        };
        let id = self.shared.lock().begin_call(&self.who, self.agent, of, call);
        match (AnswerOf { shared: self.shared.clone(), id }).await {
            Said::Answers(answer) => answer,
            // Not `panic!`, which would print: this panic is caught.
            Said::Panics => resume_unwind(Box::new("a client panics on purpose")),
        }
    }
}

/// Waits for the answer of a call.
struct AnswerOf {
    shared: Shared,
    id: u64,
}

impl Future for AnswerOf {
    type Output = Said;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Said> {
        let mut state = self.shared.lock();
        let Some(under) = state.remotes.calls.get_mut(&self.id) else { return Poll::Pending };
        if let Some(said) = under.answer.take() {
            under.alive_until_ms = None;
            return Poll::Ready(said);
        }
        under.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for AnswerOf {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let Some(under) = state.remotes.calls.get_mut(&self.id) else { return };
        let waiting = under.waiting.take();
        under.alive_until_ms = None;
        // A call that has not arrived yet still proceeds.
        if under.has_arrived {
            state.remotes.calls.remove(&self.id);
        }
        drop(state);
        drop(waiting);
    }
}

impl State {
    fn begin_call(&mut self, who: &Who, agent: usize, of: Try, call: &Call<'_>) -> u64 {
        let key: Arc<str> = call.idempotency_key.into();
        let clock_ms = self.clock(who.skew_ms).epoch_ms();
        let known =
            |(step, output): (&Arc<str>, &Json)| (observe::index(step).unwrap_or(usize::MAX), observe::hash(output));
        let body = Body { document: observe::hash(call.order), outputs: call.outputs.iter().map(known).collect() };
        // An agent with memos has one call of a key in flight, as far as clocks agree.
        let must_be_alone = self.setup.has_memo(agent) && self.setup.skew_ms == 0;
        let is_twin =
            |under: &&Under| under.key == key && under.alive_until_ms.is_some_and(|until| self.now_ms < until);
        let twins = if must_be_alone { self.remotes.calls.values().filter(is_twin).count() } else { 0 };
        self.see(&who.name, &Seen::Called { of, key: key.clone(), body, twins, agent, by: who.name.clone(), clock_ms });
        self.remotes.last_call += 1;
        let id = self.remotes.last_call;
        let timeout_ms = call.timeout_ms;
        let alive_until_ms = Some(self.now_ms.saturating_add_unsigned(timeout_ms));
        let under =
            Under { of, agent, key, timeout_ms, has_arrived: false, alive_until_ms, answer: None, waiting: None };
        self.remotes.calls.insert(id, under);
        let ms = match self.strikes(Fault::CallLate) {
            true => timeout_ms + self.rng.between(LATE_MS.0, LATE_MS.1),
            false => self.rng.between(0, self.setup.service_ms),
        };
        self.after(ms, Event::Arrive(id));
        id
    }

    /// Starts an outage of a service.
    pub fn take_service_away(&mut self) {
        let agent = self.rng.place(AGENTS.len());
        let longest_ms = self.rng.pick(&[60_000, 10 * 60_000, 2 * 3_600_000]);
        let ms = self.rng.between(2_000, longest_ms);
        self.remotes.away_until_ms[agent] = self.now_ms.saturating_add_unsigned(ms);
        self.tell(&format!("service {} is away for {ms} ms", AGENTS[agent]));
    }

    /// A call reaches its service, which may answer.
    pub fn arrive(&mut self, id: u64) {
        let Some(under) = self.remotes.calls.get_mut(&id) else { return };
        under.has_arrived = true;
        let (of, agent, key, timeout_ms) = (under.of, under.agent, under.key.clone(), under.timeout_ms);
        let is_alone = under.waiting.is_none();
        let back_ms = self.rng.between(0, self.setup.service_ms);
        if let Some((said, ms)) = self.serve(of, agent, &key, timeout_ms, back_ms) {
            if let Some(under) = self.remotes.calls.get_mut(&id) {
                under.answer = Some(said);
            }
            self.after(ms, Event::Answer(id));
        }
        if is_alone {
            self.remotes.calls.remove(&id);
        }
    }

    /// The answer of a service and its arrival time; `None` without an answer.
    fn serve(&mut self, of: Try, agent: usize, key: &Arc<str>, timeout_ms: u64, back_ms: u64) -> Option<(Said, u64)> {
        let retry = |problem: &str| Said::Answers(Answer::retry(problem));
        if !self.is_calm && self.now_ms < self.remotes.away_until_ms[agent] {
            let is_refused = self.rng.chance(6_000);
            return is_refused.then(|| (retry("no connection"), back_ms));
        }
        if self.strikes(Fault::ServiceBusy) {
            let after_ms = self.rng.chance(3_000).then(|| self.rng.between(0, 20_000));
            return Some((Said::Answers(Answer::Retry { after_ms, problem: "503".into() }), back_ms));
        }
        if self.strikes(Fault::ServiceSilent) {
            return None;
        }
        if self.strikes(Fault::ServicePanicked) {
            return Some((Said::Panics, back_ms));
        }
        let said = Said::Answers(self.business(of, key));
        if self.strikes(Fault::ServiceAnswerLost) {
            let is_cut = self.rng.chance(5_000);
            return is_cut.then(|| (retry("connection reset"), back_ms));
        }
        let late_ms =
            if self.strikes(Fault::ServiceSlow) { self.rng.between(timeout_ms / 2, timeout_ms * 3) } else { 0 };
        Some((said, back_ms + late_ms))
    }

    fn character(&mut self, of: Try) -> Character {
        if let Some(character) = self.remotes.steps.entry((of.order, of.step)).or_default().character {
            return character;
        }
        let declines = self.strikes(Fault::ServiceDeclined);
        let never_gives_in = self.rng.chance(6_000);
        let gives_in_ms = self.now_ms.saturating_add_unsigned(self.rng.between(1_000, 600_000));
        let character = Character {
            declines_until_ms: match (declines, never_gives_in) {
                (true, true) => i64::MAX,
                (true, false) => gives_in_ms,
                (false, _) => 0,
            },
            declines_undo: self.strikes(Fault::UndoDeclined),
            says_too_much: self.strikes(Fault::OutputTooLarge),
        };
        self.remotes.steps.entry((of.order, of.step)).or_default().character = Some(character);
        character
    }

    /// Keeps the contract of a service. A known key gets the same answer and has no second effect. An undo without an
    /// effect succeeds, and a forward call after its undo is refused.
    fn business(&mut self, of: Try, key: &Arc<str>) -> Answer {
        let character = self.character(of);
        let (world, now_ms) = (self.world.clone(), self.now_ms);
        let is_known = self.remotes.keys.contains(key);
        let Some(ledger) = self.remotes.steps.get_mut(&(of.order, of.step)) else {
            return Answer::fail("lost", "no ledger");
        };
        let has_effect = match of.way {
            Way::Forward if ledger.is_closed => return Answer::fail("undone", "it was undone"),
            Way::Forward if !is_known && now_ms < character.declines_until_ms => {
                return Answer::fail("declined", "it says no");
            }
            Way::Undo if !is_known && character.declines_undo => {
                return Answer::fail("declined", "it cannot be undone");
            }
            Way::Forward => !is_known,
            Way::Undo => !is_known && ledger.effects > ledger.undos,
        };
        match of.way {
            Way::Forward => ledger.effects += u32::from(has_effect),
            Way::Undo => {
                ledger.undos += u32::from(has_effect);
                ledger.is_closed = true;
            }
        }
        let number = ledger.effects;
        if !is_known {
            self.remotes.keys.insert(key.clone());
            self.forget_at_the_horizon(of);
        }
        if has_effect {
            self.see(&world, &Seen::Effect { of });
        }
        self.see(&world, &Seen::Confirmed { of });
        let text = match character.says_too_much && of.way == Way::Forward {
            true => format!("\"{}\"", "x".repeat(OUTPUT_BYTES_MAX)),
            false => format!("{{\"Step\":{},\"Number\":{number}}}", of.step),
        };
        Answer::Done(Json::parse(text.as_bytes(), 2 * OUTPUT_BYTES_MAX).unwrap_or_else(|_| Json::of(&number)))
    }

    /// The answer arrives.
    pub fn answer(&mut self, id: u64) -> Option<Waker> {
        self.remotes.calls.get_mut(&id).and_then(|under| under.waiting.take())
    }
}

// ---- dropped keys

impl State {
    /// Whether no call for this key is in flight.
    fn is_quiet(&self, key: &str) -> bool {
        !self.remotes.calls.values().any(|under| &*under.key == key && !under.has_arrived)
    }

    /// A service without lasting memory may drop a key after the agent's reply. The agent wrote its memo before, unless
    /// the write failed.
    pub(super) fn forget_what_is_replied(&mut self, of: Try) {
        let key_of = |direction| idempotency_key(of.order, &format!("s{}", of.step), direction);
        let forward = key_of(Direction::Forward);
        let key = match of.way {
            Way::Forward => forward.clone(),
            Way::Undo => key_of(Direction::Undo),
        };
        let has_memo = self.agent_of(of).is_some_and(|agent| self.setup.has_memo(agent));
        let is_unwritten = |key: &Arc<str>| self.remotes.unwritten.contains(key);
        let is_written = !is_unwritten(&key) && (of.way == Way::Forward || !is_unwritten(&forward));
        let may_forget = has_memo && is_written && self.is_quiet(&key) && self.is_quiet(&forward);
        if !may_forget || !self.remotes.keys.contains(&key) || !self.strikes(Fault::ServiceForgot) {
            return;
        }
        self.remotes.keys.remove(&key);
        self.tell(&format!("the service forgets {key}"));
        if of.way == Way::Undo
            && let Some(ledger) = self.remotes.steps.get_mut(&(of.order, of.step))
        {
            ledger.is_closed = false;
        }
    }

    /// The index of a step's agent.
    fn agent_of(&self, of: Try) -> Option<usize> {
        let rule = self.rule_of(of)?;
        AGENTS.iter().position(|agent| **agent == *rule.agent)
    }

    fn rule_of(&self, of: Try) -> Option<&'static StepRule> {
        let version = self.tables.row(of.order)?.task.workflow_version;
        let workflow = self.setup.shape.versions().find(|workflow| workflow.version == version)?;
        workflow.steps.get(of.step)
    }

    /// A service that drops keys some time after the step's horizon.
    fn forget_at_the_horizon(&mut self, of: Try) {
        let Some(rule) = self.rule_of(of) else { return };
        let has_memo = self.agent_of(of).is_some_and(|agent| self.setup.has_memo(agent));
        if has_memo || !self.setup.shape.short_horizon || !self.setup.plan.has(Fault::KeyExpired) {
            return;
        }
        let kept_ms = rule.horizon_ms + 2 * rule.complete_within_ms + 4 * self.setup.skew_ms + 20_000;
        let forget = Event::Forget(of.order, of.step, of.way == Way::Undo);
        self.after(kept_ms, forget);
    }

    /// The time for which a service keeps a key is over.
    pub fn forget(&mut self, order: OrderId, step: usize, direction: Direction) {
        let key = idempotency_key(order, &format!("s{step}"), direction);
        if self.remotes.vouched.contains(&order) || !self.is_quiet(&key) || !self.remotes.keys.remove(&key) {
            return;
        }
        self.counts.add(Fault::KeyExpired);
        self.remotes.forgotten.insert(order);
        self.tell(&format!("the service forgets {key}, which is old"));
    }

    /// An operator vouches for an order's services, if they still have its keys.
    pub fn vouch(&mut self, order: OrderId) -> bool {
        let may = !self.remotes.forgotten.contains(&order);
        if may {
            self.remotes.vouched.insert(order);
        }
        may
    }

    /// Whether services drop old keys in this world.
    #[must_use]
    pub fn keys_expire(&self) -> bool {
        self.setup.shape.short_horizon && self.setup.plan.has(Fault::KeyExpired)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::simulation::faults::Plan;
    use crate::simulation::rng::Rng;
    use crate::simulation::setup::Setup;

    fn state() -> State {
        let mut rng = Rng::new(1);
        let setup = Setup { plan: Plan::none(), ..Setup::draw(&mut rng, 1) };
        State::new(rng, Arc::new(setup), false)
    }

    fn of(way: Way) -> Try {
        Try { order: OrderId::from_idempotency_key("test", "services"), step: 0, way, attempt: 1 }
    }

    fn effects(state: &State) -> (u32, u32) {
        let ledger = &state.remotes.steps[&(of(Way::Forward).order, 0)];
        (ledger.effects, ledger.undos)
    }

    #[test]
    fn a_key_seen_before_has_no_second_effect_and_gets_the_same_answer() {
        let mut state = state();
        let first = state.business(of(Way::Forward), &"key".into());
        assert_eq!(state.business(of(Way::Forward), &"key".into()), first);
        assert_eq!(effects(&state), (1, 0));
        state.business(of(Way::Forward), &"another".into());
        assert_eq!(effects(&state), (2, 0), "it goes by the key");
    }

    #[test]
    fn undoing_what_was_never_done_succeeds_and_a_forward_call_after_it_is_refused() {
        let mut state = state();
        assert!(matches!(state.business(of(Way::Undo), &"key/undo".into()), Answer::Done(_)));
        assert!(matches!(state.business(of(Way::Forward), &"key".into()), Answer::Fail(_)));
        assert_eq!(effects(&state), (0, 0));
    }

    #[test]
    fn an_undo_takes_back_what_was_done_once() {
        let mut state = state();
        state.business(of(Way::Forward), &"key".into());
        for _ in 0..2 {
            state.business(of(Way::Undo), &"key/undo".into());
        }
        assert_eq!(effects(&state), (1, 1));
    }
}
