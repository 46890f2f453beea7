//! [`Letters`]: what became of dead letters.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use std::sync::Arc;

use domain::ports::{LETTERS_KEPT, LetterFate, LetterQueue, LetterRecord, Letters};

use super::StoreWorld;
use super::samples::letter;

pub async fn the_last_settled_letter_is_the_first_in_the_list(world: &impl StoreWorld) {
    let letters = world.ports();
    assert_eq!(letters.letters(10).await.unwrap(), []);
    for (n, after_ms) in [(1, 10), (2, 30), (3, 20), (4, 40)] {
        letters.record(letter(n, after_ms)).await.unwrap();
    }
    let all = [letter(4, 40), letter(2, 30), letter(3, 20), letter(1, 10)];
    assert_eq!(letters.letters(10).await.unwrap(), all);
    assert_eq!(letters.letters(2).await.unwrap(), all[..2]);
    assert_eq!(letters.letters(0).await.unwrap(), []);
}

pub async fn the_same_message_again_replaces_its_record(world: &impl StoreWorld) {
    let letters = world.ports();
    letters.record(letter(1, 10)).await.unwrap();
    letters.record(letter(2, 20)).await.unwrap();
    let (queue, body): (_, Arc<str>) = (LetterQueue::Agent("payment".into()), "{".into());
    let again = LetterRecord { queue: Some(queue), fate: LetterFate::Unreadable, body: Some(body), ..letter(1, 30) };
    letters.record(again.clone()).await.unwrap();
    assert_eq!(letters.letters(10).await.unwrap(), [again, letter(2, 20)]);
}

pub async fn the_newest_thousand_records_are_kept(world: &impl StoreWorld) {
    let letters = world.ports();
    for n in 0..1_005 {
        letters.record(letter(n, u64::from(n))).await.unwrap();
        if n == 500 {
            // Replacing takes nobody's place.
            for _ in 0..20 {
                letters.record(letter(n, u64::from(n))).await.unwrap();
            }
        }
    }
    let kept = letters.letters(2_000).await.unwrap();
    let newest: Vec<_> = (5..1_005).rev().map(|n| letter(n, u64::from(n))).collect();
    assert!(kept.len() >= LETTERS_KEPT && kept.starts_with(&newest), "{}", kept.len());
}
