//! The brake on mass rejection (rule 18).

use std::iter::repeat_n;

use domain::backoff::BackoffPolicy;
use domain::id::OrderId;
use domain::message::{Outcome, Request};
use domain::ports::{Acceptance, Breaker, Environment, MemoState, OutageReason, ServiceHealth};
use domain::task::Direction;

use crate::testing::{Act, Fleet, START, World, delivery, done, request, retry, world_where};
use crate::{Answer, HealthPolicy, MemoPolicy, Policy, RejectionsPolicy};

/// The brake takes hold at the sixth answer, if more than half are rejections.
fn braking(policy: &mut Policy) {
    policy.health = HealthPolicy {
        failures_to_open: 3,
        backoff: BackoffPolicy { slot_time_ms: 4_000, ceiling: 0, stay_at_ceiling: true },
        rejections: Some(RejectionsPolicy { answers_min: 6, percent: 50, window_ms: 60_000 }),
        ..HealthPolicy::default()
    };
}

/// A new request with a minute of time.
fn patient() -> Request {
    Request { attempt: 1, complete_by: START.plus_ms(60_000), budget_ms: 60_000, ..request() }
}

fn undo() -> Request {
    Request { direction: Direction::Undo, ..patient() }
}

fn no() -> Act {
    Act::Answer(Answer::fail("not_found", "no such shop"))
}

fn yes() -> Act {
    Act::Answer(done())
}

/// Ports with a brake that took hold at 0 ms, until 4,000 ms: two steps were done, three rejected, and the fourth
/// rejection does not count.
fn braked(then: impl IntoIterator<Item = Act>) -> World {
    let acts = repeat_n(yes(), 2).chain(repeat_n(no(), 4)).chain(then);
    let world = World::new(acts).with_policy(braking);
    let batch = (0..6).map(|n| delivery(&n.to_string(), patient())).collect();
    assert_eq!(world.instance().handle(batch).len(), 1, "parked");
    assert_eq!(failures(&world), 3);
    assert_eq!((world.breaker(), reason(&world)), (Breaker::Open, Some(OutageReason::Rejections)));
    world
}

fn failures(world: &World) -> usize {
    world.outcomes().iter().filter(|outcome| matches!(outcome, Outcome::Failed(_))).count()
}

fn reason(world: &World) -> Option<OutageReason> {
    world.health_record()?.outage.map(|outage| outage.reason)
}

/// The operator's word.
fn accept(world: &World) {
    world.change_health(|health| {
        health.accepting_rejections(Acceptance { by: "ada".into(), reason: "sold out".into(), at: world.ports.now() })
    });
}

#[test]
fn f65_rejections_do_not_count_while_most_steps_are_rejected() {
    let world = braked([no(), yes(), yes()]);
    let health = world.health_record().unwrap();
    assert_eq!(&*health.outage.clone().unwrap().problem, "4 of the last 6 answers were rejections");
    assert_eq!(health.unsent, health.outage);
    // All wait, and the probe's rejection does not count either.
    assert!(world.instance().handle_one(patient()));
    world.pass_ms(4_000);
    assert!(world.instance().handle_one(patient()), "parked");
    assert_eq!((world.breaker(), failures(&world), world.seen().len()), (Breaker::Open, 3, 7));
    // A step that is done ends it.
    world.pass_ms(4_000);
    let instance = world.instance();
    assert!(!instance.handle_one(patient()));
    assert_eq!((world.breaker(), reason(&world)), (Breaker::Closed, None));
    assert!(!instance.handle_one(Request { attempt: 1, ..patient() }), "new requests flow");
}

#[test]
fn rule_18_a_step_that_is_taken_on_is_no_rejection_and_ends_it() {
    let taken_on = || Act::Answer(Answer::under_way());
    let awaited = || Request { wait_within_ms: Some(60_000), ..patient() };
    // Five of nine are most; four of eight are not.
    let world = World::new(repeat_n(taken_on(), 4).chain(repeat_n(no(), 5))).with_policy(braking);
    let instance = world.instance();
    let parked: Vec<_> = (0..9).filter(|_| instance.handle_one(awaited())).collect();
    assert_eq!((parked, failures(&world), reason(&world)), (vec![8], 4, Some(OutageReason::Rejections)));
    // With a memo the call is made again, so it is no answer yet.
    let world = braked([taken_on(), no()]).with_policy(|policy| policy.memo = Some(MemoPolicy::default()));
    world.pass_ms(4_000);
    world.instance().handle_one(Request { idempotency_key: "another".into(), ..awaited() });
    assert_eq!(reason(&world), Some(OutageReason::Rejections));
    let world = braked([taken_on()]);
    world.pass_ms(4_000);
    assert!(!world.instance().handle_one(awaited()));
    assert_eq!((world.breaker(), reason(&world)), (Breaker::Closed, None));
}

#[test]
fn f65_the_rejection_of_a_call_in_flight_at_the_opening_does_not_count() {
    // While one call is in flight, another instance sees the others rejected.
    let others = |world: &World| {
        let instance = world.instance();
        let parked = (0..6).filter(|_| instance.handle_one(patient())).count();
        assert_eq!(parked, 1);
        world.pass_ms(1_000);
    };
    let acts = std::iter::once(Act::after(others, no())).chain(repeat_n(no(), 6));
    let world = World::new(acts).with_policy(braking);
    assert!(world.instance().handle_one(patient()), "parked");
    assert_eq!((failures(&world), world.seen().len()), (5, 7));
}

#[test]
fn f65_a_recycled_instance_and_failures_do_not_end_it() {
    let world = braked([Act::Answer(retry()), no(), Act::Hang, no()]);
    for _ in 0..4 {
        world.pass_ms(4_000);
        assert!(world.instance().handle_one(patient()), "parked");
        assert_eq!((world.breaker(), reason(&world)), (Breaker::Open, Some(OutageReason::Rejections)));
    }
    assert_eq!((failures(&world), world.seen().len()), (3, 10));
}

#[test]
fn with_memos_a_rejection_that_does_not_count_is_not_kept_and_the_key_is_free() {
    let world = braked([no(), yes()]).with_policy(|policy| policy.memo = Some(MemoPolicy::default()));
    let request = Request { idempotency_key: "another".into(), ..patient() };
    world.pass_ms(4_000);
    assert!(world.instance().handle_one(request.clone()), "parked");
    let memo = world.memo_state("another");
    assert!(!matches!(memo, Some(MemoState::Completed(_))), "{memo:?}");
    world.pass_ms(4_000);
    assert!(!world.instance().handle_one(request));
    assert_eq!((world.breaker(), failures(&world)), (Breaker::Closed, 3));
}

#[test]
fn an_undo_says_nothing_about_rejections() {
    let declined = || Act::Answer(Answer::fail("too_late", "no"));
    let world = braked([yes(), declined(), no()]);
    assert!(!world.instance().handle_one(undo()), "it is undone, and does not wait for a probe");
    assert_eq!((world.breaker(), reason(&world)), (Breaker::Open, Some(OutageReason::Rejections)));
    assert!(!world.instance().handle_one(undo()), "an undo that is rejected counts");
    assert_eq!(reason(&world), Some(OutageReason::Rejections));
    world.pass_ms(4_000);
    assert!(world.instance().handle_one(patient()));
    let world = world_where(|_| Act::Answer(Answer::fail("too_late", "no"))).with_policy(braking);
    let instance = world.instance();
    (0..50).for_each(|_| assert!(!instance.handle_one(undo())));
    assert_eq!((world.breaker(), world.health_use().1), (Breaker::Closed, 0));
}

#[test]
fn a_conflict_without_an_earlier_call_counts_as_a_rejection() {
    let failure = domain::message::Failure { code: "exists".into(), message: "no".into() };
    let world = world_where(move |_| {
        Act::Answer(Answer::UnderWay { after_ms: None, unless_alone: Some(failure.clone()), poll: None })
    });
    let world = world.with_policy(braking);
    let instance = world.instance();
    (0..5).for_each(|_| assert!(!instance.handle_one(patient())));
    assert!(instance.handle_one(patient()), "parked");
    assert_eq!((failures(&world), reason(&world)), (5, Some(OutageReason::Rejections)));
}

#[test]
fn accepted_rejections_count_until_they_are_no_majority_and_then_the_brake_can_act_again() {
    let acts = repeat_n(no(), 30).chain(repeat_n(yes(), 40)).chain(repeat_n(no(), 60));
    let world = braked(acts);
    accept(&world);
    let mut instance = world.instance();
    (0..30).for_each(|_| assert!(!instance.handle_one(patient()), "it counts"));
    assert_eq!((failures(&world), world.breaker()), (33, Breaker::Closed));
    let is_accepted = |world: &World| world.health_record().unwrap().rejections.accepted.is_some();
    (0..20).for_each(|_| assert!(!instance.handle_one(patient())));
    assert!(is_accepted(&world), "most of the last minute's answers are rejections");
    // The state is that of all instances.
    instance = world.instance();
    (0..20).for_each(|_| assert!(!instance.handle_one(patient())));
    let writes = world.health_use().1;
    assert!(!is_accepted(&world));
    let parked = (0..60).filter(|_| instance.handle_one(patient())).count();
    assert!(parked > 0 && world.breaker() == Breaker::Open, "{parked}");
    assert!(world.health_use().1 > writes);
}

#[test]
fn accepting_is_for_services_that_wait_because_of_rejections() {
    let world = World::new(repeat_n(Act::Answer(retry()), 3)).with_policy(braking);
    assert!(world.instance().handle_one(patient()));
    let before = world.health_record();
    accept(&world);
    assert_eq!(world.health_record(), before);
}

#[test]
fn rejections_of_several_instances_add_up() {
    let world = world_where(|_| no()).with_policy(braking);
    let mut fleet = Fleet::new(&world, 3);
    for n in 0..12_u64 {
        fleet.send(patient());
        fleet.run_until_ms(n * 1_000);
    }
    assert_eq!((failures(&world), reason(&world)), (5, Some(OutageReason::Rejections)));
}

#[test]
fn a_service_that_rejects_now_and_then_costs_a_write_for_a_rejection_and_at_most_one_a_second() {
    let world = world_where(|at_ms| if at_ms % 100 < 10 { no() } else { yes() }).with_policy(braking);
    let instance = world.instance();
    for _ in 0..1_000 {
        world.pass_ms(10);
        assert!(!instance.handle_one(patient()));
    }
    assert_eq!((failures(&world), world.breaker()), (100, Breaker::Closed));
    assert_eq!(world.health_use().1, 10);
}

#[test]
fn few_rejections_do_not_take_hold_with_the_default_policy() {
    let world = world_where(|_| no()).with_policy(|policy| policy.health = HealthPolicy::default());
    let instance = world.instance();
    (0..19).for_each(|_| assert!(!instance.handle_one(patient())));
    assert_eq!((failures(&world), world.breaker()), (19, Breaker::Closed));
    assert!(instance.handle_one(patient()));
}

#[test]
fn f64_a_misconfigured_service_is_out_of_order_with_that_reason() {
    let refused = || Act::Answer(Answer::misconfigured("HTTP 401"));
    let world = World::new(repeat_n(refused(), 3).chain([yes()])).with_policy(braking);
    let opener = world.instance_with("payment", Policy { retries_max: 0, ..world.policy.clone() });
    for key in ["a", "b", "c"] {
        opener.handle_one(Request { order_id: OrderId::from_idempotency_key("test", key), ..patient() });
    }
    let ServiceHealth { state, outage, unsent, .. } = world.health_record().unwrap();
    let outage = outage.unwrap();
    assert_eq!((state, outage.reason, &*outage.problem), (Breaker::Open, OutageReason::Misconfigured, "HTTP 401"));
    assert_eq!(unsent, Some(outage.clone()));
    world.pass_ms(4_000);
    let batch = vec![delivery("a", patient())];
    assert!(world.instance().handle(batch).is_empty());
    let ServiceHealth { state, outage: ended, unsent, .. } = world.health_record().unwrap();
    assert_eq!((state, ended, unsent), (Breaker::Closed, None, Some(outage)), "the alert is still to be sent");
}
