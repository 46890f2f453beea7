//! A service with a rate, or with a number of calls at once (rule 20).

use domain::message::{Deferral, Delivery, Outcome, Request};
use domain::ports::Pace;

use crate::Rate;
use crate::testing::{Act, Fleet, START, World, delivery, done, drive, request, world_where};

/// 20 calls a second. A request waits on its queue, so that the instances take turns.
fn limited() -> World {
    world_where(|_| Act::Answer(done())).seeded(7).with_policy(|policy| {
        policy.wait_in_invocation_ms_max = 0;
        policy.health.rate = Some(Rate { calls: 20, per_ms: 1_000 });
    })
}

fn first_attempt(budget_ms: u64) -> Request {
    Request { attempt: 1, complete_by: START.plus_ms(budget_ms), budget_ms, ..request() }
}

#[test]
fn rule_20_four_instances_together_keep_the_rate_and_use_it() {
    let world = limited();
    let mut fleet = Fleet::new(&world, 4);
    for _ in 0..1_500 {
        fleet.send(first_attempt(600_000));
    }
    fleet.run_until_ms(60_000);
    let times_ms = world.call_times_ms();
    for from_ms in (0..60_000).step_by(1_000) {
        let calls = times_ms.iter().filter(|at_ms| (from_ms..from_ms + 1_000).contains(*at_ms)).count();
        assert!((19..=21).contains(&calls), "{calls} calls in the second from {from_ms}");
    }
    let in_a_minute = times_ms.iter().filter(|at_ms| **at_ms < 60_000).count();
    assert!((1_140..=1_260).contains(&in_a_minute), "{in_a_minute}");
    fleet.run_until_ms(90_000);
    assert_eq!((fleet.waiting(), world.seen().len()), (0, 1_500));
    let (_, writes) = world.health_use();
    assert!(writes <= 2 * 1_500 + 500, "one for the line and one for the call, and few that lose: {writes}");
}

#[test]
fn rule_20_a_request_whose_turn_is_too_far_is_deferred_and_none_falls_silent() {
    let world = limited();
    let mut fleet = Fleet::new(&world, 4);
    for _ in 0..1_000 {
        fleet.send(first_attempt(10_000));
    }
    fleet.run_until_ms(30_000);
    let outcomes = world.outcomes();
    let deferred = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Deferred(_))).count();
    assert_eq!((fleet.waiting(), outcomes.len()), (0, 1_000), "each is answered");
    assert!((900..=930).contains(&deferred), "some 4 s of calls are made: {deferred}");
    assert!(world.seen().iter().all(|call| call.timeout_ms == 5_000), "and none is cut off by its deadline");
}

#[test]
fn rule_20_a_line_that_a_wrong_clock_wrote_holds_nobody_up() {
    let world = limited();
    world.instance().handle_one(first_attempt(10_000));
    let hour_us = 3_600_000_000;
    world.change_health(|health| {
        let pace = health
            .pace
            .map(|Pace { next_us, line_us }| Pace { next_us: next_us + hour_us, line_us: line_us + hour_us });
        Some(domain::ports::ServiceHealth { version: health.version + 1, pace, ..health.clone() })
    });
    assert!(
        !world.instance().handle_one(Request { step: "other".into(), ..first_attempt(10_000) }),
        "it is not parked"
    );
    assert_eq!(world.seen().len(), 2);
}

#[test]
fn rule_20_a_time_that_a_request_cannot_use_is_not_taken_from_the_others() {
    // A call may be held up for 200 ms, which is the time between two calls.
    let world = limited().with_policy(|policy| {
        policy.wait_in_invocation_ms_max = 1_000;
        policy.health.rate = Some(Rate { calls: 5, per_ms: 1_000 });
    });
    let instance = world.instance();
    instance.handle_one(first_attempt(400));
    let waits = Request { attempt: 2, step: "other".into(), ..first_attempt(400) };
    instance.handle_one(waits.clone());
    assert_eq!(world.outcomes().last(), Some(&Outcome::Deferred(Deferral::after(200))));
    world.pass_ms(200);
    instance.handle_one(Request { attempt: 3, complete_by: START.plus_ms(600), ..waits });
    assert!(matches!(world.outcomes().last(), Some(Outcome::Done(_))), "{:?}", world.outcomes());
}

#[test]
fn rule_20_a_wait_for_a_turn_that_ends_too_late_is_no_failure() {
    // The next free time is 900 ms ahead, and a call may start for 600 ms only.
    let world = limited().with_policy(|policy| policy.wait_in_invocation_ms_max = 1_000);
    let instance = world.instance();
    instance.handle_one(first_attempt(10_000));
    world.change_health(|health| {
        let pace = health.pace.map(|pace| Pace { next_us: pace.next_us + 850_000, ..pace });
        Some(domain::ports::ServiceHealth { version: health.version + 1, pace, ..health.clone() })
    });
    let short = Request { step: "other".into(), ..first_attempt(1_100) };
    assert!(!world.instance().handle_one(short));
    assert!(matches!(world.outcomes()[1], Outcome::Deferred(_)), "{:?}", world.outcomes());
    assert_eq!((world.seen().len(), world.now_ms()), (1, 0), "and it did not wait for it");
}

#[test]
fn rule_20_a_batch_makes_no_more_calls_at_once_than_allowed() {
    let world = World::new((0..6).map(|_| Act::Within(300, done()))).with_policy(|policy| policy.concurrency = Some(2));
    let batch = (0..6).map(|n| delivery(&format!("m{n}"), first_attempt(10_000))).collect();
    assert!(world.handle(batch).is_empty());
    assert_eq!(world.seen().len(), 6);
}

#[test]
fn rule_20_a_request_waits_for_its_turn_only_while_the_time_of_its_call_is_left() {
    // It waits a second here and a second on its queue, and may come back a second late. Its call may take 5 s of its 10.
    let at = |at_ms, receive_count| {
        let world = World::new([]).with_policy(|policy| policy.concurrency = Some(1));
        let instance = world.instance();
        let seat = drive(instance.agent.concurrency.as_ref().unwrap().seat(&world.ports, 0));
        world.pass_ms(at_ms);
        let is_parked =
            !instance.handle(vec![Delivery { receive_count, ..delivery("m", first_attempt(10_000)) }]).is_empty();
        drop(seat);
        (is_parked, world.outcomes())
    };
    let deferred = || vec![Outcome::Deferred(Deferral::after(1_000))];
    assert_eq!([at(2_000, 1), at(2_001, 1)], [(true, vec![]), (false, deferred())]);
    assert_eq!([at(2_000, 2), at(2_001, 2)], [(true, vec![]), (false, deferred())], "it has waited before");
    assert_eq!([at(6_499, 2), at(6_500, 2)], [(true, vec![]), (false, deferred())], "it had no such time when it came");
}
