//! Submission: F01 to F08.

use domain::batch::{Cause, Failure};
use domain::limits::{BATCH_MAX, CONFLICTS_MAX, DOCUMENT_BYTES_MAX};
use domain::message::{Action, Delivery, Receipt, Undecodable};
use domain::order::Order;
use domain::ports::{Source, Store};
use domain::task::{ProcessState, reason};
use memory::RECEIVES_MAX;
use memory::faulty::Fault;
use tests::conformance::samples;
use tests::world::{End, ONE_DONE, ONE_FAILED, Ran, World, now};

use super::scenes::{DEATHS, at_every_call, command};

const KEY: &str = "k1";
const DOCUMENT: &str = r#"{"Item":"book","Total":12.50}"#;

#[test]
fn f01_an_application_that_posts_again_with_the_same_key_has_one_order_and_the_same_answer() {
    let world = World::new();
    let order_id = world.order_of_key(KEY);
    let first = world.post_to_api(KEY, DOCUMENT).unwrap();
    assert_eq!((first.status, first.body["OrderID"].as_str()), (202, Some(&*order_id.to_string())));
    assert_eq!(world.post_to_api(KEY, DOCUMENT).unwrap(), first, "before it is stored");
    assert_eq!(world.submit(), Ran::Handled { done: 2, failed: 0 });
    let stored = world.post_to_api(KEY, DOCUMENT).unwrap();
    assert_eq!((stored.status, &stored.body["OrderID"]), (202, &first.body["OrderID"]), "when it is stored");
    world.run();
    let last = world.post_to_api(KEY, DOCUMENT).unwrap();
    assert_eq!((last.status, &last.body["OrderID"]), (202, &first.body["OrderID"]), "when it is done");
    world.ends(order_id, End::Processed);
    assert_eq!(world.tasks().len(), 1);
}

#[test]
fn f01_whatever_happens_to_the_api_an_order_that_is_posted_until_it_is_answered_is_one() {
    let faults = [Fault::Fails, Fault::AnswerLost, Fault::DiesBefore, Fault::DiesAfter];
    at_every_call(&faults, |call, fault| {
        let world = World::new();
        world.ports.after_calls(call, fault);
        let first = world.post_to_api(KEY, DOCUMENT);
        let was_met = world.ports.has_struck();
        match first.map(|answer| answer.status) {
            Some(202) => assert!(world.ports.done().contains(&"queues.submit"), "it said what is not so"),
            Some(503) | None => assert!(was_met),
            Some(other) => panic!("answered {other}"),
        }
        assert_eq!(world.post_to_api(KEY, DOCUMENT).unwrap().status, 202);
        world.ends(world.order_of_key(KEY), End::Processed);
        assert_eq!(world.tasks().len(), 1);
        was_met
    });
}

#[test]
fn f02_a_submission_that_arrives_twice_is_one_order() {
    let world = World::new();
    let order_id = world.post(1);
    world.post(1);
    // At the same time, and again while the order is in flight.
    assert_eq!(world.submit(), Ran::Handled { done: 2, failed: 0 });
    world.post(1);
    assert_eq!(world.submit(), ONE_DONE, "taken as done");
    world.to_the_end();
    assert_eq!((world.tasks().len(), world.remote.called().len()), (1, 3));
    world.ends(order_id, End::Processed);
}

#[test]
fn f03_killed_anywhere_in_the_submission_the_order_is_stored_once_and_begun() {
    at_every_call(&DEATHS, |call, death| {
        let world = World::new();
        let order_id = world.post(1);
        world.ports.after_calls(call, death);
        let ran = world.submit();
        let was_met = world.ports.has_struck();
        assert_eq!(ran, if was_met { Ran::Died } else { ONE_DONE });
        world.ends(order_id, End::Processed);
        was_met
    });
}

#[test]
fn f03_stored_and_never_woken_the_supervisor_finds_it_and_counts_nothing() {
    let world = World::new();
    let order_id = world.stored();
    assert_eq!(world.lose_scheduler_messages().len(), 1);
    assert_eq!(world.state(order_id), ProcessState::Pending);
    world.ends(order_id, End::Processed);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.attempt, step.failure_count), (1, 0));
}

#[test]
fn f04_a_transaction_whose_answer_was_lost_succeeds_when_it_is_tried_again_after_ten_minutes() {
    let world = World::new();
    let order_id = world.post(1);
    world.ports.next("store.insert", Fault::AnswerLost);
    assert_eq!(world.submit(), ONE_FAILED);
    let stored = world.task(order_id);
    world.memory.advance(10 * 60_000);
    assert_eq!(world.submit(), ONE_DONE);
    assert_eq!(world.task(order_id), stored, "it was stored once");
    world.ends(order_id, End::Processed);
}

#[test]
fn f05_a_transaction_that_is_throttled_is_tried_again_a_bounded_number_of_times() {
    let world = World::new();
    let order_id = world.post(1);
    for _ in 1..RECEIVES_MAX {
        world.ports.next("store.insert", Fault::Fails);
        assert_eq!(world.submit(), ONE_FAILED, "once in each delivery, so there is no storm");
        assert_eq!(world.submit(), Ran::Idle);
        world.until_redelivery();
    }
    world.ends(order_id, End::Processed);
}

#[test]
fn f05_a_task_that_all_change_at_once_is_tried_a_bounded_number_of_times_and_then_again_later() {
    let world = World::new();
    let order_id = world.stored();
    for _ in 0..CONFLICTS_MAX {
        world.ports.next("store.commit", Fault::Conflicts);
    }
    assert_eq!(world.schedule(), ONE_FAILED);
    assert!(world.ports.has_struck(), "not one try more");
    world.ends(order_id, End::Processed);
    assert_eq!(world.step(order_id, "reserve").failure_count, 0);
}

#[test]
fn f06_the_same_key_with_another_document_is_refused_and_the_first_order_untouched() {
    const OTHER: &str = r#"{"Item":"book","Total":99.00}"#;
    let world = World::new();
    let order_id = world.order_of_key(KEY);
    assert_eq!(world.post_to_api(KEY, DOCUMENT).unwrap().status, 202);
    // Nothing is stored yet, so the API cannot know; the submission does.
    assert_eq!(world.post_to_api(KEY, OTHER).unwrap().status, 202);
    assert_eq!(world.submit(), Ran::Handled { done: 2, failed: 0 });
    let stored = world.task(order_id);
    assert_eq!(world.post_to_api(KEY, OTHER).unwrap().status, 422);
    assert_eq!(world.submit(), Ran::Idle);
    assert_eq!(world.task(order_id), stored);
    assert_eq!(now(world.memory.order(order_id)).unwrap().unwrap().document.text(), DOCUMENT);
    world.ends(order_id, End::Processed);
    assert_eq!(world.tasks().len(), 1);
}

#[test]
fn f07_of_a_batch_with_a_poison_record_only_that_one_fails() {
    let world = World::new();
    let orders = [1, 2, 3].map(|n| world.post(n));
    let mut batch = now(world.memory.submissions().receive(BATCH_MAX));
    let receipt = Receipt { message_id: "poison".into(), handle: "poison".into() };
    let body = Err::<Order, _>(Undecodable { problem: "poison".into() });
    batch.insert(1, Delivery { receipt: receipt.clone(), receive_count: 1, parent: None, body });
    let failures = now(submission::handle(&world.ports, &world.instance("submission"), batch));
    assert_eq!(failures.0, [Failure { receipt, cause: Cause::Unreadable }]);
    world.end_all(&orders.map(|order_id| (order_id, End::Processed)));
}

#[test]
fn f07_an_oversized_order_is_refused_at_the_api_and_never_queued() {
    let world = World::new();
    let document = format!(r#"{{"Item":"{}"}}"#, "x".repeat(DOCUMENT_BYTES_MAX));
    assert_eq!(world.post_to_api("large", &document).unwrap().status, 413);
    assert_eq!(world.submit(), Ran::Idle);
    assert_eq!(world.post_to_api(KEY, DOCUMENT).unwrap().status, 202);
    world.ends(world.order_of_key(KEY), End::Processed);
    assert_eq!(world.tasks().len(), 1);
}

#[test]
fn f08_a_submission_that_ends_in_the_dead_letter_queue_is_recorded_as_error_with_an_alert_and_can_be_resubmitted() {
    let world = World::new();
    let order_id = world.post_order(Order { reply_channel: Some("shop-replies".into()), ..samples::order(1) });
    world.memory.register_channel("shop-replies");
    world.memory.is_down("store.insert");
    for _ in 0..RECEIVES_MAX {
        assert_eq!(world.submit(), ONE_FAILED);
        world.until_redelivery();
    }
    assert_eq!(world.submit(), Ran::Idle, "it has gone to the dead letters");
    assert_eq!(world.settle_dead_letters(), ONE_FAILED, "nothing is lost while the store is away");
    world.memory.is_up("store.insert");
    world.until_redelivery();
    assert_eq!(
        (world.settle_dead_letters(), world.alerts(order_id).len()),
        (ONE_DONE, 1),
        "an operator is called at once"
    );
    world.ends(order_id, End::Error(reason::DEAD_LETTER));
    assert!(world.remote.called().is_empty(), "nothing starts before somebody has looked");
    let told: Vec<_> = world.memory.notified().into_iter().map(|(_, event)| event.kind).collect();
    assert!(told.contains(&"OrderFailed".into()), "{told:?}");
    world.tell_scheduler(command(&world, order_id, Action::Resubmit));
    world.ends(order_id, End::Processed);
}
