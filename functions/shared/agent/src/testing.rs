//! A world for tests in which time passes only when somebody waits, and a service that does what a script says.

use std::collections::{BTreeMap, VecDeque};
use std::future::{pending, ready};
use std::sync::Mutex;

use domain::backoff::BackoffPolicy;
use domain::batch::Failures;
use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Delivery, Receipt, Reply, Request, SchedulerMessage, idempotency_key};
use domain::order::Order;
use domain::ports::{Clock, PortError, Queues, Randomness};
use domain::task::Direction;
use domain::time::Timestamp;
use futures_util::FutureExt;

use crate::{Agent, Answer, Call, Policy, Service, handle};

/// When a test starts.
pub(crate) const START: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);

/// What the service does at one call.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Answers at once.
    Answer(Answer),
    /// Answers after so many milliseconds, if it is not given up before.
    Within(u64, Answer),
    /// So much time passes at one stroke, as when an instance is frozen, and then there is an answer.
    Frozen(u64, Answer),
    /// Never answers.
    Hang,
    /// Panics.
    Panic,
}

/// One call as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which of the service objects, in the order in which they were made.
    pub(crate) object: usize,
    pub(crate) direction: Direction,
    pub(crate) step: String,
    pub(crate) key: String,
    pub(crate) attempt: u32,
    /// Milliseconds since the start of the test.
    pub(crate) at_ms: u64,
    pub(crate) timeout_ms: u64,
}

/// The ports, the script, and what happened.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    pub(crate) policy: Policy,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    draws: VecDeque<u64>,
    acts: VecDeque<Act>,
    objects: usize,
    seen: Vec<Seen>,
    replies: Vec<Reply>,
    returned: Vec<(String, Receipt, u64)>,
    slept: Vec<u64>,
    sends_fail: bool,
}

impl World {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let state = State {
            now: START,
            draws: VecDeque::new(),
            acts: acts.into_iter().collect(),
            objects: 0,
            seen: Vec::new(),
            replies: Vec::new(),
            returned: Vec::new(),
            slept: Vec::new(),
            sends_fail: false,
        };
        let backoff = BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true };
        let policy = Policy { margin_ms: 500, call_timeout_ms: 5_000, backoff, ..Policy::default() };
        Self { state: Mutex::new(state), policy }
    }

    /// The exponents that the back-off draws, one for each retry. Without any it draws 0, which is no wait at all.
    pub(crate) fn drawing(self, draws: impl IntoIterator<Item = u64>) -> Self {
        self.lock(|state| state.draws.extend(draws));
        self
    }

    pub(crate) fn with_policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// From now on a reply cannot be sent, or can again.
    pub(crate) fn sends_fail(&self, fail: bool) {
        self.lock(|state| state.sends_fail = fail);
    }

    pub(crate) fn pass_ms(&self, ms: u64) {
        self.lock(|state| state.now = state.now.plus_ms(ms));
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.lock(|state| state.seen.clone())
    }

    /// When each call started, in milliseconds since the start of the test.
    pub(crate) fn call_times_ms(&self) -> Vec<u64> {
        self.seen().iter().map(|seen| seen.at_ms).collect()
    }

    pub(crate) fn replies(&self) -> Vec<Reply> {
        self.lock(|state| state.replies.clone())
    }

    /// Waits in the invocation, in milliseconds, those for calls that timed out included.
    pub(crate) fn slept_ms(&self) -> Vec<u64> {
        self.lock(|state| state.slept.clone())
    }

    /// Messages that were sent back to their queue: the queue, and the wait in milliseconds.
    pub(crate) fn returned(&self) -> Vec<(String, u64)> {
        self.lock(|state| state.returned.iter().map(|(queue, _, wait_ms)| (queue.clone(), *wait_ms)).collect())
    }

    /// Gives the agent a batch and returns the ids of the messages that are to be delivered again.
    pub(crate) fn handle(&self, batch: Vec<Delivery<Request>>) -> Vec<String> {
        let make_service = || Scripted { object: self.new_object(), world: self };
        let agent = Agent::new("payment", self.policy.clone(), make_service).unwrap();
        let handling = assert_send(handle(self, &agent, batch));
        let Failures(failed) = handling.now_or_never().expect("nothing in this world waits for anything else");
        failed.iter().map(|receipt| receipt.message_id.to_string()).collect()
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

/// On Lambda and in the program a handler moves between threads.
fn assert_send<T: Send>(future: T) -> T {
    future
}

struct Scripted<'a> {
    object: usize,
    world: &'a World,
}

impl Scripted<'_> {
    async fn act(&self, direction: Direction, call: &Call<'_>) -> Answer {
        let act = self.world.lock(|state| {
            state.seen.push(Seen {
                object: self.object,
                direction,
                step: call.step.to_owned(),
                key: call.idempotency_key.to_owned(),
                attempt: call.attempt,
                at_ms: START.ms_until(call.started_at),
                timeout_ms: call.timeout_ms,
            });
            state.acts.pop_front().expect("the script has an act for every call")
        });
        match act {
            Act::Answer(answer) => answer,
            Act::Within(ms, answer) if ms <= call.timeout_ms => {
                self.world.pass_ms(ms);
                answer
            }
            Act::Frozen(ms, answer) => {
                self.world.pass_ms(ms);
                answer
            }
            Act::Within(..) | Act::Hang => pending().await,
            Act::Panic => panic!("as the script says"),
        }
    }
}

impl Service for Scripted<'_> {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Forward, call).await
    }

    async fn undo(&mut self, call: &Call<'_>) -> Answer {
        self.act(Direction::Undo, call).await
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        self.lock(|state| state.now)
    }

    async fn sleep(&self, ms: u64) {
        self.lock(|state| {
            state.now = state.now.plus_ms(ms);
            state.slept.push(ms);
        });
    }
}

impl Randomness for World {
    fn random(&self) -> u64 {
        self.lock(|state| state.draws.pop_front().unwrap_or(0))
    }
}

impl Queues for World {
    async fn submit(&self, _: Order) -> Result<(), PortError> {
        unreachable!("an agent submits nothing")
    }

    async fn to_scheduler(&self, message: SchedulerMessage, delay_ms: u64) -> Result<(), PortError> {
        assert_eq!(delay_ms, 0);
        let SchedulerMessage::Reply(reply) = message else { unreachable!("an agent sends replies only") };
        self.lock(|state| {
            if state.sends_fail {
                return Err(PortError::unavailable("queues.to_scheduler", "out of order"));
            }
            state.replies.push(reply);
            Ok(())
        })
    }

    async fn to_agent(&self, _: &str, _: Request) -> Result<(), PortError> {
        unreachable!("an agent asks no agent")
    }

    fn return_to_agent(
        &self,
        agent: &str,
        receipt: &Receipt,
        delay_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send {
        self.lock(|state| state.returned.push((agent.to_owned(), receipt.clone(), delay_ms)));
        ready(Ok(()))
    }
}

/// A request whose `CompleteBy` is 10 s after the start and whose budget says the same.
pub(crate) fn request() -> Request {
    let order_id = OrderId::from_idempotency_key("test", "agent");
    Request {
        order_id,
        step: "charge-payment".into(),
        direction: Direction::Forward,
        attempt: 3,
        idempotency_key: idempotency_key(order_id, "charge-payment", Direction::Forward),
        complete_by: START.plus_ms(10_000),
        budget_ms: 10_000,
        hops: 1,
        order: json("{\"Total\":1}"),
        outputs: BTreeMap::new(),
    }
}

/// The first delivery of a message of this id.
pub(crate) fn delivery(id: &str, request: Request) -> Delivery<Request> {
    Delivery { receipt: Receipt { message_id: id.into(), handle: id.into() }, receive_count: 1, body: Ok(request) }
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
