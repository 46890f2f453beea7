//! Rule 21: a step is declined for another agent only if no call was made, and then none is made any more.

use std::iter::repeat_n;

use domain::backoff::BackoffPolicy;
use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Deferral, Delivery, Outcome, Request, idempotency_key};
use domain::ports::{Breaker, MemoState};
use domain::task::Direction;
use memory::faulty::Fault;

use crate::testing::{Act, Instance, START, World, delivery, done, json, request, retry};
use crate::{HealthPolicy, MemoPolicy, Policy};

/// With a memo, and a breaker that opens at the third failure, for 4 s each time.
fn remembering(policy: &mut Policy) {
    policy.memo = Some(MemoPolicy::default());
    policy.health = HealthPolicy {
        failures_to_open: 3,
        backoff: BackoffPolicy { slot_time_ms: 4_000, ceiling: 0, stay_at_ceiling: true },
        ..HealthPolicy::default()
    };
}

/// The first attempt for an order, with a minute of time.
fn of_order(name: &str) -> Request {
    let order_id = OrderId::from_idempotency_key("test", name);
    let idempotency_key = idempotency_key(order_id, "charge-payment", Direction::Forward);
    Request {
        order_id,
        idempotency_key,
        attempt: 1,
        complete_by: START.plus_ms(60_000),
        budget_ms: 60_000,
        ..request()
    }
}

/// The same request of a later attempt, after all earlier ones were declined.
fn later(attempt: u32) -> Request {
    Request { attempt, may_decline: true, ..of_order("new") }
}

fn undo(attempt: u32) -> Request {
    let new = of_order("new");
    let idempotency_key = idempotency_key(new.order_id, &new.step, Direction::Undo);
    Request { direction: Direction::Undo, idempotency_key, attempt, ..new }
}

fn again(request: Request) -> Vec<Delivery<Request>> {
    vec![Delivery { receive_count: 2, ..delivery("m", request) }]
}

/// Ports whose payment has a fallback. Calls for three other orders opened its breaker at 0 ms, until 4,000 ms.
fn with_open_breaker(then: impl IntoIterator<Item = Act>) -> World {
    let world = World::new(repeat_n(Act::Answer(retry()), 3).chain(then)).with_policy(|policy| {
        remembering(policy);
        policy.fallback = vec!["payment-b".into()];
    });
    let opening = Policy { retries_max: 0, ..world.policy.clone() };
    fails_for_three_orders(&world.instance_with("payment", opening));
    world.forget_replies();
    assert_eq!((world.breaker(), world.seen().len()), (Breaker::Open, 3));
    world
}

fn fails_for_three_orders(instance: &Instance<'_>) {
    for name in ["called", "called-2", "called-3"] {
        instance.handle_one(of_order(name));
    }
}

/// An instance of the fallback, which has a memo and names no fallback itself.
fn fallback(world: &World) -> Instance<'_> {
    let mut policy = world.policy.clone();
    policy.fallback.clear();
    world.instance_with("payment-b", policy)
}

fn declined(wait_ms: u64, fallback: &[&str]) -> Outcome {
    Outcome::Deferred(Deferral { wait_ms, fallback: Some(fallback.iter().map(|name| (*name).into()).collect()) })
}

fn memo(world: &World) -> Option<MemoState> {
    world.memo_state(&of_order("new").idempotency_key)
}

#[test]
fn a_step_without_a_call_is_declined_while_the_breaker_is_open_and_its_repeats_make_no_call() {
    let world = with_open_breaker([]);
    assert!(!world.instance().handle_one(of_order("new")));
    let reply = declined(4_000, &["payment-b"]);
    assert_eq!((world.outcomes(), memo(&world)), (vec![reply], Some(MemoState::Declined)));
    assert_eq!(world.replies()[0].may_run_until, None);
    // The breaker is closed again, and an earlier delivery is still there.
    world.change_health(|health| {
        let version = health.version + 1;
        Some(domain::ports::ServiceHealth { state: Breaker::Closed, version, ..health.clone() })
    });
    assert!(world.instance().handle(again(of_order("new"))).is_empty());
    assert_eq!((world.outcomes()[1].clone(), world.seen().len()), (declined(0, &["payment-b"]), 3));
}

#[test]
fn a_request_that_was_delivered_before_is_not_declined() {
    let world = with_open_breaker([]);
    assert_eq!(world.handle(again(of_order("new"))).len(), 1, "parked: that delivery may have called without a memo");
    assert_eq!((world.outcomes(), memo(&world)), (vec![], None));
}

#[test]
fn a_step_with_a_call_waits_for_its_service() {
    let world = with_open_breaker([]);
    assert_eq!(world.instance().handle(again(of_order("called"))), ["m"], "parked");
    let later = Request { attempt: 2, may_decline: true, ..of_order("called") };
    assert!(world.instance().handle_one(later));
    assert_eq!((world.outcomes(), world.last_wait_ms()), (vec![], Some(4_000)));
}

#[test]
fn a_later_attempt_is_declined_only_if_the_request_allows_it() {
    let world = with_open_breaker([]);
    assert!(world.instance().handle_one(Request { may_decline: false, ..later(2) }), "parked");
    assert!(!world.instance().handle_one(later(3)));
    assert_eq!(world.outcomes(), [declined(4_000, &["payment-b"])]);
}

#[test]
fn f32_of_two_deliveries_at_once_one_declines_or_one_calls_and_never_both() {
    // The claim comes first.
    let world = with_open_breaker([]);
    world.at_next("memos.set_memo", |world| world.orphan_claim(&of_order("new").idempotency_key, 2_000));
    assert!(world.instance().handle_one(of_order("new")), "parked: the other delivery is calling");
    assert!(world.outcomes().is_empty() && matches!(memo(&world), Some(MemoState::InProgress(_))));
    world.pass_ms(3_000);
    assert!(world.instance().handle_one(of_order("new")), "a claim without a result may have been a call");
    assert!(world.outcomes().is_empty());
    // The other one comes first. The claimant does not know yet that the breaker is open.
    let world = World::new([Act::Answer(done())].into_iter().chain(repeat_n(Act::Answer(retry()), 3)));
    let world = world.with_policy(|policy| {
        remembering(policy);
        policy.fallback = vec!["payment-b".into()];
    });
    let unaware = world.instance();
    assert!(!unaware.handle_one(of_order("first")));
    let opening = Policy { retries_max: 0, ..world.policy.clone() };
    fails_for_three_orders(&world.instance_with("payment", opening));
    world.at_next("memos.set_memo", |world| assert!(!world.instance().handle_one(of_order("new"))));
    assert!(!unaware.handle_one(of_order("new")));
    let replies = [4_000, 0].map(|wait_ms| declined(wait_ms, &["payment-b"]));
    assert_eq!(world.outcomes()[2..], replies, "the second does not know of the outage");
    assert_eq!(world.seen().len(), 4, "no call for the declined step");
}

#[test]
fn f52_a_late_copy_of_a_declined_request_makes_no_call_once_the_fallback_has_called() {
    let world = with_open_breaker([Act::Hang]);
    assert!(!world.instance().handle_one(of_order("new")));
    fallback(&world).handle_one(Request { complete_by: START.plus_ms(5_000), ..later(2) });
    assert_eq!(world.seen().len(), 4, "the fallback called, and had no answer");
    world.change_health(|health| {
        let version = health.version + 1;
        Some(domain::ports::ServiceHealth { state: Breaker::Closed, version, ..health.clone() })
    });
    world.pass_ms(20_000);
    assert!(world.instance().handle(again(of_order("new"))).is_empty());
    assert_eq!(world.seen().len(), 4);
}

#[test]
fn a_fallback_that_is_failing_declines_too_and_the_first_agent_calls_when_it_has_its_turn() {
    let world = with_open_breaker(repeat_n(Act::Answer(retry()), 3).chain([Act::Answer(done())]));
    assert!(!world.instance().handle_one(of_order("new")));
    let opening = Policy { retries_max: 0, fallback: Vec::new(), ..world.policy.clone() };
    fails_for_three_orders(&world.instance_with("payment-b", opening));
    assert!(!fallback(&world).handle_one(later(2)));
    assert_eq!(world.outcomes()[2], declined(4_000, &[]), "its breaker is open");
    world.pass_ms(4_000);
    assert!(!world.instance().handle_one(later(3)), "the probe is due: it is made, and not declined");
    assert_eq!(
        (world.outcomes()[3].clone(), world.breaker()),
        (Outcome::Done(json("{\"Receipt\":7}")), Breaker::Closed)
    );
}

#[test]
fn a_fallback_without_a_memo_never_declines() {
    let world = with_open_breaker(repeat_n(Act::Answer(retry()), 3));
    let mut policy = world.policy.clone();
    (policy.memo, policy.fallback) = (None, Vec::new());
    let fallback = world.instance_with("payment-b", policy);
    assert!(fallback.handle_one(of_order("other")));
    assert!(fallback.handle_one(later(2)), "parked");
    assert!(world.outcomes().is_empty());
}

#[test]
fn f44_the_undo_of_a_step_that_every_agent_declined_makes_no_call() {
    let world = with_open_breaker([]);
    assert!(!world.instance().handle_one(of_order("new")));
    for delivery in [vec![delivery("m", undo(2))], again(undo(2))] {
        assert!(fallback(&world).handle(delivery).is_empty());
    }
    assert_eq!(world.outcomes()[1..], [Outcome::Done(Json::empty()), Outcome::Done(Json::empty())]);
    assert_eq!((world.seen().len(), memo(&world)), (3, Some(MemoState::Undone)));
    assert!(!world.instance().handle_one(of_order("new")), "a late copy of the request");
    assert_eq!(world.seen().len(), 3);
}

#[test]
fn a_request_that_was_queued_for_long_is_declined_all_the_same() {
    let world = with_open_breaker([]).with_policy(|policy| policy.queued_percent_max = 50);
    world.pass_ms(3_000);
    let queued = Request { complete_by: START.plus_ms(5_000), budget_ms: 5_000, ..of_order("new") };
    assert!(!world.instance().handle_one(queued));
    assert_eq!(world.outcomes(), [declined(1_000, &["payment-b"])]);
}

#[test]
fn without_its_memo_nothing_is_declined() {
    let world = with_open_breaker([]);
    world.ports.is_down("memos.");
    assert!(world.instance().handle_one(of_order("new")), "delivered again");
    assert!(world.outcomes().is_empty());
    world.ports.is_up("memos.");
    world.ports.next("memos.set_memo", Fault::Fails);
    assert!(world.instance().handle_one(of_order("new")));
    assert!(world.outcomes().is_empty());
}
