//! Shared by the tests of this crate: ports in plain maps, and requests in one line.

mod queues;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use domain::backoff::{Backoff, BackoffPolicy};
use domain::bulk::Job;
use domain::definition::Deployment;
use domain::id::OrderId;
use domain::json::Json;
use domain::limits::SHARDS;
use domain::message::{Priority, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    Breaker, Commit, Environment, Evidence, Listed, Outage, OutageReason, PortError, Record, RecordKind, Records,
    Rejections, Seen, ServiceHealth,
};
use domain::tally::Numbers;
use domain::task::{Pause, ProcessState, Task};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::Memory;
use serde_json::Value;

use crate::{ApiConfig, Caller, handle};

/// A sample order.
pub(crate) const ORDER: &str = r#"{"Item":"book","Total":12.50}"#;
/// The caller of these tests.
pub(crate) const CALLER: &str = "shop";
/// The only registered reply channel.
pub(crate) const CHANNEL: &str = "shop-replies";

/// A task of the shipped workflow in this state.
pub(crate) fn task_in(name: &str, state: ProcessState) -> Task {
    let order_id = OrderId::from_idempotency_key(CALLER, name);
    let mut task = task_of(&order_of(order_id));
    task.process_state = state;
    task
}

/// A pause of a task.
pub(crate) fn pause() -> Pause {
    Pause {
        by: "ada".into(),
        reason: "stock-taking".into(),
        since: Timestamp::from_epoch_ms(1_795_195_603_007),
        version: 1,
    }
}

fn task_of(order: &Order) -> Task {
    Task::new(order, Workflows::shipped().unwrap().current(), SHARDS, 7)
}

fn order_of(order_id: OrderId) -> Order {
    let document = Json::document(ORDER.as_bytes()).unwrap();
    let fingerprint = document.fingerprint().into();
    let submitted_at = Timestamp::from_epoch_ms(1_795_195_603_007);
    let submitter = CALLER.into();
    Order {
        order_id,
        document,
        fingerprint,
        submitted_at,
        submitter,
        reply_channel: None,
        correlation_id: None,
        priority: None,
        workflow: None,
        terms: Vec::new(),
        again_of: None,
    }
}

/// Ports in plain maps. A call that the API must never make panics.
#[derive(Default)]
pub(crate) struct Fake {
    orders: Mutex<BTreeMap<OrderId, Arc<Order>>>,
    tasks: Mutex<BTreeMap<OrderId, Arc<Task>>>,
    submitted: Mutex<Vec<Order>>,
    /// The document that is stored under the id of the next order that is queued.
    rival: Mutex<Option<Json>>,
    scheduled: Mutex<Vec<(SchedulerMessage, Priority)>>,
    /// Versioned records.
    memory: Memory,
    /// Writes of other instances still to come between a read of a job and its write.
    rivals: AtomicU32,
    /// Every page of a list has a next page, which is the same.
    endless: AtomicBool,
    /// Tasks of any state that the store reads for a page, without an index by state; 0 with one.
    no_index: AtomicUsize,
    /// The store has no index of terms.
    no_terms: AtomicBool,
    /// Tasks read for lists.
    tasks_listed: AtomicUsize,
    /// The waits of `settled`, in milliseconds.
    waits: Mutex<Vec<u64>>,
    /// The state that an order enters during a wait.
    settles_as: Mutex<Option<ProcessState>>,
    /// Operations that fail.
    down: Mutex<BTreeSet<&'static str>>,
    drawn: AtomicU64,
    orders_read: AtomicU64,
    knows_orders: AtomicBool,
    /// What the store counted.
    pub(crate) numbers: Mutex<Option<Numbers>>,
    /// The API's configuration, if it is not the usual one.
    config: Mutex<Option<ApiConfig>>,
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
        let response = handle(self, &config, caller, request.body(body).unwrap()).now_or_never().unwrap();
        let (parts, body) = response.into_parts();
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
        self.orders.lock().unwrap().insert(order_id, Arc::new(order));
        self.tasks.lock().unwrap().insert(order_id, Arc::new(task));
        order_id
    }

    /// Stores all queued orders like the submission, with tasks in this state. The first of two orders with one id is
    /// kept.
    pub(crate) fn submission_runs(&self, state: ProcessState) {
        let (mut orders, mut tasks) = (self.orders.lock().unwrap(), self.tasks.lock().unwrap());
        for order in self.submitted.lock().unwrap().iter() {
            let mut task = task_of(order);
            task.process_state = state;
            orders.entry(order.order_id).or_insert_with(|| Arc::new(order.clone()));
            tasks.insert(order.order_id, Arc::new(task));
        }
    }

    /// The state of the service `payment` from now on.
    pub(crate) fn service_is(&self, state: Breaker) {
        self.stores_record(&ServiceHealth { state, ..self.payment() });
    }

    /// The service `payment` waits for this reason from now on.
    pub(crate) fn service_waits(&self, reason: OutageReason) {
        let outage = Some(Outage { reason, problem: "HTTP 401".into(), since: self.now() });
        self.stores_record(&ServiceHealth { outage, ..self.payment() });
    }

    /// The record of the service `payment`.
    pub(crate) fn stored_service(&self) -> ServiceHealth {
        now(self.memory.get("payment")).unwrap()
    }

    /// While the next order is queued, one with this document is stored under the same id.
    pub(crate) fn another_gets_the_key(&self, document: &str) {
        *self.rival.lock().unwrap() = Some(Json::document(document.as_bytes()).unwrap());
    }

    /// The queue knows the orders from now on.
    pub(crate) fn queue_knows_orders(&self) {
        self.knows_orders.store(true, Ordering::Relaxed);
    }

    /// During a wait, queued orders are stored, and stored tasks enter this state.
    pub(crate) fn settles_as(&self, state: ProcessState) {
        *self.settles_as.lock().unwrap() = Some(state);
    }

    /// Lets an operation fail from now on.
    pub(crate) fn down(&self, operation: &'static str) {
        self.down.lock().unwrap().insert(operation);
    }

    /// Lets an operation succeed again.
    pub(crate) fn up(&self, operation: &'static str) {
        self.down.lock().unwrap().remove(operation);
    }

    /// Lets every operation fail.
    pub(crate) fn all_down(&self) {
        let all = ["store.order", "store.task", "store.list", "store.settled", "queues.submit", "queues.to_scheduler"];
        let more = ["leases.leases", "services.all_health", "jobs.job", "jobs.set_job", "jobs.jobs", "letters.letters"];
        all.into_iter().chain(more).chain(["alerts.alerts"]).for_each(|operation| self.down(operation));
    }

    /// The orders on the submission queue.
    pub(crate) fn submitted(&self) -> Vec<Order> {
        self.submitted.lock().unwrap().clone()
    }

    /// The messages on the scheduler queue.
    pub(crate) fn scheduled(&self) -> Vec<SchedulerMessage> {
        self.scheduled.lock().unwrap().iter().map(|(message, _)| message.clone()).collect()
    }

    /// Their priorities.
    pub(crate) fn priorities(&self) -> Vec<Priority> {
        self.scheduled.lock().unwrap().iter().map(|(_, priority)| *priority).collect()
    }

    /// All jobs, by id.
    pub(crate) fn jobs_stored(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = now(self.memory.list(usize::MAX));
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
        let mut deployment: Deployment = now(self.memory.get(Deployment::KEY)).expect("a deployment");
        deployment.version += 1;
        change(&mut deployment);
        self.stores_record(&deployment);
    }

    pub(crate) fn stores_record<R: Record>(&self, record: &R) {
        let before = now(self.memory.get::<R>(record.key())).map_or(0, |stored| stored.version());
        assert_eq!(now(self.memory.put(Seen::version(before, Timestamp::default()), record)), Commit::Committed);
    }

    /// The next writes of records, this many, come after a write of another instance.
    pub(crate) fn others_write(&self, times: u32) {
        self.rivals.store(times, Ordering::Relaxed);
    }

    /// Makes every list endless.
    pub(crate) fn list_never_ends(&self) {
        self.endless.store(true, Ordering::Relaxed);
    }

    /// From now on the store has no index of terms.
    pub(crate) fn has_no_index_of_terms(&self) {
        self.no_terms.store(true, Ordering::Relaxed);
    }

    /// Makes the store read all tasks to find those of a state, this many for a page.
    pub(crate) fn has_no_index_of_states(&self, at_once: usize) {
        self.no_index.store(at_once, Ordering::Relaxed);
    }

    /// How many tasks were read for lists.
    pub(crate) fn tasks_listed(&self) -> usize {
        self.tasks_listed.load(Ordering::Relaxed)
    }

    /// How many orders were read.
    pub(crate) fn orders_read(&self) -> u64 {
        self.orders_read.load(Ordering::Relaxed)
    }

    /// The requested waits, in milliseconds.
    pub(crate) fn waits(&self) -> Vec<u64> {
        self.waits.lock().unwrap().clone()
    }

    /// Asserts that no queue got a message.
    #[track_caller]
    pub(crate) fn queued_nothing(&self) {
        assert!(self.submitted().is_empty() && self.scheduled().is_empty());
    }

    fn reach(&self, operation: &'static str) -> Result<(), PortError> {
        match self.down.lock().unwrap().contains(operation) {
            true => Err(PortError::unavailable(operation, "scripted failure")),
            false => Ok(()),
        }
    }
}

impl Records for Fake {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        self.reach(R::KIND.get())?;
        self.memory.get(key).await
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        assert_ne!(R::KIND, RecordKind::Memo, "the API has no memos");
        self.reach(R::KIND.put())?;
        assert_eq!(record.version(), seen.version + 1);
        let is_rivalled = self.rivals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if is_rivalled.is_ok() {
            match R::KIND {
                RecordKind::Job => {
                    let stored: Option<Job> = self.memory.get(record.key()).await?;
                    stored.iter().for_each(|job| self.stores_record(&Job { version: job.version + 1, ..job.clone() }));
                }
                RecordKind::Service => {
                    let health = self.stored_service();
                    self.stores_record(&ServiceHealth { version: health.version + 1, ..health });
                }
                RecordKind::Memo
                | RecordKind::Definition
                | RecordKind::Deployment
                | RecordKind::Alert
                | RecordKind::Lease
                | RecordKind::DeadLetter => {}
            }
        }
        self.memory.put(seen, record).await
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        self.reach(R::KIND.list())?;
        if self.memory.get::<ServiceHealth>("payment").await?.is_none() {
            self.stores_record(&self.payment());
        }
        Records::list(&self.memory, limit).await
    }
}

impl Fake {
    /// The health of the service `payment`.
    pub(crate) fn payment(&self) -> ServiceHealth {
        let policy = BackoffPolicy { slot_time_ms: 1_000, ceiling: 6, stay_at_ceiling: true };
        ServiceHealth {
            service: "payment".into(),
            version: 3,
            era: 2,
            state: Breaker::Open,
            failures_in_a_row: 5,
            until: self.now().plus_ms(1_000),
            backoff: Backoff::new(policy),
            since: self.now(),
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

impl Environment for Fake {
    fn now(&self) -> Timestamp {
        Timestamp::from_epoch_ms(1_795_195_603_007)
    }

    async fn sleep(&self, _: u64) {
        panic!("the API waits through `settled` only")
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(1, Ordering::Relaxed)
    }
}
