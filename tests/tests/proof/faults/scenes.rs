//! Scenes that several faults share.

use domain::id::{CommandId, OrderId};
use domain::json::Json;
use domain::message::{Action, Command, Failure, Outcome, Request, SchedulerMessage};
use domain::time::Timestamp;
use memory::faulty::Fault;
use tests::world::{BACKED_OFF_MS, EXPIRED_MS, ONE_DONE, World};

/// Both ways to die at a call.
pub(crate) const DEATHS: [Fault; 2] = [Fault::DiesBefore, Fault::DiesAfter];

/// Plays a scene once for each call of a port that it makes, and each time something else goes wrong: the first call, then
/// the second, until there is none left. `play` gives whether the fault was met.
pub(crate) fn at_every_call(faults: &[Fault], play: impl Fn(usize, Fault) -> bool) {
    for &fault in faults {
        let calls = (0..1_000).take_while(|&call| play(call, fault)).count();
        assert!((1..1_000).contains(&calls), "{fault:?}: met at {calls} calls");
    }
}

/// The requests of the first two attempts of the first step. The second attempt is in flight, and both are off the
/// queue.
pub(crate) fn two_attempts(world: &World) -> (OrderId, Request, Request) {
    let order_id = world.claimed();
    let [first] = world.lose_requests("inventory").try_into().unwrap();
    world.memory.advance(EXPIRED_MS);
    world.supervise();
    world.memory.advance(BACKED_OFF_MS);
    assert_eq!(world.schedule(), ONE_DONE);
    let [second] = world.lose_requests("inventory").try_into().unwrap();
    assert_eq!((first.attempt, second.attempt), (1, 2));
    (order_id, first, second)
}

/// The first two steps are done. The third is in flight, with its request on the queue.
pub(crate) fn two_steps_done(world: &World) -> OrderId {
    let order_id = world.claimed();
    for agent in ["inventory", "payment"] {
        assert_eq!((world.serve(agent), world.schedule()), (ONE_DONE, ONE_DONE));
    }
    order_id
}

pub(crate) fn done(request: &Request) -> SchedulerMessage {
    SchedulerMessage::Reply(request.reply(Outcome::Done(Json::of(&"done"))))
}

pub(crate) fn failed(request: &Request) -> SchedulerMessage {
    let failure = Failure { code: "no".into(), message: "for good".into() };
    SchedulerMessage::Reply(request.reply(Outcome::Failed(failure)))
}

/// A command of an operator who has just read the order.
pub(crate) fn command(world: &World, order_id: OrderId, action: Action) -> SchedulerMessage {
    let version = world.task(order_id).version;
    SchedulerMessage::Command(Command {
        order_id,
        action,
        by: "ada".into(),
        reason: "a test".into(),
        command_id: CommandId::generate(Timestamp::default(), [version, action as u64]),
        version: Some(version),
        bulk: None,
        settle: None,
        take: None,
        step: None,
    })
}
