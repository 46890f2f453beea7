//! [`Queues`] and [`Source`]: delivery, visibility, delay, receipts.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::id::OrderId;
use domain::message::{Delivery, Receipt, SchedulerMessage};
use domain::ports::{Queues, Source};
use futures_util::FutureExt;
use futures_util::future::join;

use super::World;
use super::samples::{order, request, wake};

fn order_ids(deliveries: &[Delivery<SchedulerMessage>]) -> Vec<OrderId> {
    deliveries.iter().map(|delivery| delivery.body.as_ref().unwrap().order_id()).collect()
}

fn receipts<M>(deliveries: &[Delivery<M>]) -> Vec<Receipt> {
    deliveries.iter().map(|delivery| delivery.receipt.clone()).collect()
}

/// Whether there is nothing to receive at the moment.
fn is_empty<M>(source: &impl Source<M>) -> bool {
    source.receive(10).now_or_never().is_none()
}

pub async fn messages_come_in_their_order_and_go_when_deleted(world: &impl World) {
    let (queues, source) = (world.ports(), world.scheduler());
    for n in 1..=3 {
        queues.to_scheduler(wake(n), 0).await.unwrap();
    }
    let deliveries = source.receive(10).await;
    assert_eq!(order_ids(&deliveries), [1, 2, 3].map(|n| order(n).order_id));
    assert!(deliveries.iter().all(|delivery| delivery.receive_count == 1 && !delivery.is_redelivery()));
    source.delete(receipts(&deliveries)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}

pub async fn who_waits_gets_the_message_that_arrives(world: &impl World) {
    let (queues, source) = (world.ports(), world.scheduler());
    let (deliveries, sent) = join(source.receive(10), queues.to_scheduler(wake(1), 0)).await;
    sent.unwrap();
    assert_eq!(order_ids(&deliveries), [order(1).order_id]);
}

pub async fn no_more_than_the_limit_comes_at_once(world: &impl World) {
    let (queues, source) = (world.ports(), world.scheduler());
    for n in 1..=5 {
        queues.to_scheduler(wake(n), 0).await.unwrap();
    }
    assert_eq!(order_ids(&source.receive(2).await), [1, 2].map(|n| order(n).order_id));
    assert_eq!(order_ids(&source.receive(10).await), [3, 4, 5].map(|n| order(n).order_id));
    assert!(is_empty(&source));
}

pub async fn a_message_that_is_not_deleted_comes_again_after_its_visibility(world: &impl World) {
    let (queues, source) = (world.ports(), world.scheduler());
    queues.to_scheduler(wake(1), 0).await.unwrap();
    let first = source.receive(10).await;
    world.pass(world.visibility_ms() - 1_000).await;
    assert!(is_empty(&source));
    let (again, ()) = join(source.receive(10), world.pass(1_000)).await;
    assert_eq!(order_ids(&again), order_ids(&first));
    assert_eq!(again[0].receive_count, 2);
    assert!(again[0].is_redelivery());
    assert_eq!(again[0].receipt.message_id, first[0].receipt.message_id);
}

pub async fn a_stale_receipt_deletes_nothing(world: &impl World) {
    let (queues, source) = (world.ports(), world.scheduler());
    queues.to_scheduler(wake(1), 0).await.unwrap();
    let first = source.receive(10).await;
    let (second, ()) = join(source.receive(10), world.pass(world.visibility_ms())).await;
    source.delete(receipts(&first)).await.unwrap();
    let (third, ()) = join(source.receive(10), world.pass(world.visibility_ms())).await;
    assert_eq!(third[0].receive_count, 3);
    source.delete(receipts(&second)).await.unwrap();
    source.delete(receipts(&third)).await.unwrap();
    // Twice is no harm.
    source.delete(receipts(&third)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}

pub async fn a_delayed_message_comes_after_its_delay(world: &impl World) {
    let (queues, source) = (world.ports(), world.scheduler());
    queues.to_scheduler(wake(1), 5_000).await.unwrap();
    queues.to_scheduler(wake(2), 3_000).await.unwrap();
    assert!(is_empty(&source));
    let (first, ()) = join(source.receive(10), world.pass(3_000)).await;
    assert_eq!(order_ids(&first), [order(2).order_id]);
    let (second, ()) = join(source.receive(10), world.pass(2_000)).await;
    assert_eq!(order_ids(&second), [order(1).order_id]);
    assert_eq!(second[0].receive_count, 1);
}

pub async fn a_request_that_is_returned_stays_hidden_as_long_as_asked(world: &impl World) {
    let (queues, source) = (world.ports(), world.requests("inventory"));
    queues.to_agent("inventory", request(1)).await.unwrap();
    let first = source.receive(10).await;
    assert_eq!(first[0].body, Ok(request(1)));
    queues.return_to_agent("inventory", &first[0].receipt, 2_000).await.unwrap();
    world.pass(1_000).await;
    assert!(is_empty(&source));
    let (second, ()) = join(source.receive(10), world.pass(1_000)).await;
    assert_eq!((second.len(), second[0].receive_count), (1, 2));
    // A receipt of before does not hide what another has now; nor does it for longer than the visibility.
    queues.return_to_agent("inventory", &second[0].receipt, 2 * world.visibility_ms()).await.unwrap();
    queues.return_to_agent("inventory", &first[0].receipt, 0).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}

pub async fn each_agent_has_its_own_queue(world: &impl World) {
    let queues = world.ports();
    queues.to_agent("inventory", request(1)).await.unwrap();
    queues.to_agent("payment", request(2)).await.unwrap();
    let inventory = world.requests("inventory").receive(10).await;
    let payment = world.requests("payment").receive(10).await;
    assert_eq!((inventory.len(), &inventory[0].body), (1, &Ok(request(1))));
    assert_eq!((payment.len(), &payment[0].body), (1, &Ok(request(2))));
    assert!(is_empty(&world.requests("shipping")));
}

pub async fn a_message_that_is_received_too_often_does_not_come_again(world: &impl World) {
    let (queues, source) = (world.ports(), world.scheduler());
    queues.to_scheduler(wake(1), 0).await.unwrap();
    queues.to_scheduler(wake(2), 0).await.unwrap();
    for receive_count in 1..=world.receives_max() {
        let deliveries = source.receive(1).await;
        assert_eq!((order_ids(&deliveries), deliveries[0].receive_count), (vec![order(1).order_id], receive_count));
        if receive_count == 1 {
            // Its neighbour is handled, and is not touched by what becomes of the other.
            let neighbour = source.receive(10).await;
            source.delete(receipts(&neighbour)).await.unwrap();
        }
        world.pass(world.visibility_ms()).await;
    }
    assert!(is_empty(&source));
    queues.to_scheduler(wake(3), 0).await.unwrap();
    assert_eq!(order_ids(&source.receive(10).await), [order(3).order_id]);
}

pub async fn an_accepted_order_comes_unchanged(world: &impl World) {
    let (queues, source) = (world.ports(), world.submissions());
    queues.submit(order(1)).await.unwrap();
    let deliveries = source.receive(10).await;
    assert_eq!((deliveries.len(), &deliveries[0].body), (1, &Ok(order(1))));
    source.delete(receipts(&deliveries)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}
