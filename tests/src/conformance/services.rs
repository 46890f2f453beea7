//! [`Records`] of services: health records. A replacement needs the last version.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::ports::{Breaker, Commit, HasRecords, Records, Seen, ServiceHealth};

use super::StoreWorld;
use super::samples::{NOON, health};

pub async fn a_service_that_never_failed_has_no_record(world: &impl StoreWorld) {
    assert_eq!(world.ports().records().get::<ServiceHealth>("payment").await.unwrap(), None);
    assert_eq!(world.ports().records().list::<ServiceHealth>(usize::MAX).await.unwrap(), []);
}

pub async fn health_is_replaced_only_on_the_version_that_was_seen(world: &impl StoreWorld) {
    let services = world.ports().records();
    assert_eq!(services.put(Seen::version(1, NOON), &health("payment", 2)).await.unwrap(), Commit::Conflict);
    assert_eq!(services.put(Seen::version(0, NOON), &health("payment", 1)).await.unwrap(), Commit::Committed);
    assert_eq!(services.put(Seen::version(0, NOON), &health("payment", 1)).await.unwrap(), Commit::Conflict);
    let second = ServiceHealth { state: Breaker::HalfOpen, ..health("payment", 2) };
    assert_eq!(services.put(Seen::version(1, NOON), &second).await.unwrap(), Commit::Committed);
    assert_eq!(services.put(Seen::version(1, NOON), &health("payment", 2)).await.unwrap(), Commit::Conflict);
    assert_eq!(services.get::<ServiceHealth>("payment").await.unwrap(), Some(second));
}

pub async fn all_records_are_sorted_by_service(world: &impl StoreWorld) {
    let services = world.ports().records();
    for service in ["shipping", "inventory", "payment"] {
        assert_eq!(services.put(Seen::version(0, NOON), &health(service, 1)).await.unwrap(), Commit::Committed);
    }
    let all = services.list::<ServiceHealth>(usize::MAX).await.unwrap();
    assert_eq!(all, ["inventory", "payment", "shipping"].map(|service| health(service, 1)));
}
