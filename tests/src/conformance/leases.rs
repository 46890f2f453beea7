//! [`Leases`]: one holder at a time, as far as clocks agree.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::ports::Leases;

use super::StoreWorld;
use super::samples::NOON;

const TERM_MS: u64 = 10_000;

pub async fn a_lease_has_one_holder(world: &impl StoreWorld) {
    let leases = world.ports();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    assert_eq!((&*held.name, &*held.owner, held.epoch), ("shard-1", "a", 1));
    assert_eq!(held.expires_at, NOON.plus_ms(TERM_MS));
    assert_eq!(leases.acquire("shard-1", "b", NOON.plus_ms(TERM_MS - 1), TERM_MS).await.unwrap(), None);
    assert!(leases.acquire("shard-2", "b", NOON, TERM_MS).await.unwrap().is_some());
}

pub async fn an_expired_lease_is_taken_over_with_the_next_epoch(world: &impl StoreWorld) {
    let leases = world.ports();
    leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    let taken = leases.acquire("shard-1", "b", NOON.plus_ms(TERM_MS), TERM_MS).await.unwrap().unwrap();
    assert_eq!((&*taken.owner, taken.epoch, taken.expires_at), ("b", 2, NOON.plus_ms(2 * TERM_MS)));
}

pub async fn a_lease_that_was_taken_over_cannot_be_renewed_or_released(world: &impl StoreWorld) {
    let leases = world.ports();
    let lost = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    let later = NOON.plus_ms(TERM_MS);
    let taken = leases.acquire("shard-1", "b", later, TERM_MS).await.unwrap().unwrap();
    assert_eq!(leases.renew(&lost, later, TERM_MS, "fine").await.unwrap(), None);
    leases.release(&lost).await.unwrap();
    assert_eq!(leases.acquire("shard-1", "a", later.plus_ms(1), TERM_MS).await.unwrap(), None);
    assert!(leases.renew(&taken, later.plus_ms(1), TERM_MS, "fine").await.unwrap().is_some());
}

pub async fn a_renewed_lease_lasts_longer(world: &impl StoreWorld) {
    let leases = world.ports();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    let renewed = leases.renew(&held, NOON.plus_ms(5_000), TERM_MS, "fine").await.unwrap().unwrap();
    assert_eq!((renewed.epoch, renewed.expires_at), (held.epoch, NOON.plus_ms(5_000 + TERM_MS)));
    assert_eq!(leases.acquire("shard-1", "b", NOON.plus_ms(TERM_MS), TERM_MS).await.unwrap(), None);
}

pub async fn an_expired_lease_cannot_be_renewed(world: &impl StoreWorld) {
    let leases = world.ports();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    assert_eq!(leases.renew(&held, NOON.plus_ms(TERM_MS), TERM_MS, "late").await.unwrap(), None);
}

pub async fn a_released_lease_is_free_and_its_epoch_goes_on(world: &impl StoreWorld) {
    let leases = world.ports();
    let held = leases.acquire("shard-1", "a", NOON, TERM_MS).await.unwrap().unwrap();
    leases.release(&held).await.unwrap();
    assert_eq!(leases.renew(&held, NOON.plus_ms(1), TERM_MS, "fine").await.unwrap(), None);
    let next = leases.acquire("shard-1", "b", NOON.plus_ms(1), TERM_MS).await.unwrap().unwrap();
    assert_eq!((&*next.owner, next.epoch), ("b", 2));
}
