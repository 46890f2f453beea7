//! The rate of a service, kept by four instances of its agent over one DynamoDB (rule 20).

use std::sync::{Arc, Mutex};

use agent::{Agent, Answer, Call, Policy, Rate, Service};
use aws::dynamo::Dynamo;
use domain::json::Json;
use domain::message::Request;
use domain::ports::{Queues, Source};
use domain::time::Timestamp;
use futures_util::FutureExt;
use futures_util::future::join_all;
use memory::Memory;
use tests::conformance::samples::{self, NOON};

use super::local::Local;

const AGENT: &str = "shipping";
const INSTANCES: usize = 4;
const BATCH: usize = 10;
const SECONDS: u64 = 60;

/// The records are in DynamoDB. All other ports are in memory.
struct Ports {
    records: Dynamo,
    memory: Memory,
}

domain::has_parts!([] Ports {
    HasRecords, Records = Dynamo, records: |ports| &ports.records;
    HasQueues, Queues = Memory, queues: |ports| &ports.memory;
    HasStore, Store = Memory, store: |ports| &ports.memory;
    HasEnvironment, Environment = Memory, environment: |ports| &ports.memory;
});

/// Notes when it is called.
struct Carrier(Arc<Mutex<Vec<Timestamp>>>);

impl Service for Carrier {
    async fn forward(&mut self, call: &Call<'_>) -> Answer {
        self.0.lock().unwrap().push(call.started_at);
        Answer::Done(Json::of(&()))
    }

    async fn undo(&mut self, _: &Call<'_>) -> Answer {
        unreachable!("nothing is undone")
    }
}

#[tokio::test]
async fn rule_20_four_instances_keep_a_rate_over_dynamodb() {
    let local = Local::start().await;
    let ports = Ports { records: local.ports(local.config()), memory: Memory::new(NOON, 7) };
    let times = Arc::<Mutex<Vec<Timestamp>>>::default();
    let mut policy = Policy { wait_in_invocation_ms_max: 0, queued_percent_max: 100, ..Policy::default() };
    policy.health.rate = Some(Rate { calls: 20, per_ms: 1_000 });
    let agents: Vec<_> = (0..INSTANCES)
        .map(|_| {
            let times = times.clone();
            Agent::new(AGENT, policy.clone(), move || Carrier(times.clone())).unwrap()
        })
        .collect();
    // Each wait on the queue is one.
    ports.memory.allow_request_receives(u32::MAX);
    for n in 0..1_300 {
        let (complete_by, budget_ms) = (NOON.plus_ms(600_000), 600_000);
        ports.memory.to_agent(AGENT, Request { complete_by, budget_ms, ..samples::request(n) }).await.unwrap();
    }
    let end = NOON.plus_ms(SECONDS * 1_000);
    while let Some(at) = ports.memory.next_message_at().filter(|&at| at < end) {
        ports.memory.advance(domain::ports::Environment::now(&ports.memory).ms_until(at));
        // All instances work on what is visible now, at the same time.
        join_all(agents.iter().map(|agent| handle_one_batch(&ports, agent))).await;
        let replies = ports.memory.scheduler();
        while let Some(batch) = replies.receive(BATCH).now_or_never() {
            replies.delete(samples::receipts(&batch)).await.unwrap();
        }
    }
    let times = times.lock().unwrap();
    assert!((1_140..=1_260).contains(&times.len()), "{} calls in {SECONDS} s", times.len());
    for second in 0..SECONDS {
        let from = NOON.plus_ms(second * 1_000);
        let calls = times.iter().filter(|&&at| from <= at && at < from.plus_ms(1_000)).count();
        assert!(calls <= 21, "{calls} calls in second {second}");
    }
}

/// Handles the next batch, if there is one.
async fn handle_one_batch<F: Fn() -> Carrier + Send + Sync>(ports: &Ports, agent: &Agent<F>) {
    let queue = ports.memory.requests(AGENT);
    let Some(batch) = queue.receive(BATCH).now_or_never() else { return };
    let receipts = samples::receipts(&batch);
    let later = agent::handle(ports, agent, batch).await;
    let over = receipts.into_iter().filter(|receipt| !later.has(receipt)).collect();
    queue.delete(over).await.unwrap();
}
