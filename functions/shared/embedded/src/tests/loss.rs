//! Committed transactions that a start does not find (F66).

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{open, options, order, other_program, submit};
use crate::{Engine, Loss, OpenError, Options, check};

const DATABASE: &str = "stepwarden.db";
const LOG: &str = "stepwarden.db-wal";
const RECORD: &str = "stepwarden.transactions";
/// Bytes of a page in the log, with its header.
const FRAME_BYTES: usize = 4_096 + 24;

/// The directory as a `kill -9` at this moment leaves it.
fn killed(directory: &Path) -> TempDir {
    let left = tempfile::tempdir().unwrap();
    for file in [DATABASE, LOG, RECORD] {
        fs::copy(directory.join(file), left.path().join(file)).unwrap();
    }
    left
}

/// A directory with ten orders in its log, after a `kill -9`.
async fn ten_in_the_log() -> TempDir {
    let running = tempfile::tempdir().unwrap();
    let engine = open(running.path());
    submit(&engine, 0..10).await;
    killed(running.path())
}

fn refusal(directory: &Path) -> Loss {
    let files = || [DATABASE, LOG].map(|file| fs::read(directory.join(file)).ok());
    let before = files();
    let refused = match Engine::open(directory, options()) {
        Err(OpenError::Lost { loss, .. }) => loss,
        other => panic!("{other:?}"),
    };
    let is_same =
        |(before, after): (Option<Vec<u8>>, Option<Vec<u8>>)| before.unwrap_or_default() == after.unwrap_or_default();
    assert!(before.into_iter().zip(files()).all(is_same), "whoever examines it finds what there was");
    assert_eq!(check(directory).unwrap().loss, Some(refused), "the check says the same");
    refused
}

fn go_on(directory: &Path) -> Engine {
    Engine::open(directory, Options { accept_loss: true, ..options() }).unwrap()
}

#[tokio::test]
async fn f66_a_log_that_is_gone_is_told_with_the_number_of_transactions_and_the_start_refused_until_it_is_accepted() {
    let left = ten_in_the_log().await;
    fs::remove_file(left.path().join(LOG)).unwrap();
    assert_eq!(refusal(left.path()), Loss { count: 0, number: 10 });
    let text = Engine::open(left.path(), options()).unwrap_err().to_string();
    assert!(text.contains("10 committed transactions are missing") && text.contains("--accept-loss"), "{text}");
    drop(go_on(left.path()));
    let engine = open(left.path());
    assert_eq!(engine.recover().await.unwrap().submissions, 0);
}

#[tokio::test]
async fn f66_a_log_that_is_cut_or_damaged_in_the_middle_is_told_and_what_is_before_is_kept() {
    let whole = ten_in_the_log().await;
    let log = fs::read(whole.path().join(LOG)).unwrap();
    let middle = log.len() / 2 / FRAME_BYTES * FRAME_BYTES;
    let mut flipped = log.clone();
    flipped[middle] ^= 1;
    for damaged in [log[..middle].to_vec(), flipped] {
        let left = killed(whole.path());
        fs::write(left.path().join(LOG), damaged).unwrap();
        let Loss { count, number } = refusal(left.path());
        assert!((1..10).contains(&count) && number == 10, "{count} of {number}");
        let kept = go_on(left.path()).recover().await.unwrap().submissions;
        assert_eq!(u64::try_from(kept).unwrap(), count, "each transaction accepted an order");
    }
}

#[tokio::test]
async fn f66_a_database_that_is_gone_or_an_older_copy_is_told() {
    let running = tempfile::tempdir().unwrap();
    let engine = open(running.path());
    submit(&engine, 0..3).await;
    let older = killed(running.path());
    submit(&engine, 3..5).await;
    engine.close().await.unwrap();
    for file in [DATABASE, LOG] {
        fs::copy(older.path().join(file), running.path().join(file)).unwrap();
    }
    assert_eq!(refusal(running.path()), Loss { count: 3, number: 5 });
    fs::remove_file(running.path().join(DATABASE)).unwrap();
    assert!(matches!(
        Engine::open(running.path(), options()),
        Err(OpenError::Lost { loss: Loss { count: 0, number: 5 }, .. })
    ));
}

#[tokio::test]
async fn f66_the_number_is_kept_at_its_name_also_after_its_file_was_removed_or_replaced() {
    let running = tempfile::tempdir().unwrap();
    let engine = open(running.path());
    submit(&engine, 0..3).await;
    fs::remove_file(running.path().join(RECORD)).unwrap();
    submit(&engine, 3..5).await;
    let other = running.path().join("other");
    fs::write(&other, "1").unwrap();
    fs::rename(&other, running.path().join(RECORD)).unwrap();
    submit(&engine, 5..7).await;
    let left = killed(running.path());
    fs::remove_file(left.path().join(LOG)).unwrap();
    assert_eq!(refusal(left.path()), Loss { count: 0, number: 7 });
}

#[tokio::test]
async fn a_start_waits_for_whoever_reads_the_log_of_a_killed_process_and_says_so() {
    let left = ten_in_the_log().await;
    let reader = other_program(left.path());
    reader.execute_batch("BEGIN; SELECT count(*) FROM orders").unwrap();
    let refused = Engine::open(left.path(), Options { busy_ms: 50, ..options() }).unwrap_err().to_string();
    assert!(refused.contains("another program reads its write-ahead log: end it"), "{refused}");
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(open(left.path()).recover().await.unwrap().submissions, 10);
}

#[tokio::test]
async fn f66_no_kill_is_taken_for_a_loss() {
    let running = tempfile::tempdir().unwrap();
    let engine = open(running.path());
    let mut records = vec![fs::read(running.path().join(RECORD)).unwrap()];
    for n in 0..5 {
        let order = order(n);
        submit(&engine, n..n + 1).await;
        let left = killed(running.path());
        records.push(fs::read(left.path().join(RECORD)).unwrap());
        // The record of any earlier moment, as after a power failure, and none, as in a copy of the database alone.
        for record in records.iter().map(Some).chain([None]) {
            let left = killed(running.path());
            match record {
                Some(record) => fs::write(left.path().join(RECORD), record).unwrap(),
                None => fs::remove_file(left.path().join(RECORD)).unwrap(),
            }
            assert_eq!(check(left.path()).unwrap().loss, None);
            let engine = open(left.path());
            assert_eq!(
                u64::try_from(engine.recover().await.unwrap().submissions).unwrap(),
                n + 1,
                "{}",
                order.order_id
            );
        }
    }
    engine.close().await.unwrap();
    drop(open(running.path()));
    for torn in ["", "0000", "00000000000000000099 00000000000000000005 log\n"] {
        fs::write(running.path().join(RECORD), torn).unwrap();
        drop(open(running.path()));
    }
}
