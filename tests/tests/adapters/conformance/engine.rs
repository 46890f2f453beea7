//! The one-machine engine's guarantees beyond the ports: the content of the disk, recovery, and its behaviour at disk
//! failures.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::limits::SHARDS;
use domain::message::{Delivery, Priority, Receipt, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    Commit, Environment, Events, HasEnvironment, HasEvents, HasQueues, HasRecords, HasStore, Inserted, PortErrorKind,
    Queues, Records, Seen, ServiceHealth, Source, Store,
};
use domain::task::{ProcessState, Task, Watch};
use embedded::{Engine, Options, QueueOptions, Recovered};
use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use rusqlite::Connection;
use tempfile::TempDir;
use tests::conformance::samples::{
    committed, event, next, next_in, order, order_with, receipts, request, stored, task, wake,
};

/// Lazy writes join others, or are written at the end: a slow machine makes no difference.
const PATIENT: u64 = 60_000;

fn open(directory: &TempDir) -> Engine {
    Engine::open(directory.path(), options()).unwrap()
}

fn options() -> Options {
    Options { lazy_ms: PATIENT, busy_ms: 50, clock_rest_ms: 0, ..Options::default() }
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

fn bodies<M: Clone>(deliveries: &[Delivery<M>]) -> Vec<M> {
    deliveries.iter().map(|delivery| delivery.body.clone().unwrap()).collect()
}

/// The task that another delivery of the order's message makes.
fn repeated(n: u32) -> Arc<Task> {
    Arc::new(Task { nonce: 2_000, ..task(&order(n)) })
}

/// Receives the one accepted order and inserts it, as the submission function does.
async fn submission(engine: &Engine) -> (Arc<Task>, Vec<Receipt>) {
    let deliveries = engine.submissions().receive(10).await;
    let [accepted]: [Order; 1] = bodies(&deliveries).try_into().unwrap();
    let first = task(&accepted);
    assert_eq!(engine.store().insert(accepted.into(), first.clone().into()).await.unwrap(), Inserted::New);
    (Arc::new(first), receipts(&deliveries))
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_drop_without_close() {
    let directory = directory();
    let engine = open(&directory);
    let first = stored(engine.store(), 1).await;
    let second = committed(engine.store(), &first, next_in(&first, ProcessState::Processing)).await;
    stored(engine.store(), 2).await;
    drop(engine);

    let engine = open(&directory);
    assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), second);
    assert_eq!(*engine.store().order(first.order_id).await.unwrap().unwrap(), order(1));
    assert_eq!(engine.store().insert(order(2).into(), repeated(2)).await.unwrap(), Inserted::Same);
    let other = order_with(2, r#"{"Item":"none"}"#);
    assert_eq!(engine.store().insert(other.clone().into(), task(&other).into()).await.unwrap(), Inserted::Different);
    // One write lost its answer with the process and is tried again. The other was never sent.
    assert_eq!(engine.store().commit(&first, second.clone()).await.unwrap(), Commit::Committed);
    assert_eq!(engine.store().commit(&first, next(&first, |task| task.nonce += 9)).await.unwrap(), Commit::Conflict);
    assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), second);
}

#[tokio::test]
async fn another_program_can_read_the_tasks_while_the_engine_runs() {
    let directory = directory();
    let engine = open(&directory);
    let first = stored(engine.store(), 1).await;
    committed(engine.store(), &first, next_in(&first, ProcessState::Processing)).await;
    let sql = "SELECT process_state || ' ' || json_extract(body, '$.ProcessState') || ' ' || version FROM tasks";
    let seen: String = other_program(&directory).query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(seen, "Processing Processing 2");
}

#[tokio::test]
async fn recovery_wakes_what_is_under_way_and_delivers_what_was_accepted() {
    let directory = directory();
    let engine = open(&directory);
    let (mut under_way, mut others) = (Vec::new(), Vec::new());
    for n in 0..5 {
        under_way.push(stored(engine.store(), n).await.order_id);
    }
    for n in 5..8 {
        others.push(stored(engine.store(), n).await);
    }
    committed(engine.store(), &others[0], next_in(&others[0], ProcessState::Processed)).await;
    let operators = Some(Watch::Error(others[1].order_id.shard(SHARDS)));
    committed(engine.store(), &others[1], next(&others[1], |task| task.watch = operators)).await;
    committed(engine.store(), &others[2], next_in(&others[2], ProcessState::Compensated)).await;
    engine.queues().submit(order(9), 0).await.unwrap();
    engine.close().await.unwrap();
    drop(engine);

    let engine = open(&directory);
    assert_eq!(engine.stats().scheduler, 0);
    assert_eq!(engine.recover().await.unwrap(), Recovered { submissions: 1, wakes: 5, ..Recovered::default() });
    let wakes = engine.scheduler().receive(100).await;
    assert!(wakes.iter().all(Delivery::is_redelivery));
    assert!(bodies(&wakes).iter().all(|message| matches!(message, SchedulerMessage::Wake(wake) if wake.hops == 0)));
    let mut woken: Vec<_> = bodies(&wakes).iter().map(SchedulerMessage::order_id).collect();
    woken.sort();
    under_way.sort();
    assert_eq!(woken, under_way);
    let accepted = engine.submissions().receive(10).await;
    assert!(accepted[0].is_redelivery());
    assert_eq!(bodies(&accepted), [order(9)]);
}

#[tokio::test]
async fn a_submission_is_on_disk_until_it_is_deleted() {
    let directory = directory();
    let engine = open(&directory);
    engine.queues().submit(order(1), 0).await.unwrap();
    let (first, _) = submission(&engine).await;
    drop(engine);

    // The insert is on disk, and the message is delivered again.
    let engine = open(&directory);
    assert_eq!(engine.recover().await.unwrap(), Recovered { submissions: 1, wakes: 1, ..Recovered::default() });
    assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), first);
    let again = engine.submissions().receive(10).await;
    assert_eq!(engine.store().insert(order(1).into(), repeated(1)).await.unwrap(), Inserted::Same);
    engine.submissions().delete(receipts(&again)).await.unwrap();
    drop(engine);

    let engine = open(&directory);
    assert_eq!(engine.recover().await.unwrap(), Recovered { submissions: 0, wakes: 1, ..Recovered::default() });
}

#[tokio::test]
async fn an_order_of_three_steps_costs_four_syncs_and_one_more_if_it_waited_on_the_queue() {
    for waits in [false, true] {
        let directory = directory();
        let engine = open(&directory);
        let (mut last, receipts) = if waits {
            engine.queues().submit(order(1), 0).await.unwrap();
            submission(&engine).await
        } else {
            (stored(engine.store(), 1).await, Vec::new())
        };
        engine.submissions().delete(receipts).await.unwrap();
        // Two results with the next claim, and the end.
        for state in [ProcessState::Processing, ProcessState::Processing, ProcessState::Processed] {
            let before = engine.store().task(last.order_id).await.unwrap().unwrap();
            assert_eq!(before, last);
            last = committed(engine.store(), &before, next_in(&before, state)).await;
        }
        let (stats, expected) = (engine.stats(), 4 + u64::from(waits));
        assert_eq!((stats.transactions, stats.failures), (expected, 0));
        assert_eq!((stats.live, stats.submissions, stats.waiting), (0, 0, 0));
        engine.close().await.unwrap();
        assert_eq!(engine.stats().transactions, expected, "nothing was left to write at the end");
    }
}

#[tokio::test]
async fn commits_that_arrive_together_share_a_transaction() {
    const ORDERS: u32 = 64;
    let directory = directory();
    let engine = Engine::open(directory.path(), Options { busy_ms: 60_000, ..options() }).unwrap();
    let mut tasks = Vec::new();
    for n in 0..ORDERS {
        tasks.push(stored(engine.store(), n).await);
    }
    let before = engine.stats();
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let commits = tasks.into_iter().map(|first| {
        let engine = engine.clone();
        tokio::spawn(
            async move { engine.store().commit(&first, next_in(&first, ProcessState::Processing)).await.unwrap() },
        )
    });
    let commits: Vec<_> = commits.collect();
    while engine.stats().waiting < ORDERS as usize {
        tokio::task::yield_now().await;
    }
    other.execute_batch("COMMIT").unwrap();
    for commit in commits {
        assert_eq!(commit.await.unwrap(), Commit::Committed);
    }
    // The writes that the writer held at the lock, and all the others.
    let after = engine.stats();
    assert!(after.transactions - before.transactions <= 2, "{before:?} {after:?}");
    assert_eq!(after.writes - before.writes, u64::from(ORDERS));
}

#[tokio::test]
async fn a_state_is_not_shown_before_it_is_durable() {
    let directory = directory();
    let engine = Engine::open(directory.path(), Options { busy_ms: 60_000, ..options() }).unwrap();
    let first = stored(engine.store(), 1).await;
    let second = next_in(&first, ProcessState::Processed);
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut commit = Box::pin(engine.store().commit(&first, second.clone()));
    let mut repeated = Box::pin(engine.store().commit(&first, second.clone()));
    let mut read = Box::pin(engine.store().task(first.order_id));
    let mut settled = Box::pin(engine.store().settled(first.order_id, PATIENT));
    assert!((&mut commit).now_or_never().is_none());
    assert!((&mut repeated).now_or_never().is_none());
    assert!((&mut read).now_or_never().is_none());
    assert!((&mut settled).now_or_never().is_none());
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(commit.await.unwrap(), Commit::Committed);
    assert_eq!(repeated.await.unwrap(), Commit::Committed);
    assert_eq!(read.await.unwrap().unwrap(), second);
    let settled = settled.await.unwrap().unwrap();
    assert_eq!((settled.task, settled.order.map(|order| order.order_id)), (second, Some(first.order_id)));
}

#[tokio::test]
async fn at_a_stop_a_wait_ends_with_the_order_as_it_is() {
    let directory = directory();
    let engine = open(&directory);
    let first = stored(engine.store(), 1).await;
    let mut settled = Box::pin(engine.store().settled(first.order_id, PATIENT));
    assert!((&mut settled).now_or_never().is_none());
    engine.end_waits();
    assert_eq!(settled.await.unwrap().unwrap().task, first);
    assert_eq!(
        engine.store().settled(first.order_id, PATIENT).await.unwrap().unwrap().task,
        first,
        "a later wait ends as well"
    );
}

#[tokio::test]
async fn after_a_failed_transaction_memory_is_what_the_disk_knows() {
    let directory = directory();
    let engine = open(&directory);
    let first = stored(engine.store(), 1).await;
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let lost = next_in(&first, ProcessState::Processing);
    assert_eq!(engine.store().commit(&first, lost.clone()).await.unwrap_err().kind, PortErrorKind::Unavailable);
    assert_eq!(engine.queues().submit(order(2), 0).await.unwrap_err().kind, PortErrorKind::Unavailable);
    other.execute_batch("COMMIT").unwrap();

    assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), first);
    assert_eq!(engine.store().task(order(2).order_id).await.unwrap(), None);
    assert_eq!(engine.store().commit(&first, lost.clone()).await.unwrap(), Commit::Committed);
    assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), lost);
    assert_eq!(engine.stats().failures, 2);
}

#[tokio::test]
async fn what_is_queued_behind_a_failed_transaction_fails_with_it() {
    /// More than the limit of one transaction.
    const EVENTS: u32 = 5_000;
    let directory = directory();
    let engine = Engine::open(directory.path(), Options { busy_ms: 1_000, ..options() }).unwrap();
    let first = stored(engine.store(), 1).await;
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 0..EVENTS {
        assert!(engine.events().publish(event(n)).now_or_never().is_none());
    }
    let lost = engine.store().commit(&first, next_in(&first, ProcessState::Processing)).await;
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(lost.unwrap_err().kind, PortErrorKind::Unavailable);
    // The next write follows all writes that the writer still holds.
    stored(engine.store(), 2).await;
    assert_eq!(count(&other, "SELECT max(version) FROM tasks"), 1);
    assert_eq!(count(&other, "SELECT count(*) FROM events"), 0);
}

#[tokio::test]
async fn of_commits_that_meet_at_the_disk_one_wins() {
    const ORDERS: u32 = 50;
    let directory = directory();
    let engine = open(&directory);
    let mut tasks = Vec::new();
    for n in 0..ORDERS {
        tasks.push(stored(engine.store(), n).await);
    }
    drop(engine);

    let engine = open(&directory);
    for first in tasks {
        let tries: Vec<_> = (1..=4).map(|n| next(&first, |task| task.nonce += n)).collect();
        let answers = join_all(tries.iter().map(|after| engine.store().commit(&first, after.clone()))).await;
        let winners = tries.iter().zip(answers).filter(|(_, answer)| matches!(answer, Ok(Commit::Committed)));
        let [winner]: [&Arc<Task>; 1] = winners.map(|(after, _)| after).collect::<Vec<_>>().try_into().unwrap();
        assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), *winner);
    }
}

#[tokio::test]
async fn an_insert_that_is_lost_is_an_error_and_its_message_comes_again() {
    let directory = directory();
    let engine = open(&directory);
    engine.queues().submit(order(1), 0).await.unwrap();
    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(engine.submissions().receive(10).await.len(), 1);
    let lost = engine.store().insert(order(1).into(), task(&order(1)).into()).await;
    assert_eq!(lost.unwrap_err().kind, PortErrorKind::Unavailable);
    other.execute_batch("COMMIT").unwrap();

    // A reader meanwhile waits for the order and does not miss it.
    let (read, (again, receipts)) = join(engine.store().task(order(1).order_id), submission(&engine)).await;
    assert_eq!(read.unwrap().unwrap(), again);
    engine.submissions().delete(receipts).await.unwrap();
    engine.close().await.unwrap();
    assert_eq!(count(&other, "SELECT count(*) FROM messages"), 0);
    assert_eq!(count(&other, "SELECT version FROM tasks"), 1);
}

#[tokio::test]
async fn who_reads_an_accepted_order_waits_until_it_is_stored() {
    let directory = directory();
    let engine = open(&directory);
    engine.queues().submit(order(1), 0).await.unwrap();
    let order_id = order(1).order_id;
    let reads = join(engine.store().task(order_id), engine.store().order(order_id));
    let ((read_task, read_order), (first, _)) = join(reads, submission(&engine)).await;
    assert_eq!(read_task.unwrap().unwrap(), first);
    assert_eq!(*read_order.unwrap().unwrap(), order(1));
}

#[tokio::test]
async fn who_waits_for_a_submission_that_stores_nothing_finds_nothing() {
    let directory = directory();
    let engine = open(&directory);
    engine.queues().submit(order(1), 0).await.unwrap();
    let deliveries = engine.submissions().receive(10).await;
    let refuse = async {
        engine.submissions().delete(receipts(&deliveries)).await.unwrap();
        stored(engine.store(), 2).await
    };
    let (found, _) = join(engine.store().settled(order(1).order_id, PATIENT), refuse).await;
    assert_eq!(found.unwrap(), None);
}

#[tokio::test]
async fn finished_orders_leave_the_memory() {
    let directory = directory();
    let engine = open(&directory);
    for n in 0..20 {
        let first = stored(engine.store(), n).await;
        let last = committed(engine.store(), &first, next_in(&first, ProcessState::Processed)).await;
        assert_eq!(engine.stats().live, 0);
        assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), last);
        assert_eq!(engine.stats().live, 0, "a read does not bring it back");
    }
}

#[tokio::test]
async fn orders_beyond_the_bound_are_read_from_the_disk_again() {
    let directory = directory();
    let engine = Engine::open(directory.path(), Options { live_max: 8, ..options() }).unwrap();
    let mut tasks = Vec::new();
    for n in 0..40 {
        tasks.push(stored(engine.store(), n).await);
        assert!(engine.stats().live <= 8 + 2, "{:?}", engine.stats());
    }
    for first in &tasks {
        let second = committed(engine.store(), first, next_in(first, ProcessState::Processing)).await;
        assert_eq!(engine.store().task(first.order_id).await.unwrap().unwrap(), second);
        assert_eq!(engine.store().commit(first, next(first, |task| task.nonce += 9)).await.unwrap(), Commit::Conflict);
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_handle_is_a_dead_letter_on_disk() {
    let directory = directory();
    let queue = QueueOptions { receives_max: 2, visibility_ms: 1_000 };
    let options = Options { submissions: queue, scheduler: queue, requests: queue, ..options() };
    let engine = Engine::open(directory.path(), options).unwrap();
    engine.queues().submit(order(1), 0).await.unwrap();
    engine.queues().to_scheduler(wake(2), Priority::Normal, 0).await.unwrap();
    engine.queues().to_agent("payment", request(3)).await.unwrap();
    let (submissions, scheduler, requests) = (engine.submissions(), engine.scheduler(), engine.requests("payment"));
    for _ in 0..queue.receives_max {
        assert_eq!(submissions.receive(10).await.len(), 1);
        assert_eq!(scheduler.receive(10).await.len(), 1);
        assert_eq!(requests.receive(10).await.len(), 1);
    }
    // The next receive finds it dead.
    #[expect(clippy::disallowed_methods, reason = "the engine's queues are on the clock of the runtime")]
    tokio::time::sleep(Duration::from_millis(queue.visibility_ms)).await;
    assert!(submissions.receive(10).now_or_never().is_none());
    assert!(scheduler.receive(10).now_or_never().is_none());
    assert!(requests.receive(10).now_or_never().is_none());
    // Any awaited write takes the others along.
    stored(engine.store(), 4).await;
    let stats = engine.stats();
    assert_eq!((stats.submissions, stats.scheduler, stats.requests, stats.live), (0, 0, 0, 1));
    engine.close().await.unwrap();
    assert_dead_letters(directory.path());
}

fn assert_dead_letters(directory: &Path) {
    let connection = Connection::open(directory.join("stepwarden.db")).unwrap();
    let sql = "SELECT queue, coalesce(body ->> '$.OrderID', body ->> '$.Wake.OrderID'), reason, receive_count \
               FROM dead_letters ORDER BY queue";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    let dead_letters: Vec<(String, String, String, u32)> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    let dead_letter =
        |queue: &str, n| (queue.to_owned(), order(n).order_id.to_string(), "received-too-often".to_owned(), 2);
    assert_eq!(
        dead_letters,
        [dead_letter("agent payment", 3), dead_letter("scheduler", 2), dead_letter("submission", 1)]
    );
    assert_eq!(count(&connection, "SELECT count(*) FROM messages"), 0);
}

#[tokio::test]
async fn a_published_event_is_on_disk_and_then_shown_and_the_oldest_go() {
    let directory = directory();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = shown.clone();
    let observer: embedded::Observer = Arc::new(move |event| seen.lock().unwrap().push(event.clone()));
    let options = Options { events_max: 3, observer: Some(observer), ..options() };
    let engine = Engine::open(directory.path(), options).unwrap();
    for n in 0..5 {
        engine.events().publish(event(n)).await.unwrap();
    }
    assert_eq!(*shown.lock().unwrap(), (0..5).map(event).collect::<Vec<_>>());
    let connection = other_program(&directory);
    let kept: String = connection
        .query_row("SELECT group_concat(event_id, ' ') FROM (SELECT * FROM events ORDER BY seq)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, "event-2 event-3 event-4");
}

#[tokio::test]
async fn an_open_breaker_is_still_open_after_a_restart() {
    let directory = directory();
    let engine = open(&directory);
    let open_breaker = tests::conformance::samples::health("payment", 1);
    assert_eq!(
        engine.records().put(Seen::nothing(engine.environment().now()), &open_breaker).await.unwrap(),
        Commit::Committed
    );
    drop(engine);
    assert_eq!(open(&directory).records().get::<ServiceHealth>("payment").await.unwrap(), Some(open_breaker));
}

#[tokio::test]
async fn the_health_of_a_service_is_read_from_memory_which_is_as_of_the_latest_durable_write() {
    let directory = directory();
    let engine = open(&directory);
    let health = |version| tests::conformance::samples::health("payment", version);
    let put = |seen, version| {
        let (engine, after) = (engine.clone(), health(version));
        async move { engine.records().put(Seen::version(seen, engine.environment().now()), &after).await }
    };
    let known = || async { engine.records().get::<ServiceHealth>("payment").await.unwrap() };

    assert_eq!(put(0, 1).await.unwrap(), Commit::Committed);
    assert_eq!(put(0, 7).await.unwrap(), Commit::Conflict);
    assert_eq!(known().await, Some(health(1)), "a conflict changes nothing");

    let other = other_program(&directory);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(put(1, 2).await.unwrap_err().kind, PortErrorKind::Unavailable);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(known().await, Some(health(1)), "neither does a transaction that fails");

    other.execute("UPDATE services SET body = 'gone'", []).unwrap();
    assert_eq!(known().await, Some(health(1)), "the disk is not asked");
    assert_eq!(put(1, 2).await.unwrap(), Commit::Committed);
    assert_eq!(known().await, Some(health(2)));
}
