//! Orders that go through their lines, and drop some (rule 50).

use domain::id::OrderId;
use domain::message::{Action, Command, SchedulerMessage, Settled, Settlement};
use domain::order::Order;
use domain::task::{Direction, StepState};
use tests::conformance::samples;
use tests::world::{EXPIRED_MS, End, World};

use super::node::{CHANNEL, Node, Scene, command, steps_done, with};
use super::supervisor::sweep;

use Direction::{Forward, Undo};

/// A charge, two steps for each line, and a step for all that are left. A line that cannot be reserved or shipped is dropped.
const SALE: &str = r#"
name = "order"
version = 1
[supervision]
wake_lost_after = "1h"
[[step]]
name = "charge"
agent = "payment"
complete_within = "10m"
[[step]]
name = "reserve"
agent = "inventory"
after = ["charge"]
complete_within = "10m"
for_each = "/Order/Lines"
on_rejected = "drop"
on_exhausted = "drop"
max_failures = 1
send = { line = "/Item" }
undo = { send = { line = "/Item" } }
[[step]]
name = "ship"
agent = "shipping"
after = ["reserve"]
complete_within = "10m"
for_each = "/Order/Lines"
on_rejected = "drop"
send = { line = "/Item", shelf = "/Outputs/reserve" }
undo = { send = { line = "/Item" } }
drop = { send = { part = "/Item" } }
[[step]]
name = "thank"
agent = "inventory"
after = ["ship"]
complete_within = "10m"
"#;

fn order() -> Order {
    Order { reply_channel: Some(CHANNEL.into()), ..samples::order_with(1, r#"{"Lines": [1, 2]}"#) }
}

/// An order of two lines whose charge is done, so that both lines are asked for.
fn charged(text: &str) -> (World, OrderId) {
    let world = with(text);
    let order_id = world.post_order(order());
    world.submit();
    steps_done(&world, &["payment"]);
    (world, order_id)
}

/// Both lines are reserved. The second one was refused by its carrier, whose no is on the queue.
fn refused(text: &str) -> (World, OrderId) {
    let (world, order_id) = charged(text);
    world.remote.declines("ship/0002", Forward);
    steps_done(&world, &["inventory"]);
    world.serve("shipping");
    (world, order_id)
}

/// Drops the line, and goes on until its last undo is in flight.
fn undo_is_asked_for(world: &World, order_id: OrderId) {
    let is_asked = || {
        let step = world.step(order_id, "ship/0002");
        (step.direction, step.process_state) == (Undo, StepState::Processing)
    };
    for _ in 0..100 {
        world.schedule();
        if is_asked() {
            return;
        }
        world.memory.advance(1_000);
    }
    panic!("no undo is asked for: {:#?}", world.task(order_id));
}

/// The lines that an order carried and dropped, by their positions.
fn has(carried: &'static [&'static str], dropped: &'static [&'static str]) -> impl Fn(&World) {
    move |world: &World| {
        let task = &world.tasks()[0];
        let lines = task.carried_lines();
        let found = lines.each_ref().map(|lines| lines.iter().map(|line| &**line).collect::<Vec<_>>());
        assert_eq!(found, [carried, dropped]);
        for step in task.steps.iter().filter(|step| step.dropped) {
            assert!(!step.was_claimed() || step.is_undone(), "{step:#?}");
        }
    }
}

pub(crate) fn nodes() -> Vec<Node> {
    let node = |handler, what, scene| Node { handler, what, scene };
    vec![
        node("submission", "stores an order with lines", || {
            let charge = "[[step]]\nname = \"charge\"\nagent = \"payment\"\ncomplete_within = \"10m\"\n";
            let world = with(&SALE.replace(charge, "").replace("after = [\"charge\"]\n", ""));
            let order_id = world.post_order(order());
            Scene::fed(world, World::submit).ends(order_id, End::Processed).checked(has(&["0001", "0002"], &[]))
        }),
        node("scheduler", "a result before lines: claims each", || {
            let world = with(SALE);
            let order_id = world.post_order(order());
            world.submit();
            world.serve("payment");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).checked(has(&["0001", "0002"], &[]))
        }),
        node("scheduler", "a rejected line: drops it, and the order goes on", || {
            let (world, order_id) = refused(SALE);
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).checked(has(&["0001"], &["0002"]))
        }),
        node("scheduler", "the undo of a dropped line: undoes the step before", || {
            let (world, order_id) = refused(SALE);
            undo_is_asked_for(&world, order_id);
            world.serve("shipping");
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).checked(has(&["0001"], &["0002"]))
        }),
        node("scheduler", "the undo of a dropped line is refused: asks for an operator", || {
            let (world, order_id) = refused(SALE);
            world.remote.declines("ship/0002", Undo);
            undo_is_asked_for(&world, order_id);
            world.serve("shipping");
            Scene::fed(world, World::schedule).ends(order_id, End::Error("compensation-failed"))
        }),
        node("scheduler", "the last line is rejected: compensates", || {
            let (world, order_id) = charged(SALE);
            world.remote.declines("reserve/0001", Forward);
            world.remote.declines("reserve/0002", Forward);
            world.serve("inventory");
            Scene::fed(world, World::schedule).ends(order_id, End::Compensated)
        }),
        node("scheduler", "a settle as dropped", || {
            let holds = "on_rejected = \"hold\"\nsend = { line = \"/Item\", shelf";
            let (world, order_id) =
                refused(&SALE.replace("on_rejected = \"drop\"\nsend = { line = \"/Item\", shelf", holds));
            world.schedule();
            let SchedulerMessage::Command(command) = command(&world, order_id, Action::Settle) else { unreachable!() };
            let settle = Settlement { step: "ship/0002".into(), outcome: Settled::Dropped, output: None };
            world.tell_scheduler(SchedulerMessage::Command(Command { settle: Some(settle), ..command }));
            Scene::fed(world, World::schedule).ends(order_id, End::Processed).checked(has(&["0001"], &["0002"]))
        }),
        node("supervisor", "an expired line: drops it", || {
            let (world, order_id) = charged(SALE);
            let requests = world.lose_requests("inventory").into_iter();
            requests
                .filter(|request| &*request.step == "reserve/0001")
                .for_each(|one| world.ask_agent("inventory", one));
            steps_done(&world, &["inventory"]);
            world.memory.advance(EXPIRED_MS);
            Scene::asked(world, |world| {
                sweep(world);
                true
            })
            .ends(order_id, End::Processed)
            .checked(has(&["0001"], &["0002"]))
        }),
    ]
}
