//! Handlers, queues and a remote service, and the host that feeds the one from the other.
//!
//! Nothing here waits: the clock moves when a test says so or when all that is left is to wait, and a handler that dies is
//! one whose future is dropped where it stands.

mod drive;
mod end;
mod http;
mod remote;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use agent::{Agent, Policy};
use domain::batch::Failures;
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::limits::BATCH_MAX;
use domain::limits::SHARDS;
use domain::message::{Delivery, Priority, Receipt, Request, SchedulerMessage, Wake};
use domain::order::Order;
use domain::ports::{Environment, Inserted, Queues, Source, Store};
use domain::task::{ProcessState, Step, Task};
use domain::workflow::Workflows;
use futures_util::FutureExt;
use supervisor::{Report, Settings};

use crate::conformance::samples::{self, NOON};
#[cfg(doc)]
use memory::faulty::Fault;
use memory::faulty::Faulty;
use memory::{Memory, VISIBILITY_MS};

pub use drive::drive;
pub use end::End;
pub use http::Posted;
pub use remote::{Act, Called, Remote};

/// The agents that workflows of a [`World`] may name.
pub const AGENTS: [&str; 3] = Workflows::SHIPPED_AGENTS;

/// Three steps in a row with longer limits than a redelivery takes.
pub const PATIENT: &str = r#"
name = "order"
version = 1
[[step]]
name = "reserve"
agent = "inventory"
complete_within = "10m"
max_failures = 3
on_rejected = "compensate"
on_exhausted = "hold"
[[step]]
name = "charge"
agent = "payment"
after = ["reserve"]
complete_within = "10m"
max_failures = 3
on_rejected = "compensate"
on_exhausted = "hold"
[[step]]
name = "ship"
agent = "shipping"
after = ["charge"]
complete_within = "10m"
max_failures = 3
on_rejected = "compensate"
on_exhausted = "compensate"
"#;

/// The time of one attempt and the grace after it, in milliseconds.
pub const EXPIRED_MS: u64 = 10 * 60_000 + 2_000;
/// The longest back-off of the supervisor, and more, in milliseconds.
pub const BACKED_OFF_MS: u64 = 120_000;

/// Deliveries of a request before it becomes a dead letter. Each parking costs one delivery.
const REQUEST_RECEIVES_MAX: u32 = 1_000;

/// Everything but AWS.
pub struct World {
    /// What is stored, and the clock.
    pub memory: Memory,
    /// The same, as the handlers see it.
    pub ports: Faulty,
    /// All remote services.
    pub remote: Remote,
    /// What the handlers know of workflows.
    pub workflows: Workflows,
    /// The settings of the agents.
    pub policy: Policy,
    /// Shards of the index that the supervisor goes through.
    pub shards: u8,
}

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// There was no message.
    Idle,
    /// The numbers of deleted messages and of messages left for redelivery.
    Handled {
        /// Let go.
        done: usize,
        /// Left.
        failed: usize,
    },
    /// The handler died; all its messages will be redelivered.
    Died,
}

/// One message, done.
pub const ONE_DONE: Ran = Ran::Handled { done: 1, failed: 0 };
/// One message left for redelivery.
pub const ONE_FAILED: Ran = Ran::Handled { done: 0, failed: 1 };

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// With the workflow [`PATIENT`].
    #[must_use]
    pub fn new() -> Self {
        Self::with(PATIENT)
    }

    /// With this workflow.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn with(workflow: &str) -> Self {
        Self::with_all(&[workflow])
    }

    /// With these workflows.
    ///
    /// # Panics
    /// When one is none.
    #[must_use]
    pub fn with_all(workflows: &[&str]) -> Self {
        let memory = Memory::new(NOON, 7);
        memory.allow_request_receives(REQUEST_RECEIVES_MAX);
        let (ports, remote) = (Faulty::new(memory.clone()), Remote::new(memory.clone()));
        let workflows = Workflows::parse(workflows, "order", &AGENTS).expect("a workflow");
        // It waits on the queue, not in the invocation, so that a test sees each call.
        let policy = Policy { wait_in_invocation_ms_max: 0, ..Policy::default() };
        Self { memory, ports, remote, workflows, policy, shards: SHARDS }
    }

    /// An instance of any function.
    #[must_use]
    pub fn instance(&self, name: &str) -> Instance {
        Instance { name: name.into(), catalogue: Catalogue::new(self.workflows.clone()), shards: self.shards }
    }

    /// Puts the `n`-th sample order on the submission queue.
    pub fn post(&self, n: u32) -> OrderId {
        self.post_order(samples::order(n))
    }

    /// Puts an order on the submission queue.
    pub fn post_order(&self, order: Order) -> OrderId {
        let order_id = order.order_id;
        now(self.memory.submit(order, 0)).expect("a queue");
        order_id
    }

    /// The first sample order, as [`Self::stored_order`] stores it.
    pub fn stored(&self) -> OrderId {
        self.stored_order(samples::order(1))
    }

    /// Stores an order as a submission leaves it that is killed before the claim: nothing is claimed, and its wake is on the queue.
    ///
    /// # Panics
    /// When the store or the queue is out of order.
    pub fn stored_order(&self, order: Order) -> OrderId {
        let (order_id, workflow) = (order.order_id, self.workflows.current());
        let task = Task::new(&order, workflow, self.shards, self.memory.random());
        let inserted = now(self.ports.insert(order.into(), task.into()));
        assert_eq!(inserted.expect("a store"), Inserted::New);
        self.tell_scheduler(SchedulerMessage::Wake(Wake { order_id, hops: 0 }));
        order_id
    }

    /// Posts the first sample order and has it stored, with its first step claimed and its request on the agent's queue.
    pub fn claimed(&self) -> OrderId {
        let order_id = self.post(1);
        assert_eq!(self.submit(), ONE_DONE);
        order_id
    }

    /// One batch of submissions.
    pub fn submit(&self) -> Ran {
        let instance = self.instance("submission");
        self.feed(&self.memory.submissions(), |batch| submission::handle(&self.ports, &instance, batch))
    }

    /// One batch of the scheduler queue.
    pub fn schedule(&self) -> Ran {
        self.schedule_as("scheduler")
    }

    /// One batch of the scheduler queue, for this instance.
    pub fn schedule_as(&self, name: &str) -> Ran {
        let instance = self.instance(name);
        self.feed(&self.memory.scheduler(), |batch| scheduler::handle(&self.ports, &instance, batch))
    }

    /// One batch of an agent's requests, for an instance that has just started.
    pub fn serve(&self, name: &str) -> Ran {
        self.serve_by(&self.agent(name))
    }

    /// One batch of an agent's requests, for this instance.
    pub fn serve_by(&self, agent: &Agent<impl Fn() -> Remote + Sync>) -> Ran {
        self.feed(&self.memory.requests(agent.name()), |batch| agent::handle(&self.ports, agent, batch))
    }

    /// An instance of an agent.
    ///
    /// # Panics
    /// When the policy makes no sense.
    pub fn agent(&self, name: &str) -> Agent<impl Fn() -> Remote + Sync + use<>> {
        let remote = self.remote.clone();
        Agent::new(name, self.policy.clone(), move || remote.clone()).expect("a policy")
    }

    /// One run of the supervisor.
    ///
    /// # Panics
    /// When it dies or fails.
    pub fn supervise(&self) -> Report {
        let (instance, settings) = (self.instance("supervisor"), Settings::default());
        let run = supervisor::handle(&self.ports, &instance, &settings);
        drive(&self.memory, &self.ports, run).expect("it does not die").expect("it does not fail")
    }

    /// Sends the alerts about services, and those by cause.
    ///
    /// # Panics
    /// When it dies or fails.
    pub fn alert(&self) {
        let run = async {
            supervisor::services(&self.ports).await?;
            supervisor::alerts(&self.ports, &[]).await
        };
        drive(&self.memory, &self.ports, run).expect("it does not die").expect("it does not fail");
    }

    /// One batch of the dead letters of all queues.
    pub fn settle_dead_letters(&self) -> Ran {
        let instance = self.instance("supervisor");
        self.feed(&self.memory.dead_letters(), |batch| supervisor::dead_letters(&self.ports, &instance, batch))
    }

    /// Feeds all handlers until no message is visible now.
    ///
    /// # Panics
    /// When there is no end of messages.
    pub fn run(&self) {
        for _ in 0..1_000 {
            let mut ran = vec![self.submit(), self.schedule(), self.settle_dead_letters()];
            ran.extend(AGENTS.map(|agent| self.serve(agent)));
            if ran.iter().all(|ran| *ran == Ran::Idle) {
                return;
            }
        }
        panic!("there is no end of messages");
    }

    /// Runs something up to the call at which the test lets it wait (see [`Fault::Waits`]), does something else, and then
    /// lets it go on to its end. `None`: it ended without such a call.
    ///
    /// # Panics
    /// When it dies.
    pub fn meanwhile<T>(&self, paused: impl Future<Output = T>, happen: impl FnOnce()) -> Option<T> {
        let mut paused = pin!(paused);
        let met = paused.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert_eq!(self.ports.has_struck(), met, "it waits at that call and nowhere else");
        if !met {
            return None;
        }
        happen();
        self.ports.release();
        Some(drive(&self.memory, &self.ports, paused).expect("it does not die"))
    }

    /// Makes undeleted messages visible again.
    pub fn until_redelivery(&self) {
        self.memory.advance(VISIBILITY_MS);
    }

    /// The task of an order.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn task(&self, order_id: OrderId) -> Arc<Task> {
        now(self.memory.task(order_id)).expect("a store").expect("the task")
    }

    /// The state of an order.
    #[must_use]
    pub fn state(&self, order_id: OrderId) -> ProcessState {
        self.task(order_id).process_state
    }

    /// A step of an order.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn step(&self, order_id: OrderId, name: &str) -> Step {
        self.task(order_id).step(name).expect("the step").1.clone()
    }

    /// Puts a message on the scheduler queue, whoever may have sent it.
    ///
    /// # Panics
    /// When the queue is out of order.
    pub fn tell_scheduler(&self, message: SchedulerMessage) {
        now(self.memory.to_scheduler(message, Priority::Normal, 0)).expect("a queue");
    }

    /// Puts a request on an agent's queue, whoever may have sent it.
    ///
    /// # Panics
    /// When the queue is out of order.
    pub fn ask_agent(&self, agent: &str, request: Request) {
        now(self.memory.to_agent(agent, request)).expect("a queue");
    }

    /// Takes the requests off an agent's queue, as if they were lost.
    pub fn lose_requests(&self, agent: &str) -> Vec<Request> {
        take(&self.memory.requests(agent))
    }

    /// Takes the messages off the scheduler queue, as if they were lost.
    pub fn lose_scheduler_messages(&self) -> Vec<SchedulerMessage> {
        take(&self.memory.scheduler())
    }

    /// What the host does with one batch: gives it to the handler, and deletes what is not reported as failed. A handler
    /// that dies is dropped where it stands. Where the queue does not delete, all of it comes again.
    pub fn feed<M, Handling>(&self, source: &impl Source<M>, handle: impl FnOnce(Vec<Delivery<M>>) -> Handling) -> Ran
    where
        Handling: Future<Output = Failures>,
    {
        let Some(batch) = source.receive(BATCH_MAX).now_or_never() else {
            return Ran::Idle;
        };
        let mut receipts: Vec<Receipt> = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
        let Some(failures) = drive(&self.memory, &self.ports, handle(batch)) else {
            return Ran::Died;
        };
        receipts.retain(|receipt| !failures.has(receipt));
        let (done, failed) = (receipts.len(), failures.0.len());
        match now(source.delete(receipts)) {
            Ok(()) => Ran::Handled { done, failed },
            Err(_) => Ran::Handled { done: 0, failed: done + failed },
        }
    }
}

/// The outcome of something that has nothing to wait for.
///
/// # Panics
/// When it waits.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("there is nothing to wait for")
}

fn take<M>(source: &impl Source<M>) -> Vec<M> {
    let taken = source.receive(BATCH_MAX).now_or_never().unwrap_or_default();
    now(source.delete(taken.iter().map(|delivery| delivery.receipt.clone()).collect())).expect("a queue");
    taken.into_iter().map(|delivery| delivery.body.expect("a message")).collect()
}
