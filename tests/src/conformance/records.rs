//! [`Records`] of every kind: a replacement needs the last version.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use std::fmt::Debug;

use domain::alert::Alert;
use domain::definition::{Definition, Deployment, Pin};
use domain::lease::{Lease, acquired, renewed};
use domain::ports::{Breaker, Commit, HasRecords, Memo, MemoState, Record, RecordKind, Records, Seen, ServiceHealth};
use domain::schedule::ScheduleRecord;

use super::StoreWorld;
use super::samples::{NOON, dead_letter, health, job, memo};

pub async fn a_record_of_each_kind_is_replaced_only_on_the_version_that_was_seen(world: &impl StoreWorld) {
    let records = world.ports().records();
    for kind in RecordKind::ALL {
        match kind {
            RecordKind::Service => {
                let second = ServiceHealth { state: Breaker::HalfOpen, ..health("payment", 2) };
                replaced(records, [health("payment", 1), second, health("payment", 2)], Some(health("other", 1))).await;
            }
            RecordKind::Memo => {
                let second = Memo { state: MemoState::Undone, ..memo("k", 2) };
                replaced(records, [memo("k", 1), second, memo("k", 2)], Some(memo("other", 1))).await;
            }
            RecordKind::Job => {
                let first = job("j", 0);
                let second = first.start("ann", "go", NOON).unwrap();
                let late = first.cancel("somebody", "late", NOON).unwrap();
                replaced(records, [first, second, late], Some(job("other", 0))).await;
            }
            RecordKind::Definition => {
                let first = definition("w", 1);
                let retired = Definition { retired_at: Some(NOON), ..definition("w", 2) };
                replaced(records, [first, retired, definition("w", 2)], Some(definition("other", 1))).await;
            }
            RecordKind::Deployment => {
                let second = Deployment { settings: "default = \"w\"".into(), ..deployment(2) };
                replaced(records, [deployment(1), second, deployment(2)], None).await;
            }
            RecordKind::Alert => {
                let second = Alert { count: 7, ..alert("late/w", 2) };
                replaced(records, [alert("late/w", 1), second, alert("late/w", 2)], Some(alert("late/other", 1))).await;
            }
            RecordKind::Schedule => {
                let first = ScheduleRecord::next(None, &"s".into(), NOON, None, Vec::new());
                let second = ScheduleRecord::next(Some(&first), &first.name, NOON.plus_ms(2), None, Vec::new());
                let late = ScheduleRecord::next(Some(&first), &first.name, NOON.plus_ms(1), None, Vec::new());
                let other = ScheduleRecord::next(None, &"other".into(), NOON, None, Vec::new());
                replaced(records, [first, second, late], Some(other)).await;
                let all = records.list::<ScheduleRecord>(usize::MAX).await.unwrap();
                assert_eq!(all.iter().map(|record| &*record.name).collect::<Vec<_>>(), ["other", "s"]);
            }
            RecordKind::Lease => {
                let first = lease("supervisor/00");
                let second = renewed(&first, NOON.plus_ms(1), 10_000, "took 3").unwrap();
                let late = renewed(&first, NOON.plus_ms(2), 10_000, "took 4").unwrap();
                replaced(records, [first, second, late], Some(lease("supervisor/01"))).await;
            }
            // Its only version is the first one.
            RecordKind::DeadLetter => {
                let put = async |record| records.put(Seen::nothing(NOON), &record).await.unwrap();
                assert_eq!(put(dead_letter(1, 1)).await, Commit::Committed);
                assert_eq!(put(dead_letter(1, 2)).await, Commit::Conflict);
                assert_eq!(records.get("letter-1").await.unwrap(), Some(dead_letter(1, 1)));
            }
        }
    }
}

/// `second` and `late` both replace the version of `first`. `late` comes second, so it is a conflict.
async fn replaced<R>(records: &impl Records, [first, second, late]: [R; 3], other: Option<R>)
where
    R: Record + Clone + PartialEq + Debug,
{
    let get = async || records.get::<R>(first.key()).await.unwrap();
    let put = async |seen, record: &R| records.put(Seen::version(seen, NOON), record).await.unwrap();
    assert_eq!(get().await, None);
    let seen = first.version();
    assert_eq!(put(seen, &second).await, Commit::Conflict);
    assert_eq!(put(0, &first).await, Commit::Committed);
    assert_eq!(put(0, &first).await, Commit::Conflict);
    assert_eq!(get().await.as_ref(), Some(&first));
    if let Some(other) = &other {
        assert_eq!(put(0, other).await, Commit::Committed);
    }
    assert_eq!(put(seen, &second).await, Commit::Committed);
    assert_eq!(put(seen, &late).await, Commit::Conflict);
    assert_eq!(get().await, Some(second));
    if let Some(other) = other {
        assert_eq!(records.get::<R>(other.key()).await.unwrap(), Some(other));
    }
}

pub async fn all_services_are_sorted_by_name(world: &impl StoreWorld) {
    let services = world.ports().records();
    for service in ["shipping", "inventory", "payment"] {
        assert_eq!(services.put(Seen::version(0, NOON), &health(service, 1)).await.unwrap(), Commit::Committed);
    }
    let all = services.list::<ServiceHealth>(usize::MAX).await.unwrap();
    assert_eq!(all, ["inventory", "payment", "shipping"].map(|service| health(service, 1)));
}

pub async fn all_leases_are_shown_by_name(world: &impl StoreWorld) {
    let leases = world.ports().records();
    for name in ["supervisor/01", "bulk/j", "supervisor/00"] {
        assert_eq!(leases.put(Seen::nothing(NOON), &lease(name)).await.unwrap(), Commit::Committed);
    }
    let all = leases.list::<Lease>(usize::MAX).await.unwrap();
    assert_eq!(all, ["bulk/j", "supervisor/00", "supervisor/01"].map(lease));
}

fn lease(name: &str) -> Lease {
    acquired(None, name, "supervisor-1", NOON, 10_000).unwrap()
}

fn definition(name: &str, version: u64) -> Definition {
    Definition {
        key: Pin { name: name.into(), version: 1 }.to_string().into(),
        version,
        text: format!("name = \"{name}\"").into(),
        hash: "2c26b46b".into(),
        applied_at: NOON,
        applied_by: "ann".into(),
        retired_at: None,
    }
}

fn deployment(version: u64) -> Deployment {
    Deployment {
        version,
        default: "w".into(),
        workflows: [].into(),
        highest: [].into(),
        settings: "".into(),
        schedules: [].into(),
        callback_keys: Vec::new(),
        applied_at: NOON,
        applied_by: "ann".into(),
        of_start: false,
    }
}

fn alert(cause: &str, version: u64) -> Alert {
    Alert {
        cause: cause.into(),
        version,
        since: NOON,
        text: "orders are late".into(),
        to_do: "look at them".into(),
        count: 3,
        at_least: false,
        order_id: None,
        gone_since: None,
        ended_at: None,
        told: Vec::new(),
        telling_until: None,
    }
}
