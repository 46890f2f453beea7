//! The submission.

use domain::order::Order;
use tests::conformance::samples;
use tests::world::{End, PATIENT, World};

use super::node::{Node, Scene, order, stored, with, world};

const HANDLER: &str = "submission";

pub(crate) fn nodes() -> Vec<Node> {
    let node = |what, scene| Node { handler: HANDLER, what, scene };
    vec![
        node("stores an order", || {
            let world = world();
            let order_id = world.post_order(order());
            Scene::fed(world, World::submit).ends(order_id, End::Processed)
        }),
        node("stores an order whose request cannot be made", || {
            let unfilled = "agent = \"inventory\"\npath = \"{/Order/Missing}\"";
            let world = with(&PATIENT.replace("agent = \"inventory\"", unfilled));
            let order_id = world.post_order(order());
            Scene::fed(world, World::submit).ends(order_id, End::Compensated)
        }),
        node("begins an order of which nothing is claimed", || {
            let world = world();
            let order_id = stored(&world);
            world.lose_scheduler_messages();
            world.post_order(order());
            Scene::fed(world, World::submit).ends(order_id, End::Processed)
        }),
        node("takes an order that is stored as done", || {
            let world = world();
            world.post_order(order());
            world.submit();
            let order_id = world.post_order(order());
            Scene::fed(world, World::submit).ends(order_id, End::Processed)
        }),
        node("refuses another document under the same key", || {
            let world = world();
            let order_id = world.post_order(order());
            world.submit();
            let other = samples::order_with(1, r#"{"Item":"another"}"#);
            world.post_order(Order { order_id, ..other });
            Scene::fed(world, World::submit)
                .ends(order_id, End::Processed)
                .checked(|world| assert_eq!(world.tasks().len(), 1))
        }),
        node("stores two orders of one batch", || {
            let world = world();
            let (one, other) = (world.post_order(order()), world.post(2));
            Scene::fed(world, World::submit).ends(one, End::Processed).ends(other, End::Processed)
        }),
    ]
}
