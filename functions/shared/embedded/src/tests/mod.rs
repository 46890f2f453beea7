//! The engine on disks that lose, fail or change.

mod audit;
mod backup;
mod disk;
mod erase;
mod files;
mod large;
mod log_size;
mod loss;
mod repeats;
mod retain;
mod tallies;
mod turns;
mod writes;

use std::path::Path;

use domain::order::Order;
use domain::ports::{HasQueues, Queues};
use domain::task::Task;
use domain::time::Timestamp;
use domain::workflow::Workflows;
use rusqlite::Connection;

use crate::{Engine, Options};

/// Lazy writes wait for others, the log stays, and a lock of another program is a failure at once.
fn options() -> Options {
    Options { lazy_ms: 60_000, checkpoint_idle_ms: 60_000, busy_ms: 10, clock_rest_ms: 0, ..Options::default() }
}

fn open(directory: &Path) -> Engine {
    Engine::open(directory, options()).unwrap()
}

pub(crate) fn order(n: u64) -> Order {
    let at = Timestamp::from_epoch_ms(1_795_176_000_000);
    memory::sample::order("tests", &n.to_string(), &format!(r#"{{"Item": {n}}}"#), at)
}

pub(crate) fn task(order: &Order, shards: u8) -> Task {
    Task::new(order, Workflows::shipped().unwrap().current(), shards, 1_000)
}

/// Accepts these orders, one transaction each.
async fn submit(engine: &Engine, orders: std::ops::Range<u64>) {
    for n in orders {
        engine.queues().submit(order(n), 0).await.unwrap();
    }
}

/// Another program on the same database.
fn other_program(directory: &Path) -> Connection {
    Connection::open(directory.join("stepwarden.db")).unwrap()
}

fn count(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}
