//! The one-machine engine's guarantees beyond the orders: commands, dead letters, memos, jobs and reply channels. The
//! tests cover restarts and disk failures.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use domain::bulk::Job;
use domain::lease::{Lease, acquired};
use domain::message::{Priority, SchedulerMessage, decode};
use domain::order::Order;
use domain::ports::{
    Commit, DeadLetter, DeadLetterRecord, Events, HasEvents, HasQueues, HasRecords, HasStore, Memo, PortErrorKind,
    Queues, Records, Seen, Source, SourceQueue, Store,
};
use embedded::{Channel, Engine, Options, QueueOptions, Recovered};
use futures_util::FutureExt;
use futures_util::future::join_all;
use rusqlite::Connection;
use tempfile::TempDir;
use tests::conformance::samples::{
    NOON, command, dead_letter, event, is_empty, job, memo, order, receipts, request, stored, task, wake,
};

/// Lazy writes join others, or are written at the end: a slow machine makes no difference.
const PATIENT: u64 = 60_000;
const ONCE: QueueOptions = QueueOptions { receives_max: 1, visibility_ms: 1_000 };

fn options() -> Options {
    Options { lazy_ms: PATIENT, busy_ms: 50, ..Options::default() }
}

/// Every message becomes a dead letter after one delivery.
fn deadly() -> Options {
    Options { submissions: ONCE, scheduler: ONCE, requests: ONCE, dead_letter_visibility_ms: 1_000, ..options() }
}

fn open(directory: &TempDir, options: Options) -> Engine {
    Engine::open(directory.path(), options).unwrap()
}

async fn reopened(directory: &TempDir, options: Options) -> (Engine, Recovered) {
    let engine = open(directory, options);
    let recovered = engine.recover().await.unwrap();
    (engine, recovered)
}

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Another program that reads the file, or locks it.
fn other_program(directory: &TempDir) -> Connection {
    Connection::open(directory.path().join("stepwarden.db")).unwrap()
}

fn count(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "the engine's queues are on the clock of the runtime")]
async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Receives every message once, and receives again when the messages are dead.
async fn let_die<M>(source: &impl Source<M>) {
    assert!(!source.receive(10).await.is_empty());
    pass(ONCE.visibility_ms).await;
    assert!(is_empty(source));
}

#[tokio::test]
async fn a_command_survives_a_kill_until_it_is_handled() {
    let directory = directory();
    let engine = open(&directory, options());
    engine.queues().to_scheduler(command(1), Priority::High, 0).await.unwrap();
    engine.queues().to_scheduler(command(2), Priority::Normal, 0).await.unwrap();
    engine.queues().to_scheduler(wake(3), Priority::Normal, 0).await.unwrap();
    drop(engine);

    let (engine, recovered) = reopened(&directory, options()).await;
    assert_eq!(recovered, Recovered { commands: 2, ..Recovered::default() });
    let first = engine.scheduler().receive(10).await;
    assert_eq!((first.len(), &first[0].body), (1, &Ok(command(1))), "the high lane goes first");
    assert!(first[0].is_redelivery());
    engine.scheduler().delete(receipts(&first)).await.unwrap();
    drop(engine);

    let (engine, recovered) = reopened(&directory, options()).await;
    assert_eq!(recovered.commands, 1);
    // The ids of messages continue after those on disk.
    engine.queues().to_scheduler(wake(4), Priority::Normal, 0).await.unwrap();
    engine.queues().to_scheduler(command(5), Priority::Normal, 0).await.unwrap();
    let rest = engine.scheduler().receive(10).await;
    let bodies: Vec<_> = rest.iter().map(|delivery| delivery.body.clone().unwrap()).collect();
    assert_eq!(bodies, [command(2), wake(4), command(5)]);
    engine.scheduler().delete(receipts(&rest)).await.unwrap();
    drop(engine);
    assert_eq!(reopened(&directory, options()).await.1, Recovered::default());
}

#[tokio::test]
async fn a_command_that_waits_goes_on_waiting_after_a_restart() {
    let directory = directory();
    let engine = open(&directory, options());
    engine.queues().to_scheduler(command(1), Priority::Normal, 600_000).await.unwrap();
    drop(engine);
    let (engine, recovered) = reopened(&directory, options()).await;
    assert_eq!(recovered.commands, 1);
    assert!(is_empty(&engine.scheduler()));
    tokio::time::pause();
    assert_eq!(engine.scheduler().receive(10).await[0].body, Ok(command(1)));
}

#[tokio::test]
async fn a_command_is_not_delivered_before_it_is_durable() {
    let directory = directory();
    let engine = open(&directory, Options { busy_ms: 60_000, ..options() });
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut sent = Box::pin(engine.queues().to_scheduler(command(1), Priority::Normal, 0));
    assert!((&mut sent).now_or_never().is_none());
    assert!(is_empty(&engine.scheduler()));
    other.execute_batch("COMMIT").unwrap();
    sent.await.unwrap();
    assert_eq!(engine.scheduler().receive(10).await[0].body, Ok(command(1)));
}

#[tokio::test]
async fn a_command_that_could_not_be_written_is_refused_and_one_whose_deletion_is_lost_comes_again() {
    let directory = directory();
    let engine = open(&directory, options());
    engine.queues().to_scheduler(command(1), Priority::Normal, 0).await.unwrap();
    let handled = engine.scheduler().receive(10).await;
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    engine.scheduler().delete(receipts(&handled)).await.unwrap();
    let refused = engine.queues().to_scheduler(command(2), Priority::Normal, 0).await.unwrap_err();
    other.execute_batch("COMMIT").unwrap();
    assert_eq!((refused.operation, refused.kind), ("queues.to_scheduler", PortErrorKind::Unavailable));
    let again = engine.scheduler().receive(10).await;
    assert_eq!((again.len(), &again[0].body, again[0].receive_count), (1, &Ok(command(1)), 2));
    engine.scheduler().delete(receipts(&again)).await.unwrap();
    engine.close().await.unwrap();
    assert_eq!(count(&other, "SELECT count(*) FROM commands"), 0);
}

/// The dead letters, by the names of their queues. They stay in their queue.
async fn dead_letters(engine: &Engine) -> Vec<DeadLetter> {
    // Their writes are queued before this one.
    engine.events().publish(event(9)).await.unwrap();
    let deliveries = engine.dead_letters().receive(10).await;
    let mut dead_letters: Vec<_> = deliveries.into_iter().map(|delivery| delivery.body.unwrap()).collect();
    dead_letters.sort_by_key(|dead_letter| format!("{:?}", dead_letter.queue));
    dead_letters
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_delivered_again_after_a_restart_until_they_are_deleted() {
    let directory = directory();
    let engine = open(&directory, deadly());
    engine.queues().submit(order(1), 0).await.unwrap();
    engine.queues().to_scheduler(command(2), Priority::Normal, 0).await.unwrap();
    engine.queues().to_agent("payment", request(3)).await.unwrap();
    let_die(&engine.submissions()).await;
    let_die(&engine.scheduler()).await;
    let_die(&engine.requests("payment")).await;
    let before = dead_letters(&engine).await;
    let queues: Vec<_> = before.iter().map(|dead_letter| dead_letter.queue.clone()).collect();
    assert_eq!(queues, [SourceQueue::Agent("payment".into()), SourceQueue::Scheduler, SourceQueue::Submission]);
    assert_eq!(decode::<Order>(before[2].body.as_bytes()), Ok(order(1)));
    assert_eq!(decode::<SchedulerMessage>(before[1].body.as_bytes()), Ok(command(2)));
    assert_eq!(engine.stats().dead_letters, 3);
    drop(engine);

    let (engine, recovered) = reopened(&directory, deadly()).await;
    assert_eq!(recovered, Recovered { dead_letters: 3, ..Recovered::default() });
    let again = engine.dead_letters().receive(10).await;
    let mut dead_letters: Vec<_> = again.iter().map(|delivery| delivery.body.clone().unwrap()).collect();
    dead_letters.sort_by_key(|dead_letter| format!("{:?}", dead_letter.queue));
    assert_eq!(dead_letters, before, "the same in every respect");
    engine.dead_letters().delete(receipts(&again)).await.unwrap();
    let other = other_program(&directory);
    assert_eq!(count(&other, "SELECT count(*) FROM dead_letters"), 0, "deleted when the answer came");
    assert_eq!((engine.stats().dead_letters, count(&other, "SELECT count(*) FROM commands")), (0, 0));
    drop(engine);
    assert_eq!(reopened(&directory, deadly()).await.1, Recovered::default());
}

#[tokio::test]
async fn a_message_whose_way_to_the_dead_letters_fails_is_not_lost() {
    let directory = directory();
    let quick = QueueOptions { visibility_ms: 0, ..ONCE };
    let engine = open(&directory, Options { requests: quick, ..deadly() });
    engine.queues().to_agent("payment", request(1)).await.unwrap();
    let payment = engine.requests("payment");
    assert_eq!(payment.receive(10).await.len(), 1);
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(is_empty(&payment));
    // The write is queued behind the burial, and fails with it.
    engine.events().publish(event(1)).await.unwrap_err();
    other.execute_batch("COMMIT").unwrap();
    assert_eq!((engine.stats().requests, engine.stats().dead_letters), (1, 0));
    // The message comes back after a delay, and the next receive finds it dead again.
    let source = engine.dead_letters();
    let dead_letters = tokio::select! {
        _ = payment.receive(10) => panic!("it was delivered once too often"),
        dead_letters = source.receive(10) => dead_letters,
    };
    let dead_letters: Vec<_> = dead_letters.into_iter().map(|delivery| delivery.body.unwrap()).collect();
    assert_eq!(dead_letters[0].queue, SourceQueue::Agent("payment".into()));
    assert_eq!(engine.stats().requests, 0);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_nobody_can_read_is_a_dead_letter_with_its_body() {
    let directory = directory();
    drop(open(&directory, deadly()));
    let row = r#"INSERT INTO commands VALUES (7, 'high', 0, '{"Command":{"Of":"tomorrow"}}')"#;
    other_program(&directory).execute_batch(row).unwrap();
    let (engine, recovered) = reopened(&directory, deadly()).await;
    assert_eq!(recovered.commands, 1);
    assert!(is_empty(&engine.scheduler()), "it counts as delivered before the restart");
    let dead_letters = dead_letters(&engine).await;
    assert_eq!(
        (&*dead_letters[0].body, &dead_letters[0].queue),
        (r#"{"Command":{"Of":"tomorrow"}}"#, &SourceQueue::Scheduler)
    );
}

#[tokio::test]
async fn memos_jobs_and_records_of_dead_letters_survive_a_restart_and_leases_do_not() {
    let directory = directory();
    let engine = open(&directory, options());
    engine.records().put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap();
    engine.records().put(Seen::version(0, NOON), &job("j", 5)).await.unwrap();
    engine.records().put(Seen::nothing(NOON), &dead_letter(1, 9)).await.unwrap();
    let lease = acquired(None, "supervisor/00", "supervisor-1", NOON, 10_000).unwrap();
    engine.records().put(Seen::nothing(NOON), &lease).await.unwrap();
    drop(engine);
    let engine = open(&directory, options());
    assert_eq!(engine.records().get::<Memo>("k").await.unwrap(), Some(memo("k", 1)));
    assert_eq!(engine.records().put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap(), Commit::Conflict);
    assert_eq!(engine.records().list::<Job>(usize::MAX).await.unwrap(), [job("j", 5)]);
    assert_eq!(engine.records().put(Seen::version(0, NOON), &job("j", 5)).await.unwrap(), Commit::Conflict);
    assert_eq!(engine.records().list::<DeadLetterRecord>(10).await.unwrap(), [dead_letter(1, 9)]);
    assert_eq!(engine.records().get::<Lease>("supervisor/00").await.unwrap(), None, "its holder is gone");
}

#[tokio::test]
async fn a_job_is_not_shown_before_it_is_durable_nor_after_it_was_lost() {
    let directory = directory();
    // This leaves a slow machine enough time to ask during the write's wait.
    let engine = open(&directory, Options { busy_ms: 1_000, ..options() });
    let first = job("j", 0);
    engine.records().put(Seen::version(0, NOON), &first).await.unwrap();
    let second = first.start("somebody", "looks right", NOON).unwrap();
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut lost = Box::pin(engine.records().put(Seen::version(1, NOON), &second));
    assert!((&mut lost).now_or_never().is_none());
    assert_eq!(engine.records().get::<Job>("j").await.unwrap(), Some(first.clone()));
    assert_eq!(lost.await.unwrap_err().kind, PortErrorKind::Unavailable);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(engine.records().list::<Job>(usize::MAX).await.unwrap(), [first]);
    assert_eq!(engine.records().put(Seen::version(1, NOON), &second).await.unwrap(), Commit::Committed);
    assert_eq!(engine.records().get::<Job>("j").await.unwrap(), Some(second));
}

#[tokio::test]
async fn a_memo_that_could_not_be_written_is_not_there() {
    let directory = directory();
    let engine = open(&directory, options());
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(
        engine.records().put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap_err().kind,
        PortErrorKind::Unavailable
    );
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(engine.records().get::<Memo>("k").await.unwrap(), None);
    assert_eq!(engine.records().put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap(), Commit::Committed);
}

#[tokio::test]
async fn expired_memos_go_as_others_come() {
    let directory = directory();
    let engine = open(&directory, options());
    let names: Vec<String> = (0..200).map(|n| format!("old-{n}")).collect();
    let answers =
        join_all(names.iter().map(async |name| engine.records().put(Seen::version(0, NOON), &memo(name, 1)).await))
            .await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Commit::Committed))));
    let other = other_program(&directory);
    assert_eq!(count(&other, "SELECT count(*) FROM memos"), 200);
    let later = memo("old-0", 1).expires_at;
    for n in 0..60 {
        let new = Memo { expires_at: later.plus_ms(60_000), ..memo(&format!("new-{n}"), 1) };
        assert_eq!(engine.records().put(Seen::version(0, later), &new).await.unwrap(), Commit::Committed);
    }
    assert_eq!(count(&other, "SELECT count(*) FROM memos"), 60);
}

#[tokio::test]
async fn writes_of_memos_share_a_transaction() {
    let directory = directory();
    let engine = open(&directory, Options { busy_ms: 60_000, ..options() });
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let names: Vec<String> = (0..50).map(|n| format!("k{n}")).collect();
    let mut all = Box::pin(join_all(
        names.iter().map(async |name| engine.records().put(Seen::version(0, NOON), &memo(name, 1)).await),
    ));
    assert!((&mut all).now_or_never().is_none());
    other.execute_batch("COMMIT").unwrap();
    all.await;
    assert!(engine.stats().transactions <= 2, "{:?}", engine.stats());
}

#[tokio::test]
async fn an_order_keeps_its_priority_and_is_woken_in_it_after_a_restart() {
    let directory = directory();
    let engine = open(&directory, options());
    let urgent = Order { priority: Some(Priority::High), ..order(2) };
    stored(engine.store(), 1).await;
    engine.store().insert(urgent.clone().into(), task(&urgent).into()).await.unwrap();
    engine.queues().submit(order(3), 0).await.unwrap();
    engine.queues().submit(Order { priority: Some(Priority::High), ..order(4) }, 0).await.unwrap();
    drop(engine);
    let (engine, _) = reopened(&directory, options()).await;
    assert_eq!(*engine.store().order(urgent.order_id).await.unwrap().unwrap(), urgent);
    let first = engine.scheduler().receive(10).await;
    assert_eq!((first.len(), &first[0].body), (1, &Ok(wake(2))));
    let first = engine.submissions().receive(10).await;
    assert_eq!((first.len(), first[0].body.as_ref().unwrap().order_id), (1, order(4).order_id));
}

fn with_channel(channel: Channel) -> Options {
    Options { channels: BTreeMap::from([("shop".into(), channel)]), ..options() }
}

#[tokio::test]
async fn an_event_that_a_channel_did_not_take_can_be_sent_again() {
    let directory = directory();
    let channel: Channel = Arc::new(|_| Box::pin(async { Err("the shop is closed".into()) }));
    let failed = open(&directory, with_channel(channel)).events().notify("shop", event(1)).await.unwrap_err();
    assert_eq!((failed.operation, failed.kind), ("events.notify", PortErrorKind::Unavailable));
    assert_eq!(failed.source.unwrap().to_string(), "the shop is closed");
}

#[tokio::test(start_paused = true)]
async fn a_channel_that_never_answers_holds_nobody_up() {
    let directory = directory();
    let channel: Channel = Arc::new(|_| Box::pin(pending()));
    let failed = open(&directory, with_channel(channel)).events().notify("shop", event(1)).await.unwrap_err();
    assert_eq!(failed.kind, PortErrorKind::Unavailable);
}
