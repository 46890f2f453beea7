//! Ports in memory for the tests: a clock that only a test moves, and an await before and after each effect, at which
//! a test can kill the caller.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use domain::bulk::Job;
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::json::Json;
use domain::limits::SHARDS;
use domain::message::{CloudEvent, Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    Commit, DeadLetterRecord, Due, Environment, Events, Inserted, ListError, Listed, Page, PortError, Queues, Record,
    RecordKind, Records, Seen, Store, Watched,
};
use domain::task::{ProcessState, Task, Watch};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::Memory;

/// The stored records, the queues, and the log.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    /// The time of each call of a port, in milliseconds.
    pub(crate) call_ms: u64,
    pub(crate) orders: BTreeMap<OrderId, Arc<Order>>,
    pub(crate) tasks: BTreeMap<OrderId, Arc<Task>>,
    /// Commits in their order.
    pub(crate) commits: Vec<Arc<Task>>,
    pub(crate) submissions: VecDeque<(Timestamp, Order)>,
    pub(crate) to_scheduler: VecDeque<(Timestamp, SchedulerMessage)>,
    pub(crate) to_agents: VecDeque<Request>,
    pub(crate) published: Vec<CloudEvent>,
    /// What channels took.
    pub(crate) notified: Vec<(String, CloudEvent)>,
    pub(crate) channels_down: BTreeSet<String>,
    /// The channels that were tried.
    pub(crate) tried: Vec<String>,
    /// Entries that the index shows although they are over.
    pub(crate) index_ghosts: Vec<Due>,
    /// Orders that the index does not show yet.
    pub(crate) index_lags: BTreeSet<OrderId>,
    /// Whether the index can be read as a whole.
    pub(crate) index_is_small: bool,
    /// Shards whose index cannot be read.
    pub(crate) index_down: BTreeSet<u8>,
    pub(crate) bus_down: bool,
    pub(crate) dead_letters_down: bool,
    /// The shards that were read.
    pub(crate) swept: Vec<u8>,
    random: u64,
}

impl World {
    fn reach(&self, kind: RecordKind, operation: &'static str) -> Result<(), PortError> {
        let is_down = kind == RecordKind::DeadLetter && self.dead_letters_down;
        if is_down { Err(down(operation)) } else { Ok(()) }
    }
}

/// The ports of one instance, with a clock of its own.
#[derive(Clone)]
pub(crate) struct Ports {
    world: Arc<Mutex<World>>,
    /// Versioned records.
    memory: Memory,
    skew_ms: i64,
}

pub(crate) fn workflows() -> Workflows {
    workflows_with("")
}

/// With these lines before the steps.
pub(crate) fn workflows_with(lines: &str) -> Workflows {
    let step = |name: &str, after: &str| {
        format!(
            "[[step]]\nname = {name:?}\nagent = \"any\"\nafter = {after}\ncomplete_within = \"10s\"\nmax_failures = 3\non_rejected = \"hold\"\non_exhausted = \"hold\"\n"
        )
    };
    let text = format!("name = \"w\"\nversion = 1\n{lines}{}{}", step("first", "[]"), step("second", "[\"first\"]"));
    Workflows::parse(&[&text], "w", &["any"]).unwrap()
}

pub(crate) fn instance(name: &str) -> Instance {
    Instance { name: name.into(), catalogue: Catalogue::new(workflows()), shards: SHARDS }
}

pub(crate) fn order(n: usize, at: Timestamp) -> Order {
    let document = Json::document(b"{\"Total\":1}").unwrap();
    Order {
        order_id: OrderId::from_idempotency_key("shop", &n.to_string()),
        fingerprint: document.fingerprint().into(),
        document,
        submitted_at: at,
        submitter: "shop".into(),
        reply_channel: None,
        correlation_id: None,
        priority: None,
        workflow: None,
        terms: Vec::new(),
        again_of: None,
    }
}

impl Ports {
    pub(crate) fn new() -> Self {
        let world = World { now: Timestamp::from_epoch_ms(1_000_000_000_000), ..World::default() };
        Self { world: Arc::new(Mutex::new(world)), memory: Memory::default(), skew_ms: 0 }
    }

    /// The same ports with a clock that is off.
    pub(crate) fn skewed(&self, skew_ms: i64) -> Self {
        Self { skew_ms, ..self.clone() }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(crate) fn pass_ms(&self, ms: u64) {
        let mut world = self.world();
        world.now = world.now.plus_ms(ms);
    }

    pub(crate) fn stored(&self, order_id: OrderId) -> Arc<Task> {
        self.world().tasks[&order_id].clone()
    }

    /// From now on every supervisor acquires every lease.
    pub(crate) fn break_leases(&self) {
        self.memory.break_leases();
    }

    /// All jobs.
    pub(crate) fn jobs(&self) -> Vec<Job> {
        now_or_never(Records::list(&self.memory, usize::MAX)).unwrap()
    }

    /// The outcomes of dead letters, the last settled first.
    pub(crate) fn dead_letters(&self) -> Vec<DeadLetterRecord> {
        now_or_never(Records::list(&self.memory, usize::MAX)).unwrap()
    }

    /// Replaces a job, whatever is stored.
    pub(crate) fn replace_job(&self, job: &Job) {
        let before = now_or_never(self.memory.get::<Job>(&job.id)).unwrap().map_or(0, |stored| stored.version);
        now_or_never(self.memory.put(Seen::version(before, self.now()), job)).unwrap();
    }

    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        self.world().tasks.values().cloned().collect()
    }

    /// One await, then the effect, then another await. A caller killed at the first has done nothing; one killed at
    /// the second has done the effect and not got the answer.
    async fn call<T>(&self, effect: impl FnOnce(&mut World) -> T) -> T {
        once_pending().await;
        let answer = {
            let mut world = self.world();
            world.now = world.now.plus_ms(world.call_ms);
            effect(&mut world)
        };
        once_pending().await;
        answer
    }
}

async fn once_pending() {
    let mut is_second = false;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut is_second, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Runs to the end.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    run_for(work, usize::MAX).unwrap_or_else(|| panic!("killed"))
}

/// Runs for at most this many polls and is then killed: `None`.
pub(crate) fn run_for<T>(work: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut work = pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    for poll in 0..polls {
        assert!(poll < 1_000_000, "this work does not end");
        if let Poll::Ready(value) = work.as_mut().poll(&mut context) {
            return Some(value);
        }
    }
    None
}

fn now_or_never<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("there is nothing to wait for")
}

fn down(operation: &'static str) -> PortError {
    PortError::unavailable(operation, "throttled")
}

impl Environment for Ports {
    fn now(&self) -> Timestamp {
        let now = self.world().now.epoch_ms();
        Timestamp::from_epoch_ms(now + self.skew_ms)
    }

    async fn sleep(&self, ms: u64) {
        let until = self.now().plus_ms(ms);
        poll_fn(|context| {
            context.waker().wake_by_ref();
            if self.now() >= until { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn random(&self) -> u64 {
        let mut world = self.world();
        world.random = world.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        world.random >> 16
    }
}

impl Store for Ports {
    async fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> Result<Inserted, PortError> {
        self.call(|world| match world.orders.get(&order.order_id) {
            Some(stored) if stored.fingerprint == order.fingerprint => Ok(Inserted::Same),
            Some(_) => Ok(Inserted::Different),
            None => {
                world.tasks.insert(task.order_id, task);
                world.orders.insert(order.order_id, order);
                Ok(Inserted::New)
            }
        })
        .await
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.call(|world| Ok(world.orders.get(&order_id).cloned())).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.call(|world| Ok(world.tasks.get(&order_id).cloned())).await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        self.call(|world| {
            let stored = &world.tasks[&after.order_id];
            if stored.version != before.version {
                return Ok(Commit::Conflict);
            }
            world.commits.push(after.clone());
            world.tasks.insert(after.order_id, after);
            Ok(Commit::Committed)
        })
        .await
    }

    async fn due(&self, watch: Watch, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        let shard = watch.shard();
        self.call(|world| {
            if world.index_down.contains(&shard) {
                return Err(down("store.due"));
            }
            if watch == Watch::Due(shard) {
                world.swept.push(shard);
            }
            let of_task = |task: &Arc<Task>| Due { at: task.watch_at.unwrap_or_default(), order_id: task.order_id };
            let watched = world.tasks.values().filter(|task| task.watch == Some(watch));
            let shown = watched.filter(|task| !world.index_lags.contains(&task.order_id)).map(of_task);
            let ghosts =
                world.index_ghosts.iter().copied().filter(|due| Watch::Due(due.order_id.shard(SHARDS)) == watch);
            let mut due: Vec<Due> = shown.chain(ghosts).filter(|due| due.at <= now).collect();
            due.sort_by_key(|due| (due.at, due.order_id));
            due.retain(|due| after.is_none_or(|after| (after.at, after.order_id) < (due.at, due.order_id)));
            due.truncate(limit);
            Ok(due)
        })
        .await
    }

    async fn watches(&self, max: usize) -> Result<Option<Vec<(Watch, Timestamp)>>, PortError> {
        self.call(|world| {
            let shown = world.tasks.values().filter(|task| !world.index_lags.contains(&task.order_id));
            let all: Vec<_> = shown.filter_map(|task| task.watch.zip(task.watch_at)).collect();
            Ok(Some(all).filter(|all| world.index_is_small && all.len() < max))
        })
        .await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        let after: Option<OrderId> = after.map(|text| text.parse().map_err(|_| ListError::Cursor)).transpose()?;
        // Small pages, so that a test needs few orders for several.
        let limit = limit.min(3);
        self.call(|world| {
            let later = world.tasks.values().rev().filter(|task| after.is_none_or(|after| task.order_id < after));
            let mut tasks: Vec<_> =
                later.filter(|task| state.is_none_or(|state| task.process_state == state)).cloned().collect();
            let next = (tasks.len() > limit).then(|| tasks[limit - 1].order_id.to_string());
            tasks.truncate(limit);
            let read = tasks.len();
            Ok(Page { tasks, next, read })
        })
        .await
    }

    async fn settled(&self, order_id: OrderId, _: u64) -> Result<Option<Watched>, PortError> {
        Ok(self.task(order_id).await?.map(|task| Watched { task, order: None }))
    }
}

impl Queues for Ports {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        self.call(|world| {
            let old = order.again_of.as_ref().map(|again| again.order_id);
            let lists = |job: &Job| job.under_way.iter().any(|entry| Some(entry.order_id) == old);
            assert!(self.jobs().iter().any(lists), "an order is posted again that no stored job lists");
            world.submissions.push_back((world.now.plus_ms(delay_ms), order));
            Ok(Inserted::New)
        })
        .await
    }

    async fn to_scheduler(&self, message: SchedulerMessage, _: Priority, delay_ms: u64) -> Result<(), PortError> {
        self.call(|world| {
            if let SchedulerMessage::Command(command) = &message {
                let lists = |job: &Job| job.under_way.iter().any(|entry| entry.order_id == command.order_id);
                assert!(self.jobs().iter().any(lists), "a command is sent that no stored job lists");
            }
            world.to_scheduler.push_back((world.now.plus_ms(delay_ms), message));
            Ok(())
        })
        .await
    }

    async fn to_agent(&self, _: &str, request: Request) -> Result<(), PortError> {
        self.call(|world| {
            world.to_agents.push_back(request);
            Ok(())
        })
        .await
    }

    async fn return_to_agent(&self, _: &str, _: &Receipt, _: u64) -> Result<(), PortError> {
        Err(PortError::refused("queues.return_to_agent", "the supervisor is no agent"))
    }
}

impl Events for Ports {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        self.call(|world| {
            if world.bus_down {
                return Err(down("events.publish"));
            }
            world.published.push(event);
            Ok(())
        })
        .await
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        self.call(|world| {
            world.tried.push(channel.to_owned());
            if world.channels_down.contains(channel) {
                return Err(down("events.notify"));
            }
            world.notified.push((channel.to_owned(), event));
            Ok(())
        })
        .await
    }
}

impl Records for Ports {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        self.call(|_| now_or_never(self.memory.get(key))).await
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        self.call(|world| {
            world.reach(R::KIND, R::KIND.put())?;
            now_or_never(self.memory.put(seen, record))
        })
        .await
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        self.call(|world| {
            world.reach(R::KIND, R::KIND.list())?;
            now_or_never(Records::list(&self.memory, limit))
        })
        .await
    }
}
