//! [`Records`] of the outcomes of dead letters: the list, and the limit of kept ones.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::ports::{Commit, DEAD_LETTERS_KEPT, DeadLetterRecord, HasRecords, Records, Seen};

use super::StoreWorld;
use super::samples::dead_letter;

async fn put(records: &impl Records, record: &DeadLetterRecord) -> Commit {
    records.put(Seen::nothing(record.settled_at), record).await.unwrap()
}

async fn newest(records: &impl Records, limit: usize) -> Vec<DeadLetterRecord> {
    records.list(limit).await.unwrap()
}

pub async fn the_last_settled_dead_letter_is_the_first_in_the_list(world: &impl StoreWorld) {
    let records = world.ports().records();
    assert_eq!(newest(records, 10).await, []);
    let odd = DeadLetterRecord { body: Some("{\u{0}\"ü".into()), ..dead_letter(2, 30) };
    for record in [&dead_letter(1, 10), &odd, &dead_letter(3, 20), &dead_letter(4, 40)] {
        assert_eq!(put(records, record).await, Commit::Committed);
    }
    let all = [dead_letter(4, 40), odd, dead_letter(3, 20), dead_letter(1, 10)];
    assert_eq!(newest(records, 10).await, all);
    assert_eq!(newest(records, 2).await, all[..2]);
    assert_eq!(newest(records, 0).await, []);
}

pub async fn the_newest_thousand_records_are_kept(world: &impl StoreWorld) {
    let records = world.ports().records();
    for n in 0..1_005 {
        assert_eq!(put(records, &dead_letter(n, u64::from(n))).await, Commit::Committed);
    }
    let kept = newest(records, 2_000).await;
    let newest: Vec<_> = (5..1_005).rev().map(|n| dead_letter(n, u64::from(n))).collect();
    assert!(kept.len() >= DEAD_LETTERS_KEPT && kept.starts_with(&newest), "{}", kept.len());
}
