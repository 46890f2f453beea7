//! Ports for tests in which time passes only during waits, and a service that follows a script.

mod fleet;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::iter::{repeat, repeat_with};
use std::sync::{Arc, Mutex};

use domain::backoff::BackoffPolicy;
use domain::callback::CallbackKey;
use domain::definition::{Catalogue, Deployment};
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{Delivery, Outcome, Priority, Receipt, Reply, Request, SchedulerMessage, idempotency_key};
use domain::ports::{Breaker, Commit, Environment, Memo, MemoState, Record, RecordKind, Records, Seen, ServiceHealth};
use domain::task::Direction;
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::Memory;
use memory::faulty::Faulty;

use crate::{Agent, Answer, Callbacks, HealthPolicy, Policy};
use fleet::MakeScripted;
pub(crate) use fleet::{Fleet, Instance, drive};
pub(crate) use script::{Act, Seen as SeenCall};
use script::{Behaviour, Scripted};

/// The start of every test.
pub(crate) const START: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);

/// Ports with a service that follows `behaviour` at every call, by the time in milliseconds since the start.
pub(crate) fn world_where(behaviour: impl Fn(u64) -> Act + Send + Sync + 'static) -> World {
    world_by_key(move |at_ms, _| behaviour(at_ms))
}

/// The same, also by the key of the call.
pub(crate) fn world_by_key(behaviour: impl Fn(u64, &str) -> Act + Send + Sync + 'static) -> World {
    World { behaviour: Some(Behaviour(Arc::new(behaviour))), ..World::new([]) }
}

/// The ports, the script, and the log. Cloning copies pointers.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) ports: Faulty,
    state: Arc<Mutex<State>>,
    behaviour: Option<Behaviour>,
    pub(crate) policy: Policy,
    callbacks: Option<Callbacks>,
}

#[derive(Debug, Default)]
struct State {
    acts: VecDeque<Act>,
    objects: usize,
    seen: Vec<SeenCall>,
}

/// What an agent never does.
const NEVER: [&str; 4] = ["store.commit", "store.insert", "queues.submit", "queues.to_agent"];

impl World {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let ports = Faulty::new(Memory::new(START, 0));
        ports.skip_sleeps();
        ports.take_turns();
        ports.draw_from(repeat(0));
        for operation in NEVER {
            ports.at_each(operation, move |_| panic!("an agent called {operation}"));
        }
        ports.at_each("queues.to_scheduler", |of| {
            assert_eq!(of, "High 0", "the lane of the request, and at once");
            None
        });
        let state = Arc::new(Mutex::new(State { acts: acts.into_iter().collect(), ..State::default() }));
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
        Self { ports, state, behaviour: None, policy, callbacks: None }
    }

    /// The exponents that the back-off draws, one for each retry. Without any it draws 0, which is no wait.
    pub(crate) fn drawing(self, draws: impl IntoIterator<Item = u64>) -> Self {
        let draws: Vec<u64> = draws.into_iter().collect();
        self.ports.draw_from(draws.into_iter().chain(repeat(0)));
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
            schedules: [].into(),
            callback_keys,
            applied_at: START,
            applied_by: "ada".into(),
            of_start: false,
        };
        self.store(Seen::nothing(START), &deployment);
        self.callbacks = Some(Callbacks::below(api, Catalogue::new(Workflows::shipped().unwrap())));
        self
    }

    /// The wall clock jumps, and is not believed.
    pub(crate) fn jump(&self, ms: u64) {
        self.ports.jump(ms);
    }

    /// Adds to the script.
    pub(crate) fn play(&self, acts: impl IntoIterator<Item = Act>) {
        self.lock(|state| state.acts.extend(acts));
    }

    /// From now on a reply cannot be sent, or can again.
    pub(crate) fn sends_fail(&self, fail: bool) {
        const OPERATION: &str = "queues.to_scheduler";
        if fail { self.ports.is_down(OPERATION) } else { self.ports.is_up(OPERATION) }
    }

    /// Replies so far are of no interest.
    pub(crate) fn forget_replies(&self) {
        self.ports.retain_scheduled(|_| false);
    }

    pub(crate) fn pass_ms(&self, ms: u64) {
        self.ports.advance(ms);
    }

    /// The clock is set back.
    pub(crate) fn set_back_ms(&self, ms: u64) {
        self.ports.set_back(ms);
    }

    pub(crate) fn seen(&self) -> Vec<SeenCall> {
        self.lock(|state| state.seen.clone())
    }

    /// When each call started, in milliseconds since the start of the test.
    pub(crate) fn call_times_ms(&self) -> Vec<u64> {
        self.seen().iter().map(|seen| seen.at_ms).collect()
    }

    /// The answers, without what was said of attempts that go on.
    pub(crate) fn replies(&self) -> Vec<Reply> {
        let is_answer = |reply: &Reply| !matches!(reply.outcome, Outcome::Retrying(_));
        self.all_replies().into_iter().filter(is_answer).collect()
    }

    /// What the agent said of attempts that go on (rule 32): the attempt and the problem.
    pub(crate) fn troubles(&self) -> Vec<(u32, Arc<str>)> {
        let trouble = |reply: &Reply| match &reply.outcome {
            Outcome::Retrying(trouble) => Some((reply.attempt, trouble.problem.clone())),
            Outcome::Done(_) | Outcome::Failed(_) | Outcome::Deferred(_) | Outcome::Accepted(_) => None,
        };
        self.all_replies().iter().filter_map(trouble).collect()
    }

    fn all_replies(&self) -> Vec<Reply> {
        let reply = |message| match message {
            SchedulerMessage::Reply(reply) => reply,
            SchedulerMessage::Wake(_) | SchedulerMessage::Command(_) | SchedulerMessage::Child(_) => {
                unreachable!("an agent sends replies only")
            }
        };
        self.ports.scheduled().into_iter().map(reply).collect()
    }

    /// Waits in the invocation, in milliseconds, those for calls that timed out included.
    pub(crate) fn slept_ms(&self) -> Vec<u64> {
        self.ports.skipped_ms()
    }

    /// The wait of the message that was returned to its queue last, in milliseconds.
    pub(crate) fn last_wait_ms(&self) -> Option<u64> {
        self.ports.last_call_of("queues.return_to_agent").map(|of| queue_and_wait(&of).1)
    }

    /// Messages that were returned to their queue: the queue, and the wait in milliseconds.
    pub(crate) fn returned(&self) -> Vec<(String, u64)> {
        self.ports.calls_of("queues.return_to_agent").iter().map(|of| queue_and_wait(of)).collect()
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
        let source = Memory::new(START, seed);
        self.ports.draw_from(repeat_with(move || source.random()));
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
        self.store(Seen::version(before.version, self.ports.now()), &after);
    }

    pub(crate) fn breaker(&self) -> Breaker {
        self.health_record().map_or(Breaker::Closed, |health| health.state)
    }

    /// Reads and writes of the health so far, failed ones included.
    pub(crate) fn health_use(&self) -> (usize, usize) {
        let calls = |operation| self.ports.calls_of(operation).len();
        (calls(RecordKind::Service.get()), calls(RecordKind::Service.put()))
    }

    pub(crate) fn memo_state(&self, key: &str) -> Option<MemoState> {
        self.stored(key).map(|memo: Memo| memo.state)
    }

    pub(crate) fn memo_version(&self, key: &str) -> u64 {
        self.stored(key).map_or(0, |memo: Memo| memo.version)
    }

    pub(crate) fn now_ms(&self) -> u64 {
        START.ms_until(self.ports.now())
    }

    /// The outcomes in the replies.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.replies().into_iter().map(|reply| reply.outcome).collect()
    }

    /// Runs a hook the next time that this operation begins.
    pub(crate) fn at_next(&self, operation: &'static str, happen: impl Fn(&World) + Send + 'static) {
        let world = self.clone();
        self.ports.at_next(operation, move || happen(&world));
    }

    /// Leaves a claim like that of an instance that died right after it.
    pub(crate) fn orphan_claim(&self, key: &str, lasts_ms: u64) {
        let (now, before) = (self.ports.now(), self.memo_version(key));
        let (until, expires_at) = (now.plus_ms(lasts_ms), now.plus_ms(1 << 40));
        let state = MemoState::InProgress(until);
        let memo = Memo { key: key.into(), version: before + 1, state, declined: 0, attempt: 0, expires_at };
        self.store(Seen::version(before, now), &memo);
    }

    fn stored<R: Record>(&self, key: &str) -> Option<R> {
        Memory::get(&self.ports, key).now_or_never().unwrap().unwrap()
    }

    fn store<R: Record>(&self, seen: Seen, record: &R) {
        assert_eq!(Memory::put(&self.ports, seen, record).now_or_never().unwrap().unwrap(), Commit::Committed);
    }

    /// How often the agent looked at a task.
    pub(crate) fn looks(&self) -> usize {
        self.ports.calls_of("store.task").len()
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

/// The queue to which a message was returned, and its wait in milliseconds.
fn queue_and_wait(of: &str) -> (String, u64) {
    let (queue, wait_ms) = of.split_once(' ').unwrap();
    (queue.to_owned(), wait_ms.parse().unwrap())
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
        method: domain::workflow::Method::Post,
        body: None,
        encode: domain::workflow::Encoding::Json,
        path: None,
        headers: Default::default(),
        keep: None,
        poll: None,
        look: None,
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
