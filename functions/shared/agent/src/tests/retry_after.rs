//! What a service says about itself counts for all its orders: `Retry-After` (rule 17).

use domain::message::Request;
use domain::ports::Breaker;

use crate::testing::{Act, Fleet, START, World, done, request_of, retry, world_by_key};
use crate::{Answer, HealthPolicy};

fn patient(key: &str) -> Request {
    Request { attempt: 1, complete_by: START.plus_ms(600_000), budget_ms: 600_000, ..request_of(key) }
}

/// A service that asks for no call until then, and is well from then on.
fn asking_until(end_ms: u64) -> World {
    let world = world_by_key(move |at_ms, _| {
        let left_ms = end_ms.saturating_sub(at_ms);
        let busy = Answer::Retry { after_ms: Some(left_ms), problem: "503".to_owned() };
        Act::Answer(if left_ms > 0 { busy } else { done() })
    });
    world.seeded(3).with_policy(|policy| policy.health = HealthPolicy::default())
}

/// One new order a second, until then.
fn one_a_second(fleet: &mut Fleet<'_>, seconds: std::ops::Range<u64>) {
    for second in seconds {
        fleet.run_until_ms(second * 1_000);
        fleet.send(patient(&second.to_string()));
    }
}

#[test]
fn while_a_service_asks_for_no_call_new_orders_wait_too() {
    let world = asking_until(60_000);
    let mut fleet = Fleet::new(&world, 3);
    one_a_second(&mut fleet, 0..60);
    fleet.run_until_ms(59_999);
    assert!(world.seen().len() <= 9, "{:?}", world.call_times_ms());
    assert_eq!(world.breaker(), Breaker::Open);
    fleet.run_until_ms(70_000);
    assert_eq!((world.outcomes().len(), fleet.waiting()), (60, 0));
}

#[test]
fn the_time_that_a_service_asked_for_outlives_a_restart_and_bounds_the_probes() {
    let world = asking_until(60_000);
    let mut fleet = Fleet::new(&world, 1);
    one_a_second(&mut fleet, 0..10);
    assert_eq!(world.seen().len(), 5, "{:?}", world.call_times_ms());
    let mut fleet = Fleet::new(&world, 1);
    one_a_second(&mut fleet, 10..50);
    fleet.run_until_ms(59_999);
    assert_eq!(world.seen().len(), 5, "{:?}", world.call_times_ms());
}

#[test]
fn a_service_that_asks_for_days_is_asked_again_within_a_quarter_of_an_hour() {
    let world = asking_until(3 * 24 * 3_600_000);
    let mut fleet = Fleet::new(&world, 1);
    one_a_second(&mut fleet, 0..20);
    let until = world.health_record().unwrap().until;
    assert_eq!(until, START.plus_ms(3_000 + 900_000), "as it asked two orders");
}

#[test]
fn a_call_that_a_service_limits_or_has_under_way_is_repeated_one_slot_later_at_the_soonest() {
    let limited = Answer::Retry { after_ms: Some(0), problem: "429".to_owned() };
    for (answer, at_ms) in [(limited, 100), (Answer::under_way(), 100), (retry(), 0)] {
        // Every draw is 0, which is no wait.
        let world = World::new([Act::Answer(answer), Act::Answer(done())]);
        assert!(!world.instance().handle_one(patient("a")));
        assert_eq!(world.call_times_ms(), [0, at_ms]);
    }
}
