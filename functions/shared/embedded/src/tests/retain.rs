//! Orders that expire (rule 44): nothing of them stays, and the file grows no more.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::index::Term;
use domain::ports::{Commit, HasStore, Inserted, Store};
use domain::tally::Grain;
use domain::task::ProcessState;

use super::*;
use crate::audit::audit;

const DAY_MS: i64 = 86_400_000;
const KEPT_MS: u64 = 86_400_000;

/// Inserts an order that ends at once, and expires a day later.
async fn ended(engine: &Engine, n: u64, now: Timestamp) {
    let order = Order { terms: vec![Term::correlation(&format!("cart-{n}"))], ..order(n) };
    let first = task(&order, 1);
    assert_eq!(engine.store().insert(order.into(), first.clone().into()).await.unwrap(), Inserted::New);
    let mut last = first.clone();
    (last.version, last.nonce, last.process_state) = (2, 7, ProcessState::Processed);
    last.expires_at = Some(now.plus_ms(KEPT_MS));
    assert_eq!(engine.store().commit(&first, last.into()).await.unwrap(), Commit::Committed);
}

#[tokio::test]
async fn rule_44_nothing_of_an_expired_order_stays_but_what_happened() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let now = Timestamp::from_epoch_ms(DAY_MS);
    for n in 0..3 {
        ended(&engine, n, now).await;
    }
    // A version without terms stored this one.
    let file = other_program(directory.path());
    let without = "UPDATE orders SET terms = NULL FROM tasks WHERE tasks.seq = orders.seq AND order_id = ?1";
    file.execute(without, [order(1).order_id.to_string()]).unwrap();
    assert_eq!(engine.store().forget_expired(now.plus_ms(KEPT_MS), 2).await.unwrap(), 2);
    assert_eq!(engine.store().forget_expired(now.plus_ms(KEPT_MS), 2).await.unwrap(), 1);
    for table in ["orders", "tasks", "terms"] {
        assert_eq!(count(&file, &format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    let numbers = engine.store().numbers(Grain::Hour, Timestamp::from_epoch_ms(0)).await.unwrap().unwrap();
    assert_eq!(numbers.total.orders().processed, 3);
    assert_eq!(numbers.states.unwrap().of(ProcessState::Processed), 0);
    let told = audit(directory.path(), None).unwrap().map(|entry| entry.unwrap().body.unwrap());
    assert_eq!(
        told.filter(|body| body.contains("\"LastVersion\":2,\"ExpiredAt\":\"")).count(),
        3,
        "each deletion is an entry"
    );
    ended(&engine, 0, now).await;
    assert_eq!(engine.store().task(order(0).order_id).await.unwrap().unwrap().version, 2, "its id is free");
}

#[tokio::test]
async fn rule_44_a_clock_that_has_just_jumped_ahead_deletes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(directory.path(), Options { clock_rest_ms: 600_000, ..options() }).unwrap();
    let now = Timestamp::from_epoch_ms(DAY_MS);
    ended(&engine, 0, now).await;
    let years = now.plus_ms(1 << 40);
    for (at, deleted) in [(now, 0), (years, 0), (years.plus_ms(599_999), 0), (years.plus_ms(600_000), 1)] {
        assert_eq!(engine.store().forget_expired(at, 16).await.unwrap(), deleted, "{at}");
    }
}

#[tokio::test]
async fn rule_44_a_file_that_loses_as_many_orders_as_it_gains_does_not_grow() {
    const ORDERS_A_DAY: u64 = 200;
    let directory = tempfile::tempdir().unwrap();
    let ms = Arc::new(AtomicI64::new(0));
    let clock = ms.clone();
    let now = Arc::new(move || Timestamp::from_epoch_ms(clock.load(Ordering::Relaxed)));
    let options = Options { now: Some(now), audit_kept_ms: Some(KEPT_MS), checkpoint_idle_ms: 1, ..options() };
    let engine = Engine::open(directory.path(), options).unwrap();
    let mut sizes = Vec::new();
    for day in 0..10 {
        for n in 0..ORDERS_A_DAY {
            let at = day * DAY_MS + i64::try_from(n).unwrap() * DAY_MS / i64::try_from(ORDERS_A_DAY).unwrap();
            ms.store(at, Ordering::Relaxed);
            let at = Timestamp::from_epoch_ms(at);
            ended(&engine, u64::try_from(day).unwrap() * ORDERS_A_DAY + n, at).await;
            engine.store().forget_expired(at, 16).await.unwrap();
        }
        let pages = other_program(directory.path());
        sizes.push(count(&pages, "PRAGMA page_count"));
    }
    engine.close().await.unwrap();
    assert!(2 * sizes[9] <= 3 * sizes[0], "at most 1.5 times one day: {sizes:?}");
    assert!(fs::metadata(directory.path().join("stepwarden.db")).unwrap().len() > 0);
}
