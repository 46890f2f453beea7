//! The numbers of rule 26: exact after each transaction, a failure and a start.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::ports::{Commit, HasStore, Inserted, Store};
use domain::tally::{Grain, MINUTES_KEPT, Numbers};
use domain::task::ProcessState;

use super::*;

const BEGUN: i64 = 1_795_176_000_000;
const MINUTE: i64 = 60_000;

/// An engine with a clock of its own.
struct Counting {
    engine: Engine,
    ms: Arc<AtomicI64>,
}

impl Counting {
    fn open(directory: &Path, ms: i64) -> Self {
        let ms = Arc::new(AtomicI64::new(ms));
        let now = ms.clone();
        let now = Arc::new(move || Timestamp::from_epoch_ms(now.load(Ordering::Relaxed)));
        Self { engine: Engine::open(directory, Options { now: Some(now), ..options() }).unwrap(), ms }
    }

    fn pass(&self, ms: i64) {
        self.ms.fetch_add(ms, Ordering::Relaxed);
    }

    async fn insert(&self, n: u64) {
        let order = order(n);
        let task = task(&order, 1);
        assert_eq!(self.engine.store().insert(order.into(), task.into()).await.unwrap(), Inserted::New);
    }

    /// Moves an order to another state.
    async fn moves(&self, n: u64, to: ProcessState) {
        let before = self.engine.store().task(order(n).order_id).await.unwrap().unwrap();
        let mut after = (*before).clone();
        (after.version, after.nonce, after.process_state) = (before.version + 1, before.nonce + 1, to);
        assert_eq!(self.engine.store().commit(&before, Arc::new(after)).await.unwrap(), Commit::Committed);
    }

    async fn numbers(&self, grain: Grain) -> Numbers {
        self.engine.store().numbers(grain, Timestamp::from_epoch_ms(0)).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn orders_that_are_not_settled_are_counted_from_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let counting = Counting::open(directory.path(), BEGUN);
    submit(&counting.engine, 0..1).await;
    assert_eq!(counting.engine.under_way(), 1, "it is accepted, and not stored");
    for n in 1..4 {
        counting.insert(n).await;
    }
    counting.moves(1, ProcessState::Processed).await;
    counting.moves(2, ProcessState::Error).await;
    counting.moves(3, ProcessState::Compensating).await;
    assert_eq!(counting.engine.under_way(), 2);
    counting.engine.close().await.unwrap();
    drop(counting);
    let counting = Counting::open(directory.path(), BEGUN);
    assert_eq!(counting.engine.under_way(), 1, "the message comes with the recovery");
    counting.engine.recover().await.unwrap();
    assert_eq!(counting.engine.under_way(), 2);
}

#[tokio::test]
async fn the_oldest_order_of_each_state_that_orders_leave_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Counting::open(folder.path(), BEGUN);
    let at = |n| Timestamp::from_epoch_ms(BEGUN).plus_ms(n);
    for n in 1..6 {
        let order = Order { submitted_at: at(n), ..order(n) };
        let task = task(&order, 1);
        assert_eq!(counting.engine.store().insert(order.into(), task.into()).await.unwrap(), Inserted::New);
    }
    counting.moves(1, ProcessState::Processed).await;
    for n in [3, 2] {
        counting.moves(n, ProcessState::Error).await;
    }
    let expected = [(ProcessState::Pending, at(4)), (ProcessState::Error, at(2))];
    assert_eq!(counting.numbers(Grain::Minute).await.oldest.unwrap(), expected);
}

/// The minute of each span, with the accepted and the processed orders.
fn spans(numbers: &Numbers) -> Vec<(i64, u64, u64)> {
    let spans = numbers.spans.iter();
    spans
        .map(|span| {
            let orders = span.tally.orders();
            ((span.at.epoch_ms() - BEGUN) / MINUTE, orders.accepted, orders.processed)
        })
        .collect()
}

fn total(numbers: &Numbers) -> (u64, u64) {
    let orders = numbers.total.orders();
    (orders.accepted, orders.processed)
}

#[tokio::test]
async fn each_minute_is_kept_and_the_present_one_outlives_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Counting::open(folder.path(), BEGUN);
    counting.insert(1).await;
    counting.pass(MINUTE);
    counting.insert(2).await;
    counting.moves(1, ProcessState::Processed).await;
    let numbers = counting.numbers(Grain::Minute).await;
    assert_eq!((spans(&numbers), total(&numbers)), (vec![(0, 1, 0), (1, 1, 1)], (2, 1)));
    assert_eq!(
        (numbers.since, numbers.states.unwrap().of(ProcessState::Processed)),
        (Some(Timestamp::from_epoch_ms(BEGUN)), 1)
    );
    drop(counting);
    let counting = Counting::open(folder.path(), BEGUN + MINUTE);
    assert_eq!(counting.numbers(Grain::Minute).await, numbers);
    counting.insert(3).await;
    assert_eq!(spans(&counting.numbers(Grain::Minute).await), [(0, 1, 0), (1, 2, 1)]);
    assert_eq!(spans(&counting.numbers(Grain::Hour).await), [(0, 3, 1)], "hours hold the same");
    // A clock that was set back counts in the minute that it shows.
    counting.pass(-MINUTE);
    counting.insert(4).await;
    assert_eq!(spans(&counting.numbers(Grain::Minute).await), [(0, 2, 0), (1, 2, 1)]);
}

#[tokio::test]
async fn the_newest_spans_are_kept_and_a_clock_that_jumps_drops_none_but_the_oldest() {
    const EARLIER: &str = "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2) \
                           INSERT INTO tallies (span, at, body) SELECT 'minute', ?1 - i * 60000, '{}' FROM n";
    let folder = tempfile::tempdir().unwrap();
    let counting = Counting::open(folder.path(), BEGUN);
    counting.insert(1).await;
    let other = other_program(folder.path());
    other.execute(EARLIER, (BEGUN, MINUTES_KEPT)).unwrap();
    // One that was written by a clock that was years ahead.
    for year in [10, 0] {
        counting.ms.store(BEGUN + MINUTE + year * 365 * 24 * 60 * MINUTE, Ordering::Relaxed);
        counting.insert(100 - u64::try_from(year).unwrap()).await;
    }
    let [minutes, hours] = [counting.numbers(Grain::Minute).await, counting.numbers(Grain::Hour).await];
    assert!(spans(&minutes).contains(&(0, 1, 0)) && spans(&minutes).contains(&(1, 1, 0)));
    assert_eq!(total(&minutes), (3, 0));
    assert_eq!(hours.spans.len(), 2, "{:?}", spans(&hours));
    let stored: u32 =
        other.query_row("SELECT count(*) FROM tallies WHERE span = 'minute'", [], |row| row.get(0)).unwrap();
    assert_eq!(stored, MINUTES_KEPT);
    let first: i64 =
        other.query_row("SELECT min(at) FROM tallies WHERE span = 'minute'", [], |row| row.get(0)).unwrap();
    assert_eq!((BEGUN - first) / MINUTE, i64::from(MINUTES_KEPT) - 2);
}

#[tokio::test]
async fn a_transaction_that_failed_is_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Counting::open(folder.path(), BEGUN);
    counting.insert(1).await;
    let other = other_program(folder.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = order(2);
    let task = task(&refused, 1);
    counting.engine.store().insert(refused.into(), task.into()).await.unwrap_err();
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(total(&counting.numbers(Grain::Minute).await), (1, 0));
    // This one fails after it was counted, since another program took its row.
    other.execute_batch("CREATE TRIGGER no BEFORE INSERT ON orders BEGIN SELECT RAISE(ABORT, 'no'); END").unwrap();
    let refused = order(2);
    let task = super::task(&refused, 1);
    counting.engine.store().insert(refused.into(), task.into()).await.unwrap_err();
    other.execute_batch("DROP TRIGGER no").unwrap();
    counting.insert(3).await;
    let numbers = counting.numbers(Grain::Minute).await;
    assert_eq!((total(&numbers), numbers.states.unwrap().of(ProcessState::Pending)), ((2, 0), 2));
}

#[tokio::test]
async fn a_file_of_before_is_counted_once_and_numbers_that_cannot_be_read_hold_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let counting = Counting::open(folder.path(), BEGUN);
    counting.insert(1).await;
    counting.moves(1, ProcessState::Processed).await;
    drop(counting);
    for (n, stored) in (2..).zip(["NULL", "'rubbish'", "x'ff'", "CAST(x'ff' AS TEXT)"]) {
        let other = other_program(folder.path());
        let sql = format!(
            "UPDATE transactions SET minute = {stored}, tally = {stored}, states = {stored};
             UPDATE tallies SET body = {stored} WHERE {stored} IS NOT NULL"
        );
        other.execute_batch(&sql).unwrap();
        drop(other);
        let counting = Counting::open(folder.path(), BEGUN);
        assert_eq!(counting.numbers(Grain::Minute).await.states.unwrap().of(ProcessState::Processed), 1, "{stored}");
        counting.insert(2 * n).await;
        let numbers = counting.numbers(Grain::Minute).await;
        assert_eq!(total(&numbers), (1, 0), "{stored}");
        // The next minute adds to what cannot be read.
        counting.pass(MINUTE);
        counting.insert(2 * n + 1).await;
        assert_eq!(total(&counting.numbers(Grain::Minute).await), (2, 0), "{stored}");
    }
}
