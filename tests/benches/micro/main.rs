//! Micro-benchmarks: deciding, committing, encoding and decoding.
//!
//!     cargo bench -p tests --bench micro

#![allow(clippy::disallowed_methods, reason = "a measurement")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::json::Json;
use domain::limits::{SETTLES_WITHIN_MS_DEFAULT, SHARDS};
use domain::machine::{Decision, Event, Moment, decide};
use domain::message::{Outcome, Priority, Reply, Request, SchedulerMessage, decode, idempotency_key};
use domain::order::Order;
use domain::ports::{Commit, HasStore, Inserted, Store};
use domain::schema::Schema;
use domain::task::{Direction, Task};
use domain::workflow::Workflows;
use embedded::{Engine, Options};
use futures_util::future::join_all;
use tests::bench::document;
use tests::conformance::samples::{NOON, order_with};
use tokio::runtime::Runtime;

/// Commits that are made at the same time.
const TOGETHER: u64 = 64;

fn order(number: u64) -> Order {
    let number = u32::try_from(number).unwrap_or_default();
    order_with(number, &document(u64::from(number)))
}

fn output() -> Json {
    Json::of(&BTreeMap::from([("Reference", "R-5b1d0fa35c0b1e77"), ("Status", "done")]))
}

fn instance() -> Instance {
    let workflows = Workflows::shipped().expect("the shipped workflow");
    Instance { name: "scheduler-4711".into(), catalogue: Catalogue::new(workflows), shards: SHARDS }
}

fn decided(instance: &Instance, task: &Task, event: Event<'_>) -> Decision {
    let moment = Moment { now: NOON.plus_ms(700), instance: &instance.name, nonce: task.nonce + 1, draw: 7 };
    decide(task, instance.catalogue.compiled().current(), event, moment).expect("a sound task")
}

fn reply_to(task: &Task, step: usize) -> Reply {
    let step = &task.steps[step];
    Reply {
        order_id: task.order_id,
        step: step.name.clone(),
        direction: Direction::Forward,
        attempt: step.attempt,
        outcome: Outcome::Done(output()),
        hops: 1,
        may_run_until: None,
        call_ms: Some(12),
    }
}

/// A task whose second step is under way.
fn half_way(instance: &Instance) -> Task {
    let order = order(1);
    let new = Task::new(&order, instance.catalogue.compiled().current(), SHARDS, 1);
    let claimed = decided(instance, &new, Event::Wake { hops: 0, redelivered: false }).change.expect("a claim");
    let reply = reply_to(&claimed, 0);
    decided(instance, &claimed, Event::Reply { reply: &reply, redelivered: false }).change.expect("a result")
}

fn deciding(criterion: &mut Criterion) {
    let instance = instance();
    let new = Task::new(&order(1), instance.catalogue.compiled().current(), SHARDS, 1);
    let mut group = criterion.benchmark_group("decide");
    group.bench_function("new order: first claim", |bencher| {
        bencher.iter(|| decided(&instance, black_box(&new), Event::Wake { hops: 0, redelivered: false }));
    });
    let task = half_way(&instance);
    let reply = reply_to(&task, 1);
    group.bench_function("reply: result and next claim", |bencher| {
        bencher.iter(|| decided(&instance, black_box(&task), Event::Reply { reply: &reply, redelivered: false }));
    });
    group.bench_function("sweep: nothing to do", |bencher| {
        bencher.iter(|| decided(&instance, black_box(&task), Event::Sweep));
    });
    group.finish();
}

/// A schema of 40 members with a rule each, and a document that fits.
fn schema_and_document() -> (Schema, Json) {
    let member = |n: usize| match n % 4 {
        0 => {
            (format!("\"m{n}\":{{\"type\":\"number\",\"minimum\":0,\"multipleOf\":0.01}}"), format!("\"m{n}\":{n}.50"))
        }
        1 => {
            (format!("\"m{n}\":{{\"type\":\"string\",\"maxLength\":40}}"), format!("\"m{n}\":\"12 St James's Square\""))
        }
        2 => (format!("\"m{n}\":{{\"pattern\":\"^[A-Z]{{2}}[0-9]{{2,8}}$\"}}"), format!("\"m{n}\":\"AB{n}12\"")),
        _ => (format!("\"m{n}\":{{\"enum\":[\"EUR\",\"USD\",\"GBP\"]}}"), format!("\"m{n}\":\"USD\"")),
    };
    let (rules, values): (Vec<String>, Vec<String>) = (0..40).map(member).unzip();
    let names: Vec<String> = (0..40).map(|n| format!("\"m{n}\"")).collect();
    let (names, rules) = (names.join(","), rules.join(","));
    let schema = format!("{{\"required\":[{names}],\"additionalProperties\":false,\"properties\":{{{rules}}}}}");
    let schema = Schema::parse(&schema).expect("a schema");
    let document = Json::document(format!("{{{}}}", values.join(",")).as_bytes()).expect("a document");
    assert_eq!(schema.check(&document), Ok(()));
    (schema, document)
}

fn messages(criterion: &mut Criterion) {
    let instance = instance();
    let task = half_way(&instance);
    let Order { order_id, document, .. } = order(1);
    let request = Request {
        order_id,
        step: "charge-payment".into(),
        agent: "payment".into(),
        direction: Direction::Forward,
        attempt: 1,
        idempotency_key: idempotency_key(order_id, "charge-payment", Direction::Forward),
        complete_by: NOON.plus_ms(30_000),
        budget_ms: 30_000,
        settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
        may_run_until: None,
        wait_within_ms: None,
        may_decline: false,
        was_done: false,
        hops: 1,
        priority: Priority::Normal,
        order: document,
        outputs: BTreeMap::from([("reserve-inventory".into(), output())]),
        method: domain::workflow::Method::Post,
        body: None,
        encode: domain::workflow::Encoding::Json,
        path: None,
        headers: Default::default(),
        keep: None,
        poll: None,
        look: None,
    };
    let reply = SchedulerMessage::Reply(reply_to(&task, 1));
    let mut group = criterion.benchmark_group("messages");
    let texts = [serde_json::to_string(&task), serde_json::to_string(&request), serde_json::to_string(&reply)];
    let [task_text, request_text, reply_text] = texts.map(|text| text.expect("a text"));
    group.bench_function("task: encode", |bencher| bencher.iter(|| serde_json::to_string(black_box(&task))));
    group.bench_function("task: decode", |bencher| {
        bencher.iter(|| serde_json::from_str::<Task>(black_box(&task_text)).expect("a task"));
    });
    group.bench_function("request: encode", |bencher| bencher.iter(|| serde_json::to_string(black_box(&request))));
    group.bench_function("request: decode", |bencher| {
        bencher.iter(|| decode::<Request>(black_box(request_text.as_bytes())).expect("a request"));
    });
    group.bench_function("reply: encode", |bencher| bencher.iter(|| serde_json::to_string(black_box(&reply))));
    group.bench_function("reply: decode", |bencher| {
        bencher.iter(|| decode::<SchedulerMessage>(black_box(reply_text.as_bytes())).expect("a reply"));
    });
    group.bench_function("document: its schema of 40 members", |bencher| {
        let (schema, document) = schema_and_document();
        bencher.iter(|| schema.check(black_box(&document)));
    });
    group.bench_function("document: parse and fingerprint", |bencher| {
        let text = tests::bench::document(1);
        bencher.iter(|| Json::document(black_box(text.as_bytes())).expect("a document").fingerprint());
    });
    group.finish();
}

/// The embedded store, on the disk where temporary files are.
fn commits(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::new().expect("a runtime");
    let engine = runtime.block_on(async { Engine::open(folder.path(), Options::default()).expect("an engine") });
    let instance = instance();
    let mut number = 0;
    let mut inserted = |count: u64| -> Vec<Task> {
        let orders = (0..count).map(|_| {
            number += 1;
            order(number)
        });
        let orders: Vec<Order> = orders.collect();
        let tasks: Vec<Task> =
            orders.iter().map(|order| Task::new(order, instance.catalogue.compiled().current(), SHARDS, 1)).collect();
        let inserts =
            orders.into_iter().zip(tasks.clone()).map(|(order, task)| engine.store().insert(order.into(), task.into()));
        for outcome in runtime.block_on(join_all(inserts)) {
            assert_eq!(outcome.expect("an insert"), Inserted::New);
        }
        tasks
    };
    let commit = |tasks: Vec<Task>| {
        let changes = tasks.into_iter().map(|task| {
            let after = decided(&instance, &task, Event::Wake { hops: 0, redelivered: false }).change;
            (task, Arc::new(after.expect("a claim")))
        });
        let changes: Vec<(Task, Arc<Task>)> = changes.collect();
        let commits = changes.iter().map(|(before, after)| engine.store().commit(before, after.clone()));
        for outcome in runtime.block_on(join_all(commits)) {
            assert_eq!(outcome.expect("a commit"), Commit::Committed);
        }
    };
    let mut group = criterion.benchmark_group("embedded");
    for together in [1, TOGETHER] {
        group.throughput(Throughput::Elements(together));
        group.bench_function(format!("commit, {together} at once"), |bencher| {
            bencher.iter_batched(|| inserted(together), commit, BatchSize::PerIteration);
        });
    }
    group.finish();
    runtime.block_on(engine.close()).expect("closed");
}

/// An id is made for every order, and written with every message.
fn ids(criterion: &mut Criterion) {
    criterion.bench_function("order id: from a key", |bencher| {
        bencher.iter(|| OrderId::from_idempotency_key("shop", black_box("k-4711")));
    });
}

criterion_group!(benches, deciding, messages, commits, ids);
criterion_main!(benches);
