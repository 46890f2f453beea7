//! Rules 10 and 11: the notices to the application and the operator, and their times.

use domain::id::OrderId;
use domain::message::CloudEvent;
use domain::task::{Direction, ProcessState};
use memory::faulty::Fault;
use tests::conformance::samples;

use tests::world::{ONE_DONE, Ran, World};

const CHANNEL: &str = "shop-replies";
/// How long a notice may be unsent before the supervisor sends it again, in milliseconds.
const RESEND_MS: u64 = 30_000;

/// Posts an order that names a reply channel.
fn post(world: &World) -> OrderId {
    world.memory.register_channel(CHANNEL);
    world.post_order(domain::order::Order { reply_channel: Some(CHANNEL.into()), ..samples::order(1) })
}

fn kinds(events: &[CloudEvent]) -> Vec<&str> {
    events.iter().map(|event| &*event.kind).collect()
}

fn notified(world: &World) -> Vec<CloudEvent> {
    world.memory.notified().into_iter().map(|(_, event)| event).collect()
}

/// Brings an order to a refused undo: the shortest way into `Error`.
fn held(world: &World, order_id: OrderId) {
    world.remote.declines("reserve", Direction::Forward);
    world.remote.declines("reserve", Direction::Undo);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Error);
}

#[test]
fn rule_10_the_reply_channel_hears_of_each_state_after_it_is_committed_with_its_version() {
    let world = World::new();
    let order_id = post(&world);
    world.run();
    let events = notified(&world);
    assert_eq!(kinds(&events), ["OrderReceived", "OrderProcessed"]);
    let versions = events.iter().map(|event| {
        let data: serde_json::Value = serde_json::from_str(event.data.text()).unwrap();
        assert_eq!((&data["OrderID"], &data["CorrelationID"]), (&order_id.to_string().into(), &"sample-1".into()));
        data["Version"].as_u64().unwrap()
    });
    let versions: Vec<u64> = versions.collect();
    assert!(versions[0] < versions[1], "the receiver keeps the highest: {versions:?}");
    // The first write to a channel follows the claim, the last one follows the end.
    let done = world.ports.done();
    let last_notice = done.iter().rposition(|&what| what == "events.notify").unwrap();
    let commits = done[..last_notice].iter().filter(|&&what| what == "store.commit").count();
    assert!(commits >= 4, "{done:?}");
    assert!(world.task(order_id).unsent.is_empty());
}

#[test]
fn rule_10_killed_before_the_last_notice_it_is_sent_when_the_message_comes_again() {
    let world = World::new();
    let order_id = post(&world);
    assert_eq!((world.submit(), world.serve("inventory")), (ONE_DONE, ONE_DONE));
    for agent in ["payment", "shipping"] {
        assert_eq!((world.schedule(), world.serve(agent)), (ONE_DONE, ONE_DONE));
    }
    world.ports.next("events.notify", Fault::DiesBefore);
    assert_eq!(world.schedule(), Ran::Died);
    assert_eq!((world.state(order_id), kinds(&notified(&world))), (ProcessState::Processed, vec!["OrderReceived"]));
    world.until_redelivery();
    world.run();
    assert_eq!(kinds(&notified(&world)), ["OrderReceived", "OrderProcessed"]);
}

#[test]
fn rule_10_a_channel_that_is_gone_does_not_hold_up_the_order_and_is_tried_again() {
    let world = World::new();
    let channel = Some("gone".into());
    let order_id = world.post_order(domain::order::Order { reply_channel: channel, ..samples::order(1) });
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Processed);
    assert!(world.memory.notified().is_empty());
    world.memory.register_channel("gone");
    world.memory.advance(RESEND_MS);
    world.supervise();
    assert_eq!(kinds(&notified(&world)), ["OrderReceived", "OrderProcessed"]);
    world.memory.advance(10 * RESEND_MS);
    assert_eq!(world.supervise().due, 0, "and that is the end of it");
}

#[test]
fn rule_11_an_order_in_error_comes_with_one_alert() {
    let world = World::new();
    let order_id = world.post(1);
    held(&world, order_id);
    let published = world.memory.published();
    assert_eq!(kinds(&published), ["OrderNeedsOperator"]);
    let data: serde_json::Value = serde_json::from_str(published[0].data.text()).unwrap();
    assert_eq!((&data["ProcessState"], &data["Reason"]["Code"]), (&"Error".into(), &"compensation-failed".into()));
    assert_eq!(&*published[0].subject, order_id.to_string());
    let done = world.ports.done();
    let alert = done.iter().position(|&what| what == "events.publish").unwrap();
    assert_eq!(done[alert - 1], "store.commit", "{done:?}");
    world.memory.advance(10 * RESEND_MS);
    world.supervise();
    assert_eq!(world.memory.published().len(), 1, "it is not sent again");
}

#[test]
fn rule_11_an_alert_that_cannot_be_sent_is_sent_by_the_supervisor_later() {
    let world = World::new();
    let order_id = world.post(1);
    world.ports.next("events.publish", Fault::Fails);
    world.ports.next("events.publish", Fault::Fails);
    held(&world, order_id);
    assert!(world.memory.published().is_empty());
    world.supervise();
    assert!(world.memory.published().is_empty(), "not before its time");
    // Each pause is twice the previous one.
    for (run, sent) in [(0, 0), (1, 1), (2, 1)] {
        world.memory.advance(RESEND_MS << run);
        world.supervise();
        assert_eq!(world.memory.published().len(), sent, "run {run}");
    }
    assert_eq!(world.state(order_id), ProcessState::Error);
}

#[test]
fn rule_11_an_alert_whose_answer_was_lost_is_sent_again_under_the_same_id() {
    let world = World::new();
    let order_id = world.post(1);
    world.ports.next("events.publish", Fault::AnswerLost);
    held(&world, order_id);
    world.memory.advance(RESEND_MS);
    world.supervise();
    let [first, second] = world.memory.published().try_into().unwrap();
    assert_eq!((first.id, first.kind), (second.id, second.kind));
}

#[test]
fn rule_11_killed_before_the_alert_it_is_sent_when_the_message_comes_again() {
    let world = World::new();
    let order_id = world.post(1);
    world.ports.next("events.publish", Fault::DiesBefore);
    held(&world, order_id);
    assert!(world.memory.published().is_empty());
    world.until_redelivery();
    world.run();
    assert_eq!(kinds(&world.memory.published()), ["OrderNeedsOperator"]);
}
