//! [`Services`]: health records, each replaced only by who saw it last.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::ports::{Breaker, Commit, ServiceHealth, Services};

use super::StoreWorld;
use super::samples::health;

pub async fn a_service_that_never_failed_has_no_record(world: &impl StoreWorld) {
    assert_eq!(world.ports().health("payment").await.unwrap(), None);
    assert_eq!(world.ports().all_health().await.unwrap(), []);
}

pub async fn health_is_replaced_only_on_the_version_that_was_seen(world: &impl StoreWorld) {
    let services = world.ports();
    assert_eq!(services.set_health(1, health("payment", 2)).await.unwrap(), Commit::Conflict);
    assert_eq!(services.set_health(0, health("payment", 1)).await.unwrap(), Commit::Committed);
    assert_eq!(services.set_health(0, health("payment", 1)).await.unwrap(), Commit::Conflict);
    let second = ServiceHealth { state: Breaker::HalfOpen, ..health("payment", 2) };
    assert_eq!(services.set_health(1, second.clone()).await.unwrap(), Commit::Committed);
    assert_eq!(services.set_health(1, health("payment", 2)).await.unwrap(), Commit::Conflict);
    assert_eq!(services.health("payment").await.unwrap(), Some(second));
}

pub async fn all_records_are_sorted_by_service(world: &impl StoreWorld) {
    let services = world.ports();
    for service in ["shipping", "inventory", "payment"] {
        assert_eq!(services.set_health(0, health(service, 1)).await.unwrap(), Commit::Committed);
    }
    let all = services.all_health().await.unwrap();
    assert_eq!(all, ["inventory", "payment", "shipping"].map(|service| health(service, 1)));
}
