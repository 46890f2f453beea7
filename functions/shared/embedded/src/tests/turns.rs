//! The turns of reads: what fails on its way in gives back what it took (F70).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use domain::batch::HasCause;
use domain::ports::{HasStore, Store};
use domain::task::{ProcessState, Task};
use tempfile::tempdir;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{open, options, order, other_program, submit, task};
use crate::core::Begun;
use crate::live::Look;
use crate::lock::lock;
use crate::{Engine, Options, Share, attended};

#[tokio::test]
async fn f70_a_read_asks_the_system_for_no_thread() {
    let directory = tempdir().unwrap();
    let engine = open(directory.path());
    let name = engine.core().readers.run(|| thread::current().name().map(str::to_owned)).await;
    assert_eq!(name.flatten().as_deref(), Some("reader"), "a thread that is there since the start");
    engine.close().await.unwrap();
}

#[tokio::test]
async fn f70_a_read_that_fails_gives_its_turn_back() {
    let directory = tempdir().unwrap();
    let engine = Engine::open(directory.path(), Options { readers_max: 1, ..options() }).unwrap();
    submit(&engine, 1..2).await;
    for _ in 0..3 {
        let failed = engine.core().readers.read::<()>("test", |_| panic!("this panic is part of the test")).await;
        assert!(failed.unwrap_err().may_pass());
    }
    assert!(engine.store().task(order(7).order_id).await.unwrap().is_none());
    engine.ready().await.unwrap();
    engine.close().await.unwrap();
}

#[tokio::test]
async fn f70_a_load_without_an_end_leaves_the_order_to_the_next_reader() {
    let directory = tempdir().unwrap();
    let engine = open(directory.path());
    let (core, order_id) = (engine.core(), order(1).order_id);
    {
        let state = &mut *lock(&core.state);
        assert!(state.live.begin_load(order_id, &state.log));
    }
    drop(Begun(core.clone(), order_id));
    assert!(matches!(lock(&core.state).live.look(order_id), Look::Missing));
    assert!(engine.store().task(order_id).await.unwrap().is_none());
    engine.close().await.unwrap();
}

/// With all turns taken for good, no read would ever be answered.
#[tokio::test(start_paused = true)]
async fn rule_24_a_server_that_answers_no_read_is_not_ready() {
    let directory = tempdir().unwrap();
    let engine = open(directory.path());
    let mut turns = Vec::new();
    for _ in 0..options().readers_max {
        turns.push(engine.core().readers.permit("test").await.unwrap());
    }
    let error = format!("{:?}", engine.reads().await.unwrap_err());
    assert!(error.contains("a read waits longer than 5000 ms"), "{error}");
    drop(turns);
    engine.reads().await.unwrap();
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test that fails instead of waiting for ever")]
async fn a_wait_of_a_client_that_sends_no_more_ends_at_once() {
    let directory = tempdir().unwrap();
    let engine = open(directory.path());
    submit(&engine, 1..2).await;
    let (order, gone) = (order(7), Arc::new(Notify::new()));
    engine.store().insert(order.clone().into(), task(&order, 1).into()).await.unwrap();
    gone.notify_one();
    let wait = attended(gone, engine.store().settled(order.order_id, 3_600_000));
    let seen = timeout(Duration::from_secs(60), wait).await.expect("not after an hour").unwrap().unwrap();
    assert!(!seen.task.process_state.is_settled());
    engine.close().await.unwrap();
}

#[tokio::test]
async fn rule_15_orders_under_way_and_their_bytes_are_counted_by_submitter() {
    let directory = tempdir().unwrap();
    let engine = open(directory.path());
    let store = |n: u64| {
        let order = Arc::new(order(n));
        (order.clone(), Arc::new(task(&order, 1)))
    };
    let bytes = order(1).document.text().len() as u64;
    let (first, second) = (store(1), store(2));
    for (order, task) in [&first, &second, &first] {
        engine.store().insert(order.clone(), task.clone()).await.unwrap();
    }
    let both = Share { orders: 2, bytes: 2 * bytes };
    assert_eq!(engine.shares("tests"), [both, both]);
    assert_eq!(engine.shares("another"), [both, Share::default()]);
    let mut ended = Task::clone(&second.1);
    (ended.version, ended.process_state) = (ended.version + 1, ProcessState::Processed);
    let (ended, other) = (Arc::new(ended), other_program(directory.path()));
    other.execute_batch("CREATE TRIGGER no BEFORE UPDATE ON tasks BEGIN SELECT RAISE(ABORT, 'no'); END").unwrap();
    engine.store().commit(&second.1, ended.clone()).await.unwrap_err();
    assert_eq!(engine.shares("tests"), [both, both], "its end is lost");
    other.execute_batch("DROP TRIGGER no").unwrap();
    engine.store().commit(&second.1, ended).await.unwrap();
    let one = Share { orders: 1, bytes };
    assert_eq!(engine.shares("tests"), [one, one]);
    engine.close().await.unwrap();
    drop(engine);
    let again = open(directory.path());
    assert_eq!(again.shares("tests"), [one, one]);
    again.close().await.unwrap();
}
