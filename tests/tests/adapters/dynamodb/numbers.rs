//! The numbers of rule 26 on DynamoDB: those of one machine for the same changes, each counted once.

use std::sync::{Arc, Mutex};

use aws::dynamo::{Consumed, Meter};
use domain::ports::{HasStore, Store};
use domain::tally::{Batch, Change, Grain, Numbers};
use domain::task::{ProcessState, StepState, Task};
use domain::time::Timestamp;
use embedded::{Engine, Options};
use futures_util::future::try_join;
use serde_json::json;
use tests::conformance::samples::{NOON, committed, next, next_in, order, task};

use super::World;
use super::local::Local;
use super::way::{Happens, failure};

const MINUTE_MS: u64 = 60_000;
/// In most tries two shards meet.
const TRIES_TO_MEET_MAX: u32 = 20;

/// The versions of an order, each with its time: it is claimed, its first step is done, and it ends in a state.
fn versions(n: u32, end: ProcessState) -> Vec<(Timestamp, Arc<Task>)> {
    let at = |minutes: u64| NOON.plus_ms((u64::from(n) + minutes) * MINUTE_MS);
    let first = Arc::new(task(&order(n)));
    let claimed = next(&first, |task| {
        task.process_state = ProcessState::Processing;
        let step = &mut task.steps[0];
        (step.process_state, step.attempt, step.started_at) = (StepState::Processing, 1, Some(at(1)));
    });
    let done = next(&claimed, |task| {
        let step = &mut task.steps[0];
        (step.process_state, step.finished_at) = (StepState::Processed, Some(at(70)));
    });
    let ended = next_in(&done, end);
    vec![(at(0), first), (at(1), claimed), (at(70), done), (at(70), ended)]
}

/// Their changes in a shard of the tasks' stream, which began with its table.
async fn batch(local: &Local, shard: &str, orders: &[u32]) -> Batch {
    let table = local.client().describe_table().table_name(&local.tables.tasks).send().await.unwrap().table.unwrap();
    let made = Timestamp::from_epoch_ms(table.creation_date_time.unwrap().to_millis().unwrap());
    let stream = format!("arn:stream/{}", made.to_string().trim_end_matches('Z'));
    let mut all = Vec::new();
    for n in orders {
        let mut before = None;
        for (at, task) in versions(*n, end(*n)) {
            all.push((at, before.replace((*task).clone()), task));
        }
    }
    all.sort_by_key(|(at, ..)| *at);
    let changes = all.into_iter().enumerate().map(|(number, (at, before, after))| {
        let sequence = (*format!("{}", 98 + number)).into();
        Change { sequence, at, before, after: Some((*after).clone()) }
    });
    Batch { stream: stream.into(), shard: shard.into(), changes: changes.collect() }
}

const fn end(n: u32) -> ProcessState {
    if n.is_multiple_of(3) { ProcessState::Error } else { ProcessState::Processed }
}

/// A part of a batch.
fn slice(batch: &Batch, from: usize, to: usize) -> Batch {
    Batch { changes: batch.changes[from..to].to_vec(), ..batch.clone() }
}

async fn numbers(store: &impl Store, grain: Grain) -> Numbers {
    // One machine alone tells the oldest orders.
    Numbers { oldest: None, ..store.numbers(grain, NOON).await.unwrap().unwrap() }
}

/// What one machine says after the same changes.
async fn of_one_machine(orders: &[u32]) -> [Numbers; 2] {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(Mutex::new(NOON));
    let now = clock.clone();
    let options = Options { now: Some(Arc::new(move || *now.lock().unwrap())), ..Options::default() };
    let engine = Engine::open(directory.path(), options).unwrap();
    let mut changes = Vec::new();
    for n in orders {
        changes.extend(versions(*n, end(*n)).into_iter().map(|(at, task)| (at, *n, task)));
    }
    changes.sort_by_key(|(at, ..)| *at);
    for (at, n, after) in changes {
        *clock.lock().unwrap() = at;
        match engine.store().task(after.order_id).await.unwrap() {
            Some(before) => drop(committed(engine.store(), &before, after).await),
            None => drop(engine.store().insert(order(n).into(), (*after).clone().into()).await.unwrap()),
        }
    }
    [numbers(engine.store(), Grain::Minute).await, numbers(engine.store(), Grain::Hour).await]
}

async fn agree(world: &World, orders: &[u32]) {
    let counted = [numbers(&world.store, Grain::Minute).await, numbers(&world.store, Grain::Hour).await];
    assert_eq!(counted, of_one_machine(orders).await);
    let states = counted[0].states.unwrap();
    let of = |state| orders.iter().filter(|n| end(**n) == state).count() as u64;
    for state in [ProcessState::Processed, ProcessState::Error] {
        assert_eq!((states.of(state), states.of(ProcessState::Processing)), (of(state), 0));
    }
}

#[tokio::test]
async fn they_are_those_of_one_machine_however_two_shards_deliver_the_changes() {
    let world = World::new().await;
    let (one, other) = (batch(&world.local, "a", &[0, 2, 4]).await, batch(&world.local, "b", &[1, 3, 5]).await);
    let nothing = numbers(&world.store, Grain::Minute).await;
    assert_eq!((nothing.states, nothing.since), (None, None), "nobody knows what is stored before the first batch");
    world.store.count(&other).await.unwrap();
    world.store.count(&slice(&one, 0, 5)).await.unwrap();
    world.store.count(&slice(&one, 3, 8)).await.unwrap();
    world.store.count(&other).await.unwrap();
    world.store.count(&slice(&one, 0, 2)).await.unwrap();
    world.store.count(&one).await.unwrap();
    agree(&world, &[0, 1, 2, 3, 4, 5]).await;
    let later = world.store.numbers(Grain::Minute, NOON.plus_ms(70 * MINUTE_MS)).await.unwrap().unwrap();
    assert_eq!(later.spans.first().map(|span| span.at), Some(NOON.plus_ms(70 * MINUTE_MS)));
}

#[tokio::test]
async fn shards_that_write_the_same_numbers_at_once_lose_nothing() {
    for _ in 0..TRIES_TO_MEET_MAX {
        if shards_met().await {
            return;
        }
    }
    panic!("no two met");
}

/// Has two shards count at once, and says whether one of them met what the other wrote.
async fn shards_met() -> bool {
    let world = World::new().await;
    // What they write is there already: to add to it, each must have read what the other wrote.
    let before = batch(&world.local, "c", &[4, 5]).await;
    world.store.count(&before).await.unwrap();
    let (one, other) = (batch(&world.local, "a", &[0, 1]).await, batch(&world.local, "b", &[2, 3]).await);
    try_join(world.store.count(&one), world.store.count(&other)).await.unwrap();
    agree(&world, &[0, 1, 2, 3, 4, 5]).await;
    let parts = before.parts().len() + one.parts().len() + other.parts().len();
    world.count("PutItem") > parts
}

#[tokio::test]
async fn a_batch_that_was_cut_short_after_any_write_goes_on_where_it_was() {
    for failed in 0..8 {
        for happens in [Happens::Answer(400, json!({"__type": "ValidationException"})), Happens::AnswerLost] {
            let world = World::new().await;
            let batch = batch(&world.local, "a", &[0, 1]).await;
            for _ in 0..failed {
                world.way.let_happen("PutItem", Happens::AnswerLost);
            }
            world.way.let_happen("PutItem", happens.clone());
            for _ in 0..10 {
                if world.store.count(&batch).await.is_ok() {
                    break;
                }
            }
            assert!(world.way.is_used_up());
            agree(&world, &[0, 1]).await;
        }
    }
}

#[tokio::test]
async fn the_states_are_unknown_where_the_stream_began_after_its_table() {
    let world = World::new().await;
    let mut batch = batch(&world.local, "a", &[1]).await;
    batch.stream = "arn:stream/2999-01-01T00:00:00.000".into();
    world.store.count(&batch).await.unwrap();
    let counted = numbers(&world.store, Grain::Minute).await;
    assert_eq!((counted.states, counted.total.orders().processed), (None, 1));
}

#[tokio::test]
async fn a_count_that_cannot_be_begun_is_tried_again() {
    let world = World::new().await;
    let batch = batch(&world.local, "a", &[1]).await;
    world.way.let_happen("DescribeTable", failure(400, "AccessDeniedException"));
    world.store.count(&batch).await.unwrap_err();
    world.store.count(&batch).await.unwrap();
    agree(&world, &[1]).await;
}

#[tokio::test]
async fn numbers_that_cannot_be_read_are_left_out_and_hold_up_nothing() {
    let world = World::new().await;
    let whole = batch(&world.local, "a", &[1, 2]).await;
    world.store.count(&slice(&whole, 0, 2)).await.unwrap();
    let client = world.local.client();
    let table = &world.local.tables.numbers;
    for item in client.scan().table_name(table).send().await.unwrap().items.unwrap() {
        let mut item = item;
        item.insert("Count".into(), aws_sdk_dynamodb::types::AttributeValue::S("rubbish".into()));
        client.put_item().table_name(table).set_item(Some(item)).send().await.unwrap();
    }
    let lost = numbers(&world.store, Grain::Minute).await;
    assert_eq!((lost.spans, lost.states), (vec![], None));
    world.store.count(&whole).await.unwrap();
    let counted = numbers(&world.store, Grain::Minute).await;
    assert_eq!((counted.total.orders().accepted, counted.states), (2, None), "orders of before are not known");
}

#[tokio::test]
async fn a_span_that_is_too_large_keeps_its_orders_without_their_steps() {
    let world = World::new().await;
    let mut batch = batch(&world.local, "a", &[1]).await;
    let claimed = batch.changes[1].clone();
    for workflow in 0..100_u32 {
        let wide = |task: Option<Task>| {
            let mut task = task?;
            let step = task.steps[0].clone();
            task.steps = (0..50).map(|_| step.clone()).collect();
            for (number, step) in task.steps.iter_mut().enumerate() {
                step.name = format!("{number:064}").into();
            }
            task.workflow = format!("{workflow:064}").into();
            Some(task)
        };
        let sequence = (*(1_000 + workflow).to_string()).into();
        batch.changes.push(Change { sequence, before: None, after: wide(claimed.after.clone()), ..claimed.clone() });
    }
    world.store.count(&batch).await.unwrap();
    let counted = numbers(&world.store, Grain::Hour).await;
    assert_eq!((counted.total.orders().accepted, counted.total.services().len()), (101, 0));
    world.store.count(&batch).await.unwrap();
    assert_eq!(numbers(&world.store, Grain::Hour).await, counted);
}

/// A minute of an order a second, in one batch: the parts of a deployment with one workflow.
#[tokio::test]
async fn a_batch_costs_a_few_write_units_and_none_where_nothing_is_new() {
    let local = Local::start().await;
    let consumed = Arc::<Mutex<Vec<Consumed>>>::default();
    let told = consumed.clone();
    let meter = Meter::new(move |one| told.lock().unwrap().push(one));
    let store = local.ports(local.config().interceptor(meter));
    let mut batch = batch(&local, "shardId-00000001414576573621-f55eea83", &(0..60).collect::<Vec<_>>()).await;
    for (number, change) in batch.changes.iter_mut().enumerate() {
        change.at = NOON.plus_ms(number as u64 * 10);
    }
    store.count(&batch).await.unwrap();
    store.count(&batch).await.unwrap();
    let consumed = consumed.lock().unwrap();
    let written: Vec<f64> = consumed.iter().map(|one| one.table_write_units).filter(|units| *units > 0.0).collect();
    println!("a batch of {} changes: {written:?} write units", batch.changes.len());
    assert!(written.len() == 3 && written.iter().sum::<f64>() <= 6.0, "{written:?}");
}
