//! The remote services as their callers see them: calls travel, are taken on, and are answered. A started call proceeds
//! even if its caller no longer waits. What a service does with a call is in [`books`](crate::state::books).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent::Answer;
use domain::id::OrderId;
use domain::time::Timestamp;
use serde_json::json;

use crate::described::{AWAY, Described, TOO_MANY};
use crate::event::Event;
use crate::faults::Fault;
use crate::manner::IN_USE;
use crate::seen::{Body, Heard, Seen, Try, Way};
use crate::setup::{CallEnds, FETCH_MS_MAX, LineEnds, Outage};
use crate::state::books::{Begun, Books, Made, Said};
use crate::state::tokens::Tokens;
use crate::state::{Shared, State};
use crate::who::Who;

/// The delay of a late call, in milliseconds.
const LATE_MS: (u64, u64) = (5_000, 30 * 60_000);

/// The services, and the calls in flight.
#[derive(Debug, Default)]
pub struct Remotes {
    calls: BTreeMap<u64, Under>,
    last_call: u64,
    pub(crate) books: Books,
    away_until_ms: Vec<i64>,
    misconfigured_until_ms: Vec<i64>,
    /// The documents that customers post, each with the channel it names.
    pub channels: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Those that name a workflow.
    pub named: BTreeMap<Arc<str>, Arc<str>>,
    /// Results that services tell later, by the call.
    pub(crate) told_later: BTreeMap<u64, Told>,
    /// The calls whose state may be asked, by number: agent, attempt and key.
    pub(crate) polled: BTreeMap<u64, (usize, Try, Arc<str>)>,
    /// The attempts at whose state an agent's instance was asked to look.
    pub(crate) looked: BTreeSet<(Arc<str>, Try)>,
    pub(crate) tokens: Tokens,
    /// By instance and key: the start of the call that was sent last, by the clock of the instance.
    sent: BTreeMap<(Arc<str>, Arc<str>), Timestamp>,
    /// Keys whose agent could not write its memo.
    pub unwritten: BTreeSet<Arc<str>>,
    /// By agent, the calls of the last second, in milliseconds since the start of the world.
    arrivals: BTreeMap<usize, VecDeque<i64>>,
    /// When the mishap of the world began, if it did, and the agent, in milliseconds since the start of the world.
    pub(crate) mishap: Option<(i64, usize)>,
    /// When the first call of each line that is not answered on purpose came, in milliseconds since the start of the world.
    pub(crate) unanswered_ms: BTreeMap<(OrderId, usize), i64>,
    /// The order that somebody cancels, so that there is an undo to which something happens.
    pub(crate) is_turned_for: Option<OrderId>,
    /// By agent, the calls that found its service away.
    pub found_away: BTreeMap<usize, u64>,
    /// The steps whose call came again while the service had taken it on.
    pub asked_early: BTreeSet<(OrderId, usize)>,
    /// By agent, the calls that its service refused since there were too many.
    pub too_many: BTreeMap<usize, u64>,
}

impl Remotes {
    /// The services of this number of agents.
    #[must_use]
    pub fn of(agents: usize) -> Self {
        Self { away_until_ms: vec![0; agents], misconfigured_until_ms: vec![0; agents], ..Self::default() }
    }

    /// Whether no call is on its way to a service or at work there.
    #[must_use]
    pub fn are_idle(&self) -> bool {
        self.books.are_idle() && self.calls.values().all(|under| under.has_arrived)
    }

    /// Whether a call with this key is on its way.
    pub(crate) fn has_under_way(&self, key: &str) -> bool {
        self.calls.values().any(|under| &*under.call.key == key && !under.has_arrived)
    }

    /// Whether the caller of a call still waits.
    pub(crate) fn has_caller(&self, id: u64) -> bool {
        self.calls.get(&id).is_some_and(|under| under.waiting.is_some())
    }
}

/// A call in flight.
#[derive(Debug)]
struct Under {
    call: Made,
    has_arrived: bool,
    /// The end of its agent's wait, in milliseconds since the start of the world; `None` if the agent no longer waits.
    alive_until_ms: Option<i64>,
    /// The answer on its way back.
    coming: Option<Said>,
    answer: Option<Said>,
    waiting: Option<Waker>,
}

/// A result that a service tells later.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) of: Try,
    pub(crate) path: Arc<str>,
    pub(crate) body: Arc<str>,
}

/// A call as its service receives it.
pub(crate) struct Received {
    /// The attempt.
    pub(crate) of: Try,
    /// The index of the agent whose service it is.
    pub(crate) agent: usize,
    /// Its key.
    pub(crate) key: Arc<str>,
    /// What it carries.
    pub(crate) body: Body,
    /// The start of the call, by the clock of the agent.
    pub(crate) started_at: Timestamp,
    /// The time-out, which the service does not know, in milliseconds.
    pub(crate) timeout_ms: u64,
    /// The path for a result that comes later.
    pub(crate) callback: Option<Arc<str>>,
    /// Its header `Authorization`.
    pub(crate) authorization: Option<Arc<str>>,
}

impl Said {
    /// What it says about its call.
    pub(crate) fn heard(&self) -> Heard {
        match self {
            Self::Answers(Answer::Fail(failure)) => Heard::No(failure.code.clone()),
            Self::Answers(Answer::UnderWay { unless_alone: Some(failure), .. }) if *failure.code != *IN_USE => {
                Heard::No(failure.code.clone())
            }
            Self::Answers(
                Answer::Done(_)
                | Answer::Retry { .. }
                | Answer::Misconfigured { .. }
                | Answer::NotCalled { .. }
                | Answer::UnderWay { unless_alone: Some(_), .. },
            )
            | Self::Unconnected => Heard::Settled,
            Self::Answers(Answer::Unknown { .. } | Answer::UnderWay { unless_alone: None, .. })
            | Self::Breaks
            | Self::Panics => Heard::Open,
        }
    }
}

/// Waits for the answer of a call.
pub(crate) struct AnswerOf {
    pub(crate) shared: Shared,
    /// The number of the call.
    pub(crate) id: u64,
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
    /// A call of this caller is on its way. Returns its number.
    pub(crate) fn begin_call(&mut self, who: &Who, received: Received) -> u64 {
        let Received { of, agent, key, body, started_at, timeout_ms, callback, authorization } = received;
        // With another token.
        if self.remotes.sent.insert((who.name.clone(), key.clone()), started_at) == Some(started_at) {
            self.see(&who.name, &Seen::SendsAgain { of, by: who.name.clone() });
        }
        let clock_ms = self.clock(who.skew_ms).epoch_ms();
        // An agent with memos has one call of a key in flight, as far as clocks agree.
        let must_be_alone = self.setup.has_memo(agent) && self.setup.skew_ms == 0;
        let is_twin = |under: &&Under| {
            let is_alive = under.alive_until_ms.is_some_and(|until| self.now_ms < until);
            is_alive && under.call.key == key && under.call.started_ms >= self.jumped_until_ms
        };
        let twins = if must_be_alone { self.remotes.calls.values().filter(is_twin).count() } else { 0 };
        self.remotes.last_call += 1;
        let id = self.remotes.last_call;
        let by = who.name.clone();
        let called = Seen::Called { of, call: id, key: key.clone(), body, twins, agent, by, clock_ms };
        self.see(&who.name, &called);
        let fetch_ms = self.setup.services[agent].token_life_ms.map_or(0, |_| FETCH_MS_MAX);
        let alive_until_ms = Some(self.now_ms.saturating_add_unsigned(timeout_ms.saturating_sub(fetch_ms)));
        let is_polled = of.way == Way::Forward && self.rule_of(of).is_some_and(|rule| rule.poll.is_some());
        if is_polled {
            self.remotes.polled.insert(id, (agent, of, key.clone()));
        }
        let made = Made { id, of, agent, key, timeout_ms, started_ms: self.now_ms, callback, authorization, is_polled };
        let under = Under { call: made, has_arrived: false, alive_until_ms, coming: None, answer: None, waiting: None };
        self.remotes.calls.insert(id, under);
        let ms = match self.strikes(Fault::CallLate) {
            // The undo can wait for a call only if it arrives in time. Other services know it by the mark of the undo.
            true if self.setup.services[agent].is_careless => self.rng.between(0, self.setup.settled_ms(agent)),
            true => timeout_ms + self.rng.between(LATE_MS.0, LATE_MS.1),
            false => self.rng.between(0, self.setup.service_ms),
        };
        if ms > self.setup.service_ms {
            self.trouble(ms);
        }
        self.after(ms, Event::Arrive(id));
        id
    }

    /// Starts an outage of a service.
    pub fn take_service_away(&mut self) {
        let (agent, ms, until_ms) = self.draw_outage();
        self.remotes.away_until_ms[agent] = until_ms;
        self.tell(&format!("service {} is away for {ms} ms", self.setup.shape.agents[agent]));
    }

    /// A service begins to refuse every call.
    pub fn misconfigure_service(&mut self) {
        let (agent, ms, until_ms) = self.draw_outage();
        self.remotes.misconfigured_until_ms[agent] = until_ms;
        self.tell(&format!("service {} answers 401 for {ms} ms", self.setup.shape.agents[agent]));
    }

    fn draw_outage(&mut self) -> (usize, u64, i64) {
        let agent = self.rng.place(self.setup.shape.agents.len());
        let longest_ms = self.rng.pick(&[60_000, 10 * 60_000, 2 * 3_600_000]);
        let ms = self.rng.between(2_000, longest_ms);
        self.trouble(ms);
        (agent, ms, self.now_ms.saturating_add_unsigned(ms))
    }

    /// A call reaches its service, which may answer.
    pub fn arrive(&mut self, id: u64) {
        let Some(under) = self.remotes.calls.get_mut(&id) else { return };
        under.has_arrived = true;
        let call = under.call.clone();
        let is_alone = under.waiting.is_none();
        let back_ms = self.rng.between(0, self.setup.service_ms);
        if let Some((said, ms)) = self.serve(&call, back_ms) {
            self.say(id, said, ms);
        }
        if is_alone {
            self.remotes.calls.remove(&id);
        }
    }

    /// The service answers, and the answer takes this time to its caller, in milliseconds.
    pub(crate) fn say(&mut self, id: u64, said: Said, ms: u64) {
        if let Some(under) = self.remotes.calls.get_mut(&id) {
            under.coming = Some(said);
            self.after(ms, Event::Answer(id));
        }
    }

    /// Whether a service is away, or refuses every call.
    pub(crate) fn is_out(&self, agent: usize) -> (bool, bool) {
        let is_now = |outage: &&Outage| {
            (outage.at_ms..outage.at_ms.saturating_add_unsigned(outage.lasts_ms)).contains(&self.now_ms)
        };
        if !self.is_calm && self.setup.outages.iter().any(|outage| outage.agent == agent && is_now(&outage)) {
            return (true, false);
        }
        let until = |ms: &[i64]| !self.is_calm && self.now_ms < ms[agent];
        let is_away = until(&self.remotes.away_until_ms) || self.is_out_by_mishap(agent);
        (is_away, until(&self.remotes.misconfigured_until_ms))
    }

    /// The answer of a service and its arrival time; `None` if it comes later or never.
    fn serve(&mut self, call: &Made, back_ms: u64) -> Option<(Said, u64)> {
        let says = |answer| Some((Said::Answers(answer), back_ms));
        let (is_away, is_misconfigured) = self.is_out(call.agent);
        let described = self.setup.services[call.agent].described.clone();
        let mishap = described.as_ref().and_then(|_| self.begin_mishap(call));
        if let Some(described) = &described {
            if is_away || mishap == Some(CallEnds::Refused) {
                *self.remotes.found_away.entry(call.agent).or_default() += 1;
                return says(Answer::retry(AWAY));
            }
            if self.has_too_many(call.agent, described) {
                return says(Answer::retry(TOO_MANY));
            }
            if self.fails_on_purpose(call, LineEnds::Unanswered) {
                return None;
            }
        }
        if is_away {
            let is_refused = self.rng.chance(6_000);
            return is_refused.then_some((Said::Unconnected, back_ms));
        }
        if is_misconfigured {
            return says(Answer::misconfigured("401"));
        }
        if !self.lets_in(call.agent, call.authorization.as_deref()) {
            return says(Answer::misconfigured("401"));
        }
        if self.strikes(Fault::ServiceBusy) {
            let after_ms = self.rng.chance(3_000).then(|| self.rng.between(0, 20_000));
            return says(Answer::Retry { after_ms, problem: "503".into() });
        }
        if self.strikes(Fault::ServiceSilent) {
            return None;
        }
        if self.strikes(Fault::ServicePanicked) {
            return Some((Said::Panics, back_ms));
        }
        let said = match self.begin(call) {
            Begun::Says(answer) => Said::Answers(answer),
            Begun::Works { ms, is_taken_on } if mishap.is_some() => {
                let is_taken_on = is_taken_on == Some(true);
                let late = described.filter(|_| mishap == Some(CallEnds::Late) && !is_taken_on);
                let ms = late.map_or(ms, |described| described.draw_late(&mut self.rng));
                self.keep_working(call, ms, None, is_taken_on);
                return None;
            }
            Begun::Works { ms, is_taken_on } => return self.work(call, ms, back_ms, is_taken_on),
        };
        if mishap.is_some() || self.strikes(Fault::ServiceAnswerLost) {
            let is_cut = self.rng.chance(5_000);
            return is_cut.then_some((Said::Breaks, back_ms));
        }
        let timeout_ms = call.timeout_ms;
        let late_ms =
            if self.strikes(Fault::ServiceSlow) { self.rng.between(timeout_ms / 2, timeout_ms * 3) } else { 0 };
        self.trouble(late_ms);
        Some((said, back_ms + late_ms))
    }

    /// Whether a service is called more often than it takes.
    fn has_too_many(&mut self, agent: usize, described: &Described) -> bool {
        let Some(max) = described.calls_max() else { return false };
        let now_ms = self.now_ms;
        let arrivals = self.remotes.arrivals.entry(agent).or_default();
        while arrivals.front().is_some_and(|at_ms| at_ms + 1_000 <= now_ms) {
            arrivals.pop_front();
        }
        let has_too_many = arrivals.len() >= max;
        match has_too_many {
            true => *self.remotes.too_many.entry(agent).or_default() += 1,
            false => arrivals.push_back(now_ms),
        }
        has_too_many
    }

    /// The service works on the call for a while; its caller may hear something before the end.
    fn work(&mut self, call: &Made, ms: u64, back_ms: u64, is_taken_on: Option<bool>) -> Option<(Said, u64)> {
        let mut draws = || self.strikes(Fault::TakenOn) || (call.callback.is_some() && self.rng.chance(7_000));
        let is_taken_on = is_taken_on.unwrap_or_else(&mut draws);
        let is_lost = self.strikes(Fault::ServiceAnswerLost);
        let caller = (!is_taken_on && !is_lost).then_some(call.id);
        self.keep_working(call, ms, caller, is_taken_on);
        if is_taken_on && !is_lost {
            let after_ms = self.rng.chance(3_000).then(|| self.rng.between(0, 20_000));
            return Some((Said::Answers(Answer::UnderWay { after_ms, unless_alone: None, poll: None }), back_ms));
        }
        let is_cut = is_lost && self.rng.chance(5_000);
        is_cut.then(|| (Said::Answers(Answer::unknown("504")), self.rng.between(0, ms)))
    }

    /// A service tells the result of a call that it took on: most often once, sometimes twice or never (rule 38).
    pub(crate) fn tell_later(&mut self, call: &Made, answer: &Answer) {
        let Some(path) = &call.callback else { return };
        let described = self.setup.services[call.agent].described.clone();
        let body = match answer {
            Answer::Done(output) => {
                let said = described.as_ref().map(|one| one.puts(answer, self.said_of(one, call.of)).1);
                format!("{{\"Outcome\":\"Done\",\"Output\":{}}}", said.as_deref().unwrap_or(output.text()))
            }
            Answer::Fail(failure) => json!({"Outcome": "No", "Code": &*failure.code}).to_string(),
            Answer::Retry { .. }
            | Answer::Unknown { .. }
            | Answer::UnderWay { .. }
            | Answer::Misconfigured { .. }
            | Answer::NotCalled { .. } => return,
        };
        // Where the state is asked, a third of the results is told to nobody.
        let few: &[u32] = &[0, 1, 1, 1, 1, 1, 1, 1, 2, 2];
        let times = match &described {
            Some(described) => match Described::happens(&mut self.rng, described.service.later.lost) {
                true => 0,
                false => 1 + u32::from(Described::happens(&mut self.rng, described.service.later.twice)),
            },
            None => self.rng.pick(if call.is_polled { &[0, 1, 1] } else { few }),
        };
        let told = Told { of: call.of, path: path.clone(), body: body.into() };
        self.remotes.told_later.insert(call.id, told);
        for _ in 0..times {
            self.counts.add(Fault::ToldLater);
            // One that is described has its result when it says so.
            let ms = if described.is_some() { 1_000 } else { self.rng.pick(&[0, 1_000, 60_000, 3_600_000]) };
            let ms = self.rng.between(0, ms);
            self.after(ms, Event::CallBack(call.id));
        }
    }

    /// The answer arrives.
    pub fn answer(&mut self, id: u64) -> Option<Waker> {
        let under = self.remotes.calls.get_mut(&id)?;
        under.answer = under.coming.take();
        under.waiting.take()
    }
}
