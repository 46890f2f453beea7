//! Orders that are submitted again.

use domain::json::Json;
use domain::order::Order;
use domain::ports::{HasQueues, HasStore, Inserted, Queues, Source, Store};

use super::{count, open, order, other_program, submit, task};
use crate::Engine;

/// The same id with another document.
fn another() -> Order {
    let document = Json::document(br#"{"Item": "another"}"#).unwrap();
    Order { fingerprint: document.fingerprint().into(), document, ..order(0) }
}

/// Stores what was submitted.
async fn handle(engine: &Engine) {
    for delivery in engine.submissions().receive(10).await {
        let order = delivery.body.unwrap();
        let task = task(&order, 16);
        engine.store().insert(order, task).await.unwrap();
        engine.submissions().delete(vec![delivery.receipt]).await.unwrap();
    }
}

#[tokio::test]
async fn an_order_that_is_stored_is_not_queued_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut engine = open(directory.path());
    assert_eq!(engine.queues().submit(order(0)).await.unwrap(), Inserted::New);
    handle(&engine).await;
    for _ in 0..2 {
        assert_eq!(engine.queues().submit(order(0)).await.unwrap(), Inserted::Same);
        assert_eq!(engine.queues().submit(another()).await.unwrap(), Inserted::Different);
        assert_eq!(engine.stats().submissions, 0);
        engine.close().await.unwrap();
        drop(engine);
        engine = open(directory.path());
    }
    assert_eq!(count(&other_program(directory.path()), "SELECT count(*) FROM messages"), 0);
    assert_eq!(engine.queues().submit(order(1)).await.unwrap(), Inserted::New);
}

#[tokio::test]
async fn of_two_that_are_queued_the_one_that_is_stored_decides() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    submit(&engine, 0..1).await;
    let (same, ()) = tokio::join!(engine.queues().submit(order(0)), handle(&engine));
    assert_eq!(same.unwrap(), Inserted::Same);
    handle(&engine).await;

    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    submit(&engine, 0..1).await;
    let (other, ()) = tokio::join!(engine.queues().submit(another()), handle(&engine));
    assert_eq!(other.unwrap(), Inserted::Different);
}
