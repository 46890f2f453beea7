//! [`Store`] and [`Queues`] together: a reader waits for an order that is accepted and not stored yet.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::ports::{HasQueues, HasStore, Queues, Store};
use domain::task::ProcessState;
use futures_util::future::join;

use super::World;
use super::samples::{committed, next_in, order, stored};
use super::store::LONG_MS;

pub async fn nobody_waits_for_an_order_that_nobody_posted(world: &impl World) {
    assert_eq!(world.ports().store().settled(order(1).order_id, LONG_MS).await.unwrap(), None);
}

pub async fn who_waits_for_an_accepted_order_is_told_when_it_is_settled(world: &impl World) {
    let (store, queues) = (world.ports().store(), world.ports().queues());
    let accepted = order(1);
    queues.submit(accepted.clone(), 0).await.unwrap();
    let work = async {
        let first = stored(store, 1).await;
        committed(store, &first, next_in(&first, ProcessState::Processed)).await
    };
    let (told, last) = join(store.settled(accepted.order_id, LONG_MS), work).await;
    assert_eq!(told.unwrap().unwrap().task, last);
}
