//! The services: what comes of a call, and when. They are at work on some calls, also after the caller left or died.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent::{Answer, Call, Service};
use domain::id::OrderId;
use domain::json::Json;
use domain::message::Failure;
use domain::task::{Direction, StepState, Task};

use super::{Heard, Outside, Shared, sleep};
use crate::simulation::shapes::AGENTS;
use rehearsal::manner::IN_USE;
use rehearsal::observe;
use rehearsal::seen::WANTED_MS;

/// What happens: a service works on a call for seconds or minutes, and answers 409 to a repeat meanwhile.
pub(in crate::simulation) const AT_WORK: &str = "effect long after the call began";
/// See [`AT_WORK`].
pub(in crate::simulation) const BUSY: &str = "409 while a call was at work";

/// The state of one step of one order at its service.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// The effect is there.
    pub is_done: bool,
    /// Undone, or blocked by an undo before it.
    pub is_closed: bool,
    declines: Option<bool>,
    /// It works on a call until then, in milliseconds since the start of the world.
    at_work_until_ms: Option<i64>,
    /// The directions to which it said no.
    pub refused: BTreeSet<bool>,
    /// The highest attempt of a call.
    pub attempt: u32,
    /// The hash of what each direction's calls carry.
    bodies: BTreeMap<Arc<str>, u64>,
    /// By attempt: since when no call for it is wanted, as somebody saw, in milliseconds since the start of the world.
    over_ms: BTreeMap<u32, i64>,
    /// A request was delivered twice at once. The first delivery may call second, and nothing tells its agent so.
    is_doubled: bool,
}

impl Ledger {
    /// The work that is over has its effect, unless the step was undone meanwhile.
    fn work_to(&mut self, now_ms: i64) {
        if self.at_work_until_ms.take_if(|until_ms| *until_ms <= now_ms).is_some() {
            self.is_done |= !self.is_closed;
        }
    }
}

/// What becomes of a call.
struct Course {
    there_ms: u64,
    back_ms: u64,
    is_refused: bool,
    is_unanswered: bool,
    /// How long the service works on it, if it begins it.
    work_ms: u64,
}

/// What a service does first.
enum Begun {
    Says(Answer),
    Works,
}

impl Outside {
    /// Somebody sees a new version of a task: notes which attempts are over (invariant 18). A pause may end before the next
    /// version is seen here. The auditor sees each one.
    pub(super) fn note_wanted(&mut self, task: &Task) {
        let now_ms = self.clock.now_ms();
        let may_run = |index: usize| {
            let step = &task.steps[index];
            let is_open = step.process_state == StepState::Processing && !step.is_awaited();
            is_open && !task.process_state.is_final()
        };
        for (index, step) in task.steps.iter().enumerate() {
            let over_ms = &mut self.books.entry((task.order_id, step.name.clone())).or_default().over_ms;
            for attempt in 1..=step.attempt {
                if attempt == step.attempt && may_run(index) {
                    over_ms.remove(&attempt);
                } else {
                    over_ms.entry(attempt).or_insert(now_ms);
                }
            }
        }
    }

    /// A service hears a call. Returns what becomes of it.
    fn called(&mut self, agent: &Arc<str>, direction: Direction, call: &Call<'_>) -> Course {
        let outputs: Vec<_> = call.outputs.iter().map(|(step, output)| (step, output.text())).collect();
        let content = (call.order.text(), outputs, call.body.map(Json::text), call.encode);
        let hash = observe::hash_of(&format!("{:?}", (content, call.path, call.method, call.headers)));
        let now_ms = self.clock.now_ms();
        let ledger = self.books.entry((call.order_id, call.step.into())).or_default();
        ledger.attempt = ledger.attempt.max(call.attempt);
        let over_ms = ledger.over_ms.get(&call.attempt).copied();
        if *ledger.bodies.entry(call.idempotency_key.into()).or_insert(hash) != hash {
            let words = format!("another call under the key {}", call.idempotency_key);
            self.complain("rule 4", Some(call.order_id), &words);
        }
        self.note(agent, Some(call.order_id), &format!("{direction:?} {} {}", call.step, call.attempt));
        if self.scene.is_some() {
            let (at, document) = (self.clock.wall(), call.order.clone());
            self.seen.heard.push(Heard { at, order_id: call.order_id, step: call.step.into(), direction, document });
        }
        // By clocks that differ, an agent may take an old request for one that was just sent.
        let skew_ms = i64::try_from(2 * self.setup.skew_ms).unwrap_or(0);
        let late_ms = over_ms.map_or(0, |over_ms| now_ms - over_ms - WANTED_MS - skew_ms);
        if late_ms > 0 && !self.clock.was_wrong {
            let words = format!("a call for {} #{}, which is over, {late_ms} ms too late", call.step, call.attempt);
            self.complain("18", Some(call.order_id), &words);
        }
        let (service_ms, timeout_ms) = (self.setup.service_ms, call.timeout_ms);
        let late = self.strikes("late answer", 200);
        let place = AGENTS.iter().position(|name| **name == **agent).unwrap_or_default();
        let there_ms = self.rng.between(0, service_ms);
        Course {
            there_ms,
            back_ms: if late {
                self.rng.between(timeout_ms / 2, 2 * timeout_ms)
            } else {
                self.rng.between(0, service_ms)
            },
            is_refused: self.strikes("call refused for a while", 500),
            is_unanswered: self.strikes("call without an answer", 300),
            work_ms: if self.is_slow && self.strikes(AT_WORK, 3_000) {
                // The undo waits for a call for so long after its start.
                let longest_ms = self.setup.settled_ms(place).saturating_sub(there_ms);
                let longest_ms = self.rng.pick(&[1_000, 12_000, u64::MAX]).min(longest_ms);
                self.rng.between(longest_ms.min(1), longest_ms)
            } else {
                0
            },
        }
    }

    /// What the script says of a call.
    fn answers(&self, call: &Call<'_>) -> Option<Answer> {
        let scene = self.scene.as_ref()?;
        (scene.answer)(call, self.clock.now_ms())
    }

    /// The call arrives. It has its effect, or the service begins to work on it.
    fn serve(&mut self, direction: Direction, of: (OrderId, &str), work_ms: u64) -> Begun {
        let declines = self.strikes("call declined", 400);
        let now_ms = self.clock.now_ms();
        let ledger = self.books.entry((of.0, of.1.into())).or_default();
        ledger.work_to(now_ms);
        let declines = *ledger.declines.get_or_insert(declines);
        match direction {
            Direction::Forward if ledger.at_work_until_ms.is_some() && !ledger.is_closed => {
                let in_use = Failure { code: IN_USE.into(), message: "the key is in use".into() };
                self.counts.add(BUSY);
                return Begun::Says(Answer::UnderWay { after_ms: None, unless_alone: Some(in_use), poll: None });
            }
            Direction::Forward if !ledger.is_closed && !ledger.is_done && !declines && work_ms > 0 => {
                ledger.at_work_until_ms = Some(now_ms.saturating_add_unsigned(work_ms));
                return Begun::Works;
            }
            Direction::Forward if !declines => ledger.is_done |= !ledger.is_closed,
            Direction::Forward => {}
            Direction::Undo => ledger.is_closed = true,
        }
        Begun::Says(self.result(direction, of))
    }

    /// What the service says once it is done with a call.
    fn result(&mut self, direction: Direction, (order, step): (OrderId, &str)) -> Answer {
        let now_ms = self.clock.now_ms();
        let ledger = self.books.entry((order, step.into())).or_default();
        ledger.work_to(now_ms);
        let no = match direction {
            Direction::Forward if ledger.is_closed => Some(("undone", "it was undone before")),
            Direction::Forward if !ledger.is_done => Some(("declined", "no")),
            Direction::Forward | Direction::Undo => None,
        };
        match no {
            Some((code, words)) => {
                ledger.refused.insert(direction == Direction::Forward);
                Answer::fail(code, words)
            }
            // A step may keep the number of it.
            None => Answer::Done(Json::of(&BTreeMap::from([("Number", step.len())]))),
        }
    }

    /// A request of a step was delivered twice at once.
    pub fn delivered_twice(&mut self, order: OrderId, step: &str) {
        self.books.entry((order, step.into())).or_default().is_doubled = true;
    }

    /// At the end: what a service was at work on is done, and an order that turned round or stopped for a rejection has one
    /// (invariant 17).
    pub(super) fn judge(&mut self, task: &Task) {
        let now_ms = self.clock.now_ms();
        for step in &task.steps {
            let ledger = self.books.entry((task.order_id, step.name.clone())).or_default();
            ledger.work_to(now_ms);
            let is_misread = step.last_error.as_ref().is_some_and(|error| *error.code == *IN_USE);
            if is_misread && !ledger.is_doubled && !self.clock.was_wrong {
                let words = format!("{} counts as rejected, and its service was at work on it", step.name);
                self.complain("17", Some(task.order_id), &words);
            }
        }
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
        if let Some(answer) = self.outside.lock().answers(call) {
            return answer;
        }
        if course.is_refused {
            return Answer::retry("503");
        }
        let of = (call.order_id, call.step);
        let begun = self.outside.lock().serve(direction, of, course.work_ms);
        let answer = match begun {
            Begun::Says(answer) => answer,
            Begun::Works => {
                sleep(course.work_ms).await;
                self.outside.lock().result(direction, of)
            }
        };
        sleep(course.back_ms).await;
        if course.is_unanswered { Answer::unknown("connection reset") } else { answer }
    }
}
