//! The scheduler.

use domain::id::OrderId;
use domain::message::{Action, Command, Deferral, Outcome, SchedulerMessage, Settled, Settlement, Wake};
use domain::task::{Direction, reason};
use tests::conformance::samples;
use tests::world::{EXPIRED_MS, End, PATIENT, World};

use super::agents::{at_work, sent_again};
use super::node::{Node, Scene, claimed, command, steps_done, stored, unhurried, with, world};

use Direction::{Forward, Undo};

const HANDLER: &str = "scheduler";

/// One step, then two parallel steps, then one step.
const DIAMOND: &str = r#"
name = "order"
version = 1
[[step]]
name = "reserve"
agent = "inventory"
complete_within = "10m"
[[step]]
name = "charge"
agent = "payment"
after = ["reserve"]
complete_within = "10m"
[[step]]
name = "ship"
agent = "shipping"
after = ["reserve"]
complete_within = "10m"
[[step]]
name = "thank"
agent = "inventory"
after = ["charge", "ship"]
complete_within = "10m"
"#;

/// People decide first.
const APPROVAL: &str = r#"
name = "order"
version = 1
[[step]]
name = "approve"
kind = "approval"
on_rejected = "hold"
[[step]]
name = "reserve"
agent = "inventory"
after = ["approve"]
complete_within = "10m"
"#;

/// Orders stop at a rejection.
fn holding() -> World {
    with(&PATIENT.replace("on_rejected = \"compensate\"", "on_rejected = \"hold\""))
}

/// An order in `Error`, since its first step was rejected.
pub(crate) fn held() -> (World, OrderId) {
    let world = holding();
    world.remote.declines("reserve", Forward);
    let order_id = claimed(&world);
    steps_done(&world, &["inventory"]);
    (world, order_id)
}

/// An operator's command is on the queue.
fn commanded(world: World, order_id: OrderId, action: Action) -> Scene {
    world.tell_scheduler(command(&world, order_id, action));
    Scene::fed(world, World::schedule)
}

/// An order that waits for people.
fn asking() -> (World, OrderId) {
    let world = with(APPROVAL);
    let order_id = claimed(&world);
    (world, order_id)
}

fn decision(world: &World, order_id: OrderId, action: Action, by: &str) -> SchedulerMessage {
    let SchedulerMessage::Command(decision) = command(world, order_id, action) else { unreachable!() };
    SchedulerMessage::Command(Command { by: by.into(), ..decision })
}

/// A person's decision is on the queue.
fn decided(world: World, order_id: OrderId, action: Action) -> Scene {
    world.tell_scheduler(decision(&world, order_id, action, "ann"));
    Scene::fed(world, World::schedule)
}

/// The reply of the first step's attempt is on the queue.
fn replied(world: &World, outcome: &Outcome) {
    for request in world.lose_requests("inventory") {
        world.tell_scheduler(SchedulerMessage::Reply(request.reply(outcome.clone())));
    }
}

pub(crate) fn nodes() -> Vec<Node> {
    [wakes(), replies(), commands()].into_iter().flatten().collect()
}

fn node(what: &'static str, scene: fn() -> Scene) -> Node {
    Node { handler: HANDLER, what, scene }
}

fn wakes() -> Vec<Node> {
    vec![
        node("a wake: claims the first step", || {
            let world = world();
            let order_id = stored(&world);
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("a wake that comes again: sends the request again", || {
            let world = world();
            let order_id = stored(&world);
            world.ports.next("queues.to_agent", memory::faulty::Fault::DiesBefore);
            world.schedule();
            world.until_redelivery();
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("a wake that comes again while the service is at work", || {
            let world = world();
            world.remote.always("reserve", at_work());
            let order_id = stored(&world);
            sent_again(&world, "inventory");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("a wake before its time: wakes later", || {
            let world = world();
            let order_id = claimed(&world);
            replied(&world, &Outcome::Deferred(Deferral::after(60_000)));
            world.schedule();
            world.tell_scheduler(SchedulerMessage::Wake(Wake { order_id, hops: 0 }));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("a wake for an order that is not there", || {
            let world = world();
            world.tell_scheduler(samples::wake(7));
            Scene::fed(world, World::schedule)
        }),
        node("a wake of a chain without end: asks an operator", || {
            let world = unhurried();
            let order_id = stored(&world);
            world.lose_scheduler_messages();
            world.tell_scheduler(SchedulerMessage::Wake(Wake { order_id, hops: 10_000 }));
            Scene::fed(world, World::schedule).ends(order_id, End::Error(reason::HOP_LIMIT))
        }),
    ]
}

fn replies() -> Vec<Node> {
    vec![
        node("a success: claims the two next steps in the same write", || {
            let world = with(DIAMOND);
            let order_id = claimed(&world);
            world.serve("inventory");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("a success that comes again while the service of a sibling is at work", || {
            let world = with(DIAMOND);
            world.remote.always("charge", at_work());
            let order_id = claimed(&world);
            steps_done(&world, &["inventory"]);
            world.serve("shipping");
            for _ in 0..2 {
                world.ports.next("store.commit", memory::faulty::Fault::Fails);
                world.schedule();
                assert!(world.ports.has_struck(), "the result was to be written");
                world.until_redelivery();
            }
            world.serve("payment");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("two successes of one order in one batch", || {
            let world = with(DIAMOND);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory"]);
            world.serve("payment");
            world.serve("shipping");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("the last success: ends the order and tells the application", || {
            let world = world();
            let order_id = claimed(&world);
            steps_done(&world, &["inventory", "payment"]);
            world.serve("shipping");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).checked(|world| {
                let told: Vec<_> = world.memory.notified().into_iter().map(|(_, event)| event.kind).collect();
                assert!(told.iter().any(|kind| &**kind == "OrderProcessed"), "{told:?}");
            })
        }),
        node("a refusal: turns the order round", || {
            let world = world();
            world.remote.declines("charge", Forward);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory"]);
            world.serve("payment");
            Scene::fed(world, World::schedule).ends(order_id, End::Compensated)
        }),
        node("a refusal: asks an operator", || {
            let world = holding();
            world.remote.declines("reserve", Forward);
            let order_id = claimed(&world);
            world.serve("inventory");
            Scene::fed(world, World::schedule).ends(order_id, End::Error(reason::REJECTED))
        }),
        node("an attempt that is put off: wakes later", || {
            let world = world();
            let order_id = claimed(&world);
            replied(&world, &Outcome::Deferred(Deferral::after(60_000)));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("an attempt that is declined: asks another agent", || {
            let world = world();
            let order_id = claimed(&world);
            let fallback = Some(vec!["payment".into()]);
            replied(&world, &Outcome::Deferred(Deferral { wait_ms: 60_000, fallback }));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("an undo that is done: claims the undo before it", || {
            let world = world();
            world.remote.declines("ship", Forward);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory", "payment", "shipping", "shipping"]);
            world.serve("payment");
            Scene::fed(world, World::schedule).ends(order_id, End::Compensated)
        }),
        node("the last undo: ends the order", || {
            let world = world();
            world.remote.declines("charge", Forward);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory", "payment", "payment"]);
            world.serve("inventory");
            Scene::fed(world, World::schedule).ends(order_id, End::Compensated)
        }),
        node("an undo that is refused: asks an operator", || {
            let world = world();
            world.remote.declines("charge", Forward);
            world.remote.declines("charge", Undo);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory", "payment"]);
            world.serve("payment");
            Scene::fed(world, World::schedule).ends(order_id, End::Error(reason::COMPENSATION_FAILED))
        }),
        node("a late success of the attempt before", || {
            let world = world();
            let order_id = claimed(&world);
            world.serve("inventory");
            let late = world.lose_scheduler_messages();
            world.memory.advance(EXPIRED_MS);
            world.supervise();
            world.lose_scheduler_messages();
            late.into_iter().for_each(|message| world.tell_scheduler(message));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("a reply that nobody waits for", || {
            let world = world();
            let order_id = claimed(&world);
            world.serve("inventory");
            let replies = world.lose_scheduler_messages();
            replies.iter().for_each(|message| world.tell_scheduler(message.clone()));
            world.schedule();
            replies.into_iter().for_each(|message| world.tell_scheduler(message));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
    ]
}

fn commands() -> Vec<Node> {
    vec![
        node("a resubmit", || {
            let (world, order_id) = held();
            commanded(world, order_id, Action::Resubmit).ends(order_id, End::Processed)
        }),
        node("a settle", || {
            let (world, order_id) = held();
            let SchedulerMessage::Command(command) = command(&world, order_id, Action::Settle) else { unreachable!() };
            world.remote.acts_by_hand(order_id, "reserve", Forward);
            let settle = Settlement { step: "reserve".into(), outcome: Settled::Done, output: None };
            world.tell_scheduler(SchedulerMessage::Command(Command { settle: Some(settle), ..command }));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("an approval", || {
            let (world, order_id) = asking();
            decided(world, order_id, Action::Approve).ends(order_id, End::Processed)
        }),
        node("an approval that is rejected", || {
            let (world, order_id) = asking();
            decided(world, order_id, Action::Reject).ends(order_id, End::Error(reason::REJECTED))
        }),
        node("an approval that a second person rejects", || {
            let (world, order_id) = asking();
            world.tell_scheduler(decision(&world, order_id, Action::Approve, "ann"));
            world.schedule();
            world.tell_scheduler(decision(&world, order_id, Action::Reject, "bob"));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed)
        }),
        node("a close", || {
            let (world, order_id) = held();
            // No call of the attempts in flight can have its effect any more.
            world.memory.advance(2 * 60 * 60 * 1_000);
            commanded(world, order_id, Action::Close).ends(order_id, End::Closed)
        }),
        node("a note", || {
            let (world, order_id) = held();
            let SchedulerMessage::Command(command) = command(&world, order_id, Action::Note) else { unreachable!() };
            world.tell_scheduler(SchedulerMessage::Command(Command { take: Some(true), ..command }));
            Scene::fed(world, World::schedule).ends(order_id, End::Error(reason::REJECTED)).checked(move |world| {
                let task = world.task(order_id);
                assert_eq!((task.notes(), task.taken.is_some()), (1, true));
            })
        }),
        node("a cancel of an order under way", || {
            let world = world();
            let order_id = claimed(&world);
            steps_done(&world, &["inventory"]);
            // Otherwise it would be done before the next delivery of the command.
            world.lose_requests("payment");
            commanded(world, order_id, Action::Cancel).ends(order_id, End::Compensated)
        }),
        node("a cancel of an order in Error", || {
            let (world, order_id) = held();
            commanded(world, order_id, Action::Cancel).ends(order_id, End::Compensated)
        }),
        node("a pause", || {
            let world = world();
            let order_id = claimed(&world);
            world.lose_requests("inventory");
            commanded(world, order_id, Action::Pause)
                .then(move |world| {
                    world.until_redelivery();
                    world.schedule();
                    assert!(world.task(order_id).paused.is_some(), "it is paused");
                    world.tell_scheduler(command(world, order_id, Action::Resume));
                })
                .ends(order_id, End::Processed)
        }),
        node("a resume", || {
            let world = world();
            let order_id = claimed(&world);
            world.tell_scheduler(command(&world, order_id, Action::Pause));
            world.schedule();
            steps_done(&world, &["inventory"]);
            commanded(world, order_id, Action::Resume).ends(order_id, End::Processed)
        }),
        node("a wish that the state does not allow", || {
            let world = world();
            let order_id = claimed(&world);
            commanded(world, order_id, Action::Resubmit).ends(order_id, End::Processed)
        }),
    ]
}
