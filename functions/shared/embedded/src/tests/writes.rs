//! Writes whose order or condition only a failure shows.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::json::Json;
use domain::message::{Outcome, Priority, Reply, SchedulerMessage};
use domain::ports::{HasQueues, HasStore, Queues, Source, Store};
use domain::task::Direction;
use rusqlite::params;

use super::{count, open, order, other_program, submit, task};
use crate::Recovered;

#[tokio::test]
async fn a_task_that_another_program_changed_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let order = order(0);
    let before = task(&order, 16);
    engine.store().insert(order.into(), before.clone().into()).await.unwrap();
    let other = other_program(directory.path());
    for is_indexed in [false, true] {
        other.execute("UPDATE tasks SET version = ?1", params![before.version + 5]).unwrap();
        let mut after = before.clone();
        (after.version, after.nonce) = (before.version + 1, 7);
        if is_indexed {
            (after.watch, after.watch_at) = (None, None);
        }
        engine.store().commit(&before, Arc::new(after)).await.unwrap_err();
        assert_eq!(count(&other, "SELECT version FROM tasks"), i64::try_from(before.version).unwrap() + 5);
    }
}

#[tokio::test]
async fn a_submission_is_not_deleted_before_what_was_queued_earlier_is_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    submit(&engine, 0..1).await;
    let delivery = engine.submissions().receive(1).await.remove(0);
    let other = other_program(directory.path());
    let refused = "CREATE TRIGGER no_room BEFORE INSERT ON orders BEGIN SELECT RAISE(FAIL, 'no room'); END";
    other.execute_batch(refused).unwrap();
    let (order, submissions) = (order(0), engine.submissions());
    let inserted = engine.store().insert(order.clone().into(), task(&order, 16).into());
    let (inserted, deleted) = tokio::join!(inserted, submissions.delete(vec![delivery.receipt]));
    inserted.unwrap_err();
    deleted.unwrap();
    assert_eq!(count(&other, "SELECT count(*) FROM messages"), 1);
}

#[tokio::test]
async fn a_start_wakes_the_orders_of_every_shard() {
    const SHARDS: u8 = 99;
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let mut shards = BTreeSet::new();
    for n in 0.. {
        let order = order(n);
        if shards.insert(order.order_id.shard(SHARDS)) {
            let task = task(&order, SHARDS);
            engine.store().insert(order.into(), task.into()).await.unwrap();
        }
        if shards.len() == usize::from(SHARDS) {
            break;
        }
    }
    engine.close().await.unwrap();
    drop(engine);
    assert_eq!(open(directory.path()).recover().await.unwrap().wakes, usize::from(SHARDS));
}

/// A reply to a request comes again, since the request is sent again. One that follows from no request does not.
#[tokio::test]
async fn a_result_that_a_service_tells_by_itself_survives_a_kill_until_it_is_handled() {
    let told = |hops| {
        SchedulerMessage::Reply(Reply {
            order_id: order(0).order_id,
            step: "charge-payment".into(),
            direction: Direction::Forward,
            attempt: 1,
            outcome: Outcome::Done(Json::empty()),
            hops,
            may_run_until: None,
            call_ms: None,
        })
    };
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    for hops in [1, 0] {
        engine.queues().to_scheduler(told(hops), Priority::Normal, 0).await.unwrap();
    }
    drop(engine);
    let engine = open(directory.path());
    assert_eq!(engine.recover().await.unwrap(), Recovered { commands: 1, ..Recovered::default() });
    let taken = engine.scheduler().receive(10).await;
    assert_eq!((taken.len(), &taken[0].body), (1, &Ok(told(0))));
    engine.scheduler().delete(taken.into_iter().map(|delivery| delivery.receipt).collect()).await.unwrap();
    drop(engine);
    assert_eq!(open(directory.path()).recover().await.unwrap(), Recovered::default());
}
