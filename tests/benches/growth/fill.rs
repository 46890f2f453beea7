//! Puts orders into a store, through the engine.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use config::Folder;
use config::apply::{Application, apply};
use domain::definition::{Catalogue, Deployment};
use domain::id::OrderId;
use domain::index::Term;
use domain::json::Json;
use domain::limits::SHARDS;
use domain::order::Order;
use domain::ports::{Environment, HasEnvironment, HasRecords, HasStore, Inserted, PortError, Records, Store};
use domain::search::Pointer;
use domain::task::{ProcessState, Reason, Task, Watch};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use embedded::{Engine, Options};
use futures_util::future::try_join_all;
use rusqlite::{Connection, OpenFlags};
use tests::bench::carry::{Carry, STAGES};
use tests::bench::document;
use tokio::runtime::Runtime;

/// The shipped workflow.
const SHIPPED: &str = include_str!("../../../infra/examples/shop/workflows/order-1.toml");
/// The version of it whose orders are also found by a member of their documents.
const VERSION: u32 = 2;
/// The JSON pointer of that member.
pub(crate) const INDEXED: &str = "/Reference";
/// The documents of the load have lower numbers, and so other texts at that place.
const FIRST_DOCUMENT: u64 = 5_000_000_000;
/// Orders that are put in together: they share a transaction, or a few.
const TOGETHER: u64 = 2_000;
/// So many of the finished orders are none: they wait for an operator.
const HELD: u64 = 100;
/// Stages after which an order's first step is under way.
const FIRST_CLAIMED: usize = 2;
/// How long ago an expired attempt ended, in milliseconds.
const EXPIRED_MS: u64 = 60_000;

/// Puts finished orders into a store, unless they are there; gives how many it put in. Refuses a store that holds another
/// number: it was left half filled, or orders were posted to it.
pub(crate) fn finished(data: &Path, orders: u64) -> Result<u64, Box<dyn Error>> {
    let template = template(STAGES.len());
    in_engine(data, |runtime, engine| {
        let held = count(data)?;
        let is_indexed = runtime.block_on(engine.records().get::<Deployment>(Deployment::KEY))?.is_some();
        if held > 0 && !is_indexed {
            return Err(format!("{} holds orders without an indexed member: remove it", data.display()).into());
        }
        runtime.block_on(index_member(engine))?;
        let missing = match held {
            0 => orders,
            held if held == orders => 0,
            held => return Err(format!("{} holds {held} orders, not {orders}", data.display()).into()),
        };
        runtime.block_on(insert(
            engine,
            missing,
            |number, task| {
                if number < HELD {
                    task.process_state = ProcessState::Error;
                    task.watch = Some(Watch::Error(task.order_id.shard(SHARDS)));
                    task.watch_at = Some(Timestamp::from_epoch_ms(number.cast_signed()));
                    task.reason = Some(Reason {
                        code: "exhausted".into(),
                        message: "time and again no answer".into(),
                        step: None,
                        since_version: task.version,
                        earlier: None,
                    });
                }
            },
            &template,
        ))?;
        Ok(missing)
    })
}

/// Puts orders in whose first attempt expired a while ago.
pub(crate) fn expired(data: &Path, orders: u64) -> Result<(), Box<dyn Error>> {
    let template = template(FIRST_CLAIMED);
    in_engine(data, |runtime, engine| {
        runtime.block_on(insert(engine, orders, |_, task| expire(task), &template))?;
        Ok(())
    })
}

/// New orders are of the version that declares the member.
async fn index_member(engine: &Engine) -> Result<(), Box<dyn Error>> {
    let workflow = SHIPPED.replace("version = 1", &format!("version = {VERSION}\nindex = [\"{INDEXED}\"]"));
    let files = [("stepwarden.toml", String::new()), ("workflows/order-2.toml", workflow)];
    let checked = Folder::check(&files.map(|(file, text)| (file.to_owned(), text)))?;
    let application = Application { by: "growth".into(), share_percent: None, seen: None, earlier_key_ms: None };
    apply(engine, &Catalogue::new(Workflows::shipped()?), &checked, &application).await?;
    Ok(())
}

/// Opens an engine for a while.
pub(crate) fn in_engine<R>(
    data: &Path,
    work: impl FnOnce(&Runtime, &Engine) -> Result<R, Box<dyn Error>>,
) -> Result<R, Box<dyn Error>> {
    let runtime = Runtime::new()?;
    let engine = {
        let _inside = runtime.enter();
        Engine::open(data, Options::default())?
    };
    let result = work(&runtime, &engine);
    runtime.block_on(engine.close())?;
    result
}

/// The text of the indexed member of the order of this number.
pub(crate) fn reference(number: u64) -> String {
    format!("bench-{:010}", FIRST_DOCUMENT + number)
}

/// The correlation id of the order of this number.
pub(crate) fn correlation_id(number: u64) -> String {
    format!("cart-{number}")
}

/// The orders that a store holds.
pub(crate) fn count(data: &Path) -> rusqlite::Result<u64> {
    let database = Connection::open_with_flags(data.join("stepwarden.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let count: i64 = database.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// A finished task.
pub(crate) fn finished_task() -> Task {
    template(STAGES.len())
}

/// A task as the handlers made it.
fn template(stages: usize) -> Task {
    let carry = Carry::new();
    carry.through(1, stages);
    let task = carry.tasks().first().map(|task| Task { workflow_version: VERSION, ..Task::clone(task) });
    task.unwrap_or_else(|| unreachable!("one order was carried"))
}

fn expire(task: &mut Task) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    let complete_by = Timestamp::from_epoch_ms(now_ms - EXPIRED_MS.cast_signed());
    if let Some(step) = task.steps.first_mut() {
        step.complete_by = Some(complete_by);
        step.started_at = Some(Timestamp::from_epoch_ms(now_ms - 2 * EXPIRED_MS.cast_signed()));
    }
    task.watch = Some(Watch::Due(task.order_id.shard(SHARDS)));
    task.watch_at = Some(complete_by);
}

async fn insert(
    engine: &Engine,
    orders: u64,
    change: impl Fn(u64, &mut Task),
    template: &Task,
) -> Result<(), PortError> {
    for first in (0..orders).step_by(usize::try_from(TOGETHER).unwrap_or(1)) {
        let these = first..orders.min(first + TOGETHER);
        let inserts = these.map(|number| {
            let (order, task) = order_and_task(engine, number, &change, template);
            engine.store().insert(order.into(), task.into())
        });
        for inserted in try_join_all(inserts).await? {
            assert_eq!(inserted, Inserted::New);
        }
    }
    Ok(())
}

pub(crate) fn order_and_task(
    engine: &Engine,
    number: u64,
    change: &impl Fn(u64, &mut Task),
    template: &Task,
) -> (Order, Task) {
    let submitted_at = engine.environment().now();
    let order_id = OrderId::generate(submitted_at, [engine.environment().random(), engine.environment().random()]);
    let document = document(FIRST_DOCUMENT + number);
    let document = Json::document(document.as_bytes()).unwrap_or_else(|error| unreachable!("{error}"));
    let correlation_id = correlation_id(number);
    let indexed = Pointer::parse(INDEXED).unwrap_or_else(|problem| unreachable!("{problem}"));
    let order = Order {
        order_id,
        fingerprint: document.fingerprint().into(),
        document,
        submitted_at,
        submitter: Arc::from("local"),
        reply_channel: None,
        terms: vec![Term::correlation(&correlation_id), Term::member(&indexed, &reference(number))],
        correlation_id: Some(correlation_id.into()),
        priority: None,
        workflow: None,
        again_of: None,
    };
    let mut task = Task { order_id, nonce: engine.environment().random(), ..template.clone() };
    change(number, &mut task);
    (order, task)
}
