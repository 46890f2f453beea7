//! A failing service: its breaker over all instances, and the requests during the outage.

use std::iter::repeat_n;

use domain::backoff::BackoffPolicy;
use domain::message::{Deferral, Delivery, Outcome, Request};
use domain::ports::Breaker;

use crate::testing::{Act, Fleet, Instance, START, World, delivery, done, request, retry, world_where};
use crate::{Answer, HealthPolicy, Policy};

const HOUR_MS: u64 = 3_600_000;

/// A breaker that opens at the third failure, for 4 s each time.
fn sensitive(policy: &mut Policy) {
    policy.health = HealthPolicy {
        failures_to_open: 3,
        backoff: BackoffPolicy { slot_time_ms: 4_000, ceiling: 0, stay_at_ceiling: true },
        ..HealthPolicy::default()
    };
}

/// A new request with a minute of time.
fn patient() -> Request {
    Request { attempt: 1, complete_by: START.plus_ms(60_000), budget_ms: 60_000, ..request() }
}

/// Ports with a breaker that three calls of one instance opened at 0 ms, until 4,000 ms.
fn with_open_breaker(then: impl IntoIterator<Item = Act>) -> World {
    let world = World::new(repeat_n(Act::Answer(retry()), 3).chain(then)).with_policy(sensitive);
    assert!(world.instance().handle_one(patient()), "parked");
    assert_eq!((world.breaker(), world.seen().len()), (Breaker::Open, 3));
    world
}

fn redelivered(receive_count: u32, request: Request) -> Vec<Delivery<Request>> {
    vec![Delivery { receive_count, ..delivery("m", request) }]
}

#[test]
fn f30_an_instance_that_is_recycled_finds_the_breaker_still_open() {
    let world = with_open_breaker([]);
    assert!(world.instance().handle_one(patient()));
    assert_eq!((world.seen().len(), world.replies().len()), (3, 0));
    assert_eq!(world.last_wait_ms(), Some(4_000), "until the probe is due");
}

#[test]
fn f30_of_ten_instances_one_probes_when_the_breaker_is_half_open() {
    // While the probe is in flight, each of the nine others and a new instance get a request.
    let others = |world: &World| {
        for _ in 0..10 {
            assert!(world.instance().handle_one(patient()), "parked");
        }
    };
    let world = with_open_breaker([Act::after(others, Act::Answer(done()))]);
    world.pass_ms(4_000);
    assert!(!world.instance().handle_one(patient()));
    assert_eq!((world.seen().len(), world.replies().len()), (4, 1));
    assert_eq!(world.breaker(), Breaker::Closed);
}

#[test]
fn of_instances_that_all_know_that_the_probe_is_due_the_one_that_wins_the_write_probes() {
    let world = with_open_breaker([Act::Answer(retry())]);
    let instances: Vec<Instance<'_>> = (0..10).map(|_| world.instance()).collect();
    world.pass_ms(3_999);
    for instance in &instances {
        assert!(instance.handle_one(patient()));
    }
    // All of them have the record in their cache now, and trust it for a second.
    world.pass_ms(1);
    for instance in &instances {
        assert!(instance.handle_one(patient()));
    }
    assert_eq!(world.seen().len(), 4);
    assert_eq!((world.breaker(), world.health_record().unwrap().backoff.total_retries), (Breaker::Open, 2));
}

#[test]
fn a_probe_that_is_never_heard_of_again_is_followed_by_another() {
    // The instance dies in its probe: its write is lost.
    let dies = Act::after(|world| world.ports.is_down("services"), Act::Hang);
    let world = with_open_breaker([dies, Act::Answer(done())]);
    world.pass_ms(4_000);
    world.instance().handle_one(patient());
    world.ports.is_up("services");
    assert_eq!((world.breaker(), world.seen().len()), (Breaker::HalfOpen, 4));
    // Its time-out is over, but it may still be reporting that.
    assert_eq!(world.now_ms(), 9_000);
    assert!(world.instance().handle_one(patient()), "parked");
    world.pass_ms(1_000);
    assert!(!world.instance().handle_one(patient()));
    assert_eq!((world.breaker(), world.seen().len()), (Breaker::Closed, 5));
}

#[test]
fn a_probe_whose_call_panics_has_failed() {
    let world = with_open_breaker([Act::Panic]);
    world.pass_ms(4_000);
    assert!(world.instance().handle_one(patient()));
    assert_eq!(world.breaker(), Breaker::Open);
}

#[test]
fn a_permanent_no_is_a_sign_of_life() {
    let world = with_open_breaker([Act::Answer(Answer::fail("card_declined", "no"))]);
    world.pass_ms(4_000);
    assert!(!world.instance().handle_one(patient()));
    assert_eq!(world.breaker(), Breaker::Closed);
    // It also ends a row of failures.
    let no = || Act::Answer(Answer::fail("card_declined", "no"));
    let world = World::new([Act::Answer(retry()), Act::Answer(retry()), no(), Act::Answer(retry()), no()])
        .with_policy(sensitive);
    let instance = world.instance();
    assert!(!instance.handle_one(patient()));
    assert!(!instance.handle_one(patient()));
    assert_eq!((world.breaker(), world.seen().len()), (Breaker::Closed, 5));
}

#[test]
fn time_outs_open_the_breaker_and_panics_do_not() {
    let world = World::new(repeat_n(Act::Hang, 3)).with_policy(sensitive);
    assert!(world.instance().handle_one(patient()));
    assert_eq!(world.breaker(), Breaker::Open);
    let world = World::new(repeat_n(Act::Panic, 5)).with_policy(sensitive);
    let instance = world.instance();
    for _ in 0..5 {
        assert!(instance.handle_one(patient()));
    }
    assert_eq!((world.breaker(), world.health_use().1), (Breaker::Closed, 0));
}

#[test]
fn failures_of_several_instances_add_up() {
    let world = World::new(repeat_n(Act::Answer(retry()), 4)).with_policy(|policy| {
        sensitive(policy);
        policy.health.failures_to_open = 4;
        policy.wait_in_invocation_ms_max = 0;
    });
    let world = world.drawing([1; 99]);
    let (a, b) = (world.instance(), world.instance());
    a.handle_one(patient());
    b.handle_one(patient());
    assert_eq!(world.health_use().1, 0, "one failure alone is not worth a write");
    a.handle_one(patient());
    world.pass_ms(1_000);
    b.handle_one(patient());
    assert_eq!((world.breaker(), world.health_use().1), (Breaker::Open, 2));
}

#[test]
fn a_healthy_service_costs_one_read_a_second_and_no_write() {
    let world = world_where(|_| Act::Answer(done())).with_policy(sensitive);
    let instance = world.instance();
    for _ in 0..1_000 {
        world.pass_ms(10);
        assert!(!instance.handle_one(patient()));
    }
    assert_eq!(world.health_use(), (10, 0));
}

#[test]
fn the_requests_of_a_batch_share_one_read() {
    let world = world_where(|_| Act::Answer(done())).with_policy(sensitive);
    let batch = (0..10).map(|n| delivery(&n.to_string(), patient())).collect();
    assert!(world.instance().handle(batch).is_empty());
    assert_eq!((world.health_use(), world.replies().len()), ((1, 0), 10));
}

#[test]
fn a_service_that_stumbles_now_and_then_costs_no_write_either() {
    let world = world_where(|at_ms| Act::Answer(if at_ms % 20 == 10 { retry() } else { done() }));
    let world = world.with_policy(|policy| {
        sensitive(policy);
        policy.wait_in_invocation_ms_max = 0;
    });
    let (world, mut parked) = (world.drawing([1; 999]), 0);
    let instance = world.instance();
    for _ in 0..200 {
        world.pass_ms(10);
        parked += usize::from(instance.handle_one(patient()));
    }
    assert_eq!((parked, world.health_use().1), (100, 0));
}

#[test]
fn a_burst_of_failures_is_written_once_or_twice() {
    let world = world_where(|_| Act::Hang).with_policy(|policy| {
        sensitive(policy);
        policy.health.failures_to_open = 5;
        policy.wait_in_invocation_ms_max = 0;
    });
    let batch = (0..10).map(|n| delivery(&n.to_string(), patient())).collect();
    assert_eq!(world.instance().handle(batch).len(), 10);
    assert_eq!((world.breaker(), world.health_use().1), (Breaker::Open, 2));
}

#[test]
fn while_it_is_open_requests_make_no_call_and_no_failure_and_new_ones_wait_too() {
    let world = with_open_breaker([]);
    let before = world.health_record();
    let instance = world.instance();
    assert!(instance.handle_one(patient()), "a new one");
    assert!(!instance.handle(redelivered(2, patient())).is_empty(), "one that has waited");
    assert_eq!((world.seen().len(), world.replies().len()), (3, 0));
    assert_eq!(world.health_record(), before);
}

#[test]
fn the_first_success_lets_new_requests_flow_at_once() {
    let world = with_open_breaker([]);
    world.pass_ms(4_000);
    let instance = world.instance();
    world.play(repeat_n(Act::Answer(done()), 101));
    assert!(!instance.handle_one(patient()), "the probe");
    for n in 0..100 {
        assert!(!instance.handle_one(patient()), "the {n}th after it");
    }
    assert_eq!((world.replies().len(), world.now_ms()), (101, 4_000));
}

#[test]
fn what_began_before_the_outage_says_nothing_about_the_time_after_it() {
    // Three calls hang while the breaker opens and closes again.
    let outage = |world: &World| {
        world.play(repeat_n(Act::Answer(retry()), 3));
        assert!(world.instance().handle_one(patient()));
        world.pass_ms(4_000);
        world.play([Act::Answer(done())]);
        assert!(!world.instance().handle_one(patient()));
    };
    let world = World::new([Act::after(outage, Act::Answer(retry()))]).with_policy(|policy| {
        sensitive(policy);
        policy.health.failures_to_open = 3;
        policy.wait_in_invocation_ms_max = 0;
    });
    let world = world.drawing([1]);
    let before = world.instance();
    before.handle_one(patient());
    let record = world.health_record().unwrap();
    assert_eq!((record.state, record.failures_in_a_row), (Breaker::Closed, 0));
}

#[test]
fn a_parked_request_whose_deadline_comes_is_deferred_and_not_silent() {
    let world = with_open_breaker([]);
    // 4 s to wait, and 3.9 s until no call may start any more.
    let short = Request { complete_by: START.plus_ms(4_400), budget_ms: 4_400, ..request() };
    assert!(!world.instance().handle_one(short.clone()), "the message is let go");
    assert_eq!(world.replies(), [short.reply(Outcome::Deferred(Deferral::after(4_000)))]);
    // A request that comes back too late for a call, but in time for a reply.
    world.pass_ms(3_950);
    assert!(world.instance().handle(redelivered(2, short)).is_empty());
    assert_eq!(world.outcomes()[1], Outcome::Deferred(Deferral::after(50)));
    assert_eq!((world.seen().len(), world.returned().len()), (3, 1));
}

#[test]
fn a_request_that_waited_is_deferred_even_if_the_service_recovered_meanwhile() {
    let world = with_open_breaker([Act::Answer(done())]);
    world.pass_ms(4_000);
    assert!(!world.instance().handle_one(patient()));
    let waited = Request { complete_by: START.plus_ms(4_400), budget_ms: 4_400, ..request() };
    assert!(world.instance().handle(redelivered(2, waited)).is_empty());
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Done(_), Outcome::Deferred(_)]));
    // A request that was sent after the recovery did not wait for the service.
    world.pass_ms(40);
    let late = Request { complete_by: START.plus_ms(4_045), budget_ms: 40, ..request() };
    assert!(world.instance().handle(redelivered(2, late)).is_empty());
    assert_eq!(world.replies().len(), 2);
}

#[test]
fn a_request_whose_own_calls_opened_the_breaker_is_deferred_too() {
    let world = World::new(repeat_n(Act::Answer(retry()), 3)).with_policy(sensitive);
    let short = Request { complete_by: START.plus_ms(2_000), ..request() };
    assert!(!world.instance().handle_one(short));
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Deferred(_)]));
}

#[test]
fn a_request_whose_next_call_would_be_too_late_or_one_too_many_is_deferred_while_the_service_fails() {
    let busy = Answer::Retry { after_ms: Some(100_000), problem: "busy".to_owned() };
    for (answer, retries_max, of_a_healthy_service) in [(busy, 9, 1), (retry(), 0, 0)] {
        for (failures_to_open, replies) in [(1, 1), (2, of_a_healthy_service)] {
            let world = World::new([Act::Answer(answer.clone())]).with_policy(|policy| {
                sensitive(policy);
                policy.health.failures_to_open = failures_to_open;
                policy.retries_max = retries_max;
            });
            assert!(!world.instance().handle_one(patient()));
            let deferred = world.outcomes().iter().filter(|outcome| matches!(outcome, Outcome::Deferred(_))).count();
            assert_eq!((world.replies().len(), deferred), (replies, replies), "{answer:?} {failures_to_open}");
        }
    }
}

#[test]
fn failures_that_opened_nothing_put_nothing_off() {
    let world = World::new(repeat_n(Act::Answer(retry()), 2)).with_policy(|policy| {
        sensitive(policy);
        policy.health.failures_to_open = 4;
        policy.retries_max = 1;
    });
    assert!(!world.instance().handle_one(patient()));
    assert_eq!(world.health_record().unwrap().failures_in_a_row, 2);
    world.pass_ms(59_600);
    assert!(!world.instance().handle_one(patient()), "no time left, and it is silent about that");
    assert!(world.replies().is_empty());
}

#[test]
fn failures_that_an_instance_kept_to_itself_end_with_the_outage() {
    let world = World::new([Act::Answer(retry())]).with_policy(|policy| {
        sensitive(policy);
        policy.health.failures_to_open = 4;
        policy.retries_max = 0;
    });
    let instance = world.instance();
    instance.handle_one(patient());
    let opener = world.instance();
    world.play(repeat_n(Act::Answer(retry()), 4));
    (0..4).for_each(|_| assert!(!opener.handle_one(patient())));
    assert_eq!(world.breaker(), Breaker::Open);
    world.pass_ms(4_000);
    world.play([Act::Answer(done()), Act::Answer(retry())]);
    assert!(!opener.handle_one(patient()), "the probe");
    // One failure before the outage and one after it are not two in a row.
    instance.handle_one(patient());
    assert_eq!(world.health_record().unwrap().failures_in_a_row, 0);
}

#[test]
fn a_clock_that_is_set_back_does_not_keep_an_instance_from_reading_the_health() {
    let world = World::new([Act::Answer(done())]).with_policy(sensitive);
    let instance = world.instance();
    assert!(!instance.handle_one(patient()));
    world.set_back_ms(60_000);
    world.play(repeat_n(Act::Answer(retry()), 3));
    assert!(world.instance().handle_one(patient()), "opens it");
    assert!(instance.handle_one(patient()), "parked");
    assert_eq!(world.seen().len(), 4);
}

#[test]
fn f29_after_the_deadline_there_is_silence_also_while_it_is_open() {
    let world = with_open_breaker([]);
    world.pass_ms(3_000);
    let over = Request { complete_by: START.plus_ms(3_000), ..request() };
    assert!(!world.instance().handle_one(over));
    assert_eq!((world.seen().len(), world.replies().len(), world.returned().len()), (3, 0, 1));
}

#[test]
fn waiting_for_the_service_does_not_use_up_the_retries() {
    // Parked fifty times, and then called with its full patience: two failures and a success.
    let world = with_open_breaker([Act::Answer(done())]);
    let world = world.with_policy(|policy| policy.retries_max = 2);
    world.pass_ms(4_000);
    assert!(!world.instance().handle_one(patient()), "the probe");
    world.play([Act::Answer(retry()), Act::Answer(retry()), Act::Answer(done())]);
    assert!(world.instance().handle(redelivered(50, patient())).is_empty());
    assert_eq!(world.replies().len(), 2);
    // A request that was sent after the recovery was never parked: its deliveries were retries.
    let sent_later = Request { complete_by: START.plus_ms(64_001), ..patient() };
    world.play([Act::Answer(retry())]);
    world.pass_ms(1);
    assert!(world.instance().handle(redelivered(50, sent_later)).is_empty());
    assert_eq!(world.replies().len(), 2, "silent after one call");
}

#[test]
fn f31_a_service_that_hangs_takes_a_few_calls_and_the_others_are_unaffected() {
    let world = world_where(|_| Act::Hang).with_policy(sensitive);
    let mut fleet = Fleet::new(&world, 3);
    for _ in 0..50 {
        fleet.send(patient());
    }
    fleet.run_until_ms(1);
    assert!(world.seen().len() <= 5, "{} calls of a service that hangs", world.seen().len());
    assert_eq!((world.breaker(), fleet.waiting()), (Breaker::Open, 50));
    world.play([Act::Answer(done())]);
    assert!(!world.instance_of("inventory").handle_one(patient()));
    assert_eq!(world.replies().len(), 1);
}

#[test]
fn a_probe_that_hangs_until_its_time_out_has_failed_and_the_back_off_goes_on() {
    let world = with_open_breaker([Act::Hang]);
    world.pass_ms(4_000);
    assert!(world.instance().handle_one(patient()));
    let record = world.health_record().unwrap();
    assert_eq!((record.state, record.backoff.total_retries), (Breaker::Open, 2));
}

#[test]
fn f26_a_burst_of_busy_answers_ends_well_for_everybody_with_few_calls() {
    let world = world_where(|at_ms| Act::Answer(if at_ms < 20_000 { retry() } else { done() })).seeded(1);
    let world = world.with_policy(|policy| policy.health = HealthPolicy::default());
    let mut fleet = Fleet::new(&world, 10);
    for _ in 0..200 {
        fleet.send(patient());
    }
    fleet.run_until_ms(20_000);
    let during = world.seen().len();
    assert!(during <= 60, "{during} calls during the outage");
    fleet.run_until_ms(60_000);
    assert_eq!((world.replies().len(), fleet.waiting()), (200, 0));
    assert!(world.outcomes().iter().all(|outcome| matches!(outcome, Outcome::Done(_))));
    assert_eq!(world.seen().len(), during + 200);
}

#[test]
fn with_the_health_out_of_reach_calls_flow() {
    let world = World::new([Act::Answer(done())]).with_policy(sensitive);
    world.ports.is_down("services");
    assert!(!world.instance().handle_one(patient()));
    assert_eq!(world.replies().len(), 1);
}

#[test]
fn with_the_health_out_of_reach_an_instance_has_a_breaker_of_its_own() {
    let world = World::new(repeat_n(Act::Answer(retry()), 3)).with_policy(sensitive);
    world.ports.is_down("services");
    let instance = world.instance();
    assert!(instance.handle_one(patient()), "parked");
    world.pass_ms(3_999);
    assert!(instance.handle_one(patient()), "parked");
    assert_eq!(world.seen().len(), 3);
    world.pass_ms(1);
    world.play([Act::Answer(done()), Act::Answer(done())]);
    assert!(!instance.handle_one(patient()));
    assert!(!instance.handle_one(patient()));
    // The stored record counts again as soon as it can be read.
    world.ports.is_up("services");
    world.pass_ms(1_000);
    world.play([Act::Answer(done())]);
    assert!(!instance.handle_one(patient()));
    assert_eq!(world.health_record(), None);
}

#[test]
fn f69_after_the_clock_is_set_back_by_an_hour_an_open_breaker_is_probed_at_once() {
    for is_restarted in [false, true] {
        let world = with_open_breaker([Act::Answer(done()), Act::Answer(done())]);
        let instance = world.instance();
        assert!(instance.handle_one(patient()), "parked");
        world.set_back_ms(HOUR_MS);
        let other = world.instance();
        let instance = if is_restarted { &other } else { &instance };
        for replies in [1, 2] {
            assert!(!instance.handle_one(patient()), "{is_restarted}");
            assert_eq!((world.breaker(), world.replies().len()), (Breaker::Closed, replies));
        }
    }
}

#[test]
fn f69_a_breaker_that_an_instance_with_a_fast_clock_opened_holds_up_no_other_instance() {
    let world = World::new(repeat_n(Act::Answer(retry()), 3).chain([Act::Answer(done())])).with_policy(sensitive);
    world.pass_ms(HOUR_MS);
    let fast = Request { complete_by: START.plus_ms(HOUR_MS + 60_000), ..patient() };
    assert!(world.instance().handle_one(fast), "parked");
    world.set_back_ms(HOUR_MS);
    assert!(!world.instance().handle_one(patient()));
    assert_eq!((world.breaker(), world.replies().len()), (Breaker::Closed, 1));
}
