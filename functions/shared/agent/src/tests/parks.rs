//! The requests that may be parked, and the end of the others.

use domain::backoff::BackoffPolicy;
use domain::message::{Deferral, Delivery, Outcome, Request, idempotency_key};
use domain::ports::Breaker;
use domain::task::Direction;

use crate::policy::PARKED_RECEIVES_MAX;
use crate::testing::{Act, START, World, delivery, done, request, request_of};
use crate::{Answer, HealthPolicy, MemoPolicy, Policy, RETRIES_MAX};

fn busy(after_ms: u64) -> Act {
    Act::Answer(Answer::Retry { after_ms: Some(after_ms), problem: "busy".to_owned() })
}

fn received(receive_count: u32, request: Request) -> Vec<Delivery<Request>> {
    vec![Delivery { receive_count, ..delivery("m", request) }]
}

/// A breaker that opens at this failure in a row, for 4 s.
fn opening_at(failures_to_open: u32) -> impl FnOnce(&mut Policy) {
    move |policy| {
        policy.health = HealthPolicy {
            failures_to_open,
            backoff: BackoffPolicy { slot_time_ms: 4_000, ceiling: 0, stay_at_ceiling: true },
            ..HealthPolicy::default()
        };
    }
}

fn undo() -> Request {
    let idempotency_key = idempotency_key(request().order_id, "charge-payment", Direction::Undo);
    Request { direction: Direction::Undo, idempotency_key, ..request() }
}

#[test]
fn a_park_for_the_back_off_leaves_time_to_wake_late() {
    // 9,500 ms until no call may start any more, and a tenth of the budget is 1,000.
    for (after_ms, parked) in [(8_499, true), (8_500, false)] {
        let world = World::new([busy(after_ms)]);
        assert_eq!(!world.handle(received(1, request())).is_empty(), parked, "{after_ms}");
        assert_eq!((world.returned().len(), world.replies().len()), (usize::from(parked), 0), "{after_ms}");
    }
    // The slack is a tenth of a short budget, and never more than a second of a long one.
    for (budget_ms, after_ms, parked) in [(5_000, 3_999, true), (5_000, 4_000, false), (60_000, 58_499, true)] {
        let world = World::new([busy(after_ms)]);
        let request = Request { complete_by: START.plus_ms(budget_ms), budget_ms, ..request() };
        assert_eq!(!world.handle(received(1, request)).is_empty(), parked, "{budget_ms} {after_ms}");
    }
}

#[test]
fn a_wait_for_a_failing_service_leaves_the_time_of_a_call() {
    // The breaker opens for 4 s, a request may come back a second late, and its call may take 5 s of its 20.
    for (at_ms, parked) in [(10_000, true), (10_001, false)] {
        let world = World::new([busy(4_000)]).with_policy(opening_at(1));
        world.pass_ms(at_ms);
        let until_20_s = |key| Request { complete_by: START.plus_ms(20_000), budget_ms: 20_000, ..request_of(key) };
        assert!(!world.handle(received(1, until_20_s("first"))).is_empty(), "opens it");
        assert_eq!(!world.handle(received(2, until_20_s("second"))).is_empty(), parked, "{at_ms}");
        assert_eq!((world.seen().len(), world.outcomes().len()), (1, usize::from(!parked)), "{at_ms}");
    }
}

#[test]
fn a_back_off_that_leaves_no_slack_is_a_deferral_while_the_service_fails() {
    let world = World::new([busy(9_000)]).with_policy(opening_at(1));
    assert!(world.handle(received(1, request())).is_empty(), "the message is let go");
    assert_eq!((world.breaker(), world.returned().len()), (Breaker::Open, 0));
    assert_eq!(world.outcomes(), [Outcome::Deferred(Deferral::after(9_000))], "as the service asked");
}

#[test]
fn a_wait_in_the_invocation_needs_no_slack_and_every_one_on_the_queue_does() {
    let world = World::new([busy(9_400), Act::Answer(done())]);
    let world = world.with_policy(|policy| policy.wait_in_invocation_ms_max = 60_000);
    assert!(world.handle(received(1, request())).is_empty());
    assert_eq!((world.call_times_ms(), world.replies().len()), (vec![0, 9_400], 1));
    for (at_ms, parked) in [(8_399, true), (8_400, false)] {
        let world = World::new([busy(100)]).with_policy(|policy| policy.wait_in_invocation_ms_max = 0);
        world.pass_ms(at_ms);
        assert_eq!(!world.handle(received(1, request())).is_empty(), parked, "{at_ms}");
    }
}

#[test]
fn a_wait_for_a_duplicate_leaves_time_to_wake_late_too() {
    let keyless = |policy: &mut Policy| policy.memo = Some(MemoPolicy::default());
    for (at_ms, parked) in [(7_999, true), (8_000, false)] {
        let world = World::new([]).with_policy(keyless);
        world.orphan_claim(&undo().idempotency_key, 20_000);
        world.pass_ms(at_ms);
        assert_eq!(!world.handle(received(2, undo())).is_empty(), parked, "{at_ms}");
        assert_eq!((world.returned().len(), world.replies().len()), if parked { (1, 0) } else { (0, 1) }, "{at_ms}");
        let world = World::new([]).with_policy(keyless);
        world.orphan_claim(&request().idempotency_key, 20_000);
        world.pass_ms(at_ms);
        assert_eq!(!world.handle(received(2, request())).is_empty(), parked, "{at_ms}");
        assert_eq!((world.returned().len(), world.replies().len()), (usize::from(parked), 0), "{at_ms}");
    }
}

#[test]
fn a_request_that_was_received_too_often_is_deferred_and_parked_no_more() {
    let patient = || Request { complete_by: START.plus_ms(3_600_000), budget_ms: 3_600_000, ..request() };
    for (receive_count, parked) in [(PARKED_RECEIVES_MAX - 1, true), (PARKED_RECEIVES_MAX, false)] {
        // For the health.
        let health = World::new([busy(0)]).with_policy(opening_at(1));
        assert!(!health.handle(received(1, patient())).is_empty(), "opens it");
        // For the back-off: an outage hides how many of the deliveries were retries.
        let back_off = World::new([busy(0), Act::Answer(done()), busy(4_000)]).with_policy(opening_at(1));
        assert!(!back_off.handle(received(1, patient())).is_empty(), "opens it");
        back_off.pass_ms(4_000);
        assert!(back_off.handle(received(2, patient())).is_empty(), "the probe");
        let back_off = back_off.with_policy(|policy| policy.health.failures_to_open = 9);
        // For a duplicate.
        let duplicate = World::new([]).with_policy(|policy| policy.memo = Some(MemoPolicy::default()));
        duplicate.orphan_claim(&request().idempotency_key, 4_000);
        for (world, wait_ms) in [(health, 3_900), (back_off, 4_000), (duplicate, 1_000)] {
            let (returned, replies) = (world.returned().len(), world.replies().len());
            assert_eq!(!world.handle(received(receive_count, patient())).is_empty(), parked, "{receive_count}");
            assert_eq!(world.returned().len() - returned, usize::from(parked), "{receive_count}");
            if parked {
                assert_eq!((world.last_wait_ms(), world.replies().len()), (Some(wait_ms), replies));
            } else {
                assert_eq!(world.outcomes()[replies..], [Outcome::Deferred(Deferral::after(wait_ms))]);
            }
        }
    }
}

#[test]
fn retries_are_used_up_before_a_message_was_received_too_often() {
    // Otherwise each deferral would start their count afresh, for ever.
    let world = World::new([busy(4_000)]).with_policy(|policy| policy.retries_max = RETRIES_MAX);
    assert!(world.handle(received(PARKED_RECEIVES_MAX, request())).is_empty());
    assert_eq!((world.seen().len(), world.returned().len(), world.replies().len()), (1, 0, 0), "silent");
}
