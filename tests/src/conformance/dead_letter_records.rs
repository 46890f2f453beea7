//! [`DeadLetterRecords`]: the outcomes of dead letters.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use std::sync::Arc;

use domain::ports::{
    DEAD_LETTERS_KEPT, DeadLetterOutcome, DeadLetterRecord, DeadLetterRecords, HasDeadLetterRecords, SourceQueue,
};

use super::StoreWorld;
use super::samples::dead_letter;

pub async fn the_last_settled_dead_letter_is_the_first_in_the_list(world: &impl StoreWorld) {
    let dead_letters = world.ports().dead_letter_records();
    assert_eq!(dead_letters.newest(10).await.unwrap(), []);
    for (n, after_ms) in [(1, 10), (2, 30), (3, 20), (4, 40)] {
        dead_letters.record(dead_letter(n, after_ms)).await.unwrap();
    }
    let all = [dead_letter(4, 40), dead_letter(2, 30), dead_letter(3, 20), dead_letter(1, 10)];
    assert_eq!(dead_letters.newest(10).await.unwrap(), all);
    assert_eq!(dead_letters.newest(2).await.unwrap(), all[..2]);
    assert_eq!(dead_letters.newest(0).await.unwrap(), []);
}

pub async fn the_same_message_again_replaces_its_record(world: &impl StoreWorld) {
    let dead_letters = world.ports().dead_letter_records();
    dead_letters.record(dead_letter(1, 10)).await.unwrap();
    dead_letters.record(dead_letter(2, 20)).await.unwrap();
    let (queue, body): (_, Arc<str>) = (SourceQueue::Agent("payment".into()), "{".into());
    let again = DeadLetterRecord {
        queue: Some(queue),
        outcome: DeadLetterOutcome::Unreadable,
        body: Some(body),
        ..dead_letter(1, 30)
    };
    dead_letters.record(again.clone()).await.unwrap();
    assert_eq!(dead_letters.newest(10).await.unwrap(), [again, dead_letter(2, 20)]);
}

pub async fn the_newest_thousand_records_are_kept(world: &impl StoreWorld) {
    let dead_letters = world.ports().dead_letter_records();
    for n in 0..1_005 {
        dead_letters.record(dead_letter(n, u64::from(n))).await.unwrap();
        if n == 500 {
            // A replacement removes no other record.
            for _ in 0..20 {
                dead_letters.record(dead_letter(n, u64::from(n))).await.unwrap();
            }
        }
    }
    let kept = dead_letters.newest(2_000).await.unwrap();
    let newest: Vec<_> = (5..1_005).rev().map(|n| dead_letter(n, u64::from(n))).collect();
    assert!(kept.len() >= DEAD_LETTERS_KEPT && kept.starts_with(&newest), "{}", kept.len());
}
