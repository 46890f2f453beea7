//! Rule 5: the replies that count.

use domain::json::Json;
use domain::message::{Failure, Outcome, Reply, Request, SchedulerMessage};
use domain::task::{ProcessState, StepState};

use tests::world::{EXPIRED_MS, ONE_DONE, World};

fn done(request: &Request) -> SchedulerMessage {
    SchedulerMessage::Reply(request.reply(Outcome::Done(Json::of(&"late"))))
}

fn failed(request: &Request) -> SchedulerMessage {
    let failure = Failure { code: "no".into(), message: "for good".into() };
    SchedulerMessage::Reply(request.reply(Outcome::Failed(failure)))
}

/// The requests of the first two attempts of the first step. The second attempt is in flight.
fn two_attempts(world: &World) -> (domain::id::OrderId, Request, Request) {
    let order_id = world.claimed();
    let [first] = world.lose_requests("inventory").try_into().unwrap();
    world.memory.advance(EXPIRED_MS);
    world.supervise();
    world.memory.advance(60_000);
    assert_eq!(world.schedule(), ONE_DONE);
    let [second] = world.lose_requests("inventory").try_into().unwrap();
    assert_eq!((first.attempt, second.attempt), (1, 2));
    (order_id, first, second)
}

#[test]
fn rule_5_a_late_success_of_an_earlier_attempt_advances_the_order_once() {
    let world = World::new();
    let (order_id, first, second) = two_attempts(&world);
    for reply in [done(&first), done(&second), failed(&second)] {
        world.tell_scheduler(reply);
        assert_eq!(world.schedule(), ONE_DONE);
    }
    assert_eq!(world.step(order_id, "reserve").process_state, StepState::Processed);
    assert_eq!(world.lose_requests("payment").len(), 1);
    assert_eq!(world.state(order_id), ProcessState::Processing);
}

#[test]
fn rule_5_a_failure_of_an_earlier_attempt_is_dropped() {
    let world = World::new();
    let (order_id, first, _) = two_attempts(&world);
    let before = world.task(order_id);
    world.tell_scheduler(failed(&first));
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.task(order_id), before);
}

#[test]
fn rule_5_a_reply_that_comes_twice_starts_the_next_step_once() {
    let world = World::new();
    world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    world.tell_scheduler(done(&request));
    world.tell_scheduler(done(&request));
    // Both are in one batch, so they are handled at the same time.
    assert_eq!(world.schedule(), tests::world::Ran::Handled { done: 2, failed: 0 });
    assert_eq!(world.lose_requests("payment").len(), 1);
}

#[test]
fn rule_5_a_forged_reply_is_let_go_and_changes_nothing() {
    let world = World::new();
    let order_id = world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    let before = world.task(order_id);
    let SchedulerMessage::Reply(good) = done(&request) else { unreachable!("it is a reply") };
    let forged = [
        Reply { step: "ship".into(), ..good.clone() },
        Reply { step: "nowhere".into(), ..good.clone() },
        Reply { attempt: 2, ..good.clone() },
        Reply { attempt: 0, ..good.clone() },
        Reply { direction: domain::task::Direction::Undo, ..good.clone() },
        Reply { order_id: tests::conformance::samples::order(99).order_id, ..good },
    ];
    for reply in forged {
        world.tell_scheduler(SchedulerMessage::Reply(reply));
        assert_eq!(world.schedule(), ONE_DONE);
    }
    assert_eq!(world.task(order_id), before);
    assert!(world.lose_requests("payment").is_empty());
}
