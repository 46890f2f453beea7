//! Messages of every queue, given to the handlers that they are for.

use std::future::Future;

use domain::batch::Failures;
use domain::message::{Delivery, Receipt, decode};
use domain::order::Order;
use domain::ports::{DeadLetter, DeadLetterRecord, Records, SourceQueue, Store};
use domain::task::Task;
use serde::de::DeserializeOwned;

use crate::conformance::samples::NOON;
use crate::world::{World, drive, now};

/// Whatever comes off a queue is handled, or reported as what it is; the tasks stay readable, and no dead letter is let go
/// without a record.
///
/// The input is the name of a queue, and on the next line a message.
pub(super) fn run(input: &[u8]) {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return };
    let (queue, body) = (&input[..end], &input[end + 1..]);
    let world = World::new();
    let order_id = world.claimed();
    let instance = world.instance("fuzz");
    match queue {
        b"submission" => {
            let batch = delivered::<Order>(body);
            let is_order = batch[0].body.is_ok();
            let failed = feed(&world, submission::handle(&world.ports, &instance, batch));
            assert_ne!(is_order, failed, "an order is stored or refused, and what is none is left");
        }
        b"scheduler" => {
            let batch = delivered(body);
            let is_message = batch[0].body.is_ok();
            let failed = feed(&world, scheduler::handle(&world.ports, &instance, batch));
            assert_ne!(is_message, failed, "a message is taken or dropped, and what is none is left");
        }
        b"agent" => {
            feed(&world, agent::handle(&world.ports, &world.agent("inventory"), delivered(body)));
        }
        b"letter" => settle(&world, delivered::<DeadLetter>(body)),
        b"letter submission" => settle(&world, dead_letter(SourceQueue::Submission, body)),
        b"letter scheduler" => settle(&world, dead_letter(SourceQueue::Scheduler, body)),
        b"letter agent" => settle(&world, dead_letter(SourceQueue::Agent("inventory".into()), body)),
        _ => {}
    }
    assert!(now(world.memory.task(order_id)).expect("a store").is_some());
    for task in world.tasks() {
        let stored = serde_json::to_vec(&task).expect("a record");
        assert_eq!(super::round_trip::<Task>(&stored).as_ref(), Some(&*task));
    }
}

fn receipt() -> Receipt {
    Receipt { message_id: "m1".into(), handle: "h1".into() }
}

fn delivered<M: DeserializeOwned>(body: &[u8]) -> Vec<Delivery<M>> {
    vec![Delivery { receipt: receipt(), receive_count: 2, parent: None, body: decode(body) }]
}

fn dead_letter(queue: SourceQueue, body: &[u8]) -> Vec<Delivery<DeadLetter>> {
    let body = String::from_utf8_lossy(body).as_ref().into();
    let dead_letter = DeadLetter { queue, message_id: "m1".into(), body, receive_count: 10, at: NOON };
    vec![Delivery { receipt: receipt(), receive_count: 1, parent: None, body: Ok(dead_letter) }]
}

/// Whether the message was reported as failed.
fn feed(world: &World, handling: impl Future<Output = Failures>) -> bool {
    let Failures(failed) = drive(&world.memory, &world.ports, handling).expect("it does not die");
    !failed.is_empty()
}

fn settle(world: &World, dead_letters: Vec<Delivery<DeadLetter>>) {
    let instance = world.instance("fuzz");
    assert!(
        !feed(world, supervisor::dead_letters(&world.ports, &instance, dead_letters)),
        "the letter was not settled"
    );
    let records: Vec<DeadLetterRecord> = now(Records::list(&world.memory, 10)).expect("letters");
    assert_eq!(records.len(), 1, "it was let go without a record");
}
