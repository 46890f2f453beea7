//! Ports for tests in which time passes only during waits, and a service that follows a script.

mod fleet;
mod ports;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use domain::backoff::BackoffPolicy;
use domain::callback::CallbackKey;
use domain::definition::{Catalogue, Deployment};
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{Delivery, Outcome, Priority, Receipt, Reply, Request, idempotency_key};
use domain::ports::{
    Breaker, Commit, Environment, Memo, MemoState, PortError, Record, RecordKind, Records, Seen, ServiceHealth,
};
use domain::task::Direction;
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::Memory;

use crate::{Agent, Answer, Callbacks, HealthPolicy, Policy};
use fleet::MakeScripted;
pub(crate) use fleet::{Fleet, Instance, drive};
pub(crate) use script::{Act, Seen as SeenCall};
use script::{Behaviour, Meanwhile, Scripted};

/// The start of every test.
pub(crate) const START: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);

/// Ports with a service that follows `behaviour` at every call, by the time in milliseconds since the start.
pub(crate) fn world_where(behaviour: impl Fn(u64) -> Act + Send + Sync + 'static) -> World {
    world_by_key(move |at_ms, _| behaviour(at_ms))
}

/// The same, also by the key of the call.
pub(crate) fn world_by_key(behaviour: impl Fn(u64, &str) -> Act + Send + Sync + 'static) -> World {
    World { behaviour: Some(Behaviour(Box::new(behaviour))), ..World::new([]) }
}

/// The ports, the script, and the log.
pub(crate) struct World {
    /// The stored records.
    memory: Memory,
    state: Mutex<State>,
    behaviour: Option<Behaviour>,
    pub(crate) policy: Policy,
    callbacks: Option<Callbacks>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    /// By how much others see a later time.
    jump_ms: u64,
    draws: VecDeque<u64>,
    acts: VecDeque<Act>,
    objects: usize,
    seen: Vec<SeenCall>,
    replies: Vec<Reply>,
    returned: Vec<(String, Receipt, u64)>,
    slept: Vec<u64>,
    sends_fail: bool,
    /// How many operations on records got through, by name.
    reached: BTreeMap<&'static str, usize>,
    /// Which ports are down.
    down: Vec<&'static str>,
    /// An operation that fails the next time.
    fails_once: Option<&'static str>,
    /// Hooks that run the next time that an operation begins.
    hooks: Vec<(&'static str, Meanwhile)>,
    /// State of a simple generator, for when draws must differ and do not matter.
    seed: Option<u64>,
}

impl World {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let state = State {
            now: START,
            jump_ms: 0,
            draws: VecDeque::new(),
            acts: acts.into_iter().collect(),
            objects: 0,
            seen: Vec::new(),
            replies: Vec::new(),
            returned: Vec::new(),
            slept: Vec::new(),
            sends_fail: false,
            reached: BTreeMap::new(),
            down: Vec::new(),
            fails_once: None,
            hooks: Vec::new(),
            seed: None,
        };
        let backoff = BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true };
        let policy = Policy {
            margin_ms: 500,
            call_timeout_ms: 5_000,
            backoff,
            // Queue times and the breaker have tests of their own.
            queued_percent_max: 100,
            health: HealthPolicy { failures_to_open: u32::MAX, ..HealthPolicy::default() },
            ..Policy::default()
        };
        Self { memory: Memory::new(START, 0), state: Mutex::new(state), behaviour: None, policy, callbacks: None }
    }

    /// The exponents that the back-off draws, one for each retry. Without any it draws 0, which is no wait.
    pub(crate) fn drawing(self, draws: impl IntoIterator<Item = u64>) -> Self {
        self.lock(|state| state.draws.extend(draws));
        self
    }

    pub(crate) fn with_policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// The API is at this URL, and the deployment has these keys.
    pub(crate) fn called_back_at(mut self, api: &str, callback_keys: Vec<CallbackKey>) -> Self {
        let deployment = Deployment {
            version: 1,
            default: "order".into(),
            workflows: BTreeMap::new(),
            highest: BTreeMap::new(),
            settings: "".into(),
            callback_keys,
            applied_at: START,
            applied_by: "ada".into(),
            of_start: false,
        };
        self.memory.put(Seen::nothing(START), &deployment).now_or_never().unwrap().unwrap();
        self.callbacks = Some(Callbacks::below(api, Catalogue::new(Workflows::shipped().unwrap())));
        self
    }

    /// The wall clock jumps, and is not believed.
    pub(crate) fn jump(&self, ms: u64) {
        self.lock(|state| state.jump_ms += ms);
    }

    /// Adds to the script.
    pub(crate) fn play(&self, acts: impl IntoIterator<Item = Act>) {
        self.lock(|state| state.acts.extend(acts));
    }

    /// From now on a reply cannot be sent, or can again.
    pub(crate) fn sends_fail(&self, fail: bool) {
        self.lock(|state| state.sends_fail = fail);
    }

    /// Replies so far are of no interest.
    pub(crate) fn forget_replies(&self) {
        self.lock(|state| state.replies.clear());
    }

    pub(crate) fn pass_ms(&self, ms: u64) {
        self.lock(|state| state.now = state.now.plus_ms(ms));
    }

    /// The clock is set back.
    pub(crate) fn set_back_ms(&self, ms: u64) {
        self.lock(|state| state.now = state.now.minus_ms(ms));
    }

    pub(crate) fn seen(&self) -> Vec<SeenCall> {
        self.lock(|state| state.seen.clone())
    }

    /// When each call started, in milliseconds since the start of the test.
    pub(crate) fn call_times_ms(&self) -> Vec<u64> {
        self.seen().iter().map(|seen| seen.at_ms).collect()
    }

    pub(crate) fn replies(&self) -> Vec<Reply> {
        self.replies_from(0).0
    }

    /// The answers from the n-th reply on, and the number of replies.
    pub(crate) fn replies_from(&self, n: usize) -> (Vec<Reply>, usize) {
        let is_answer = |reply: &&Reply| !matches!(reply.outcome, Outcome::Retrying(_));
        self.lock(|state| (state.replies[n..].iter().filter(is_answer).cloned().collect(), state.replies.len()))
    }

    /// What the agent said of attempts that go on (rule 32): the attempt and the problem.
    pub(crate) fn troubles(&self) -> Vec<(u32, Arc<str>)> {
        let trouble = |reply: &Reply| match &reply.outcome {
            Outcome::Retrying(trouble) => Some((reply.attempt, trouble.problem.clone())),
            Outcome::Done(_) | Outcome::Failed(_) | Outcome::Deferred(_) | Outcome::Accepted(_) => None,
        };
        self.lock(|state| state.replies.iter().filter_map(trouble).collect())
    }

    /// Waits in the invocation, in milliseconds, those for calls that timed out included.
    pub(crate) fn slept_ms(&self) -> Vec<u64> {
        self.lock(|state| state.slept.clone())
    }

    /// The wait of the message that was returned to its queue last, in milliseconds.
    pub(crate) fn last_wait_ms(&self) -> Option<u64> {
        self.lock(|state| state.returned.last().map(|(_, _, wait_ms)| *wait_ms))
    }

    /// Messages that were returned to their queue: the queue, and the wait in milliseconds.
    pub(crate) fn returned(&self) -> Vec<(String, u64)> {
        self.lock(|state| state.returned.iter().map(|(queue, _, wait_ms)| (queue.clone(), *wait_ms)).collect())
    }

    /// Gives a batch to an instance that has just started, and returns the ids of the messages that are to be delivered
    /// again.
    pub(crate) fn handle(&self, batch: Vec<Delivery<Request>>) -> Vec<String> {
        self.instance().handle(batch)
    }

    /// An instance that has just started.
    pub(crate) fn instance(&self) -> Instance<'_> {
        self.instance_of("payment")
    }

    /// An instance of another agent that has just started.
    pub(crate) fn instance_of(&self, agent: &str) -> Instance<'_> {
        self.instance_with(agent, self.policy.clone())
    }

    /// An instance of another agent with a policy of its own.
    pub(crate) fn instance_with(&self, agent: &str, policy: Policy) -> Instance<'_> {
        let make_service: MakeScripted<'_> = Box::new(|| Scripted { object: self.new_object(), world: self });
        let agent = Agent::new(agent, policy, make_service).unwrap().called_back(self.callbacks.clone());
        Instance { world: self, agent }
    }

    /// From now on unscripted draws differ from each other.
    pub(crate) fn seeded(self, seed: u64) -> Self {
        self.lock(|state| state.seed = Some(seed));
        self
    }

    /// The record of the health of payment, as stored.
    pub(crate) fn health_record(&self) -> Option<ServiceHealth> {
        self.stored("payment")
    }

    /// Replaces the record of the health of payment, as an operator's action does.
    pub(crate) fn change_health(&self, change: impl Fn(&ServiceHealth) -> Option<ServiceHealth>) {
        let Some(before) = self.health_record() else { return };
        let Some(after) = change(&before) else { return };
        let seen = Seen::version(before.version, self.now());
        assert_eq!(self.memory.put(seen, &after).now_or_never().unwrap().unwrap(), Commit::Committed);
    }

    pub(crate) fn breaker(&self) -> Breaker {
        self.health_record().map_or(Breaker::Closed, |health| health.state)
    }

    /// Reads and writes of the health so far, failed ones included.
    pub(crate) fn health_use(&self) -> (usize, usize) {
        let reached = |operation| self.lock(|state| state.reached.get(operation).copied().unwrap_or(0));
        (reached(RecordKind::Service.get()), reached(RecordKind::Service.put()))
    }

    pub(crate) fn memo_state(&self, key: &str) -> Option<MemoState> {
        self.stored(key).map(|memo: Memo| memo.state)
    }

    pub(crate) fn memo_version(&self, key: &str) -> u64 {
        self.stored(key).map_or(0, |memo: Memo| memo.version)
    }

    /// From now on every operation whose name has this prefix fails.
    pub(crate) fn down(&self, operation: &'static str) {
        self.lock(|state| state.down.push(operation));
    }

    /// From now on every port works.
    pub(crate) fn all_up(&self) {
        self.lock(|state| state.down.clear());
    }

    pub(crate) fn now_ms(&self) -> u64 {
        START.ms_until(self.now())
    }

    /// The outcomes in the replies.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.replies().into_iter().map(|reply| reply.outcome).collect()
    }

    /// The next time this operation fails.
    pub(crate) fn fail_once(&self, operation: &'static str) {
        self.lock(|state| state.fails_once = Some(operation));
    }

    /// Runs a hook the next time that the health is about to be read.
    pub(crate) fn when_health_is_read(&self, happen: impl Fn(&World) + Send + Sync + 'static) {
        self.lock(|state| state.hooks.push(("services.health", Meanwhile(Arc::new(happen)))));
    }

    /// Runs a hook the next time that a memo is about to be set.
    pub(crate) fn when_memo_is_set(&self, happen: impl Fn(&World) + Send + Sync + 'static) {
        self.lock(|state| state.hooks.push(("memos.set_memo", Meanwhile(Arc::new(happen)))));
    }

    /// Leaves a claim like that of an instance that died right after it.
    pub(crate) fn orphan_claim(&self, key: &str, lasts_ms: u64) {
        let (now, before) = (self.now(), self.memo_version(key));
        let (until, expires_at) = (now.plus_ms(lasts_ms), now.plus_ms(1 << 40));
        let state = MemoState::InProgress(until);
        let memo = Memo { key: key.into(), version: before + 1, state, declined: 0, expires_at };
        let written = self.memory.put(domain::ports::Seen::version(before, now), &memo).now_or_never();
        assert_eq!(written.unwrap().unwrap(), Commit::Committed);
    }

    fn stored<R: Record>(&self, key: &str) -> Option<R> {
        self.memory.get(key).now_or_never().unwrap().unwrap()
    }

    /// The stored tasks, for the test.
    pub(crate) fn tasks(&self) -> &Memory {
        &self.memory
    }

    /// How often the agent looked at a task.
    pub(crate) fn looks(&self) -> usize {
        self.lock(|state| state.reached.get("store").copied().unwrap_or(0))
    }

    /// The stored tasks, for the agent.
    fn look(&self) -> &Memory {
        self.lock(|state| *state.reached.entry("store").or_default() += 1);
        &self.memory
    }

    fn reach(&self, operation: &'static str) -> Result<(), PortError> {
        let hook = self.lock(|state| {
            let place = state.hooks.iter().position(|(hooked, _)| *hooked == operation)?;
            Some(state.hooks.remove(place).1)
        });
        if let Some(Meanwhile(happen)) = hook {
            happen(self);
        }
        let fails = self.lock(|state| {
            let once = state.fails_once.take_if(|once| *once == operation).is_some();
            once || state.down.iter().any(|down| operation.starts_with(down))
        });
        if fails {
            return Err(PortError::unavailable(operation, "out of order"));
        }
        self.lock(|state| *state.reached.entry(operation).or_default() += 1);
        Ok(())
    }

    fn new_object(&self) -> usize {
        self.lock(|state| {
            state.objects += 1;
            state.objects
        })
    }

    fn lock<T>(&self, of: impl FnOnce(&mut State) -> T) -> T {
        of(&mut self.state.lock().unwrap())
    }
}

/// A request whose `CompleteBy` is 10 s after the start and whose budget says the same.
pub(crate) fn request() -> Request {
    let order_id = OrderId::from_idempotency_key("test", "agent");
    Request {
        order_id,
        step: "charge-payment".into(),
        agent: "payment".into(),
        direction: Direction::Forward,
        attempt: 3,
        idempotency_key: idempotency_key(order_id, "charge-payment", Direction::Forward),
        complete_by: START.plus_ms(10_000),
        budget_ms: 10_000,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        may_run_until: None,
        wait_within_ms: None,
        may_decline: false,
        was_done: false,
        hops: 1,
        priority: Priority::High,
        order: json("{\"Total\":1}"),
        outputs: BTreeMap::new(),
        body: None,
        encode: domain::workflow::Encoding::Json,
        path: None,
        keep: None,
    }
}

/// The same for another order.
pub(crate) fn request_of(key: &str) -> Request {
    let order_id = OrderId::from_idempotency_key("test", key);
    let idempotency_key = idempotency_key(order_id, "charge-payment", Direction::Forward);
    Request { order_id, idempotency_key, ..request() }
}

/// The first delivery of a message of this id.
pub(crate) fn delivery(id: &str, request: Request) -> Delivery<Request> {
    Delivery {
        receipt: Receipt { message_id: id.into(), handle: id.into() },
        receive_count: 1,
        parent: None,
        body: Ok(request),
    }
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), 1 << 20).unwrap()
}

pub(crate) fn done() -> Answer {
    Answer::Done(json("{\"Receipt\":7}"))
}

pub(crate) fn retry() -> Answer {
    Answer::retry("out of order")
}
