//! [`Queues`] and [`Source`]: delivery, visibility, delay, receipts, priorities.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use domain::id::OrderId;
use domain::message::{Delivery, Priority, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{HasQueues, Queues, Source};
use futures_util::future::join;

use super::World;
use super::samples::{command, is_empty, order, receipts, request, wake};

fn order_ids(deliveries: &[Delivery<SchedulerMessage>]) -> Vec<OrderId> {
    deliveries.iter().map(|delivery| delivery.body.as_ref().unwrap().order_id()).collect()
}

pub async fn messages_come_in_their_order_and_go_when_deleted(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    for n in 1..=3 {
        queues.to_scheduler(wake(n), Priority::Normal, 0).await.unwrap();
    }
    let deliveries = source.receive(10).await;
    assert_eq!(order_ids(&deliveries), [1, 2, 3].map(|n| order(n).order_id));
    assert!(deliveries.iter().all(|delivery| delivery.receive_count == 1 && !delivery.is_redelivery()));
    source.delete(receipts(&deliveries)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}

pub async fn who_waits_gets_the_message_that_arrives(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    let (deliveries, sent) = join(source.receive(10), queues.to_scheduler(wake(1), Priority::Normal, 0)).await;
    sent.unwrap();
    assert_eq!(order_ids(&deliveries), [order(1).order_id]);
}

pub async fn no_more_than_the_limit_comes_at_once(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    for n in 1..=5 {
        queues.to_scheduler(wake(n), Priority::Normal, 0).await.unwrap();
    }
    assert_eq!(order_ids(&source.receive(2).await), [1, 2].map(|n| order(n).order_id));
    assert_eq!(order_ids(&source.receive(10).await), [3, 4, 5].map(|n| order(n).order_id));
    assert!(is_empty(&source));
}

pub async fn a_message_that_is_not_deleted_comes_again_after_its_visibility(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    queues.to_scheduler(wake(1), Priority::Normal, 0).await.unwrap();
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
    let (queues, source) = (world.ports().queues(), world.scheduler());
    queues.to_scheduler(wake(1), Priority::Normal, 0).await.unwrap();
    let first = source.receive(10).await;
    let (second, ()) = join(source.receive(10), world.pass(world.visibility_ms())).await;
    source.delete(receipts(&first)).await.unwrap();
    let (third, ()) = join(source.receive(10), world.pass(world.visibility_ms())).await;
    assert_eq!(third[0].receive_count, 3);
    source.delete(receipts(&second)).await.unwrap();
    source.delete(receipts(&third)).await.unwrap();
    // A second deletion has no effect.
    source.delete(receipts(&third)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}

pub async fn a_delayed_message_comes_after_its_delay(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    queues.to_scheduler(wake(1), Priority::Normal, 5_000).await.unwrap();
    queues.to_scheduler(wake(2), Priority::Normal, 3_000).await.unwrap();
    assert!(is_empty(&source));
    let (first, ()) = join(source.receive(10), world.pass(3_000)).await;
    assert_eq!(order_ids(&first), [order(2).order_id]);
    let (second, ()) = join(source.receive(10), world.pass(2_000)).await;
    assert_eq!(order_ids(&second), [order(1).order_id]);
    assert_eq!(second[0].receive_count, 1);
}

pub async fn a_request_that_is_returned_stays_hidden_as_long_as_asked(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.requests("inventory"));
    queues.to_agent("inventory", request(1)).await.unwrap();
    let first = source.receive(10).await;
    assert_eq!(first[0].body, Ok(request(1)));
    queues.return_to_agent("inventory", &first[0].receipt, 2_000).await.unwrap();
    world.pass(1_000).await;
    assert!(is_empty(&source));
    let (second, ()) = join(source.receive(10), world.pass(1_000)).await;
    assert_eq!((second.len(), second[0].receive_count), (1, 2));
    // An old receipt does not hide a message in flight elsewhere. A receipt hides it no longer than the visibility
    // time-out.
    queues.return_to_agent("inventory", &second[0].receipt, 2 * world.visibility_ms()).await.unwrap();
    queues.return_to_agent("inventory", &first[0].receipt, 0).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}

pub async fn each_agent_has_its_own_queue(world: &impl World) {
    let queues = world.ports().queues();
    queues.to_agent("inventory", request(1)).await.unwrap();
    queues.to_agent("payment", request(2)).await.unwrap();
    let inventory = world.requests("inventory").receive(10).await;
    let payment = world.requests("payment").receive(10).await;
    assert_eq!((inventory.len(), &inventory[0].body), (1, &Ok(request(1))));
    assert_eq!((payment.len(), &payment[0].body), (1, &Ok(request(2))));
    assert!(is_empty(&world.requests("shipping")));
}

pub async fn a_message_that_is_received_too_often_does_not_come_again(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    queues.to_scheduler(wake(1), Priority::Normal, 0).await.unwrap();
    queues.to_scheduler(wake(2), Priority::Normal, 0).await.unwrap();
    for receive_count in 1..=world.receives_max() {
        let deliveries = source.receive(1).await;
        assert_eq!((order_ids(&deliveries), deliveries[0].receive_count), (vec![order(1).order_id], receive_count));
        if receive_count == 1 {
            // Its neighbour is handled. The outcome of the other message does not affect it.
            let neighbour = source.receive(10).await;
            source.delete(receipts(&neighbour)).await.unwrap();
        }
        world.pass(world.visibility_ms()).await;
    }
    assert!(is_empty(&source));
    queues.to_scheduler(wake(3), Priority::Normal, 0).await.unwrap();
    assert_eq!(order_ids(&source.receive(10).await), [order(3).order_id]);
}

pub async fn an_accepted_order_comes_unchanged(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.submissions());
    queues.submit(order(1), 0).await.unwrap();
    let deliveries = source.receive(10).await;
    assert_eq!((deliveries.len(), &deliveries[0].body), (1, &Ok(order(1))));
    source.delete(receipts(&deliveries)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
    // A bulk job posts orders again at its rate.
    queues.submit(order(2), 3_000).await.unwrap();
    assert!(is_empty(&source));
    let (deliveries, ()) = join(source.receive(10), world.pass(3_000)).await;
    assert_eq!((deliveries.len(), &deliveries[0].body), (1, &Ok(order(2))));
}

pub async fn messages_of_high_priority_overtake_the_others_at_every_queue(world: &impl World) {
    let queues = world.ports().queues();
    for (n, priority) in [(1, Priority::Normal), (2, Priority::High), (3, Priority::Normal), (4, Priority::High)] {
        queues.submit(Order { priority: Some(priority), ..order(n) }, 0).await.unwrap();
        queues.to_scheduler(wake(n), priority, 0).await.unwrap();
        queues.to_agent("payment", Request { priority, ..request(n) }).await.unwrap();
    }
    queues.submit(order(5), 0).await.unwrap();
    let (submissions, scheduler, payment) = (world.submissions(), world.scheduler(), world.requests("payment"));
    let ids = |numbers: &[u32]| numbers.iter().map(|&n| order(n).order_id).collect::<Vec<_>>();
    // Messages of one priority keep their order, and a batch has one priority.
    for (from_api, others) in [(&[2, 4][..], &[2, 4][..]), (&[1, 3, 5], &[1, 3])] {
        let accepted = submissions.receive(10).await;
        assert_eq!(accepted.iter().map(|one| one.body.as_ref().unwrap().order_id).collect::<Vec<_>>(), ids(from_api));
        assert_eq!(order_ids(&scheduler.receive(10).await), ids(others));
        let requests = payment.receive(10).await;
        assert_eq!(requests.iter().map(|one| one.body.as_ref().unwrap().order_id).collect::<Vec<_>>(), ids(others));
    }
}

pub async fn of_four_batches_in_a_row_one_is_left_to_the_normal_priority(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    for n in 0..3 {
        queues.to_scheduler(wake(n), Priority::Normal, 0).await.unwrap();
    }
    for n in 100..112 {
        queues.to_scheduler(wake(n), Priority::High, 0).await.unwrap();
    }
    let mut received = Vec::new();
    for _ in 0..15 {
        received.extend(order_ids(&source.receive(1).await));
    }
    let expected = [100, 101, 102, 0, 103, 104, 105, 1, 106, 107, 108, 2, 109, 110, 111];
    assert_eq!(received, expected.map(|n| order(n).order_id));
}

pub async fn a_message_that_comes_again_is_in_its_priority(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.requests("payment"));
    queues.to_agent("payment", Request { priority: Priority::High, ..request(1) }).await.unwrap();
    let first = source.receive(10).await;
    queues.to_agent("payment", request(2)).await.unwrap();
    queues.return_to_agent("payment", &first[0].receipt, 1_000).await.unwrap();
    world.pass(1_000).await;
    let again = source.receive(10).await;
    assert_eq!((again.len(), again[0].body.as_ref().unwrap().order_id), (1, order(1).order_id));
    assert_eq!(source.receive(10).await[0].body.as_ref().unwrap().order_id, order(2).order_id);
}

pub async fn a_command_comes_in_its_priority_after_its_delay_and_goes_when_deleted(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.scheduler());
    queues.to_scheduler(command(1), Priority::High, 5_000).await.unwrap();
    queues.to_scheduler(wake(2), Priority::Normal, 0).await.unwrap();
    queues.to_scheduler(wake(3), Priority::Normal, 0).await.unwrap();
    let before = source.receive(1).await;
    assert_eq!(order_ids(&before), [order(2).order_id]);
    source.delete(receipts(&before)).await.unwrap();
    world.pass(5_000).await;
    let first = source.receive(10).await;
    assert_eq!((first.len(), &first[0].body), (1, &Ok(command(1))));
    let behind = source.receive(10).await;
    assert_eq!(order_ids(&behind), [order(3).order_id]);
    source.delete(receipts(&behind)).await.unwrap();
    let (again, ()) = join(source.receive(10), world.pass(world.visibility_ms())).await;
    assert_eq!((&again[0].body, again[0].receive_count), (&Ok(command(1)), 2));
    // Only the last delivery's receipt is valid.
    source.delete(receipts(&first)).await.unwrap();
    let (last, ()) = join(source.receive(10), world.pass(world.visibility_ms())).await;
    assert_eq!(last[0].receive_count, 3);
    source.delete(receipts(&last)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}
