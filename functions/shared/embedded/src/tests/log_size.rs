//! A reader of another program, which keeps the write-ahead log from being emptied.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::ports::Environment;
use rusqlite::Connection;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::{options, other_program, submit};
use crate::checkpoints::Checkpoints;
use crate::clock::Clock;
use crate::{Engine, Options};

const LIMIT_BYTES: u64 = 256 * 1_024;

fn small() -> Options {
    Options { checkpoint_idle_ms: 50, log_bytes_max: LIMIT_BYTES, ..options() }
}

fn log_bytes(directory: &Path) -> u64 {
    fs::metadata(directory.join("stepwarden.db-wal")).unwrap().len()
}

/// Returns once the log is empty.
async fn emptied(directory: &Path) {
    for _ in 0..1_000 {
        if log_bytes(directory) == 0 {
            return;
        }
        Clock::new(small().now).sleep(10).await;
    }
    panic!("{} bytes are left", log_bytes(directory));
}

/// Another program in the middle of a read.
fn reader(directory: &Path) -> Connection {
    let other = other_program(directory);
    other.execute_batch("BEGIN; SELECT count(*) FROM orders").unwrap();
    other
}

#[tokio::test]
async fn a_writer_with_nothing_to_write_empties_its_log_once_no_other_program_reads_from_it() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), small()).unwrap();
    submit(&engine, 0..3).await;
    emptied(directory.path()).await;

    let reader = reader(directory.path());
    let mut orders = 3;
    while log_bytes(directory.path()) <= LIMIT_BYTES {
        submit(&engine, orders..orders + 1).await;
        orders += 1;
    }
    engine.ready().await.unwrap();
    // The reader sees what it saw, however often the writer has tried.
    let seen: u64 = reader.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert!(seen == 3 && log_bytes(directory.path()) > LIMIT_BYTES);
    reader.execute_batch("COMMIT").unwrap();
    emptied(directory.path()).await;

    submit(&engine, orders..orders + 1).await;
    engine.close().await.unwrap();
    drop(engine);
    let recovered = super::open(directory.path()).recover().await.unwrap();
    assert_eq!(u64::try_from(recovered.submissions).unwrap(), orders + 1);
}

#[tokio::test]
async fn a_log_that_another_program_held_is_cut_also_if_the_writer_never_rests() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), Options { log_bytes_kept: LIMIT_BYTES, ..options() }).unwrap();
    let reader = reader(directory.path());
    let mut orders = 0;
    while log_bytes(directory.path()) <= 2 * LIMIT_BYTES {
        submit(&engine, orders..orders + 1).await;
        orders += 1;
    }
    drop(reader);
    submit(&engine, orders..orders + 2).await;
    assert!(log_bytes(directory.path()) <= LIMIT_BYTES);
}

/// The lines that were logged.
static WARNINGS: AtomicUsize = AtomicUsize::new(0);
static OTHERS: AtomicUsize = AtomicUsize::new(0);

struct Lines;

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let lines = if *event.metadata().level() == Level::WARN { &WARNINGS } else { &OTHERS };
        lines.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_too_large_is_one_line_one_in_ten_seconds_and_one_when_it_is_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("stepwarden.db");
    let log: PathBuf = directory.path().join("stepwarden.db-wal");
    let resize = |bytes: u64| fs::write(&log, vec![0; usize::try_from(bytes).unwrap()]).unwrap();
    let mut checkpoints = Checkpoints::new(&database, &small());
    let lines = || (WARNINGS.load(Ordering::Relaxed), OTHERS.load(Ordering::Relaxed));
    let _lines = tracing::subscriber::set_default(Lines);
    resize(LIMIT_BYTES);
    (0..5).for_each(|_| checkpoints.written());
    assert_eq!(lines(), (0, 0), "it may be this large");
    resize(LIMIT_BYTES + 1);
    checkpoints.written();
    assert_eq!(lines(), (0, 0), "the next commit may cut it");
    (0..5).for_each(|_| checkpoints.written());
    assert_eq!(lines(), (1, 0));
    tokio::time::advance(Duration::from_secs(10)).await;
    (0..5).for_each(|_| checkpoints.tried(false));
    assert_eq!(lines(), (2, 0));
    resize(0);
    checkpoints.tried(true);
    checkpoints.written();
    assert_eq!(lines(), (2, 1));
}
