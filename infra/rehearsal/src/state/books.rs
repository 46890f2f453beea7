//! What the services do with a call: begin, effect and result, which may be minutes apart.
//!
//! While a service is at work on a key, a repeat gets 409, or 202 if it took the call on so. Afterwards it gets the
//! result. A careful service refuses a forward call after its undo, even one that it is at work on. A careless one does
//! not: only the agent's wait keeps its books even.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent::Answer;
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::OUTPUT_BYTES_MAX;
use domain::message::Failure;

use crate::described::{Described, NOTHING, Words};
use crate::event::Event;
use crate::faults::Fault;
use crate::manner::IN_USE;
use crate::seen::{Seen, Try, Way};
use crate::setup::LineEnds;
use crate::state::State;

/// A call of a service.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) id: u64,
    pub(crate) of: Try,
    pub(crate) agent: usize,
    pub(crate) key: Arc<str>,
    pub(crate) timeout_ms: u64,
    /// The start, in milliseconds since the start of the world.
    pub(crate) started_ms: i64,
    /// The path for a result that comes later.
    pub(crate) callback: Option<Arc<str>>,
    /// Its header `Authorization`.
    pub(crate) authorization: Option<Arc<str>>,
    /// Whether its state is asked, if it is taken on.
    pub(crate) is_polled: bool,
}

/// The answer.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    /// This, which its caller ought to understand.
    Answers(Answer),
    /// There is no connection.
    Unconnected,
    /// The connection breaks after the call.
    Breaks,
    /// The caller's code panics.
    Panics,
}

/// The effects of the services.
#[derive(Debug, Default)]
pub struct Books {
    /// By order, step and service.
    pub(super) steps: BTreeMap<(OrderId, usize, usize), Ledger>,
    /// Keys that a service remembers.
    pub(super) keys: BTreeSet<(usize, Arc<str>)>,
    works: BTreeMap<u64, Work>,
    /// Resubmitted orders: their services keep the keys.
    pub(super) vouched: BTreeSet<OrderId>,
    /// Orders of which a service dropped an old key.
    pub(super) forgotten: BTreeSet<OrderId>,
}

/// The state of one step of one order at its service.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    effects: u32,
    undos: u32,
    /// Undone, or blocked by an undo before it.
    pub(super) is_closed: bool,
    /// Rejected, after it was taken on.
    is_refused: bool,
    character: Option<Character>,
}

/// The service's outcome for a step.
#[derive(Debug, Clone, Copy)]
struct Character {
    declines_until_ms: i64,
    /// Its no is a 409.
    declines_with_conflict: bool,
    declines_undo: bool,
    says_too_much: bool,
}

/// A call that a service works on.
#[derive(Debug)]
pub(super) struct Work {
    call: Made,
    /// The call to answer, if its connection lasts.
    caller: Option<u64>,
    /// Its caller got a 202.
    is_taken_on: bool,
}

/// What a service does first with a call.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It answers.
    Says(Answer),
    /// It works on it for this long, in milliseconds. It may have decided whether it takes it on.
    Works { ms: u64, is_taken_on: Option<bool> },
}

impl Books {
    pub(crate) fn are_idle(&self) -> bool {
        self.works.is_empty()
    }

    /// The call with this key that its service is at work on.
    pub(super) fn work_on(&self, (agent, key): &(usize, Arc<str>)) -> Option<&Work> {
        self.works.values().find(|work| (work.call.agent, &work.call.key) == (*agent, key))
    }
}

/// What a service did for a step of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effects {
    /// The order.
    pub order: OrderId,
    /// The index of the step.
    pub step: usize,
    /// The index of the agent.
    pub agent: usize,
    /// How often it was carried out.
    pub done: u32,
    /// How often that was taken back.
    pub undone: u32,
}

impl Made {
    /// What its service calls the step.
    const fn ledger(&self) -> (OrderId, usize, usize) {
        (self.of.order, self.of.step, self.agent)
    }

    /// Its key at its service.
    fn known_key(&self) -> (usize, Arc<str>) {
        (self.agent, self.key.clone())
    }
}

impl State {
    /// What the services did.
    pub fn effects(&self) -> impl Iterator<Item = Effects> {
        self.remotes.books.steps.iter().map(|(&(order, step, agent), ledger)| Effects {
            order,
            step,
            agent,
            done: ledger.effects,
            undone: ledger.undos,
        })
    }

    fn character(&mut self, call: &Made) -> Character {
        if let Some(character) = self.remotes.books.steps.entry(call.ledger()).or_default().character {
            return character;
        }
        if let Some(described) = self.setup.services[call.agent].described.clone() {
            let declines = Described::happens(&mut self.rng, described.service.rejects.share)
                || self.fails_on_purpose(call, LineEnds::Rejected);
            let character = Character {
                declines_until_ms: if declines { i64::MAX } else { 0 },
                declines_with_conflict: false,
                declines_undo: false,
                says_too_much: false,
            };
            self.remotes.books.steps.entry(call.ledger()).or_default().character = Some(character);
            return character;
        }
        let declines = self.strikes(Fault::ServiceDeclined);
        let declines_with_conflict = self.strikes(Fault::DeclinedByConflict);
        // A careless service that said no of a key and then yes would have an effect without an undo.
        let never_gives_in = self.setup.services[call.agent].is_careless || self.rng.chance(6_000);
        let gives_in_ms = self.now_ms.saturating_add_unsigned(self.rng.between(1_000, 600_000));
        let character = Character {
            declines_until_ms: match (declines || declines_with_conflict, never_gives_in) {
                (true, true) => i64::MAX,
                (true, false) => gives_in_ms,
                (false, _) => 0,
            },
            declines_with_conflict,
            declines_undo: self.strikes(Fault::UndoDeclined),
            says_too_much: self.strikes(Fault::OutputTooLarge),
        };
        self.remotes.books.steps.entry(call.ledger()).or_default().character = Some(character);
        character
    }

    /// A service answers a call at once, or begins to work on it.
    pub(crate) fn begin(&mut self, call: &Made) -> Begun {
        let character = self.character(call);
        let (of, is_careless) = (call.of, self.setup.services[call.agent].is_careless);
        let known_key = call.known_key();
        if self.remotes.books.keys.contains(&known_key) {
            return Begun::Says(self.carry_out(call));
        }
        let described = self.setup.services[call.agent].described.clone();
        let words = described.as_ref().and_then(|described| self.said_of(described, of));
        if let Some(work) = self.remotes.books.work_on(&known_key) {
            let in_use = Failure { code: IN_USE.into(), message: "the key is in use".into() };
            let (is_taken_on, is_described) = (work.is_taken_on, self.setup.services[call.agent].described.is_some());
            self.remotes.asked_early.extend(is_taken_on.then_some((of.order, of.step)));
            let unless_alone = (!is_taken_on || (!is_described && self.rng.chance(5_000))).then_some(in_use);
            self.counts.add(Fault::KeyInUse);
            let after_ms = self.rng.chance(3_000).then(|| self.rng.between(0, 20_000));
            return Begun::Says(Answer::UnderWay { after_ms, unless_alone, poll: None });
        }
        let Some(ledger) = self.remotes.books.steps.get_mut(&call.ledger()) else {
            return Begun::Says(Answer::fail("lost", "no ledger"));
        };
        match of.way {
            Way::Forward if ledger.is_closed && !is_careless => {
                self.refuse(of);
                return Begun::Says(Answer::fail("undone", "it was undone"));
            }
            Way::Forward if self.now_ms < character.declines_until_ms => {
                let described = described.as_ref().filter(|_| !ledger.is_refused);
                if let Some(ms) = described.and_then(|described| described.puts_off(&mut self.rng, words)) {
                    return Begun::Works { ms, is_taken_on: Some(true) };
                }
                self.refuse(of);
                let no = Failure { code: "declined".into(), message: "it says no".into() };
                return Begun::Says(match character.declines_with_conflict {
                    true => Answer::UnderWay { after_ms: None, unless_alone: Some(no), poll: None },
                    false => Answer::Fail(no),
                });
            }
            Way::Undo if character.declines_undo => {
                self.refuse(of);
                return Begun::Says(Answer::fail("declined", "it cannot be undone"));
            }
            Way::Forward => {}
            Way::Undo => ledger.is_closed = true,
        }
        if let Some(described) = &described {
            return self.begin_described(described, words);
        }
        match self.draw_work(call) {
            0 => Begun::Says(self.carry_out(call)),
            ms => Begun::Works { ms, is_taken_on: None },
        }
    }

    /// A service begins to work on a call as its user says. One that is slow today may have the effect after its caller
    /// left.
    fn begin_described(&mut self, described: &Described, words: Option<&Words>) -> Begun {
        let later_ms = described.puts_off(&mut self.rng, words);
        let ms = match later_ms {
            Some(ms) => ms,
            None if self.strikes(Fault::EffectDelayed) => described.draw_late(&mut self.rng),
            None => described.draw_latency(&mut self.rng),
        };
        Begun::Works { ms, is_taken_on: Some(later_ms.is_some()) }
    }

    /// The service decides against a step.
    fn refuse(&mut self, of: Try) {
        let world = self.world.clone();
        self.see(&world, &Seen::Refused { of });
    }

    /// The time from the begin to the effect. Both are over within the time that the workflow knows, counted from the
    /// start of the call. A careful service may work while its result is awaited: after the undo it has no effect.
    fn draw_work(&mut self, call: &Made) -> u64 {
        // A service with an address for its result takes its time.
        let takes_its_time = call.callback.is_some() && self.rng.chance(3_000);
        if !takes_its_time && !self.strikes(Fault::EffectDelayed) {
            return 0;
        }
        let awaited_ms = match takes_its_time && !self.setup.services[call.agent].is_careless {
            true => self.rule_of(call.of).and_then(|rule| rule.waits.within_ms).unwrap_or(0),
            false => 0,
        };
        // A changed `settles_within` hides when a settled call started.
        let unknown_ms = if self.setup.applied.is_empty() { 0 } else { 2 * self.setup.settles_within_ms() };
        let over_ms = awaited_ms.saturating_sub(2 * self.setup.skew_ms + 1 + unknown_ms);
        let over_ms = over_ms.max(self.setup.settled_ms(call.agent));
        let over_ms = call.started_ms.saturating_add_unsigned(over_ms);
        let left_ms = u64::try_from(over_ms - self.now_ms).unwrap_or(0);
        let longest_ms = self.rng.pick(&[1_000, 12_000, u64::MAX]).min(left_ms);
        self.rng.between(longest_ms.min(1), longest_ms)
    }

    /// The service takes a call on; its effect comes later.
    pub(crate) fn keep_working(&mut self, call: &Made, ms: u64, caller: Option<u64>, is_taken_on: bool) {
        let work = Work { call: call.clone(), caller, is_taken_on };
        self.remotes.books.works.insert(call.id, work);
        self.trouble(ms);
        self.after(ms, Event::Effect(call.id));
    }

    /// The end of the work on a call.
    pub fn effect(&mut self, id: u64) {
        let Some(work) = self.remotes.books.works.remove(&id) else { return };
        let caller = work.caller.filter(|id| self.remotes.has_caller(*id));
        if caller.is_none() {
            self.counts.add(Fault::EffectUnheard);
        }
        let answer = self.carry_out(&work.call);
        if work.is_taken_on {
            self.tell_later(&work.call, &answer);
        }
        // A service that went away meanwhile did the work, and says nothing of it.
        let is_away = self.setup.services[work.call.agent].described.is_some() && self.is_out(work.call.agent).0;
        if let Some(id) = caller.filter(|_| !is_away) {
            let back_ms = self.rng.between(0, self.setup.service_ms);
            self.say(id, Said::Answers(answer), back_ms);
        }
    }

    /// What the service of an agent tells of the state of the call with this number. The question has no effect. `None`: it is
    /// silent.
    pub(crate) fn state_of(&mut self, agent: usize, number: Option<u64>) -> Option<Answer> {
        let (is_away, is_misconfigured) = self.is_out(agent);
        if is_away || is_misconfigured || self.strikes(Fault::ServiceBusy) {
            return Some(Answer::retry("503"));
        }
        if self.strikes(Fault::ServiceSilent) {
            return None;
        }
        let polled = number.and_then(|number| self.remotes.polled.get(&number));
        let Some((_, of, key)) = polled.filter(|(place, ..)| *place == agent).cloned() else {
            return Some(Answer::misconfigured("404"));
        };
        let key = (agent, key);
        let ledger = self.remotes.books.steps.get(&(of.order, of.step, agent));
        if ledger.is_some_and(|ledger| ledger.is_refused) {
            return Some(Answer::fail("declined", "it says no"));
        }
        if !self.remotes.books.keys.contains(&key) {
            let is_at_work = self.remotes.books.work_on(&key).is_some();
            return Some(if is_at_work { Answer::under_way() } else { Answer::misconfigured("404") });
        }
        let (number, says_too_much) = ledger.map_or((0, false), |ledger| {
            (ledger.effects, ledger.character.is_some_and(|character| character.says_too_much))
        });
        self.counts.add(Fault::Polled);
        Some(answer_of(of, number, says_too_much))
    }

    /// Finds an effect of the key in the books, as a person does, though the service has dropped the key.
    pub(crate) fn recall(&mut self, call: &Made) {
        let ledger = self.remotes.books.steps.get(&call.ledger());
        if call.of.way == Way::Forward && ledger.is_some_and(|ledger| ledger.effects > 0) {
            self.remotes.books.keys.insert(call.known_key());
        }
    }

    /// Keeps the contract of a service. A known key gets the same answer and has no second effect. An undo without an
    /// effect succeeds.
    pub(crate) fn carry_out(&mut self, call: &Made) -> Answer {
        let (of, key) = (call.of, call.known_key());
        let character = self.character(call);
        let world = self.world.clone();
        let is_careless = self.setup.services[call.agent].is_careless;
        let is_known = self.remotes.books.keys.contains(&key);
        let Some(ledger) = self.remotes.books.steps.get_mut(&call.ledger()) else {
            return Answer::fail("lost", "no ledger");
        };
        let is_described = self.setup.services[call.agent].described.is_some();
        let has_effect = match of.way {
            Way::Forward if ledger.is_closed && !is_careless => {
                self.refuse(of);
                return Answer::fail("undone", "it was undone");
            }
            // It said that it would see.
            Way::Forward if is_described && !is_known && self.now_ms < character.declines_until_ms => {
                ledger.is_refused = true;
                self.refuse(of);
                return Answer::fail("declined", "it says no");
            }
            Way::Forward => !is_known,
            Way::Undo => !is_known && ledger.effects > ledger.undos,
        };
        match of.way {
            Way::Forward => ledger.effects += u32::from(has_effect),
            Way::Undo => {
                ledger.is_closed = true;
                ledger.undos += u32::from(has_effect);
            }
        }
        let number = ledger.effects;
        if !is_known {
            self.remotes.books.keys.insert(key);
            self.forget_in_time(of, call.agent);
        }
        if has_effect {
            self.see(&world, &Seen::Effect { of });
        } else if is_careless && !is_known {
            self.counts.add(Fault::ServiceCareless);
        }
        self.see(&world, &Seen::Confirmed { of });
        let says_so = |described: &Arc<Described>| described.service.undo_of_nothing >= 300;
        if of.way == Way::Undo && number == 0 && self.setup.services[call.agent].described.as_ref().is_some_and(says_so)
        {
            return Answer::fail(NOTHING, "there is nothing to undo");
        }
        answer_of(of, number, character.says_too_much)
    }
}

/// What a service says of what it did. The same of the same call.
fn answer_of(of: Try, number: u32, says_too_much: bool) -> Answer {
    let text = match says_too_much && of.way == Way::Forward {
        true => format!("{{\"Number\":{number},\"More\":\"{}\"}}", "x".repeat(OUTPUT_BYTES_MAX)),
        false => format!("{{\"Step\":{},\"Number\":{number}}}", of.step),
    };
    Answer::Done(Json::parse(text.as_bytes(), 2 * OUTPUT_BYTES_MAX).unwrap_or_else(|_| Json::of(&number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn state(is_careless: bool) -> State {
        let mut setup = testing::setup();
        setup.services.iter_mut().for_each(|service| service.is_careless = is_careless);
        testing::state(setup)
    }

    fn call(way: Way, key: &str) -> Made {
        let order = OrderId::from_idempotency_key("test", "services");
        let of = Try { order, step: 0, way, attempt: 1 };
        Made {
            id: 1,
            of,
            agent: 0,
            key: key.into(),
            timeout_ms: 1_000,
            started_ms: 0,
            callback: None,
            authorization: None,
            is_polled: false,
        }
    }

    fn says(state: &mut State, way: Way, key: &str) -> Answer {
        match state.begin(&call(way, key)) {
            Begun::Says(answer) => answer,
            Begun::Works { ms, .. } => panic!("at work for {ms} ms"),
        }
    }

    fn effects(state: &State) -> (u32, u32) {
        let ledger = &state.remotes.books.steps[&call(Way::Forward, "key").ledger()];
        (ledger.effects, ledger.undos)
    }

    #[test]
    fn a_key_seen_before_has_no_second_effect_and_gets_the_same_answer() {
        let mut state = state(false);
        let first = says(&mut state, Way::Forward, "key");
        assert_eq!(says(&mut state, Way::Forward, "key"), first);
        assert_eq!(effects(&state), (1, 0));
        says(&mut state, Way::Forward, "another");
        assert_eq!(effects(&state), (2, 0), "it goes by the key");
    }

    #[test]
    fn undoing_what_was_never_done_succeeds_and_a_forward_call_after_it_is_refused() {
        let mut state = state(false);
        assert!(matches!(says(&mut state, Way::Undo, "key/undo"), Answer::Done(_)));
        assert!(matches!(says(&mut state, Way::Forward, "key"), Answer::Fail(_)));
        assert_eq!(effects(&state), (0, 0));
    }

    #[test]
    fn an_undo_takes_back_what_was_done_once() {
        let mut state = state(false);
        says(&mut state, Way::Forward, "key");
        for _ in 0..2 {
            says(&mut state, Way::Undo, "key/undo");
        }
        assert_eq!(effects(&state), (1, 1));
    }

    #[test]
    fn a_key_at_work_is_in_use_and_a_careless_service_goes_on_after_the_undo() {
        for (is_careless, after) in [(false, (0, 0)), (true, (1, 0))] {
            let mut state = state(is_careless);
            let forward = call(Way::Forward, "key");
            state.character(&forward);
            state.keep_working(&forward, 5_000, None, false);
            let in_use = says(&mut state, Way::Forward, "key");
            assert!(matches!(in_use, Answer::UnderWay { unless_alone: Some(_), .. }), "{in_use:?}");
            assert!(matches!(says(&mut state, Way::Undo, "key/undo"), Answer::Done(_)));
            state.effect(forward.id);
            assert_eq!(effects(&state), after, "careless: {is_careless}");
            assert!(state.remotes.are_idle());
        }
    }
}
