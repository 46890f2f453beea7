//! [`Records`] of memos: two writes at once, and a memo expires.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::message::{Failure, Outcome};
use domain::ports::{Commit, HasRecords, Listed, Memo, MemoState, Record, RecordKind, Records, Seen};
use futures_util::future::join;
use serde::{Deserialize, Serialize};

use super::StoreWorld;
use super::samples::{NOON, memo};

pub async fn the_same_memo_a_second_time_is_a_conflict(world: &impl StoreWorld) {
    // Two instances that start the same call write the same memo. Only one of them may continue.
    let memos = world.ports().records();
    assert_eq!(memos.put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap(), Commit::Committed);
    assert_eq!(memos.put(Seen::version(0, NOON), &memo("k", 1)).await.unwrap(), Commit::Conflict);
}

pub async fn of_two_memos_at_once_one_wins(world: &impl StoreWorld) {
    let memos = world.ports().records();
    for n in 0..10 {
        let key = format!("k{n}");
        let (left, right) = (memo(&key, 1), Memo { state: MemoState::Undone, ..memo(&key, 1) });
        let both = join(memos.put(Seen::version(0, NOON), &left), memos.put(Seen::version(0, NOON), &right)).await;
        let winner = match (both.0.unwrap(), both.1.unwrap()) {
            (Commit::Committed, Commit::Conflict) => left,
            (Commit::Conflict, Commit::Committed) => right,
            both => panic!("{both:?}"),
        };
        assert_eq!(memos.get::<Memo>(&key).await.unwrap(), Some(winner));
    }
}

pub async fn an_expired_memo_counts_as_none_whichever_version_was_seen(world: &impl StoreWorld) {
    let memos = world.ports().records();
    let first = memo("k", 1);
    assert_eq!(memos.put(Seen::version(0, NOON), &first).await.unwrap(), Commit::Committed);
    let over = first.expires_at;
    assert_eq!(memos.get::<Memo>("k").await.unwrap(), Some(first));
    // A store may have deleted the expired memo by then. The result must be the same.
    assert_eq!(memos.put(Seen::version(1, over), &memo("k", 2)).await.unwrap(), Commit::Conflict);
    let anew = Memo { expires_at: over.plus_ms(10), ..memo("k", 1) };
    assert_eq!(memos.put(Seen::version(0, over), &anew).await.unwrap(), Commit::Committed);
    assert_eq!(memos.get::<Memo>("k").await.unwrap(), Some(anew));
}

pub async fn a_memo_stays_until_it_expires_whatever_else_is_written(world: &impl StoreWorld) {
    let memos = world.ports().records();
    let kept = Memo { expires_at: NOON.plus_ms(100), ..memo("kept", 1) };
    memos.put(Seen::version(0, NOON), &kept).await.unwrap();
    for n in 0..50 {
        let now = NOON.plus_ms(n);
        let short = Memo { expires_at: now.plus_ms(1), ..memo(&format!("k{n}"), 1) };
        assert_eq!(memos.put(Seen::version(0, now), &short).await.unwrap(), Commit::Committed);
    }
    assert_eq!(memos.get::<Memo>("kept").await.unwrap(), Some(kept));
}

pub async fn each_state_of_a_memo_is_read_as_it_was_written(world: &impl StoreWorld) {
    let memos = world.ports().records();
    let failed = Failure { code: "declined".into(), message: "no".into() };
    let states =
        [MemoState::InProgress(NOON.plus_ms(7)), MemoState::Completed(Outcome::Failed(failed)), MemoState::Undone];
    for (version_before, state) in (0..).zip(states) {
        let after = Memo { state, ..memo("k", version_before + 1) };
        assert_eq!(memos.put(Seen::version(version_before, NOON), &after).await.unwrap(), Commit::Committed);
        assert_eq!(memos.get::<Memo>("k").await.unwrap(), Some(after));
    }
}

/// A record that is over, in the place of an alert.
#[derive(Serialize, Deserialize)]
struct Over {
    key: String,
}

impl Record for Over {
    const KIND: RecordKind = RecordKind::Alert;

    fn key(&self) -> &str {
        &self.key
    }

    fn version(&self) -> u64 {
        1
    }

    fn is_over(&self) -> bool {
        true
    }
}

impl Listed for Over {}

pub async fn of_the_records_of_any_kind_that_are_over_the_first_hundred_are_kept(world: &impl StoreWorld) {
    let records = world.ports().records();
    let key = |n: usize| format!("over-{n:03}");
    for n in (0..Over::OVER_KEPT + 20).rev() {
        assert_eq!(records.put(Seen::nothing(NOON), &Over { key: key(n) }).await.unwrap(), Commit::Committed);
    }
    let kept: Vec<_> = records.list::<Over>(usize::MAX).await.unwrap().into_iter().map(|over| over.key).collect();
    assert_eq!(kept, (0..Over::OVER_KEPT).map(key).collect::<Vec<_>>());
}
