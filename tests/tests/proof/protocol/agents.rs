//! Rules 4 and 6: one idempotency key for a step, and no word after `CompleteBy`.

use std::collections::BTreeSet;

use agent::Answer;
use domain::task::{Direction, ProcessState, StepState};

use tests::world::Act;
use tests::world::{EXPIRED_MS, ONE_DONE, ONE_FAILED, Ran, World};

#[test]
fn rule_4_the_service_sees_one_key_over_retries_redeliveries_and_attempts() {
    let world = World::new();
    let order_id = world.claimed();
    // A retry that waits on the queue, an answer that never reaches the scheduler, and a second attempt.
    world.remote.next(
        "reserve",
        Direction::Forward,
        Act::Answers(Answer::Retry { after_ms: Some(5_000), problem: "busy".to_owned() }),
    );
    assert_eq!(world.serve("inventory"), ONE_FAILED, "it is parked");
    assert_eq!(world.serve("inventory"), Ran::Idle);
    world.memory.advance(60_000);
    assert_eq!(world.serve("inventory"), ONE_DONE);
    world.lose_scheduler_messages();
    world.memory.advance(EXPIRED_MS);
    world.supervise();
    world.memory.advance(60_000);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Processed);
    let calls: Vec<_> = world.remote.called().into_iter().filter(|called| called.step == "reserve").collect();
    assert_eq!(calls.iter().map(|called| called.attempt).collect::<Vec<_>>(), [1, 1, 2]);
    let keys: BTreeSet<String> = calls.into_iter().map(|called| called.key).collect();
    assert_eq!(keys, BTreeSet::from([format!("{order_id}/reserve")]));
    assert_eq!(world.remote.effects()[&format!("{order_id}/reserve")], 1);
}

#[test]
fn rule_4_an_undo_has_one_key_of_its_own_over_its_attempts() {
    let world = World::new();
    let order_id = world.claimed();
    world.remote.declines("charge", Direction::Forward);
    world.remote.next("charge", Direction::Undo, Act::Late(EXPIRED_MS));
    world.run();
    world.supervise();
    world.memory.advance(60_000);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    let undos = world.remote.called().into_iter().filter(|called| called.direction == Direction::Undo);
    let undos: Vec<_> = undos.map(|called| (called.key, called.attempt)).collect();
    let key = |step: &str| format!("{order_id}/{step}/undo");
    assert_eq!(undos, [(key("charge"), 2), (key("charge"), 3), (key("reserve"), 2)]);
}

#[test]
fn rule_6_a_request_that_is_delivered_after_complete_by_is_neither_called_nor_answered() {
    let world = World::new();
    let order_id = world.claimed();
    let complete_by = world.step(order_id, "reserve").complete_by;
    world.memory.advance(EXPIRED_MS);
    assert_eq!(world.serve("inventory"), ONE_DONE, "let go");
    assert!(world.remote.called().is_empty());
    assert!(world.lose_scheduler_messages().is_empty());
    assert_eq!(world.step(order_id, "reserve").complete_by, complete_by, "the agent repairs nothing");
}

#[test]
fn rule_6_an_answer_that_comes_after_complete_by_is_kept_to_oneself() {
    let world = World::new();
    let order_id = world.claimed();
    world.remote.next("reserve", Direction::Forward, Act::Late(EXPIRED_MS));
    assert_eq!(world.serve("inventory"), ONE_DONE);
    assert_eq!(world.remote.called().len(), 1);
    assert!(world.lose_scheduler_messages().is_empty());
    assert_eq!(world.step(order_id, "reserve").process_state, StepState::Processing);
    // It did happen, so the next attempt meets its own key.
    world.supervise();
    world.memory.advance(60_000);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Processed);
    assert_eq!(world.remote.effects()[&format!("{order_id}/reserve")], 1);
}

#[test]
fn rule_6_the_agent_takes_the_earlier_of_deadline_and_budget() {
    let world = World::new();
    world.claimed();
    let [mut request] = world.lose_requests("inventory").try_into().unwrap();
    // A clock that is behind sees a deadline far away; what was left when the message was sent has been used up.
    request.complete_by = request.complete_by.plus_ms(60 * 60_000);
    request.budget_ms = 0;
    tests::world::now(domain::ports::Queues::to_agent(&world.memory, "inventory", request)).unwrap();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    assert!(world.remote.called().is_empty());
}
