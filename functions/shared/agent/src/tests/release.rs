//! After a recovery the parked requests are released gradually.

use domain::backoff::BackoffPolicy;
use domain::message::{Delivery, Outcome, Request};
use domain::ports::Breaker;

use crate::HealthPolicy;
use crate::testing::{Act, Fleet, START, World, delivery, done, request, request_of, retry, world_where};

const RECOVERY_MS: u64 = 4_000;

/// The service is down until it recovers, and the breaker is open until then.
fn outage(release_first: u32, release_max: u32) -> World {
    let behaviour = |at_ms| Act::Answer(if at_ms < RECOVERY_MS { retry() } else { done() });
    world_where(behaviour).seeded(7).with_policy(|policy| {
        policy.wait_in_invocation_ms_max = 0;
        policy.health = HealthPolicy {
            failures_to_open: 1,
            backoff: BackoffPolicy { slot_time_ms: RECOVERY_MS, ceiling: 0, stay_at_ceiling: true },
            release_first,
            release_max,
            rejections: None,
            rate: None,
        }
    })
}

fn patient() -> Request {
    Request { attempt: 1, complete_by: START.plus_ms(600_000), budget_ms: 600_000, ..request() }
}

/// The same of another order, sent after the recovery.
fn sent_later(order: u32) -> Request {
    let Request { attempt, budget_ms, .. } = patient();
    let complete_by = START.plus_ms(RECOVERY_MS + 1 + budget_ms);
    Request { attempt, budget_ms, complete_by, ..request_of(&order.to_string()) }
}

/// Calls in each second from the recovery on, the probe left out.
fn calls_by_second(world: &World) -> Vec<usize> {
    let times_ms: Vec<u64> = world.call_times_ms().into_iter().filter(|at_ms| *at_ms >= RECOVERY_MS).collect();
    let closed_at_ms = times_ms[0];
    let mut by_second = vec![0; 60];
    for at_ms in &times_ms[1..] {
        by_second[usize::try_from((at_ms - closed_at_ms) / 1_000).unwrap()] += 1;
    }
    by_second
}

/// Sends this many requests during the outage, to ten instances, and runs for a minute.
fn run(world: &World, requests: usize) -> Vec<usize> {
    let mut fleet = Fleet::new(world, 10);
    for _ in 0..requests {
        fleet.send(patient());
    }
    fleet.run_until_ms(RECOVERY_MS + 60_000);
    assert_eq!(fleet.waiting(), 0, "every wait ends");
    assert!(world.outcomes().iter().all(|outcome| matches!(outcome, Outcome::Done(_))));
    calls_by_second(world)
}

#[test]
fn a_limited_number_is_released_in_the_first_second_and_twice_as_many_in_the_next() {
    let world = outage(20, 10_000);
    let by_second = run(&world, 2_000);
    for (second, calls) in by_second.iter().enumerate() {
        let most = 20_usize << second.min(20);
        assert!(*calls <= most, "second {second}: {calls} calls of {most}, {by_second:?}");
    }
    assert_eq!(by_second.iter().sum::<usize>(), 1_999);
    assert!(by_second[..8].iter().sum::<usize>() > 1_500, "the permits are used: {by_second:?}");
}

#[test]
fn the_rate_stays_at_the_policy_maximum_until_no_request_waits() {
    let world = outage(5, 40);
    let by_second = run(&world, 600);
    assert!(by_second.iter().all(|calls| *calls <= 40), "{by_second:?}");
    assert!(by_second[3..12].iter().all(|calls| *calls >= 36), "{by_second:?}");
}

#[test]
fn under_load_a_recovered_service_gets_at_most_twice_its_normal_rate() {
    // 100 new requests a second, before, during and after an outage of 20 s.
    let behaviour = |at_ms| Act::Answer(if (2_000..22_000).contains(&at_ms) { retry() } else { done() });
    let world = world_where(behaviour).seeded(3).with_policy(|policy| {
        policy.health = HealthPolicy { release_max: 50, ..HealthPolicy::default() };
    });
    let mut fleet = Fleet::new(&world, 10);
    for now_ms in (0..60_000).step_by(10) {
        fleet.run_until_ms(now_ms);
        fleet.send(patient());
    }
    fleet.run_until_ms(150_000);
    assert_eq!((fleet.waiting(), world.outcomes().len()), (0, 6_000));
    assert!(world.outcomes().iter().all(|outcome| matches!(outcome, Outcome::Done(_))));
    let mut by_second = vec![0; 150];
    for at_ms in world.call_times_ms() {
        by_second[usize::try_from(at_ms / 1_000).unwrap()] += 1;
    }
    assert!(by_second[2..22].iter().sum::<usize>() <= 60, "during the outage: {by_second:?}");
    assert!(by_second[22..].iter().all(|calls| *calls <= 200), "after it: {by_second:?}");
}

#[test]
fn the_permits_of_a_second_cost_at_most_ten_writes() {
    let world = outage(1_000, 1_000);
    let writes_before = world.health_use().1;
    let by_second = run(&world, 900);
    // Opening, probe and closing are three more.
    assert!(world.health_use().1 - writes_before <= 10 * 3 + 3, "{:?} {by_second:?}", world.health_use());
}

#[test]
fn once_no_request_waits_the_record_is_plain_and_the_writes_end() {
    let world = outage(20, 10_000);
    run(&world, 50);
    let instance = world.instance();
    assert!(!instance.handle_one(patient()));
    let record = world.health_record().unwrap();
    assert_eq!((record.state, record.release), (Breaker::Closed, None));
    let (_, writes) = world.health_use();
    for n in 0..100 {
        world.pass_ms(100);
        assert!(!instance.handle_one(patient()));
        assert!(instance.handle(vec![Delivery { receive_count: 2 + n, ..delivery("m", patient()) }]).is_empty());
    }
    assert_eq!(world.health_use().1, writes);
}

#[test]
fn a_request_that_was_given_back_waits_for_its_turn_though_its_message_is_new() {
    let world = outage(1, 1);
    let instance = world.instance();
    assert!(instance.handle_one(patient()));
    world.pass_ms(RECOVERY_MS);
    assert!(!instance.handle_one(patient()), "the probe");
    let given_back = || Request { attempt: 2, ..patient() };
    assert!(!instance.handle_one(given_back()), "the only permit");
    assert!(instance.handle_one(given_back()), "parked");
    let wait_ms = world.last_wait_ms().unwrap();
    assert!((1_000..4_000).contains(&wait_ms), "{wait_ms}");
    assert!(!instance.handle_one(patient()), "a new one flows");
}

#[test]
fn permits_that_were_not_used_are_void_in_the_next_second() {
    let world = outage(20, 10_000);
    let instance = world.instance();
    assert!(instance.handle_one(patient()));
    world.pass_ms(RECOVERY_MS);
    assert!(!instance.handle_one(patient()), "the probe");
    let waited = || vec![Delivery { receive_count: 2, ..delivery("m", patient()) }];
    assert!(instance.handle(waited()).is_empty());
    let release = || world.health_record().unwrap().release.unwrap();
    assert_eq!((release().interval, release().taken), (0, 2), "a tenth of 20");
    world.pass_ms(1_000);
    assert!(instance.handle(waited()).is_empty());
    assert_eq!((release().interval, release().taken), (1, 4), "a tenth of 40");
}

#[test]
fn a_request_of_the_outage_whose_first_call_fails_after_it_needs_a_permit_for_the_next() {
    let world = outage(1, 1).with_policy(|policy| policy.wait_in_invocation_ms_max = 1_000);
    let world = world.with_policy(|policy| policy.health.failures_to_open = 2);
    let instance = world.instance();
    assert!(instance.handle_one(patient()));
    world.pass_ms(RECOVERY_MS);
    assert!(!instance.handle_one(patient()), "the probe");
    assert!(instance.handle(vec![Delivery { receive_count: 2, ..delivery("m", patient()) }]).is_empty(), "the permit");
    world.play([Act::Answer(retry())]);
    let calls = world.seen().len();
    assert!(instance.handle_one(patient()), "parked after one call");
    assert_eq!(world.seen().len(), calls + 1);
}

#[test]
fn a_request_that_was_sent_after_the_outage_needs_no_permit_whether_or_not_it_waited() {
    let world = outage(1, 1);
    let instance = world.instance();
    assert!(instance.handle_one(patient()));
    world.pass_ms(RECOVERY_MS);
    assert!(!instance.handle_one(patient()), "the probe");
    let back = |request| instance.handle(vec![Delivery { receive_count: 2, ..delivery("m", request) }]).is_empty();
    assert!(back(patient()), "the only permit");
    assert!(!back(patient()), "one of the outage waits");
    assert!((0..50).all(|order| back(sent_later(order))), "they come back from a back-off of their own");
}

#[test]
fn failures_of_calls_that_need_no_permit_do_not_slow_the_release_down() {
    let world = outage(20, 10_000).with_policy(|policy| policy.health.failures_to_open = 2);
    let instance = world.instance();
    (0..2).for_each(|_| assert!(instance.handle_one(patient())));
    world.pass_ms(RECOVERY_MS);
    assert!(!instance.handle_one(patient()), "the probe");
    let waited = || instance.handle(vec![Delivery { receive_count: 2, ..delivery("m", patient()) }]).is_empty();
    assert!(waited());
    (0..50).for_each(|order| {
        world.play([Act::Answer(done()), Act::Answer(retry())]);
        instance.handle_one(sent_later(order));
        instance.handle_one(sent_later(100 + order));
    });
    assert!(waited());
    world.pass_ms(1_000);
    assert!(waited());
    let release = world.health_record().unwrap().release.unwrap();
    assert_eq!((release.interval, release.rate), (1, 40), "{release:?}");
}

#[test]
fn the_requests_of_a_batch_share_the_permits_that_their_instance_took() {
    let world = outage(20, 10_000);
    let instance = world.instance();
    assert!(instance.handle_one(patient()));
    world.pass_ms(RECOVERY_MS);
    assert!(!instance.handle_one(patient()), "the probe");
    let (_, writes) = world.health_use();
    let batch = (0..10).map(|n| Delivery { receive_count: 2, ..delivery(&n.to_string(), patient()) }).collect();
    assert!(instance.handle(batch).is_empty());
    assert_eq!(world.health_record().unwrap().release.unwrap().taken, 10);
    assert_eq!(world.health_use().1 - writes, 5);
}
