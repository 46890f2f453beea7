//! Orders whose steps make other orders (rule 49).

use domain::id::OrderId;
use domain::message::Action;
use domain::task::{Direction, Step, StepState, reason};
use memory::faulty::Fault;
use tests::world::{End, World};

use super::node::{CHANNEL, Node, Scene, command};

const HANDLER: &str = "scheduler";

/// The step before, and the order that is waited for.
pub(crate) const PARENT: &str = r#"
name = "order"
version = 1
[[step]]
name = "reserve"
agent = "inventory"
complete_within = "10m"
[[step]]
name = "replace"
kind = "order"
workflow = "child"
send = { Item = "/Order/Item" }
after = ["reserve"]
"#;

pub(crate) const CHILD: &str = r#"
name = "child"
version = 1
[[step]]
name = "charge"
agent = "payment"
complete_within = "10m"
[[step]]
name = "ship"
agent = "shipping"
after = ["charge"]
complete_within = "10m"
"#;

/// A world with an order whose step has just asked for its child, and the child's id.
pub(crate) fn asked(parent: &str, child: &str) -> (World, OrderId, OrderId) {
    let mut world = World::with_all(&[parent, child]);
    world.memory.register_channel(CHANNEL);
    world.shards = 1;
    let order_id = world.post(1);
    world.submit();
    world.serve("inventory");
    world.schedule();
    (world, order_id, order_id.child("replace"))
}

/// The same, and the child was made.
fn made() -> (World, OrderId, OrderId) {
    let (world, order_id, child) = asked(PARENT, CHILD);
    world.schedule();
    (world, order_id, child)
}

/// The child waits with its second step, and its parent is cancelled.
fn cancelled() -> (World, OrderId, OrderId) {
    // It waits, so that no fault lets it end before its cancel.
    let patient = CHILD.replace("after = [\"charge\"]", "after = [\"charge\"]\nwait = \"1h\"");
    let (world, order_id, child) = asked(PARENT, &patient);
    world.schedule();
    world.serve("payment");
    world.schedule();
    world.tell_scheduler(command(&world, order_id, Action::Cancel));
    world.schedule();
    (world, order_id, child)
}

/// The last step of the child was refused: its first one is undone, and then its parent is told.
fn refused() -> (World, OrderId, OrderId) {
    let (world, order_id, child) = made();
    world.remote.declines("ship", Direction::Forward);
    until_undone(&world, child, "charge");
    world.serve("payment");
    (world, order_id, child)
}

/// Goes on until the undo of this step is in flight.
fn until_undone(world: &World, order_id: OrderId, step: &str) {
    let is_in_flight = |step: Step| (step.direction, step.process_state) == (Direction::Undo, StepState::Processing);
    while !is_in_flight(world.step(order_id, step)) {
        for agent in ["payment", "shipping"] {
            world.serve(agent);
        }
        world.schedule();
        world.memory.advance(1_000);
    }
}

fn node(what: &'static str, scene: fn() -> Scene) -> Node {
    Node { handler: HANDLER, what, scene }
}

pub(crate) fn nodes() -> Vec<Node> {
    vec![
        node("a reply: asks for a child", || {
            let mut world = World::with_all(&[PARENT, CHILD]);
            world.shards = 1;
            let order_id = world.post(1);
            world.submit();
            world.serve("inventory");
            let child = order_id.child("replace");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).ends(child, End::Processed)
        }),
        node("a child: makes it, and sends its first request", || {
            let (world, order_id, child) = asked(PARENT, CHILD);
            Scene::fed(world, World::schedule)
                .ends(order_id, End::Processed)
                .ends(child, End::Processed)
                .checked(|world| assert_eq!(world.tasks().len(), 2))
        }),
        node("a child that its workflow refuses: its step is rejected", || {
            let parent = PARENT.replace("\"/Order/Item\"", "\"/Order/Item\", Priority = \"/Order/Item\"");
            let (world, order_id, _) = asked(&parent, CHILD);
            Scene::fed(world, World::schedule)
                .ends(order_id, End::Compensated)
                .checked(|world| assert_eq!(world.tasks().len(), 1))
        }),
        node("a child that was made: its request is sent again", || {
            let (world, order_id, child) = asked(PARENT, CHILD);
            world.ports.next("queues.to_agent", Fault::DiesBefore);
            world.schedule();
            world.until_redelivery();
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).ends(child, End::Processed)
        }),
        node("a child of an order that was paused", || {
            let (world, order_id, child) = asked(PARENT, CHILD);
            let messages = world.lose_scheduler_messages();
            world.tell_scheduler(command(&world, order_id, Action::Pause));
            world.schedule();
            messages.into_iter().for_each(|message| world.tell_scheduler(message));
            Scene::fed(world, World::schedule)
                .then(move |world| {
                    if world.task(order_id).paused.is_some() {
                        world.tell_scheduler(command(world, order_id, Action::Resume));
                        world.run();
                    }
                })
                .ends(order_id, End::Processed)
                .ends(child, End::Processed)
        }),
        node("the last reply of a child: tells its parent", || {
            let (world, order_id, child) = made();
            for agent in ["payment", "shipping"] {
                world.schedule();
                world.serve(agent);
            }
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).ends(child, End::Processed)
        }),
        node("the last undo of a child: tells its parent", || {
            let (world, order_id, child) = refused();
            Scene::fed(world, World::schedule).ends(order_id, End::Compensated).ends(child, End::Compensated)
        }),
        node("a cancel of the parent: cancels the child once", || {
            let (world, order_id, child) = cancelled();
            Scene::fed(world, World::schedule).ends(order_id, End::Compensated).ends(child, End::Compensated).checked(
                move |world| {
                    let task = world.task(child);
                    let cancels = task.history.iter().filter(|line| line.command_id.is_some());
                    assert_eq!(cancels.count(), 1, "{task:#?}");
                },
            )
        }),
        node("a cancel before the child is made: it is stored as cancelled, and never begins", || {
            let (world, order_id, child) = asked(PARENT, CHILD);
            let late = world.lose_scheduler_messages();
            world.tell_scheduler(command(&world, order_id, Action::Cancel));
            world.schedule();
            Scene::fed(world, World::schedule)
                .then(move |world| late.iter().for_each(|message| world.tell_scheduler(message.clone())))
                .ends(order_id, End::Compensated)
                .ends(child, End::Compensated)
                .checked(|world| assert!(world.remote.calls("charge").is_empty()))
        }),
        node("an undo of a child that is processed asks for an operator", || {
            let after =
                "[[step]]\nname = \"thank\"\nagent = \"shipping\"\nafter = [\"replace\"]\ncomplete_within = \"10m\"";
            let (world, order_id, child) = asked(&format!("{PARENT}{after}"), CHILD);
            world.remote.declines("thank", Direction::Forward);
            until_undone(&world, order_id, "replace");
            let held = End::Error(reason::COMPENSATION_FAILED);
            Scene::fed(world, World::schedule).ends(order_id, held).ends(child, End::Processed)
        }),
    ]
}
