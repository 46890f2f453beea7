//! Faults that end a process, on the one-machine engine: the state on disk is enough to continue.

use std::collections::BTreeMap;

use agent::{Agent, Policy};
use domain::advance::{first, follow_up};
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::limits::{BATCH_MAX, SHARDS};
use domain::machine::Event;
use domain::ports::{HasQueues, HasStore, Queues, Source, Store};
use domain::task::{ProcessState, StepState, Task};
use domain::workflow::Workflows;
use embedded::{Engine, Options};
use memory::Memory;
use tempfile::TempDir;
use tests::conformance::samples::{self, NOON};
use tests::world::{AGENTS, Remote};
use tokio::task::JoinSet;

/// Longer than any duration here, in milliseconds.
const PATIENCE_MS: u64 = 20_000;

/// One machine's disk, and the services that continue while its process is dead.
struct Machine {
    directory: TempDir,
    remote: Remote,
    instance: Instance,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let remote = Remote::new(Memory::new(NOON, 7));
        let workflows = Workflows::shipped().unwrap();
        Self {
            directory,
            remote,
            instance: Instance { name: "one".into(), catalogue: Catalogue::new(workflows), shards: SHARDS },
        }
    }

    /// A process starts and recovers the state on disk.
    async fn starts(&self) -> Engine {
        let engine = Engine::open(self.directory.path(), Options::default()).unwrap();
        engine.recover().await.unwrap();
        engine
    }

    /// The process dies: its memory is lost.
    fn dies(engine: Engine) {
        drop(engine);
    }

    fn agent(&self, name: &str) -> Agent<impl Fn() -> Remote + Sync + Send + use<>> {
        let remote = self.remote.clone();
        Agent::new(name, Policy::default(), move || remote.clone()).unwrap()
    }

    /// One batch of the scheduler queue. Its messages stay in the queue.
    async fn schedule(&self, engine: &Engine) {
        let batch = engine.scheduler().receive(BATCH_MAX).await;
        assert!(scheduler::handle(engine, &self.instance, batch).await.0.is_empty());
    }

    /// Runs all functions until the order is settled. Checks that each step was done exactly once.
    async fn goes_on(&self, engine: &Engine, order_id: OrderId) -> Task {
        let mut functions = JoinSet::new();
        let (ports, instance, queue) = (engine.clone(), self.instance.clone(), engine.submissions());
        functions.spawn(async move {
            loop {
                let batch = queue.receive(BATCH_MAX).await;
                let receipts = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
                assert!(submission::handle(&ports, &instance, batch).await.0.is_empty());
                queue.delete(receipts).await.unwrap();
            }
        });
        let (ports, instance, queue) = (engine.clone(), self.instance.clone(), engine.scheduler());
        functions.spawn(async move {
            loop {
                let batch = queue.receive(BATCH_MAX).await;
                let receipts = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
                assert!(scheduler::handle(&ports, &instance, batch).await.0.is_empty());
                queue.delete(receipts).await.unwrap();
            }
        });
        for name in AGENTS {
            let (ports, agent, queue) = (engine.clone(), self.agent(name), engine.requests(name));
            functions.spawn(async move {
                loop {
                    let batch = queue.receive(BATCH_MAX).await;
                    let receipts = batch.iter().map(|delivery| delivery.receipt.clone()).collect();
                    assert!(agent::handle(&ports, &agent, batch).await.0.is_empty());
                    queue.delete(receipts).await.unwrap();
                }
            });
        }
        let task = engine.store().settled(order_id, PATIENCE_MS).await.unwrap().expect("the task").task;
        functions.shutdown().await;
        assert_eq!(task.process_state, ProcessState::Processed, "{task:#?}");
        assert!(task.steps.iter().all(|step| (step.attempt, step.failure_count) == (1, 0)), "{task:#?}");
        let once: BTreeMap<String, u32> =
            task.steps.iter().map(|step| (format!("{order_id}/{}", step.name), 1)).collect();
        assert_eq!(self.remote.effects(), once);
        Task::clone(&task)
    }
}

#[tokio::test]
async fn f03_killed_between_transaction_and_request_the_same_attempt_is_sent_by_the_next_process() {
    let machine = Machine::new();
    let engine = machine.starts().await;
    let order = samples::order(1);
    let order_id = order.order_id;
    engine.queues().submit(order.clone(), 0).await.unwrap();
    let wake = Event::Wake { hops: 0, redelivered: false };
    let (first, _) = first(&engine, &machine.instance, &order, None, wake).await.unwrap();
    engine.store().insert(order.into(), first.task).await.unwrap();
    Machine::dies(engine);
    let engine = machine.starts().await;
    assert_eq!(engine.store().task(order_id).await.unwrap().unwrap().process_state, ProcessState::Processing);
    machine.goes_on(&engine, order_id).await;
}

#[tokio::test]
async fn f03_killed_after_the_answer_and_before_the_transaction_the_order_is_stored_by_the_next_process() {
    let machine = Machine::new();
    let engine = machine.starts().await;
    let order = samples::order(1);
    let order_id = order.order_id;
    engine.queues().submit(order, 0).await.unwrap();
    Machine::dies(engine);
    let engine = machine.starts().await;
    machine.goes_on(&engine, order_id).await;
}

/// A process that has stored an order and claimed its first step, with the request in memory.
async fn claimed(machine: &Machine) -> (Engine, OrderId) {
    let engine = machine.starts().await;
    let order = samples::order(1);
    let order_id = order.order_id;
    let begun = submission::store(&engine, &machine.instance, order).await.unwrap();
    follow_up(&engine, &machine.instance, begun, false).await.unwrap();
    assert_eq!(engine.store().task(order_id).await.unwrap().unwrap().steps[0].process_state, StepState::Processing);
    (engine, order_id)
}

#[tokio::test]
async fn f09_killed_with_the_request_in_memory_the_same_attempt_is_sent_by_the_next_process() {
    let machine = Machine::new();
    let (engine, order_id) = claimed(&machine).await;
    Machine::dies(engine);
    assert!(machine.remote.called().is_empty());
    let engine = machine.starts().await;
    machine.goes_on(&engine, order_id).await;
}

#[tokio::test]
async fn f20_killed_between_a_replys_write_and_the_next_send_the_next_process_goes_on_there() {
    let machine = Machine::new();
    let (engine, order_id) = claimed(&machine).await;
    let requests = engine.requests(AGENTS[0]).receive(BATCH_MAX).await;
    assert!(agent::handle(&engine, &machine.agent(AGENTS[0]), requests).await.0.is_empty());
    machine.schedule(&engine).await;
    let task = engine.store().task(order_id).await.unwrap().unwrap();
    let states: Vec<StepState> = task.steps.iter().map(|step| step.process_state).collect();
    assert_eq!(states, [StepState::Processed, StepState::Processing, StepState::Pending]);
    Machine::dies(engine);
    let engine = machine.starts().await;
    assert_eq!(*engine.store().task(order_id).await.unwrap().unwrap(), *task);
    machine.goes_on(&engine, order_id).await;
    let calls = machine.remote.called().into_iter().filter(|called| called.step == "reserve-inventory").count();
    assert_eq!(calls, 1, "nobody asks again for what is written down");
}

#[tokio::test]
async fn f24_killed_between_the_effect_and_the_reply_the_next_process_asks_again_with_the_same_key() {
    let machine = Machine::new();
    let (engine, order_id) = claimed(&machine).await;
    let requests = engine.requests(AGENTS[0]).receive(BATCH_MAX).await;
    assert!(agent::handle(&engine, &machine.agent(AGENTS[0]), requests).await.0.is_empty());
    // The reply is in memory and is lost with it.
    Machine::dies(engine);
    let engine = machine.starts().await;
    machine.goes_on(&engine, order_id).await;
    let keys: Vec<String> = machine.remote.calls("reserve-inventory").into_iter().map(|called| called.key).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}
