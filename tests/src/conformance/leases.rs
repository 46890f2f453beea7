//! [`Leases`]: one holder at a time, as long as clocks agree.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::limits::CLOCKS_DIFFER_MS;
use domain::ports::{HasLeases, LeaseRecord, Leases};
use domain::time::Timestamp;

use super::StoreWorld;
use super::samples::NOON;

const TERM_MS: u64 = 10_000;

pub async fn a_lease_has_one_holder(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    assert_eq!((&*held.name, &*held.owner, held.epoch), ("shard-1", "a", 1));
    assert_eq!(held.expires_at, NOON.plus_ms(TERM_MS));
    assert_eq!(leases.acquire("shard-1", "b", NOON.plus_ms(TERM_MS - 1), TERM_MS).await.unwrap(), None);
    assert!(leases.acquire("shard-2", "b", NOON, TERM_MS).await.unwrap().is_some());
}

pub async fn an_expired_lease_is_taken_over_with_the_next_epoch(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    let taken = leases.acquire("shard-1", "b", NOON.plus_ms(TERM_MS), TERM_MS).await.unwrap().unwrap();
    assert_eq!((&*taken.owner, taken.epoch, taken.expires_at), ("b", 2, NOON.plus_ms(2 * TERM_MS)));
}

pub async fn a_lease_that_lasts_longer_than_a_new_one_is_taken_over(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    let ahead = NOON.plus_ms(CLOCKS_DIFFER_MS);
    leases.acquire("shard-1", "fast", ahead, TERM_MS).await.unwrap().unwrap();
    assert_eq!(leases.acquire("shard-1", "b", NOON, TERM_MS).await.unwrap(), None);
    let taken = leases.acquire("shard-1", "b", NOON.minus_ms(1), TERM_MS).await.unwrap().unwrap();
    assert_eq!((&*taken.owner, taken.epoch), ("b", 2));
}

pub async fn a_lease_that_was_taken_over_cannot_be_renewed_or_released(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    let lost = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    let later = NOON.plus_ms(TERM_MS);
    let taken = leases.acquire("shard-1", "b", later, TERM_MS).await.unwrap().unwrap();
    assert_eq!(leases.renew(&lost, later, TERM_MS, "fine").await.unwrap(), None);
    leases.release(&lost).await.unwrap();
    assert_eq!(leases.acquire("shard-1", "a", later.plus_ms(1), TERM_MS).await.unwrap(), None);
    assert!(leases.renew(&taken, later.plus_ms(1), TERM_MS, "fine").await.unwrap().is_some());
}

pub async fn a_renewed_lease_lasts_longer(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    let renewed = leases.renew(&held, NOON.plus_ms(5_000), TERM_MS, "fine").await.unwrap().unwrap();
    assert_eq!((renewed.epoch, renewed.expires_at), (held.epoch, NOON.plus_ms(5_000 + TERM_MS)));
    assert_eq!(leases.acquire("shard-1", "b", NOON.plus_ms(TERM_MS), TERM_MS).await.unwrap(), None);
}

pub async fn an_expired_lease_cannot_be_renewed(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    assert_eq!(leases.renew(&held, NOON.plus_ms(TERM_MS), TERM_MS, "late").await.unwrap(), None);
}

pub async fn a_released_lease_is_free_and_its_epoch_goes_on(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    leases.release(&held).await.unwrap();
    assert_eq!(leases.renew(&held, NOON.plus_ms(1), TERM_MS, "fine").await.unwrap(), None);
    let next = leases.acquire("shard-1", "b", NOON.plus_ms(1), TERM_MS).await.unwrap().unwrap();
    assert_eq!((&*next.owner, next.epoch), ("b", 2));
}

pub async fn all_leases_tell_who_worked_last_and_when_also_after_the_release(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    assert_eq!(leases.all_leases().await.unwrap(), []);
    let free = |name: &str, renewed_at: Timestamp, health: Option<&str>| LeaseRecord {
        name: name.into(),
        owner: "a".into(),
        epoch: 1,
        expires_at: None,
        renewed_at: Some(renewed_at),
        health: health.map(Into::into),
    };
    let second = leases.acquire("shard-2", "a", NOON, TERM_MS).await.unwrap().unwrap();
    leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    let held = LeaseRecord { expires_at: Some(NOON.plus_ms(TERM_MS)), ..free("shard-1", NOON, None) };
    let renewed_at = NOON.plus_ms(3_000);
    leases.renew(&second, renewed_at, TERM_MS, "took 3").await.unwrap().unwrap();
    let told = free("shard-2", renewed_at, Some("took 3"));
    let renewed = LeaseRecord { expires_at: Some(renewed_at.plus_ms(TERM_MS)), ..told.clone() };
    assert!(renewed.is_held(renewed_at) && !renewed.is_held(renewed_at.plus_ms(TERM_MS)));
    assert_eq!(leases.all_leases().await.unwrap(), [held.clone(), renewed], "by name");
    leases.release(&second).await.unwrap();
    assert!(!told.is_held(renewed_at));
    assert_eq!(leases.all_leases().await.unwrap(), [held.clone(), told]);
    let later = NOON.plus_ms(5_000);
    leases.acquire("shard-2", "b", later, TERM_MS).await.unwrap().unwrap();
    let expires_at = Some(later.plus_ms(TERM_MS));
    let taken = LeaseRecord { owner: "b".into(), epoch: 2, expires_at, ..free("shard-2", later, None) };
    assert_eq!(leases.all_leases().await.unwrap(), [held, taken], "the next holder begins with a clean slate");
}

pub async fn a_report_says_who_worked_last_and_excludes_nobody(world: &impl StoreWorld) {
    let leases = world.ports().leases();
    let reported = |owner: &str, epoch: u64, at: Timestamp, health: &str| LeaseRecord {
        name: "run".into(),
        owner: owner.into(),
        epoch,
        expires_at: None,
        renewed_at: Some(at),
        health: Some(health.into()),
    };
    leases.report("run", "a", NOON, "took 3").await.unwrap();
    assert_eq!(leases.all_leases().await.unwrap(), [reported("a", 1, NOON, "took 3")]);
    let later = NOON.plus_ms(1);
    leases.report("run", "b", later, "took 0").await.unwrap();
    assert_eq!(leases.all_leases().await.unwrap(), [reported("b", 2, later, "took 0")]);
    let taken = leases.acquire("run", "c", later, TERM_MS).await.unwrap().unwrap();
    assert_eq!(taken.epoch, 3);
}
