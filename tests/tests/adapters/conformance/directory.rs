//! The one-machine engine and its data directory: one owner, and a clear error if the directory cannot be used.

use domain::ports::{HasQueues, HasStore, PortErrorKind, Queues, Store};
use embedded::{Engine, OpenError, Options};
use rusqlite::Connection;
use tempfile::TempDir;
use tests::conformance::samples::{order, task};

fn open(directory: &TempDir) -> Engine {
    Engine::open(directory.path(), Options::default()).unwrap()
}

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn other_program(directory: &TempDir) -> Connection {
    Connection::open(directory.path().join("stepwarden.db")).unwrap()
}

#[tokio::test]
async fn a_data_directory_has_one_owner_at_a_time() {
    let directory = directory();
    let engine = open(&directory);
    let refused = Engine::open(directory.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains(directory.path().to_str().unwrap()) && text.lines().count() == 1, "{text}");
    engine.close().await.unwrap();
    open(&directory);
}

#[tokio::test]
async fn a_closed_engine_takes_nothing_more() {
    let directory = directory();
    let engine = open(&directory);
    engine.close().await.unwrap();
    assert_eq!(engine.queues().submit(order(1), 0).await.unwrap_err().kind, PortErrorKind::Unavailable);
    assert_eq!(
        engine.store().insert(order(1).into(), task(&order(1)).into()).await.unwrap_err().kind,
        PortErrorKind::Unavailable
    );
    engine.close().await.unwrap();
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let directory = directory();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("data");
    let refused = Engine::open(&below, Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::NotWritable { .. }), "{refused}");
    assert!(refused.to_string().contains(below.to_str().unwrap()), "{refused}");
}

#[test]
fn a_missing_directory_is_made() {
    let directory = directory();
    let below = directory.path().join("some/where");
    drop(Engine::open(&below, Options::default()).unwrap());
    assert!(below.join("stepwarden.db").exists());
}

#[test]
fn a_file_of_a_later_version_is_refused_and_left_alone() {
    let directory = directory();
    drop(open(&directory));
    other_program(&directory).pragma_update(None, "user_version", 99).unwrap();
    let refused = Engine::open(directory.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 99, .. }), "{refused}");
    assert_eq!(
        other_program(&directory).pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)).unwrap(),
        99
    );
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = directory();
    std::fs::write(directory.path().join("stepwarden.db"), [7; 8_192]).unwrap();
    let refused = Engine::open(directory.path(), Options::default()).unwrap_err();
    assert!(matches!(refused, OpenError::Database { .. }), "{refused}");
}
