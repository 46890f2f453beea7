//! Shared by the tests of this crate: ports in memory, and requests in one line.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use domain::backoff::{Backoff, BackoffPolicy};
use domain::bulk::Job;
use domain::definition::Deployment;
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::SHARDS;
use domain::message::SchedulerMessage;
use domain::order::Order;
use domain::ports::{
    Breaker, Commit, Environment, Evidence, Inserted, ListError, Outage, OutageReason, Page, PortError, Record,
    Records, Rejections, Seen, ServiceHealth,
};
use domain::task::{Pause, ProcessState, Task};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::faulty::Faulty;
use memory::{Memory, sample};
use serde_json::Value;

use crate::{ApiConfig, Caller, handle};

/// A sample order.
pub(crate) const ORDER: &str = r#"{"Item":"book","Total":12.50}"#;
/// The caller of these tests.
pub(crate) const CALLER: &str = "shop";
/// The only registered reply channel.
pub(crate) const CHANNEL: &str = "shop-replies";
/// The time at the start of every test.
const START: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_007);

/// A task of the shipped workflow in this state.
pub(crate) fn task_in(name: &str, state: ProcessState) -> Task {
    let order_id = OrderId::from_idempotency_key(CALLER, name);
    let mut task = task_of(&order_of(order_id));
    task.process_state = state;
    task
}

/// A pause of a task.
pub(crate) fn pause() -> Pause {
    Pause { by: "ada".into(), reason: "stock-taking".into(), since: START, version: 1 }
}

fn task_of(order: &Order) -> Task {
    Task::new(order, Workflows::shipped().unwrap().current(), SHARDS, 7)
}

fn order_of(order_id: OrderId) -> Order {
    Order { order_id, ..sample::order(CALLER, "", ORDER, START) }
}

/// The API on ports in memory.
pub(crate) struct Fake {
    pub(crate) ports: Faulty,
    /// Tasks read for lists.
    tasks_listed: Arc<AtomicUsize>,
    /// The API's configuration, if it is not the usual one.
    config: Mutex<Option<ApiConfig>>,
}

/// What the API never does.
const NEVER: [&str; 10] = [
    "store.insert",
    "store.commit",
    "store.due",
    "queues.to_agent",
    "queues.return_to_agent",
    "events.",
    "leases.acquire",
    "leases.re",
    "letters.record",
    "memos.",
];

impl Default for Fake {
    fn default() -> Self {
        let ports = Faulty::new(Memory::new(START, 0));
        ports.draw_from(0..);
        for operation in NEVER {
            ports.at_each(operation, move |_| panic!("the API called {operation}"));
        }
        ports.at_each("queues.submit", |delay_ms| {
            assert_eq!(delay_ms, "0", "a client does not wait");
            None
        });
        let tasks_listed = Arc::<AtomicUsize>::default();
        let listed = tasks_listed.clone();
        ports.on_answers("store.list", move |_, page: &mut Result<Page, ListError>| {
            listed.fetch_add(page.as_ref().map_or(0, |page| page.read), Ordering::Relaxed);
        });
        let fake = Self { ports, tasks_listed, config: Mutex::default() };
        fake.stores_record(&fake.payment());
        fake
    }
}

/// A parsed answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
    /// The body as JSON; null if it is not JSON.
    pub(crate) body: Value,
    headers: http::HeaderMap,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Asserts that this is a problem document of this type.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, name: &str) {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(self.body["type"], format!("/problems/{name}"));
        assert_eq!(self.body["status"], status);
        assert!(self.body["title"].is_string() && self.body["detail"].is_string(), "{}", self.text);
    }

    /// Asserts that this is a problem document that names the fault, in `field` and in `detail`.
    #[track_caller]
    pub(crate) fn names(&self, status: u16, name: &str, field: &str) {
        self.is_problem(status, name);
        assert_eq!(self.body["field"], field, "{}", self.text);
        assert!(self.body["detail"].as_str().unwrap().contains(field), "{}", self.text);
    }
}

impl Fake {
    /// Sends a request as [`CALLER`].
    pub(crate) fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.call_as(CALLER, method, path, headers, Bytes::from(body.to_owned()))
    }

    /// Sends a request with a body of any bytes.
    pub(crate) fn call_as(
        &self,
        caller: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        self.call_by(&Caller::unrestricted(caller), method, path, headers, body)
    }

    /// Sends a request of this caller.
    pub(crate) fn call_by(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let config = self.config.lock().unwrap().clone().unwrap_or_else(|| ApiConfig::new([CHANNEL]));
        let mut response = pin!(handle(&self.ports, &config, caller, request.body(body).unwrap()));
        let (parts, body) = loop {
            if let Poll::Ready(response) = response.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                break response.into_parts();
            }
            let now = self.ports.now();
            let at = self.ports.next_to_wake(now).expect("the API waits through `settled` only");
            self.ports.advance(now.ms_until(at));
        };
        Answer {
            status: parts.status.as_u16(),
            text: String::from_utf8(body.to_vec()).unwrap(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
            headers: parts.headers,
        }
    }

    /// From now on requests are handled with this configuration.
    pub(crate) fn config(&self, config: ApiConfig) {
        *self.config.lock().unwrap() = Some(config);
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "")
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.call("POST", path, headers, body)
    }

    /// Puts a task and its order into the store.
    pub(crate) fn stores(&self, task: Task) -> OrderId {
        self.stores_with(task, |_| {})
    }

    /// The same, with an order that differs from the usual one.
    pub(crate) fn stores_with(&self, task: Task, change: impl FnOnce(&mut Order)) -> OrderId {
        let order_id = task.order_id;
        let mut order = order_of(order_id);
        change(&mut order);
        self.ports.store_order(order, task);
        order_id
    }

    /// Stores all queued orders like the submission, with tasks in this state. The first of two orders with one id is
    /// kept.
    pub(crate) fn submission_runs(&self, state: ProcessState) {
        submission_runs(&self.ports, state);
    }

    /// The state of the service `payment` from now on.
    pub(crate) fn service_is(&self, state: Breaker) {
        self.stores_record(&ServiceHealth { state, ..self.payment() });
    }

    /// The service `payment` waits for this reason from now on.
    pub(crate) fn service_waits(&self, reason: OutageReason) {
        let outage = Some(Outage { reason, problem: "HTTP 401".into(), since: START });
        self.stores_record(&ServiceHealth { outage, ..self.payment() });
    }

    /// The record of the service `payment`.
    pub(crate) fn stored_service(&self) -> ServiceHealth {
        now(Memory::get(&self.ports, "payment")).unwrap()
    }

    /// While the next order is queued, one with this document is stored under the same id.
    pub(crate) fn another_gets_the_key(&self, document: &str) {
        let memory = Memory::clone(&self.ports);
        let mut document = Some(Json::document(document.as_bytes()).unwrap());
        self.ports.on_answers("queues.submit", move |_, _: &mut Inserted| {
            let Some(document) = document.take() else { return };
            let order = memory.submitted().pop().unwrap();
            let task = task_of(&order);
            memory.store_order(Order { fingerprint: document.fingerprint().into(), document, ..order }, task);
        });
    }

    /// During a wait, queued orders are stored, and stored tasks enter this state.
    pub(crate) fn settles_as(&self, state: ProcessState) {
        let memory = Memory::clone(&self.ports);
        self.ports.at_each("store.settled", move |_| {
            submission_runs(&memory, state);
            memory.change_tasks(|task| task.process_state = state);
            None
        });
    }

    /// Lets operations fail from now on: those whose names start with this prefix.
    pub(crate) fn down(&self, operations: &'static str) {
        self.ports.is_down(operations);
    }

    /// Lets them succeed again.
    pub(crate) fn up(&self, operations: &'static str) {
        self.ports.is_up(operations);
    }

    /// Lets every operation fail.
    pub(crate) fn all_down(&self) {
        self.down("");
    }

    /// The orders on the submission queue.
    pub(crate) fn submitted(&self) -> Vec<Order> {
        self.ports.submitted()
    }

    /// The messages on the scheduler queue.
    pub(crate) fn scheduled(&self) -> Vec<SchedulerMessage> {
        self.ports.scheduled()
    }

    /// Their priorities and delays.
    pub(crate) fn priorities(&self) -> Vec<String> {
        self.ports.calls_of("queues.to_scheduler")
    }

    /// All jobs, by id.
    pub(crate) fn jobs_stored(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = now(Records::list(&*self.ports, usize::MAX));
        jobs.sort_by(|one, other| one.id.cmp(&other.id));
        jobs
    }

    /// The job with the first id.
    pub(crate) fn the_job(&self) -> Job {
        self.jobs_stored().remove(0)
    }

    /// Puts a job into the store, in place of the one with its id.
    pub(crate) fn stores_job(&self, job: &Job) {
        self.stores_record(job);
    }

    /// Changes what applies.
    pub(crate) fn changes_deployment(&self, change: impl FnOnce(&mut Deployment)) {
        let mut deployment: Deployment = now(Memory::get(&self.ports, Deployment::KEY)).expect("a deployment");
        deployment.version += 1;
        change(&mut deployment);
        self.stores_record(&deployment);
    }

    /// Puts a record into the store, in place of the one with its key.
    pub(crate) fn stores_record<R: Record>(&self, record: &R) {
        stores_record(&self.ports, record);
    }

    /// The next writes of records of this kind, this many, come after a write of another instance.
    pub(crate) fn others_write<R: Record>(&self, times: u32, newer: impl Fn(R) -> R + Send + 'static) {
        let (memory, mut left) = (Memory::clone(&self.ports), times);
        self.ports.at_each(R::KIND.put(), move |key| {
            if left > 0
                && let Some(stored) = now(memory.get(key))
            {
                left -= 1;
                stores_record(&memory, &newer(stored));
            }
            None
        });
    }

    /// Makes every list endless: the page after the last one is the first one again.
    pub(crate) fn list_never_ends(&self) {
        self.ports.on_answers("store.list", |_, page: &mut Result<Page, ListError>| {
            page.as_mut().unwrap().next.get_or_insert_with(|| format!("before-{}", usize::MAX));
        });
    }

    /// From now on the store has no index of terms.
    pub(crate) fn has_no_index_of_terms(&self) {
        self.ports.on_answers("store.found", |_, page: &mut Result<Option<Page>, ListError>| *page = Ok(None));
    }

    /// How many tasks were read for lists.
    pub(crate) fn tasks_listed(&self) -> usize {
        self.tasks_listed.load(Ordering::Relaxed)
    }

    /// How many orders were read.
    pub(crate) fn orders_read(&self) -> usize {
        self.ports.calls_of("store.order").len()
    }

    /// The requested waits, in milliseconds.
    pub(crate) fn waits(&self) -> Vec<String> {
        self.ports.calls_of("store.settled")
    }

    /// Asserts that no queue got a message.
    #[track_caller]
    pub(crate) fn queued_nothing(&self) {
        assert!(self.submitted().is_empty() && self.scheduled().is_empty());
    }

    /// The health of the service `payment`.
    pub(crate) fn payment(&self) -> ServiceHealth {
        let policy = BackoffPolicy { slot_time_ms: 1_000, ceiling: 6, stay_at_ceiling: true };
        ServiceHealth {
            service: "payment".into(),
            version: 3,
            era: 2,
            state: Breaker::Open,
            failures_in_a_row: 5,
            until: START.plus_ms(1_000),
            backoff: Backoff::new(policy),
            since: START,
            release: None,
            outage: None,
            unsent: None,
            rejections: Rejections::default(),
            pace: None,
            evidence: Evidence::default(),
        }
    }
}

/// The answer of a port that never waits.
fn now<T>(answer: impl Future<Output = Result<T, PortError>>) -> T {
    answer.now_or_never().unwrap().unwrap()
}

fn stores_record<R: Record>(memory: &Memory, record: &R) {
    let before = now(memory.get::<R>(record.key())).map_or(0, |stored| stored.version());
    // A write removes what is expired by then, and the records of tests are old.
    assert_eq!(now(memory.put(Seen::version(before, Timestamp::default()), record)), Commit::Committed);
}

fn submission_runs(memory: &Memory, state: ProcessState) {
    for queued in memory.submitted() {
        let stored = memory.orders().into_iter().find(|(order, _)| order.order_id == queued.order_id);
        let order = stored.map_or(queued, |(order, _)| (*order).clone());
        let task = Task { process_state: state, ..task_of(&order) };
        memory.store_order(order, task);
    }
}
