//! [`Memos`]: each replaced only by who saw it last, and forgotten in the end.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::message::{Failure, Outcome};
use domain::ports::{Commit, Memo, MemoState, Memos};
use futures_util::future::join;

use super::StoreWorld;
use super::samples::{NOON, memo};

pub async fn a_key_without_a_memo_has_none(world: &impl StoreWorld) {
    assert_eq!(world.ports().memo("order/charge", NOON).await.unwrap(), None);
}

pub async fn a_memo_is_replaced_only_on_the_version_that_was_seen(world: &impl StoreWorld) {
    let memos = world.ports();
    assert_eq!(memos.set_memo(1, memo("k", 2), NOON).await.unwrap(), Commit::Conflict);
    assert_eq!(memos.set_memo(0, memo("k", 1), NOON).await.unwrap(), Commit::Committed);
    assert_eq!(memos.memo("k", NOON).await.unwrap(), Some(memo("k", 1)));
    assert_eq!(memos.set_memo(0, memo("other", 1), NOON).await.unwrap(), Commit::Committed);
    let second = Memo { state: MemoState::Undone, ..memo("k", 2) };
    assert_eq!(memos.set_memo(1, second.clone(), NOON).await.unwrap(), Commit::Committed);
    assert_eq!(memos.set_memo(1, memo("k", 2), NOON).await.unwrap(), Commit::Conflict);
    assert_eq!(memos.memo("k", NOON).await.unwrap(), Some(second));
    assert_eq!(memos.memo("other", NOON).await.unwrap(), Some(memo("other", 1)));
}

pub async fn the_same_memo_a_second_time_is_a_conflict(world: &impl StoreWorld) {
    // Two instances that begin the same call write the same: only one of them may go on with it.
    let memos = world.ports();
    assert_eq!(memos.set_memo(0, memo("k", 1), NOON).await.unwrap(), Commit::Committed);
    assert_eq!(memos.set_memo(0, memo("k", 1), NOON).await.unwrap(), Commit::Conflict);
}

pub async fn of_two_memos_at_once_one_wins(world: &impl StoreWorld) {
    let memos = world.ports();
    for n in 0..10 {
        let key = format!("k{n}");
        let (left, right) = (memo(&key, 1), Memo { state: MemoState::Undone, ..memo(&key, 1) });
        let both = join(memos.set_memo(0, left.clone(), NOON), memos.set_memo(0, right.clone(), NOON)).await;
        let winner = match (both.0.unwrap(), both.1.unwrap()) {
            (Commit::Committed, Commit::Conflict) => left,
            (Commit::Conflict, Commit::Committed) => right,
            both => panic!("{both:?}"),
        };
        assert_eq!(memos.memo(&key, NOON).await.unwrap(), Some(winner));
    }
}

pub async fn an_expired_memo_counts_as_none_whichever_version_was_seen(world: &impl StoreWorld) {
    let memos = world.ports();
    let first = memo("k", 1);
    assert_eq!(memos.set_memo(0, first.clone(), NOON).await.unwrap(), Commit::Committed);
    let (last, over) = (first.expires_at.minus_ms(1), first.expires_at);
    assert_eq!(memos.memo("k", last).await.unwrap(), Some(first));
    assert_eq!(memos.memo("k", over).await.unwrap(), None);
    // A store may have forgotten it by then, so it may not matter whether it has.
    assert_eq!(memos.set_memo(1, memo("k", 2), over).await.unwrap(), Commit::Conflict);
    let anew = Memo { expires_at: over.plus_ms(10), ..memo("k", 1) };
    assert_eq!(memos.set_memo(0, anew.clone(), over).await.unwrap(), Commit::Committed);
    assert_eq!(memos.memo("k", over).await.unwrap(), Some(anew));
}

pub async fn a_memo_stays_until_it_expires_whatever_else_is_written(world: &impl StoreWorld) {
    let memos = world.ports();
    let kept = Memo { expires_at: NOON.plus_ms(100), ..memo("kept", 1) };
    memos.set_memo(0, kept.clone(), NOON).await.unwrap();
    for n in 0..50 {
        let now = NOON.plus_ms(n);
        let short = Memo { expires_at: now.plus_ms(1), ..memo(&format!("k{n}"), 1) };
        assert_eq!(memos.set_memo(0, short, now).await.unwrap(), Commit::Committed);
    }
    assert_eq!(memos.memo("kept", NOON.plus_ms(99)).await.unwrap(), Some(kept));
}

pub async fn each_state_of_a_memo_is_read_as_it_was_written(world: &impl StoreWorld) {
    let memos = world.ports();
    let failed = Failure { code: "declined".into(), message: "no".into() };
    let states =
        [MemoState::InProgress(NOON.plus_ms(7)), MemoState::Completed(Outcome::Failed(failed)), MemoState::Undone];
    for (version_before, state) in (0..).zip(states) {
        let after = Memo { state, ..memo("k", version_before + 1) };
        assert_eq!(memos.set_memo(version_before, after.clone(), NOON).await.unwrap(), Commit::Committed);
        assert_eq!(memos.memo("k", NOON).await.unwrap(), Some(after));
    }
}
