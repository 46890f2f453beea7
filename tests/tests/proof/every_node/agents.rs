//! The agents: the same handler for each of them.

use agent::{Answer, MemoPolicy};
use domain::id::OrderId;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{Action, Request, idempotency_key};
use domain::ports::{Commit, Environment, Memo, MemoState, Records, Seen, ServiceHealth};
use domain::task::{Direction, reason};
use memory::faulty::Fault;
use tests::world::{Act, EXPIRED_MS, End, World, now};

use super::node::{Node, Scene, claimed, command, order, steps_done, world};

use Direction::Forward;

const HANDLER: &str = "agents";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn node(what: &'static str, scene: fn() -> Scene) -> Node {
    Node { handler: HANDLER, what, scene }
}

fn serve_first(world: &World) {
    world.serve("inventory");
}

/// Agents that store memos.
fn remembering() -> World {
    let mut world = world();
    world.policy.memo = Some(MemoPolicy::default());
    world
}

/// A world whose first service fails until the circuit breaker opens, with the request parked.
fn open(mut world: World) -> World {
    world.policy.health.failures_to_open = 1;
    world.remote.always("reserve", Act::Answers(Answer::retry("down")));
    claimed(&world);
    world.serve("inventory");
    assert!(
        now(world.memory.get::<ServiceHealth>("inventory"))
            .expect("a record")
            .is_some_and(|health| health.failures_in_a_row > 0)
    );
    world
}

/// An answer that asks for a retry in 5 seconds.
fn busy() -> Act {
    Act::Answers(Answer::Retry { after_ms: Some(5_000), problem: "busy".to_owned() })
}

/// A service that is at work for longer than its caller waits, and answers 409 to a repeat meanwhile.
pub(crate) const fn at_work() -> Act {
    Act::Works(25_000)
}

/// The scheduler dies after it sent a request. Its message comes again, and just then the request is at work.
pub(crate) fn sent_again(world: &World, agent: &str) {
    world.ports.next("queues.to_agent", Fault::DiesAfter);
    world.schedule();
    assert!(world.ports.has_struck(), "a request was sent");
    world.until_redelivery();
    world.serve(agent);
}

/// The order of the scene.
fn order_id(world: &World) -> OrderId {
    world.tasks()[0].order_id
}

/// Advances the clock until a request can be received again.
fn until_next_request(world: &World) {
    let next = world.memory.next_message_at().expect("a parked request");
    world.memory.advance(world.memory.now().ms_until(next));
}

pub(crate) fn nodes() -> Vec<Node> {
    [calls(), breakers(), memos()].into_iter().flatten().collect()
}

fn calls() -> Vec<Node> {
    vec![
        node("a success", || {
            let world = world();
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a refusal", || {
            let world = world();
            world.remote.declines("reserve", Forward);
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Compensated)
        }),
        node("an undo", || {
            let world = world();
            world.remote.declines("charge", Forward);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory", "payment", "payment"]);
            Scene::fed(world, serve_first).ends(order_id, End::Compensated)
        }),
        node("an answer to try again: parks the request", || {
            let world = world();
            world.remote.next("reserve", Forward, busy());
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("an answer to try again: waits here", || {
            let mut world = world();
            world.policy.wait_in_invocation_ms_max = 10_000;
            world.remote.next("reserve", Forward, busy());
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("an effect whose answer is lost", || {
            let world = world();
            world.remote.next("reserve", Forward, Act::LosesAnswer);
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a service that is at work for longer than its caller waits", || {
            let world = world();
            world.remote.always("reserve", at_work());
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a repeat while the service is at work", || {
            let world = world();
            world.remote.always("reserve", at_work());
            let order_id = claimed(&world);
            world.serve("inventory");
            until_next_request(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a request that is sent again while the service is at work", || {
            let world = world();
            world.remote.always("reserve", at_work());
            let order_id = world.stored_order(order());
            sent_again(&world, "inventory");
            world.schedule();
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("an undo at whose service a call is at work", || {
            let world = world();
            world.remote.declines("charge", Forward);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory", "payment", "payment"]);
            world.remote.always("reserve", at_work());
            Scene::fed(world, serve_first).ends(order_id, End::Compensated)
        }),
        node("a service that hangs", || {
            let world = world();
            world.remote.next("reserve", Forward, Act::Hangs);
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a call that panics", || {
            let world = world();
            world.remote.next("reserve", Forward, Act::Panics);
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("an answer after CompleteBy: silence", || {
            let world = world();
            world.remote.next("reserve", Forward, Act::Late(EXPIRED_MS));
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a request after CompleteBy: silence", || {
            let world = world();
            let order_id = claimed(&world);
            world.memory.advance(EXPIRED_MS);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a request that waited too long for its turn: gives it back", || {
            let world = world();
            let order_id = claimed(&world);
            world.memory.advance(6 * 60_000);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
    ]
}

fn breakers() -> Vec<Node> {
    vec![
        node("the failure that opens the breaker", || {
            let mut world = world();
            world.policy.health.failures_to_open = 1;
            world.remote.next("reserve", Forward, Act::Answers(Answer::retry("down")));
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("a request while the breaker is open: parks it", || {
            let world = open(world());
            world.remote.recovers("reserve");
            let (one, other) = (order_id(&world), world.post(2));
            world.submit();
            world.schedule();
            Scene::fed(world, serve_first).ends(one, End::Processed).ends(other, End::Processed)
        }),
        node("the probe that succeeds", || {
            let world = open(world());
            world.remote.recovers("reserve");
            let order_id = order_id(&world);
            until_next_request(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("the probe that fails", || {
            let world = open(world());
            let order_id = order_id(&world);
            until_next_request(&world);
            Scene::fed(world, serve_first).then(|world| world.remote.recovers("reserve")).ends(order_id, End::Processed)
        }),
        node("a request that waited, after the recovery", || {
            let world = open(world());
            world.remote.recovers("reserve");
            let order_id = order_id(&world);
            until_next_request(&world);
            world.serve("inventory");
            let late = world.ports.record().to_agents.last().cloned().expect("the request");
            world.lose_scheduler_messages();
            world.ask_agent(&late.0, Request { attempt: late.1.attempt, ..late.1 });
            // Its delivery was lost once, so it counts among the waiting requests.
            world.ports.next("services.health", Fault::DiesBefore);
            world.serve("inventory");
            world.ports.has_struck();
            world.until_redelivery();
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
    ]
}

fn memos() -> Vec<Node> {
    vec![
        node("with a memo: a success", || {
            let world = remembering();
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("with a memo: a repeat is answered without a call", || {
            let world = remembering();
            let order_id = claimed(&world);
            world.ports.next("queues.to_scheduler", Fault::DiesBefore);
            world.serve("inventory");
            world.ports.has_struck();
            world.until_redelivery();
            Scene::fed(world, serve_first)
                .ends(order_id, End::Processed)
                .checked(|world| assert_eq!(world.remote.calls("reserve").len(), 1))
        }),
        node("with a memo: an answer to try again gives the claim back", || {
            let world = remembering();
            world.remote.next("reserve", Forward, busy());
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("with a memo: a claim that somebody else holds: parks the request", || {
            let world = remembering();
            let order_id = claimed(&world);
            let at = world.memory.now();
            let memo = Memo {
                key: idempotency_key(order_id, "reserve", Forward),
                version: 1,
                state: MemoState::InProgress(at.plus_ms(10_000)),
                declined: 0,
                attempt: 0,
                expires_at: at.plus_ms(DAY_MS),
            };
            assert_eq!(now(world.memory.put(Seen::version(0, at), &memo)).expect("a store"), Commit::Committed);
            Scene::fed(world, serve_first).ends(order_id, End::Processed)
        }),
        node("with a memo: a request while the breaker is open: declines it for another agent", || {
            let mut world = remembering();
            world.policy.fallback = vec!["payment".into()];
            let world = open(world);
            world.remote.recovers("reserve");
            let (one, other) = (order_id(&world), world.post(2));
            world.submit();
            world.schedule();
            Scene::fed(world, serve_first).ends(one, End::Processed).ends(other, End::Processed)
        }),
        node("with a memo: an undo of what was done", || {
            let world = remembering();
            world.remote.declines("charge", Forward);
            let order_id = claimed(&world);
            steps_done(&world, &["inventory", "payment", "payment"]);
            Scene::fed(world, serve_first).ends(order_id, End::Compensated)
        }),
        node("with a memo: an undo of what was never done", || {
            let world = remembering();
            let order_id = claimed(&world);
            world.lose_requests("inventory");
            world.tell_scheduler(command(&world, order_id, Action::Cancel));
            world.schedule();
            world.memory.advance(EXPIRED_MS + SETTLES_WITHIN_MS_DEFAULT);
            world.schedule();
            Scene::fed(world, serve_first)
                .ends(order_id, End::Compensated)
                .checked(|world| assert!(world.remote.called().is_empty()))
        }),
        node("with a memo: a request after its undo", || {
            let world = remembering();
            let order_id = claimed(&world);
            let late = world.lose_requests("inventory").remove(0);
            world.tell_scheduler(command(&world, order_id, Action::Cancel));
            world.to_the_end();
            let complete_by = late.complete_by.plus_ms(10 * EXPIRED_MS);
            world.ask_agent("inventory", Request { complete_by, budget_ms: EXPIRED_MS, ..late });
            Scene::fed(world, serve_first).ends(order_id, End::Compensated)
        }),
        node("with a memo: retries that are used up: silence", || {
            let mut world = remembering();
            world.policy.retries_max = 0;
            world.policy.health.failures_to_open = u32::MAX;
            world.remote.always("reserve", Act::Answers(Answer::retry("down")));
            let order_id = claimed(&world);
            Scene::fed(world, serve_first).ends(order_id, End::Error(reason::EXHAUSTED))
        }),
    ]
}
