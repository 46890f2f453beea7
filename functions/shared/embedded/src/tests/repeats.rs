//! Inserts of orders that are not in memory: the writer decides them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use std::time::Duration;

use domain::json::Json;
use domain::order::Order;
use domain::ports::{Commit, HasStore, Inserted, PortErrorKind, Store};
use domain::task::Task;
use tokio::time::timeout;

use super::{count, open, order, other_program, task};
use crate::Engine;

/// The same id with another document.
fn another() -> Order {
    let document = Json::document(br#"{"Item": "another"}"#).unwrap();
    Order { fingerprint: document.fingerprint().into(), document, ..order(0) }
}

/// Each caller makes a task of its own.
async fn insert(engine: &Engine, order: Order) -> Inserted {
    static NONCE: AtomicU64 = AtomicU64::new(1);
    let task = Task { nonce: NONCE.fetch_add(1, Relaxed), ..task(&order, 16) };
    engine.store().insert(order.into(), task.into()).await.unwrap()
}

#[tokio::test]
async fn an_order_on_disk_is_not_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    assert_eq!(insert(&engine, order(0)).await, Inserted::New);
    engine.close().await.unwrap();
    drop(engine);
    for orders in [[order(0), another()], [another(), order(0)]] {
        let engine = open(directory.path());
        for order in orders {
            let is_same = order.fingerprint != another().fingerprint;
            let expected = if is_same { Inserted::Same } else { Inserted::Different };
            assert_eq!(insert(&engine, order).await, expected);
        }
        assert_eq!(engine.store().order(order(0).order_id).await.unwrap().unwrap().fingerprint, order(0).fingerprint);
        engine.close().await.unwrap();
    }
    let database = other_program(directory.path());
    let counts = ["orders", "tasks", "audit"].map(|table| count(&database, &format!("SELECT count(*) FROM {table}")));
    assert_eq!(counts, [1, 1, 1]);
}

#[tokio::test]
async fn of_two_inserts_at_once_one_is_written_and_the_other_learns_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    assert_eq!(
        tokio::join!(insert(&engine, order(0)), insert(&engine, another()), insert(&engine, order(0))),
        (Inserted::New, Inserted::Different, Inserted::Same)
    );
    let task = engine.store().task(order(0).order_id).await.unwrap().unwrap();
    let next = Task { version: task.version + 1, nonce: 7, ..(*task).clone() };
    assert_eq!(engine.store().commit(&task, next.into()).await.unwrap(), Commit::Committed);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test that fails instead of waiting for ever")]
async fn an_insert_that_fails_leaves_the_order_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let other = other_program(directory.path());
    other
        .execute_batch("CREATE TRIGGER no_room BEFORE INSERT ON orders BEGIN SELECT RAISE(FAIL, 'no room'); END")
        .unwrap();
    let failed = engine.store().insert(order(0).into(), task(&order(0), 16).into()).await.unwrap_err();
    assert_eq!(failed.kind, PortErrorKind::Unavailable);
    let read = timeout(Duration::from_secs(60), engine.store().task(order(0).order_id)).await;
    assert_eq!(read.expect("an answer").unwrap(), None);
    other.execute_batch("DROP TRIGGER no_room").unwrap();
    assert_eq!(insert(&engine, order(0)).await, Inserted::New);
    engine.close().await.unwrap();
    assert_eq!(
        engine.store().insert(order(1).into(), task(&order(1), 16).into()).await.unwrap_err().kind,
        PortErrorKind::Unavailable
    );
}
