use super::*;

const OPTIONS: QueueOptions = QueueOptions { receives_max: 3, visibility_ms: 1_000 };

fn queue() -> Arc<Queue<u32>> {
    Arc::new(Queue::new(OPTIONS, 1))
}

async fn receive(queue: &Queue<u32>, limit: usize) -> Vec<u32> {
    match queue.receive(limit).await {
        Received::Deliveries(deliveries) => deliveries.into_iter().filter_map(|one| one.body.ok()).collect(),
        Received::Dead(dead) => panic!("{dead:?}"),
    }
}

/// A receiver that already waits when the next line runs.
async fn waiting(queue: &Arc<Queue<u32>>, limit: usize) -> tokio::task::JoinHandle<Vec<u32>> {
    let queue = queue.clone();
    let receiver = tokio::spawn(async move { receive(&queue, limit).await });
    tokio::task::yield_now().await;
    receiver
}

#[tokio::test(start_paused = true)]
async fn who_waits_beside_another_gets_what_the_other_lets_lapse() {
    let queue = queue();
    let (first, second) = (waiting(&queue, 10).await, waiting(&queue, 10).await);
    queue.push(7, Priority::Normal, 0);
    // One receiver holds the message and never deletes it. The other receiver waited before any message arrived.
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (vec![7], vec![7]));
}

#[tokio::test(start_paused = true)]
async fn messages_that_arrive_together_wake_as_many_as_they_need() {
    let queue = queue();
    let receivers = [waiting(&queue, 1).await, waiting(&queue, 1).await, waiting(&queue, 1).await];
    for message in [1, 2, 3] {
        queue.push(message, Priority::Normal, 0);
    }
    let started = later(0);
    let mut received = Vec::new();
    for receiver in receivers {
        received.extend(receiver.await.unwrap());
    }
    received.sort_unstable();
    assert_eq!((received, later(0)), (vec![1, 2, 3], started), "none of them had to wait for a time-out");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_waits_for_a_late_message_is_woken_for_an_earlier_one() {
    let queue = queue();
    queue.push(1, Priority::Normal, 50_000);
    let receiver = waiting(&queue, 10).await;
    let started = later(0);
    queue.push(2, Priority::Normal, 20);
    assert_eq!(receiver.await.unwrap(), [2]);
    assert!(later(0) - started < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_gone_leave_nothing_behind() {
    let queue = queue();
    for message in 0..100 {
        queue.push(message, Priority::Normal, u64::from(message % 2));
    }
    for _ in 0..100 {
        let Received::Deliveries(deliveries) = queue.receive(10).await else { panic!("dead") };
        assert!(deliveries.iter().all(|delivery| queue.delete(&delivery.receipt).is_none()));
        if queue.len() == 0 {
            break;
        }
    }
    let messages = lock(&queue.messages);
    assert!(messages.held.is_empty() && messages.ready.is_empty() && messages.hidden.is_empty());
}

/// Messages with the same tens are about one order.
fn in_turns() -> Arc<Queue<u32>> {
    let order_of = |message: &u32| OrderId::from_idempotency_key("tests", &(message / 10).to_string());
    Arc::new(Queue::new(OPTIONS, 1).in_turns(order_of))
}

async fn deliveries(queue: &Queue<u32>) -> Vec<Delivery<u32>> {
    let Received::Deliveries(deliveries) = queue.receive(10).await else { panic!("dead") };
    deliveries
}

fn bodies(deliveries: &[Delivery<u32>]) -> Vec<u32> {
    deliveries.iter().filter_map(|one| one.body.clone().ok()).collect()
}

#[tokio::test(start_paused = true)]
async fn messages_about_an_order_wait_for_its_batch_before_and_come_together() {
    let queue = in_turns();
    [10, 11].into_iter().for_each(|message| queue.push(message, Priority::Normal, 0));
    let first = deliveries(&queue).await;
    assert_eq!(bodies(&first), [10, 11], "those that are there make one batch");
    [12, 20, 13].into_iter().for_each(|message| queue.push(message, Priority::Normal, 0));
    queue.push(14, Priority::High, 0);
    assert_eq!(bodies(&deliveries(&queue).await), [20], "other orders do not wait");
    let receiver = waiting(&queue, 10).await;
    let started = later(0);
    queue.delete(&first[0].receipt);
    tokio::task::yield_now().await;
    assert!(!receiver.is_finished(), "a message of the batch is still in flight");
    queue.delete(&first[1].receipt);
    assert_eq!((receiver.await.unwrap(), later(0)), (vec![14], started), "the high priority goes first");
}

#[tokio::test(start_paused = true)]
async fn a_message_does_not_wait_long_for_a_batch_that_does_not_end() {
    let queue = in_turns();
    queue.push(10, Priority::Normal, 0);
    let held = deliveries(&queue).await;
    queue.push(11, Priority::Normal, 0);
    let started = later(0);
    assert_eq!(bodies(&deliveries(&queue).await), [11]);
    assert_eq!(later(0) - started, Duration::from_millis(TURN_MS));
    assert_eq!(bodies(&held), [10]);
    assert_eq!(bodies(&deliveries(&queue).await), [10, 11], "their time-outs are others");
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_messages_are_gone_has_no_turn() {
    let queue = in_turns();
    for round in 0..3 {
        [10, 11, 12].into_iter().for_each(|message| queue.push(message, Priority::Normal, 0));
        let held = deliveries(&queue).await;
        queue.push(13, Priority::Normal, 0);
        match round {
            0 => held.iter().for_each(|one| _ = queue.delete(&one.receipt)),
            1 => held.iter().for_each(|one| assert!(queue.hide(&one.receipt, 50))),
            _ => queue.redeliver(50),
        }
        let mut left = queue.len();
        while left > 0 {
            deliveries(&queue).await.iter().for_each(|one| _ = queue.delete(&one.receipt));
            left = queue.len();
        }
        let messages = lock(&queue.messages);
        assert!(messages.turns.is_empty() && messages.hidden.is_empty() && messages.ready.is_empty(), "{round}");
    }
}
