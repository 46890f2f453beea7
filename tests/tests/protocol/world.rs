//! Handlers, queues and a remote service, and the host that feeds the one from the other.

use std::future::Future;
use std::sync::Arc;

use agent::{Agent, Policy};
use domain::batch::Failures;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::limits::BATCH_MAX;
use domain::message::{Delivery, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{Queues, Source, Store};
use domain::task::{ProcessState, Step, Task};
use domain::workflow::Workflows;
use futures_util::FutureExt;
use supervisor::Report;
use tests::conformance::samples::{self, NOON};
use tests::faulty::Faulty;
use tests::memory::{Memory, VISIBILITY_MS};

use crate::remote::Remote;

pub(crate) const AGENTS: [&str; 3] = Workflows::SHIPPED_AGENTS;

/// Three steps in a row with more patience than a message takes to come again.
const PATIENT: &str = r#"
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
pub(crate) const EXPIRED_MS: u64 = 10 * 60_000 + 2_000;

pub(crate) struct World {
    pub(crate) memory: Memory,
    pub(crate) ports: Faulty,
    pub(crate) remote: Remote,
    pub(crate) workflows: Workflows,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ran {
    /// There was no message.
    Idle,
    /// So many messages were done and let go, and so many are left to come again.
    Handled { done: usize, failed: usize },
    /// The handler died; all its messages will come again.
    Died,
}

pub(crate) const ONE_DONE: Ran = Ran::Handled { done: 1, failed: 0 };
pub(crate) const ONE_FAILED: Ran = Ran::Handled { done: 0, failed: 1 };

impl World {
    pub(crate) fn new() -> Self {
        Self::with(PATIENT)
    }

    /// With this workflow.
    pub(crate) fn with(workflow: &str) -> Self {
        let memory = Memory::new(NOON, 7);
        let (ports, remote) = (Faulty::new(memory.clone()), Remote::new(memory.clone()));
        let workflows = Workflows::parse(&[workflow], "order", &AGENTS).unwrap();
        Self { memory, ports, remote, workflows }
    }

    pub(crate) fn instance(&self, name: &str) -> Instance {
        Instance { name: name.into(), workflows: self.workflows.clone() }
    }

    /// Puts the `n`-th sample order on the submission queue.
    pub(crate) fn post(&self, n: u32) -> OrderId {
        self.post_order(samples::order(n))
    }

    pub(crate) fn post_order(&self, order: Order) -> OrderId {
        let order_id = order.order_id;
        now(self.memory.submit(order)).unwrap();
        order_id
    }

    /// Posts the first sample order and has it stored, with its wake on the queue.
    pub(crate) fn stored(&self) -> OrderId {
        let order_id = self.post(1);
        assert_eq!(self.submit(), ONE_DONE);
        order_id
    }

    /// The same, with the first step claimed and its request on the agent's queue.
    pub(crate) fn claimed(&self) -> OrderId {
        let order_id = self.stored();
        assert_eq!(self.schedule(), ONE_DONE);
        order_id
    }

    pub(crate) fn submit(&self) -> Ran {
        let instance = self.instance("submission");
        feed(&self.memory.submissions(), |batch| submission::handle(&self.ports, &instance, batch))
    }

    pub(crate) fn schedule(&self) -> Ran {
        let instance = self.instance("scheduler");
        feed(&self.memory.scheduler(), |batch| scheduler::handle(&self.ports, &instance, batch))
    }

    /// One batch of an agent's requests. It waits on the queue, not in the invocation.
    pub(crate) fn serve(&self, name: &str) -> Ran {
        let agent = self.agent(name);
        feed(&self.memory.requests(name), |batch| agent::handle(&self.ports, &agent, batch))
    }

    pub(crate) fn agent(&self, name: &str) -> Agent<impl Fn() -> Remote + Sync + use<>> {
        let policy = Policy { wait_in_invocation_ms_max: 0, ..Policy::default() };
        let remote = self.remote.clone();
        Agent::new(name, policy, move || remote.clone()).unwrap()
    }

    pub(crate) fn supervise(&self) -> Report {
        now(supervisor::handle(&self.ports, &self.instance("supervisor"))).unwrap()
    }

    /// Feeds all handlers until no message is to be had.
    pub(crate) fn run(&self) {
        for _ in 0..1_000 {
            let mut ran = vec![self.submit(), self.schedule()];
            ran.extend(AGENTS.map(|agent| self.serve(agent)));
            if ran.iter().all(|ran| *ran == Ran::Idle) {
                return;
            }
        }
        panic!("there is no end of messages");
    }

    /// Lets messages that were not let go come again.
    pub(crate) fn until_redelivery(&self) {
        self.memory.advance(VISIBILITY_MS);
    }

    pub(crate) fn task(&self, order_id: OrderId) -> Arc<Task> {
        now(self.memory.task(order_id)).unwrap().expect("the task")
    }

    pub(crate) fn state(&self, order_id: OrderId) -> ProcessState {
        self.task(order_id).process_state
    }

    pub(crate) fn step(&self, order_id: OrderId, name: &str) -> Step {
        self.task(order_id).step(name).expect("the step").1.clone()
    }

    /// Puts a message on the scheduler queue, whoever may have sent it.
    pub(crate) fn tell_scheduler(&self, message: SchedulerMessage) {
        now(self.memory.to_scheduler(message, 0)).unwrap();
    }

    /// Takes the requests off an agent's queue, as if they were lost.
    pub(crate) fn lose_requests(&self, agent: &str) -> Vec<Request> {
        let taken = take(&self.memory.requests(agent));
        taken.into_iter().map(|delivery| delivery.body.unwrap()).collect()
    }

    /// Takes the messages off the scheduler queue, as if they were lost.
    pub(crate) fn lose_scheduler_messages(&self) -> Vec<SchedulerMessage> {
        let taken = take(&self.memory.scheduler());
        taken.into_iter().map(|delivery| delivery.body.unwrap()).collect()
    }
}

/// The outcome of something that has nothing to wait for.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("there is nothing to wait for")
}

fn take<M>(source: &impl Source<M>) -> Vec<Delivery<M>> {
    let taken = source.receive(BATCH_MAX).now_or_never().unwrap_or_default();
    now(source.delete(taken.iter().map(|delivery| delivery.receipt.clone()).collect())).unwrap();
    taken
}

/// What the host does with one batch: gives it to the handler, and deletes what is not reported as failed. A handler that
/// does not come to an end has died, and is dropped where it stands.
pub(crate) fn feed<M, Handling>(source: &impl Source<M>, handle: impl FnOnce(Vec<Delivery<M>>) -> Handling) -> Ran
where
    Handling: Future<Output = Failures>,
{
    let Some(batch) = source.receive(BATCH_MAX).now_or_never() else {
        return Ran::Idle;
    };
    let mut receipts: Vec<Receipt> = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
    let Some(Failures(failed)) = handle(batch).now_or_never() else {
        return Ran::Died;
    };
    receipts.retain(|receipt| !failed.contains(receipt));
    let (done, failed) = (receipts.len(), failed.len());
    now(source.delete(receipts)).unwrap();
    Ran::Handled { done, failed }
}
