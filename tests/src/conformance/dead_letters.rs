//! The dead letters of all queues.

#![allow(missing_docs, clippy::missing_panics_doc, reason = "the names of these tests say what they are about")]

use std::collections::BTreeSet;

use domain::message::{Priority, Request, SchedulerMessage, decode};
use domain::order::Order;
use domain::ports::{DeadLetter, HasQueues, Queues, Source, SourceQueue};
use futures_util::future::join;

use super::World;
use super::samples::{command, is_empty, order, receipts, request, wake};

/// Receives the messages of a source until they are dead letters.
async fn let_die<M>(world: &impl World, source: &impl Source<M>) {
    for _ in 0..world.receives_max() {
        assert!(!source.receive(10).await.is_empty());
        world.pass(world.visibility_ms()).await;
    }
    assert!(is_empty(source));
}

/// Receives this number of dead letters.
async fn dead_letters(world: &impl World, count: usize) -> Vec<DeadLetter> {
    let (source, mut dead_letters) = (world.dead_letters(), Vec::new());
    while dead_letters.len() < count {
        let deliveries = source.receive(count).await;
        source.delete(receipts(&deliveries)).await.unwrap();
        dead_letters.extend(deliveries.into_iter().map(|delivery| delivery.body.unwrap()));
    }
    dead_letters
}

pub async fn what_is_delivered_too_often_is_a_dead_letter_of_its_queue(world: &impl World) {
    let queues = world.ports().queues();
    let urgent = Order { priority: Some(Priority::High), ..order(1) };
    queues.submit(urgent.clone(), 0).await.unwrap();
    let_die(world, &world.submissions()).await;
    let [accepted] = dead_letters(world, 1).await.try_into().unwrap();
    assert_eq!((accepted.queue, accepted.receive_count), (SourceQueue::Submission, world.receives_max()));
    assert_eq!(decode::<Order>(accepted.body.as_bytes()), Ok(urgent));

    queues.to_agent("payment", request(4)).await.unwrap();
    let_die(world, &world.requests("payment")).await;
    let [requested] = dead_letters(world, 1).await.try_into().unwrap();
    assert_eq!(requested.queue, SourceQueue::Agent("payment".into()));
    assert_eq!(decode::<Request>(requested.body.as_bytes()), Ok(request(4)));

    queues.to_scheduler(wake(2), Priority::Normal, 0).await.unwrap();
    queues.to_scheduler(command(3), Priority::Normal, 0).await.unwrap();
    let_die(world, &world.scheduler()).await;
    for (dead_letter, message) in dead_letters(world, 2).await.into_iter().zip([wake(2), command(3)]) {
        assert_eq!((dead_letter.queue, dead_letter.receive_count), (SourceQueue::Scheduler, world.receives_max()));
        assert_eq!(decode::<SchedulerMessage>(dead_letter.body.as_bytes()), Ok(message));
    }
}

pub async fn who_waits_for_dead_letters_gets_the_one_that_comes(world: &impl World) {
    world.ports().queues().to_scheduler(wake(1), Priority::Normal, 0).await.unwrap();
    let scheduler = world.scheduler();
    let (dead_letters, ()) = join(dead_letters(world, 1), let_die(world, &scheduler)).await;
    assert_eq!(dead_letters[0].queue, SourceQueue::Scheduler);
}

pub async fn a_dead_letter_is_delivered_until_it_is_deleted(world: &impl World) {
    world.ports().queues().to_scheduler(wake(1), Priority::Normal, 0).await.unwrap();
    let_die(world, &world.scheduler()).await;
    let source = world.dead_letters();
    let first = source.receive(10).await;
    let mut last = Vec::new();
    // This queue has no dead-letter queue behind it.
    for receive_count in 2..=world.receives_max() + 3 {
        world.pass(world.visibility_ms()).await;
        last = source.receive(10).await;
        assert_eq!((last.len(), last[0].receive_count), (1, receive_count));
        assert_eq!(last[0].body, first[0].body);
    }
    source.delete(receipts(&first)).await.unwrap();
    source.delete(receipts(&last)).await.unwrap();
    world.pass(world.visibility_ms()).await;
    assert!(is_empty(&source));
}

pub async fn no_two_dead_letters_have_the_same_id(world: &impl World) {
    let (queues, source) = (world.ports().queues(), world.dead_letters());
    let mut ids = BTreeSet::new();
    for n in 1..=2 {
        queues.submit(order(n), 0).await.unwrap();
        let_die(world, &world.submissions()).await;
        queues.to_scheduler(wake(n), Priority::Normal, 0).await.unwrap();
        let_die(world, &world.scheduler()).await;
        // The outcome stays under the dead letter's id after the dead letter is gone.
        while ids.len() < 2 * n as usize {
            let deliveries = source.receive(10).await;
            assert!(deliveries.iter().all(|delivery| ids.insert(delivery.body.clone().unwrap().message_id)));
            source.delete(receipts(&deliveries)).await.unwrap();
        }
    }
}
