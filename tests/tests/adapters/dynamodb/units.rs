//! The cost of one order of three steps, through the handlers that Lambda runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aws::dynamo::{Consumed, Dynamo, Meter};
use domain::definition::Catalogue;
use domain::index::Term;
use domain::instance::Instance;
use domain::json::Json;
use domain::limits::SHARDS;
use domain::message::{Acceptance, Delivery, Outcome, Priority, Request, SchedulerMessage};
use domain::ports::{Environment, Queues, Source, Store};
use domain::redaction::Redaction;
use domain::task::{ProcessState, Task, Watch};
use domain::workflow::Workflows;
use memory::Memory;
use supervisor::Settings;
use tests::conformance::samples::{self, NOON};

use super::local::Local;

/// The limit of write units for a single order of three steps.
const WRITE_UNITS_MAX: f64 = 8.0;
/// The same with a document of 4 KB, and of 64 KB, which are stored compressed.
const WRITE_UNITS_BY_KB: [(usize, f64); 2] = [(4, 9.0), (64, 30.0)];
/// The limits of a run of the supervisor with nothing due.
const IDLE_REQUESTS_MAX: usize = 20;
const IDLE_WRITE_UNITS_MAX: f64 = 2.0;
/// The limit of write units for each result of it that comes later.
const CALLBACK_UNITS_MAX: f64 = 2.0;
/// The same if it comes after the supervisor's first look, which moves the watch.
const SLOW_CALLBACK_UNITS_MAX: f64 = 7.0;
/// So long the test waits for one. The order would wait for an hour.
const AWAITED_MS: u64 = 55 * 60 * 1_000;

/// The store is DynamoDB. All other ports are in memory.
struct Ports {
    store: Dynamo,
    memory: Memory,
}

domain::has_parts!([] Ports {
    HasStore, Store = Dynamo, store: |ports| &ports.store;
    HasQueues, Queues = Memory, queues: |ports| &ports.memory;
    HasRecords, Records = Dynamo, records: |ports| &ports.store;
    HasEvents, Events = Memory, events: |ports| &ports.memory;
    HasEnvironment, Environment = Memory, environment: |ports| &ports.memory;
});

/// The next batch of a queue. It is deleted from the queue.
async fn next<M>(source: impl Source<M>) -> Vec<Delivery<M>> {
    let batch = source.receive(10).await;
    source.delete(samples::receipts(&batch)).await.unwrap();
    batch
}

/// The agent's answer, with a typical length.
fn done(request: &Request) -> SchedulerMessage {
    let output = match &*request.step {
        "reserve-inventory" => r#"{"ReservationID":"rsv-5b1d0fa35c0b1e77","Warehouse":"W3"}"#,
        "charge-payment" => r#"{"PaymentID":"pay-0f0c5dd49c2e11f0","Status":"captured"}"#,
        _ => r#"{"TrackingNumber":"SW004112998231","Carrier":"Parcel Post"}"#,
    };
    SchedulerMessage::Reply(request.reply(Outcome::Done(Json::parse(output.as_bytes(), 100).unwrap())))
}

/// An order whose cost is counted.
#[derive(Clone, Copy, Default)]
struct Sample {
    correlation_id: Option<&'static str>,
    /// The size of its document, unless it is that of the samples.
    document_kb: usize,
    /// So many of its services take their call on first, and tell the result later.
    callbacks: usize,
    /// Each of these results is awaited for almost an hour.
    is_slow: bool,
}

/// A document of this size: a list of lines, as shops write it.
fn lines(bytes: usize) -> String {
    let mut text = r#"{"Lines":["#.to_owned();
    let line = |n: u32| {
        let (sku, price) = (n.wrapping_mul(2_654_435_761), n.wrapping_mul(40_503) % 10_000);
        format!(r#"{{"Sku":"{sku:08x}","Name":"Item no. {n}","Quantity":{},"UnitPrice":{price}}},"#, n % 9 + 1)
    };
    let room = bytes - r#"{"More":""}]}"#.len();
    let mut all = (0..).map(line).take_while(|line| {
        let fits = text.len() + line.len() <= room;
        if fits {
            text += line;
        }
        fits
    });
    while all.next().is_some() {}
    drop(all);
    let more = "x".repeat(room - text.len());
    text + &format!(r#"{{"More":"{more}"}}]}}"#)
}

/// Runs the first sample order to its end. Another instance handles each message.
async fn carry_through(ports: &Ports, sample: Sample) -> Arc<Task> {
    let workflows = Workflows::shipped().unwrap();
    let mut instances = 0_u32;
    let mut instance = |function: &str| {
        instances += 1;
        let name = format!("{function}-{:08x}", instances.wrapping_mul(0x9e37_79b9)).into();
        Instance { name, catalogue: Catalogue::new(workflows.clone()), shards: SHARDS }
    };
    let mut order = samples::order(1);
    if sample.document_kb > 0 {
        order.document = Json::document(lines(sample.document_kb * 1_024).as_bytes()).unwrap();
        order.fingerprint = order.document.fingerprint().into();
    }
    order.correlation_id = sample.correlation_id.map(Into::into);
    order.terms = sample.correlation_id.map(Term::correlation).into_iter().collect();
    order.submitter = "arn:aws:sts::123456789012:assumed-role/web-shop/i-0123456789abcdef0".into();
    ports.memory.submit(order.clone(), 0).await.unwrap();
    submission::handle(ports, &instance("submission"), next(ports.memory.submissions()).await).await;
    let agents = workflows.current().steps.iter().map(|step| step.agent.clone());
    for (position, agent) in agents.enumerate() {
        ports.memory.advance(700);
        if position > 0 {
            scheduler::handle(ports, &instance("scheduler"), next(ports.memory.scheduler()).await).await;
        }
        let delivery = next(ports.memory.requests(&agent)).await.remove(0);
        let request = delivery.body.unwrap();
        if position < sample.callbacks {
            let taken_on = SchedulerMessage::Reply(request.reply(Outcome::Accepted(Acceptance::default())));
            ports.memory.to_scheduler(taken_on, Priority::Normal, 0).await.unwrap();
            scheduler::handle(ports, &instance("scheduler"), next(ports.memory.scheduler()).await).await;
            if sample.is_slow {
                nothing_happens(ports, &instance("supervisor")).await;
            }
        }
        ports.memory.to_scheduler(done(&request), Priority::Normal, 0).await.unwrap();
    }
    ports.memory.advance(700);
    scheduler::handle(ports, &instance("scheduler"), next(ports.memory.scheduler()).await).await;
    ports.store.task(order.order_id).await.unwrap().unwrap()
}

/// Almost an hour, in which an order waits for a result. After its first minute no function is invoked, since no queue
/// has a message. The supervisor, which runs every minute, finds nothing to do: the order is not due.
async fn nothing_happens(ports: &Ports, instance: &Instance) {
    ports.memory.advance(60_000);
    supervisor::handle(ports, instance, &Settings::default()).await.unwrap();
    assert_eq!(ports.memory.next_message_at(), None);
    ports.memory.advance(AWAITED_MS);
    let now = ports.memory.now();
    let mut due_later = 0;
    for watch in (0..SHARDS).flat_map(|shard| [Watch::Due(shard), Watch::Wait(shard)]) {
        assert_eq!(ports.store.due(watch, now, None, 10).await.unwrap(), []);
        due_later += ports.store.due(watch, now.plus_ms(AWAITED_MS), None, 10).await.unwrap().len();
    }
    assert_eq!(due_later, 1, "when its time is over");
}

#[tokio::test]
async fn an_order_of_three_steps_costs_eight_write_units() {
    let units = write_units(Sample::default(), 0).await;
    assert!(units <= WRITE_UNITS_MAX, "{units}");
}

#[tokio::test]
async fn a_document_costs_its_size_once() {
    for (document_kb, units_max) in WRITE_UNITS_BY_KB {
        let units = write_units(Sample { document_kb, ..Sample::default() }, 0).await;
        println!("{document_kb} KB: {units} write units");
        assert!(units <= units_max, "{document_kb} KB: {units}");
    }
}

#[tokio::test]
async fn a_result_that_comes_later_costs_two_write_units_or_seven_and_no_invocation_while_it_is_awaited() {
    let without = write_units(Sample::default(), 0).await;
    let soon = write_units(Sample { callbacks: 1, ..Sample::default() }, 0).await - without;
    let late = write_units(Sample { callbacks: 1, is_slow: true, ..Sample::default() }, 0).await - without;
    println!("a result that comes later: {soon} more write units, and {late} if a supervisor looks meanwhile");
    assert!(soon > 0.9 && soon <= CALLBACK_UNITS_MAX, "{soon}");
    assert!(late > soon && late <= SLOW_CALLBACK_UNITS_MAX, "{late}");
}

#[tokio::test]
async fn a_term_in_the_index_costs_one_write_unit() {
    let without = write_units(Sample::default(), 0).await;
    let with = write_units(Sample { correlation_id: Some("basket-4711"), ..Sample::default() }, 1).await;
    assert!((with - without - 1.0).abs() < 0.01);
}

#[tokio::test]
async fn a_run_of_the_supervisor_with_nothing_due_makes_few_requests_and_one_write() {
    for orders in [0, 3] {
        let (_local, ports, consumed) = metered().await;
        let instance = Instance {
            name: "supervisor".into(),
            catalogue: Catalogue::new(Workflows::shipped().unwrap()),
            shards: SHARDS,
        };
        for number in 0..orders {
            let order = samples::order(number);
            submission::store(&ports, &instance, order).await.unwrap();
        }
        consumed.lock().unwrap().clear();
        // What the function does in one run.
        let settings = Settings::default();
        supervisor::handle(&ports, &instance, &settings).await.unwrap();
        supervisor::bulk(&ports, &instance, &settings, &Redaction::default()).await.unwrap();
        supervisor::services(&ports).await.unwrap();
        supervisor::alerts(&ports, &[]).await.unwrap();
        let consumed = consumed.lock().unwrap();
        consumed.iter().for_each(|one| println!("{one:?}"));
        let writes: f64 = consumed.iter().map(|one| one.table_write_units + one.index_write_units).sum();
        println!("{orders} orders in flight: {} requests, {writes} write units", consumed.len());
        assert!(consumed.len() <= IDLE_REQUESTS_MAX, "{}", consumed.len());
        assert!(writes > 0.0 && writes <= IDLE_WRITE_UNITS_MAX, "{writes}");
    }
}

/// Ports whose store is metered.
async fn metered() -> (Local, Ports, Arc<Mutex<Vec<Consumed>>>) {
    let local = Local::start().await;
    let consumed = Arc::<Mutex<Vec<Consumed>>>::default();
    let told = consumed.clone();
    let meter = Meter::new(move |one| told.lock().unwrap().push(one));
    let store = local.ports(local.config().interceptor(meter));
    (local, Ports { store, memory: Memory::new(NOON, 7) }, consumed)
}

/// The write units of an order. It puts this many items beside the order and its task.
async fn write_units(sample: Sample, puts: u32) -> f64 {
    let (_local, ports, consumed) = metered().await;
    let task = carry_through(&ports, sample).await;
    // A result that is awaited is a version more, and so is a supervisor's look.
    let callbacks = u64::try_from(sample.callbacks * if sample.is_slow { 2 } else { 1 }).unwrap();
    assert_eq!((task.process_state, task.version), (ProcessState::Processed, 5 + callbacks));

    let consumed = consumed.lock().unwrap();
    let of_order = consumed.iter().filter(|one| !one.table.ends_with("-leases"));
    let (mut writes, mut reads) = (0.0, 0.0);
    let mut requests = BTreeMap::<_, u32>::new();
    for Consumed { operation, table, table_write_units, index_write_units, read_units } in of_order {
        println!("{operation:18} {table:24} table {table_write_units} index {index_write_units} read {read_units}");
        writes += table_write_units + index_write_units;
        reads += read_units;
        *requests.entry(*operation).or_default() += 1;
    }
    println!("one order of three steps: {writes} write units, {reads} read units");
    let count = |operation| requests.get(operation).copied().unwrap_or_default();
    let updates = 3 + u32::try_from(callbacks).unwrap();
    assert_eq!((count("UpdateItem"), count("PutItem")), (updates, 2 + puts));
    assert!(writes >= 7.0, "less than is possible was counted: {writes}");
    writes
}
