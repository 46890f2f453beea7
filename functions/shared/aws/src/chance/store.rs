//! The state store, in worlds of chance.

use std::sync::Arc;

use cloud::Said;
use domain::id::OrderId;
use domain::limits::SHARDS;
use domain::order::Order;
use domain::ports::{Commit, Inserted, PortError, PortErrorKind, Record, RecordKind, Records, Seen, Store};
use domain::task::{ProcessState, StepState, Task, Watch};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Chance, Serve, run};
use crate::dynamo::{Dynamo, TABLES, Tables};
use crate::environment::System;

const NOON: Timestamp = Timestamp::from_epoch_ms(1_795_176_000_000);
const LATER: Timestamp = Timestamp::from_epoch_ms(1_795_176_900_000);
/// Operations in a world.
const OPERATIONS: u32 = 30;
/// Orders in a world.
const ORDERS: u64 = 3;

/// A record with a version and a content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Counter {
    version: u64,
    content: u64,
}

impl Record for Counter {
    const KIND: RecordKind = RecordKind::Service;

    fn key(&self) -> &str {
        "counter"
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Serve for cloud::Dynamo {
    fn serve(&mut self, operation: &str, body: &Value, _: &Chance) -> Said {
        Self::serve(self, operation, body)
    }
}

/// The names of the tables.
fn tables() -> Tables {
    Tables {
        orders: "ORDERS_TABLE".into(),
        tasks: "TASKS_TABLE".into(),
        leases: "LEASES_TABLE".into(),
        services: "SERVICES_TABLE".into(),
        memos: "MEMOS_TABLE".into(),
        jobs: "JOBS_TABLE".into(),
        definitions: "DEFINITIONS_TABLE".into(),
        dead_letters: "DEAD_LETTERS_TABLE".into(),
        index: "INDEX_TABLE".into(),
        numbers: "NUMBERS_TABLE".into(),
    }
}

struct World {
    seed: u64,
    network: super::World<cloud::Dynamo>,
    store: Dynamo,
    /// Versions of tasks that were stored, and the last attempt to replace one.
    seen: Vec<Arc<Task>>,
    last: Option<(Arc<Task>, Arc<Task>)>,
}

#[tokio::test(start_paused = true)]
async fn every_answer_of_the_store_fits_what_is_stored_by_whatever_chance() {
    run(async |seed| {
        let database = cloud::Dynamo::new(TABLES.iter().map(|table| table.creation(table.variable)));
        let network = super::World::new(seed, database);
        let system = System::simulated(seed, || NOON);
        let store = Dynamo::new(network.clients().dynamodb, tables(), SHARDS, system);
        let mut world = World { seed, network, store, seen: Vec::new(), last: None };
        for _ in 0..OPERATIONS {
            match world.network.below(10) {
                0..3 => world.insert().await,
                3..8 => world.commit().await,
                8 => world.put().await,
                _ => world.due().await,
            }
        }
    })
    .await;
}

impl World {
    fn order(&self) -> Order {
        let (number, total) = (self.network.below(ORDERS), self.network.below(8) / 7);
        memory::sample::order("chance", &number.to_string(), &format!("{{\"Total\":{total}}}"), NOON)
    }

    /// The order and the task that are stored. No task is there without its order.
    async fn truth(&self, order_id: OrderId) -> (Option<Arc<Order>>, Option<Arc<Task>>) {
        let look = async { (self.store.order(order_id).await.unwrap(), self.store.task(order_id).await.unwrap()) };
        let stored = self.network.calm(look).await;
        assert!(stored.0.is_some() || stored.1.is_none(), "{self}: a task without its order: {stored:?}");
        stored
    }

    /// The task that is stored.
    async fn task(&self, order_id: OrderId) -> Option<Arc<Task>> {
        self.network.calm(self.store.task(order_id)).await.unwrap()
    }

    async fn insert(&mut self) {
        let order = self.order();
        let task = Task::new(&order, Workflows::shipped().unwrap().current(), SHARDS, self.network.below(3));
        let before = self.truth(order.order_id).await;
        let answer = self.store.insert(order.clone().into(), task.clone().into()).await;
        let after = self.truth(order.order_id).await;
        let is_same = after.0.as_ref().is_some_and(|stored| stored.fingerprint == order.fingerprint);
        // Each is written once, and the task only for this order.
        let order_fits = after.0 == before.0 || (before.0.is_none() && after.0.as_deref() == Some(&order));
        let has_task = after.1.as_deref() == Some(&task);
        let task_fits = after.1 == before.1 || (before.1.is_none() && has_task && is_same);
        let fits = order_fits
            && task_fits
            && match &answer {
                Ok(Inserted::New) => has_task,
                Ok(Inserted::Same) => is_same && before.1.is_some(),
                Ok(Inserted::Different) => before == after && after.0.is_some() && !is_same,
                Err(error) => passes(error),
            };
        assert!(fits, "{self}: insert answers {answer:?}\n{before:?}\n{after:?}");
        self.seen.extend(after.1);
    }

    async fn commit(&mut self) {
        let Some((before, after)) = self.change() else { return };
        let stored = self.task(before.order_id).await;
        let answer = self.store.commit(&before, after.clone()).await;
        let found = self.task(before.order_id).await;
        let may_write = stored.as_ref() == Some(&before);
        let is_there = found.as_ref() == Some(&after);
        let is_unchanged = stored == found;
        let fits = match &answer {
            Ok(Commit::Committed) => is_there && (may_write || is_unchanged),
            Ok(Commit::Conflict) => is_unchanged && !may_write && !is_there,
            Err(error) => (is_unchanged || (may_write && is_there)) && passes(error),
        };
        assert!(fits, "{self}: commit answers {answer:?}\n{before:?}\n{after:?}\n{stored:?}\n{found:?}");
        self.seen.extend(found);
        self.last = Some((before, after));
    }

    /// A change of the newest version that was seen, of an older one, or the last change again.
    fn change(&self) -> Option<(Arc<Task>, Arc<Task>)> {
        if self.network.below(5) == 0 && self.last.is_some() {
            return self.last.clone();
        }
        let back = if self.network.below(4) == 0 { self.network.below(6) } else { 0 };
        let before = self.seen.iter().rev().nth(usize::try_from(back).unwrap())?.clone();
        let mut after = Task::clone(&before);
        (after.version, after.nonce) = (before.version + 1, self.network.below(u64::MAX));
        let place = usize::try_from(self.network.below(after.steps.len() as u64)).unwrap();
        let step = &mut after.steps[place];
        match self.network.below(4) {
            0 => {
                (step.process_state, step.locked_by) = (StepState::Processing, Some("chance".into()));
                (step.attempt, step.complete_by) = (step.attempt + 1, Some(LATER));
            }
            1 => (step.process_state, step.locked_by, step.complete_by) = (StepState::Pending, None, None),
            2 => {
                after.process_state = ProcessState::Processed;
                (after.watch, after.watch_at) = (None, None);
            }
            _ => {
                after.process_state = ProcessState::Processing;
                after.watch = Some(Watch::Due(before.order_id.shard(SHARDS)));
                after.watch_at = Some(NOON.plus_ms(self.network.below(60_000)));
            }
        }
        Some((before, Arc::new(after)))
    }

    async fn put(&self) {
        let look = self.store.get::<Counter>("counter");
        let stored = self.network.calm(look).await.unwrap();
        let version = stored.as_ref().map_or(0, |record| record.version);
        let seen = Seen { version: version.saturating_sub(self.network.below(3) / 2), at: NOON };
        let record = Counter { version: seen.version + 1, content: self.network.below(2) };
        let answer = self.store.put(seen, &record).await;
        let found = self.network.calm(self.store.get::<Counter>("counter")).await.unwrap();
        let is_written = seen.version == version && found.as_ref() == Some(&record);
        let is_unchanged = stored == found;
        let fits = match &answer {
            Ok(Commit::Committed) => is_written,
            Ok(Commit::Conflict) => is_unchanged && seen.version != version,
            Err(error) => (is_unchanged || is_written) && passes(error),
        };
        assert!(fits, "{self}: put answers {answer:?} to {seen:?}\n{record:?}\n{stored:?}\n{found:?}");
    }

    /// The index shows each task that is due, and no other.
    async fn due(&self) {
        for number in 0..ORDERS {
            let order_id = OrderId::from_idempotency_key("chance", &number.to_string());
            let due_at =
                self.task(order_id).await.and_then(|task| task.watch.and(task.watch_at)).filter(|&at| at <= LATER);
            match self.store.due(Watch::Due(order_id.shard(SHARDS)), LATER, None, 10).await {
                Ok(found) => {
                    let shown = found.iter().find(|due| due.order_id == order_id).map(|due| due.at);
                    assert_eq!(shown, due_at, "{self}: the index of {order_id}");
                }
                Err(error) => assert!(passes(&error), "{self}: due answers {error:?}"),
            }
        }
    }
}

/// No fault here is for good.
fn passes(error: &PortError) -> bool {
    error.kind == PortErrorKind::Unavailable
}

impl std::fmt::Display for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {}", self.seed)
    }
}
