//! A disk that fails (F68), and files that are taken away from a running process (F67).

use std::fs;

use domain::ports::{HasQueues, HasStore, PortErrorKind, Queues, Store};

use super::{open, options, order, other_program, submit, task};
use crate::{Engine, OpenError};

#[tokio::test]
async fn f67_a_database_that_is_removed_moved_or_replaced_takes_no_order_until_it_is_back() {
    for (file, replacement) in [("stepwarden.db", None), ("stepwarden.db", Some("")), ("stepwarden.db-wal", None)] {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        submit(&engine, 0..1).await;
        let (path, aside) = (directory.path().join(file), directory.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        if let Some(content) = replacement {
            fs::write(&path, content).unwrap();
        }
        let refused = engine.queues().submit(order(1), 0).await.unwrap_err();
        let source = refused.source.as_ref().unwrap().to_string();
        assert!(refused.kind == PortErrorKind::Unavailable && source.contains(file), "{source}");
        let unready = engine.ready().await.unwrap_err();
        assert!(unready.source.unwrap().to_string().contains("removed, moved or replaced"));
        fs::rename(&aside, &path).unwrap();
        submit(&engine, 1..2).await;
        engine.ready().await.unwrap();
        engine.close().await.unwrap();
        assert_eq!(open(directory.path()).recover().await.unwrap().submissions, 2);
    }
}

#[tokio::test]
async fn f67_what_a_lost_log_held_is_in_the_database_after_a_stop_and_no_file_at_its_name_is_touched() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    submit(&engine, 0..3).await;
    let log = directory.path().join("stepwarden.db-wal");
    fs::remove_file(&log).unwrap();
    fs::write(&log, "another's").unwrap();
    engine.close().await.unwrap();
    drop(engine);
    assert_eq!(fs::read(&log).unwrap(), b"another's");
    fs::remove_file(&log).unwrap();
    assert_eq!(open(directory.path()).recover().await.unwrap().submissions, 3);
}

#[tokio::test]
async fn f67_a_directory_without_its_lock_file_still_has_one_owner() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    fs::remove_file(directory.path().join("stepwarden.lock")).unwrap();
    assert!(matches!(Engine::open(directory.path(), options()), Err(OpenError::Locked { .. })));
    engine.ready().await.unwrap();
}

#[tokio::test]
async fn f68_an_engine_that_cannot_write_is_not_ready_and_is_ready_once_it_can() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    submit(&engine, 0..1).await;
    engine.ready().await.unwrap();
    let other = other_program(directory.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let unready = engine.ready().await.unwrap_err();
    assert!(unready.source.unwrap().to_string().contains("the transaction failed"));
    assert!(engine.store().order(order(9).order_id).await.unwrap().is_none(), "reads go on");
    other.execute_batch("COMMIT").unwrap();
    engine.ready().await.unwrap();
    engine.close().await.unwrap();
    engine.ready().await.unwrap_err();
}

#[tokio::test]
async fn f68_an_order_can_be_read_while_its_next_version_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let order = order(0);
    let before = task(&order, 16);
    engine.store().insert(order.clone().into(), before.clone().into()).await.unwrap();
    let other = other_program(directory.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut after = before.clone();
    (after.version, after.nonce) = (before.version + 1, 7);
    // The read comes while the write is queued, and waits for it.
    let (committed, seen) =
        tokio::join!(engine.store().commit(&before, after.into()), engine.store().task(order.order_id));
    assert_eq!(committed.unwrap_err().kind, PortErrorKind::Unavailable);
    assert_eq!(seen.unwrap().unwrap().version, before.version);
}
