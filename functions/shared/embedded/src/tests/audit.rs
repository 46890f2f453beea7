//! The audit stream (rule 43): each change is in it, in order, after failures and starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::audit::{Altered, Verifier};
use domain::backoff::{Backoff, BackoffPolicy};
use domain::callback::CallbackKey;
use domain::definition::Deployment;
use domain::id::CommandId;
use domain::message::{Action, Command, Priority, SchedulerMessage};
use domain::ports::{
    Acceptance, Breaker, Evidence, HasRecords, HasStore, Pace, PortError, Records, Rejections, Seen, ServiceHealth,
    Store,
};
use rusqlite::StatementStatus;
use serde_json::Value;

use super::*;
use crate::audit::{Chain, LOOK, REMOVE, audit};
use crate::records::Kept;
use crate::write::Write;

fn cancel(n: u64, reason: &str) -> SchedulerMessage {
    SchedulerMessage::Command(Command {
        order_id: order(n).order_id,
        action: Action::Cancel,
        by: "ada [desk]".into(),
        reason: reason.into(),
        command_id: CommandId::generate(Timestamp::default(), [0; 2]),
        version: None,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    })
}

/// The deletion of an order after its time.
fn delete(n: u64) -> Write {
    Write::Forget { task: task(&order(n), 1).into() }
}

const DAY_MS: i64 = 86_400_000;

/// An engine that keeps entries for two days, and its clock.
fn kept_for_two_days(directory: &Path) -> (Engine, Arc<AtomicI64>) {
    let ms = Arc::new(AtomicI64::new(0));
    let clock = ms.clone();
    let now = Arc::new(move || Timestamp::from_epoch_ms(clock.load(Ordering::Relaxed)));
    let options = Options { now: Some(now), audit_kept_ms: Some(2 * 86_400_000), ..options() };
    (Engine::open(directory, options).unwrap(), ms)
}

/// What the stream says, if it is as it was written: the number, and the version or the reason.
fn stream(directory: &Path) -> Result<Vec<(i64, String)>, Altered> {
    let mut verifier = Verifier::default();
    let mut found = Vec::new();
    for entry in audit(directory, None).unwrap() {
        let entry = entry.unwrap();
        verifier.next(entry.seq, entry.hash, entry.text())?;
        let body: Value = serde_json::from_str(&entry.body.unwrap()).unwrap();
        found.push((entry.seq, body.get("Version").unwrap_or(&body["Reason"]).to_string()));
    }
    Ok(found)
}

async fn next_version(engine: &Engine, n: u64) -> Result<(), PortError> {
    let before = engine.store().task(order(n).order_id).await.unwrap().unwrap();
    let mut after = (*before).clone();
    (after.version, after.nonce) = (before.version + 1, before.nonce + 1);
    engine.store().commit(&before, after.into()).await.map(|_| ())
}

#[tokio::test]
async fn rule_43_each_version_and_command_is_in_the_stream_once_and_in_order_after_a_failure_and_a_start() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    engine.store().insert(order(0).into(), task(&order(0), 1).into()).await.unwrap();
    engine.queues().to_scheduler(cancel(0, "changed"), Priority::Normal, 0).await.unwrap();
    let other = other_program(directory.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    next_version(&engine, 0).await.unwrap_err();
    other.execute_batch("COMMIT").unwrap();
    next_version(&engine, 0).await.unwrap();
    engine.close().await.unwrap();
    drop(engine);
    let engine = open(directory.path());
    next_version(&engine, 0).await.unwrap();
    let expected = [(1, "1"), (2, "\"changed\""), (3, "2"), (4, "3")].map(|(seq, what)| (seq, what.to_owned()));
    assert_eq!(stream(directory.path()).unwrap(), expected);
    engine.close().await.unwrap();
    other.execute_batch("UPDATE audit SET body = replace(body, 'changed', 'changeD')").unwrap();
    assert_eq!(stream(directory.path()), Err(Altered::Entry(2)));
}

#[tokio::test]
async fn rule_43_entries_are_kept_for_as_long_as_is_said_and_the_rest_is_still_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, ms) = kept_for_two_days(directory.path());
    for day in 0..6 {
        ms.store(day * DAY_MS, Ordering::Relaxed);
        for n in 0..3 {
            let order = order(u64::try_from(day).unwrap() * 3 + n);
            engine.store().insert(order.clone().into(), task(&order, 1).into()).await.unwrap();
        }
    }
    engine.close().await.unwrap();
    let kept = stream(directory.path()).unwrap();
    assert_eq!((kept.first().unwrap().0, kept.last().unwrap().0), (10, 18), "of three days");
    let since = audit(directory.path(), Some(Timestamp::from_epoch_ms(5 * DAY_MS))).unwrap();
    assert_eq!(since.map(|entry| entry.unwrap().seq).collect::<Vec<_>>(), [16, 17, 18]);
    let future = audit(directory.path(), Some(Timestamp::from_epoch_ms(9 * DAY_MS))).unwrap();
    assert_eq!(future.count(), 0);
}

#[tokio::test]
async fn rule_43_a_transaction_looks_only_at_the_entries_that_it_removes() {
    let cost_and_rest = async |backlog: i64| {
        let directory = tempfile::tempdir().unwrap();
        let engine = open(directory.path());
        engine.store().insert(order(0).into(), task(&order(0), 1).into()).await.unwrap();
        engine.close().await.unwrap();
        let file = other_program(directory.path());
        let sql = format!(
            "DELETE FROM audit; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {backlog}) \
             INSERT INTO audit (seq, at, hash, body) SELECT i, 0, zeroblob(32), 'x' FROM n"
        );
        file.execute_batch(&sql).unwrap();
        let mut chain = Chain::load(&file).unwrap();
        let at = Timestamp::from_epoch_ms(1_000);
        chain.add(&file, at, &delete(0), &Kept::load(&file).unwrap(), &[]).unwrap();
        chain.forget(&file, Some(at), at).unwrap();
        let steps = |sql| file.prepare_cached(sql).unwrap().get_status(StatementStatus::VmStep);
        let steps = steps(LOOK) + steps(REMOVE);
        chain.forget(&file, Some(at), at).unwrap();
        (steps, count(&file, "SELECT count(*) FROM audit"))
    };
    let (few, many) = (cost_and_rest(200).await, cost_and_rest(20_000).await);
    assert_eq!((few.1, many.1), (200 + 1 - 66, 20_000 + 1 - 66), "64, and two for the one that was added");
    assert!(few.0 > 66 && many.0 < few.0 + 100, "a hundred times the backlog costs no more: {few:?} {many:?}");
}

#[tokio::test]
async fn rule_43_an_entry_that_stays_keeps_older_ones_after_it_so_there_is_no_gap() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, ms) = kept_for_two_days(directory.path());
    let begins_at = async |n: u64, day: i64| {
        ms.store(day * DAY_MS, Ordering::Relaxed);
        engine.store().insert(order(n).into(), task(&order(n), 1).into()).await.unwrap();
        stream(directory.path()).unwrap().first().unwrap().0
    };
    assert_eq!((begins_at(0, 10).await, begins_at(1, 10).await), (1, 1));
    let slow = format!("UPDATE audit SET at = {} WHERE seq = 2", 7 * DAY_MS);
    other_program(directory.path()).execute_batch(&slow).unwrap();
    assert_eq!((begins_at(2, 11).await, begins_at(3, 13).await), (1, 3));
}

#[tokio::test]
async fn rule_43_entries_of_a_fast_clock_hold_no_others_back_and_go_with_old_ones_after_them() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, ms) = kept_for_two_days(directory.path());
    let begins_at = async |n: u64, day: i64| {
        ms.store(day * DAY_MS, Ordering::Relaxed);
        engine.store().insert(order(n).into(), task(&order(n), 1).into()).await.unwrap();
        stream(directory.path()).unwrap().first().unwrap().0
    };
    for n in 0..101 {
        begins_at(n, 1).await;
    }
    let fast = format!("UPDATE audit SET at = {} WHERE seq > 1", 9_000 * DAY_MS);
    other_program(directory.path()).execute_batch(&fast).unwrap();
    let first = [begins_at(101, 8).await, begins_at(102, 8).await, begins_at(103, 8).await];
    assert_eq!(first, [2, 2, 2], "nothing after them is old");
    let first = [begins_at(104, 11).await, begins_at(105, 11).await];
    assert_eq!(first, [2 + 66, 105], "all of them, and the three of day 8");
}

#[tokio::test]
async fn rule_43_a_clock_that_has_just_jumped_ahead_removes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let ms = Arc::new(AtomicI64::new(0));
    let clock = ms.clone();
    let now = Arc::new(move || Timestamp::from_epoch_ms(clock.load(Ordering::Relaxed)));
    let options = Options { now: Some(now), audit_kept_ms: Some(86_400_000), clock_rest_ms: 600_000, ..options() };
    let engine = Engine::open(directory.path(), options).unwrap();
    let kept = async |n: u64, at: i64| {
        ms.store(at, Ordering::Relaxed);
        engine.store().insert(order(n).into(), task(&order(n), 1).into()).await.unwrap();
        stream(directory.path()).unwrap().len()
    };
    let years = 1 << 40;
    assert_eq!((kept(0, 0).await, kept(1, 600_000).await), (1, 2));
    assert_eq!((kept(2, years).await, kept(3, years + 599_999).await), (3, 4));
    assert!(kept(4, years + 600_000).await < 5, "it has stayed");
    // Nothing is written for a day. The supervisor looks at the clock meanwhile.
    for minutes in (20..=1_500).step_by(10) {
        let at = Timestamp::from_epoch_ms(years + minutes * 60_000);
        assert_eq!(engine.store().forget_expired(at, 16).await.unwrap(), 0);
    }
    let before = stream(directory.path()).unwrap().first().unwrap().0;
    kept(5, years + 1_501 * 60_000).await;
    assert!(stream(directory.path()).unwrap().first().unwrap().0 > before, "a quiet server goes on");
}

#[tokio::test]
async fn rule_43_the_stream_has_what_operators_write_and_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let at = Timestamp::from_epoch_ms(7);
    let key = CallbackKey::first([3, 1, 4, 1]);
    let secret = serde_json::to_value(&key).unwrap()["Secret"].as_str().unwrap().to_owned();
    let deployment = Deployment {
        version: 1,
        default: "shop".into(),
        workflows: [].into(),
        highest: [].into(),
        settings: "".into(),
        schedules: [].into(),
        callback_keys: vec![key],
        applied_at: at,
        applied_by: "ada [desk]".into(),
        of_start: false,
    };
    let records = engine.records();
    records.put(Seen::nothing(at), &deployment).await.unwrap();
    let policy = BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true };
    let mut health = ServiceHealth {
        service: "payment".into(),
        version: 1,
        era: 0,
        state: Breaker::Closed,
        failures_in_a_row: 0,
        until: at,
        backoff: Backoff::new(policy),
        since: at,
        release: None,
        outage: None,
        unsent: None,
        rejections: Rejections::default(),
        pace: None,
        evidence: Evidence::default(),
    };
    records.put(Seen::nothing(at), &health).await.unwrap();
    for (by, next) in [(None, 2), (Some("ada"), 3), (Some("ada"), 4), (Some("bob"), 5), (None, 6)] {
        health.version = next;
        health.pace = Some(Pace { next_us: next, line_us: 0 });
        health.rejections.accepted = by.map(|by| Acceptance { by: by.into(), reason: "it is sold out".into(), at });
        records.put(Seen::version(next - 1, at), &health).await.unwrap();
    }
    let expected = [(1, "1"), (2, "3"), (3, "5"), (4, "6")].map(|(seq, version)| (seq, version.to_owned()));
    assert_eq!(stream(directory.path()).unwrap(), expected, "the operators' words, and not each call's pace");
    let entries = || audit(directory.path(), None).unwrap().map(|entry| entry.unwrap().body.unwrap());
    assert!(entries().next().unwrap().contains("ada [desk]"));
    assert!(entries().all(|body| !body.contains(&secret)));
}
