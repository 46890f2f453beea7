//! Waiting for a task that may not be there yet.
#![allow(clippy::disallowed_methods, reason = "the store waits on the runtime's clock, and so does this")]

use std::time::{Duration, Instant};

use domain::ports::Store;
use domain::task::ProcessState;
use futures_util::future::join;
use tests::conformance::samples::{committed, next_in, order, stored};

use super::World;

#[tokio::test]
async fn who_waits_for_an_order_that_is_stored_later_is_told_when_it_is_settled() {
    let world = World::new().await;
    let work = async {
        tokio::time::sleep(Duration::from_millis(60)).await;
        let first = stored(&world.store, 1).await;
        committed(&world.store, &first, next_in(&first, ProcessState::Processed)).await
    };
    let (told, last) = join(world.store.settled(order(1).order_id, 60_000), work).await;
    assert_eq!(told.unwrap().unwrap().task, last);
}

#[tokio::test]
async fn who_waits_for_an_order_that_never_comes_waits_as_long_as_was_said() {
    let world = World::new().await;
    let begun = Instant::now();
    assert_eq!(world.store.settled(order(1).order_id, 200).await.unwrap(), None);
    assert!(begun.elapsed() >= Duration::from_millis(200));
    // The polls become rarer: at 0, 25, 62, 118 and 200 ms at the most.
    assert!(world.count("GetItem") <= 6, "{}", world.count("GetItem"));
}
