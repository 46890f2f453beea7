//! Whose failures they are: the service's, or those of one order (rule 17).

use std::collections::BTreeMap;

use domain::id::OrderId;
use domain::message::{Outcome, Request};
use domain::ports::{Breaker, OutageReason};
use domain::time::Timestamp;

use crate::testing::{Act, Fleet, START, World, delivery, done, request_of, retry, world_by_key};
use crate::{Answer, HealthPolicy};

const BUDGET_MS: u64 = 60_000;
const FAILURES_MAX: u32 = 3;

fn patient(key: &str) -> Request {
    Request { attempt: 1, complete_by: START.plus_ms(BUDGET_MS), budget_ms: BUDGET_MS, ..request_of(key) }
}

/// Ports with the breaker's defaults, whose requests wait on their queue only.
fn world(behaviour: impl Fn(u64, &str) -> Act + Send + Sync + 'static) -> World {
    world_by_key(behaviour).seeded(5).with_policy(|policy| {
        policy.health = HealthPolicy::default();
        policy.wait_in_invocation_ms_max = 0;
    })
}

/// A service that answers the bad orders with a 500 or a 404, and all others well.
fn with_bad_orders(bad: &[&str]) -> World {
    let keys: Vec<String> = bad.iter().map(|key| patient(key).idempotency_key.to_string()).collect();
    world(move |_, key| match keys.iter().position(|bad| bad == key) {
        None => Act::Answer(done()),
        Some(n) if n % 2 == 0 => Act::Answer(retry()),
        Some(_) => Act::Answer(Answer::misconfigured("HTTP 404")),
    })
}

/// A service that answers the bad orders with a 503 that asks for so long a wait, and all others well or as this says.
fn with_orders_asked_to_wait(
    bad: &[&str],
    after_ms: u64,
    others: impl Fn(u64) -> Answer + Send + Sync + 'static,
) -> World {
    let keys: Vec<String> = bad.iter().map(|key| patient(key).idempotency_key.to_string()).collect();
    world(move |at_ms, key| match keys.iter().any(|bad| bad == key) {
        true => Act::Answer(Answer::Retry { after_ms: Some(after_ms), problem: "503".to_owned() }),
        false => Act::Answer(others(at_ms)),
    })
}

/// An order, as the scheduler and the supervisor see it: each attempt without a reply is a failure.
struct Order {
    request: Request,
    placed_ms: u64,
    failures: u32,
    /// When it ended, and whether well.
    ended: Option<(u64, bool)>,
    next: Option<Timestamp>,
}

/// Orders that are placed at their times, over several instances of the agent.
struct Shop<'w> {
    world: &'w World,
    budget_ms: u64,
    fleet: Fleet<'w>,
    orders: BTreeMap<OrderId, Order>,
}

impl<'w> Shop<'w> {
    fn new(world: &'w World, instances: usize) -> Self {
        Self { world, budget_ms: BUDGET_MS, fleet: Fleet::new(world, instances), orders: BTreeMap::new() }
    }

    fn place(&mut self, key: &str) {
        let budget_ms = self.budget_ms;
        let request = Request { complete_by: self.world_now().plus_ms(budget_ms), budget_ms, ..patient(key) };
        self.fleet.send(request.clone());
        let placed_ms = self.world.now_ms();
        let order = Order { request, placed_ms, failures: 0, ended: None, next: None };
        self.orders.insert(order.request.order_id, order);
    }

    fn world_now(&self) -> Timestamp {
        START.plus_ms(self.world.now_ms())
    }

    fn run_until_ms(&mut self, end_ms: u64) {
        while self.world.now_ms() < end_ms {
            self.fleet.run_until_ms(self.world.now_ms() + 250);
            self.look();
        }
    }

    fn look(&mut self) {
        let (now, now_ms) = (self.world_now(), self.world.now_ms());
        for reply in self.world.replies() {
            let order = self.orders.get_mut(&reply.order_id).unwrap();
            match &reply.outcome {
                Outcome::Deferred(deferral) => order.next = Some(now.plus_ms(deferral.wait_ms)),
                Outcome::Done(_) | Outcome::Failed(_) => order.ended = Some((now_ms, true)),
                Outcome::Retrying(_) | Outcome::Accepted(_) => panic!("{:?}", reply.outcome),
            }
        }
        self.world.forget_replies();
        for order in self.orders.values_mut().filter(|order| order.ended.is_none()) {
            if order.next.is_none() && order.request.complete_by < now {
                order.failures += 1;
                order.next = Some(now);
            }
            if order.failures == FAILURES_MAX {
                order.ended = Some((now_ms, false));
            } else if order.next.is_some_and(|next| next <= now) {
                order.next = None;
                order.request.attempt += 1;
                order.request.complete_by = now.plus_ms(self.budget_ms);
                self.fleet.send(order.request.clone());
            }
        }
    }

    fn order(&self, key: &str) -> &Order {
        &self.orders[&patient(key).order_id]
    }

    /// How long each order took that ended well, in milliseconds, the fastest first.
    fn times_ms(&self) -> Vec<u64> {
        let well = self.orders.values().filter_map(|order| match order.ended {
            Some((ended_ms, true)) => Some(ended_ms - order.placed_ms),
            Some(_) | None => None,
        });
        let mut times_ms: Vec<u64> = well.collect();
        times_ms.sort_unstable();
        times_ms
    }
}

/// Two simulated hours with bad orders, each at its minute, and a good one each so many seconds.
/// The bad ones end within these minutes.
fn two_hours(mut shop: Shop<'_>, every_s: u64, bad: &[(u64, &str)], minutes_max: u64) -> Vec<u64> {
    for second in (0..7_200).step_by(usize::try_from(every_s).unwrap()) {
        shop.run_until_ms(second * 1_000);
        for (_, key) in bad.iter().filter(|(minute, _)| (second..second + every_s).contains(&(minute * 60))) {
            shop.place(key);
        }
        shop.place(&second.to_string());
    }
    shop.run_until_ms(7_300_000);
    for (_, key) in bad {
        let order = shop.order(key);
        assert_eq!((order.failures, order.ended.map(|(_, well)| well)), (FAILURES_MAX, Some(false)), "{key}");
        let minutes = (order.ended.unwrap().0 - order.placed_ms) / 60_000;
        assert!(minutes <= minutes_max, "{key}: {minutes} minutes");
    }
    let times_ms = shop.times_ms();
    assert_eq!(times_ms.len(), shop.orders.len() - bad.len(), "every good one ends well");
    times_ms
}

#[test]
fn orders_that_always_fail_end_by_their_own_limits_and_hold_up_no_other_at_one_order_a_minute() {
    let cases = [(1, 60, 60), (3, 60, 60), (1, 7, 60), (3, 7, 60), (1, 60, 10), (3, 60, 10), (1, 60, 30)];
    for (instances, every_s, budget_s) in cases {
        let world = with_bad_orders(&["bad-1", "bad-2", "bad-3"]);
        let shop = Shop { budget_ms: budget_s * 1_000, ..Shop::new(&world, instances) };
        let times_ms = two_hours(shop, every_s, &[(10, "bad-1"), (12, "bad-2"), (50, "bad-3")], 6);
        let slow = times_ms[times_ms.len() * 99 / 100];
        assert!(slow < 2_000, "{instances} instances, each {every_s} s: {slow} ms, at most {:?}", times_ms.last());
        let is_told = world.health_record().is_some_and(|health| health.unsent.is_some());
        assert!(!is_told, "no operator is told that the service is misconfigured");
    }
}

#[test]
fn many_orders_of_one_bad_product_end_by_their_own_limits_and_hold_up_no_other() {
    let names: Vec<String> = (0..20).map(|n| format!("bad-{n}")).collect();
    for (count, instances) in [(6, 1), (6, 3), (20, 1)] {
        let bad: Vec<&str> = names[..count].iter().map(String::as_str).collect();
        let world = with_bad_orders(&bad);
        let placed: Vec<(u64, &str)> = bad.iter().map(|key| (10, *key)).collect();
        let times_ms = two_hours(Shop::new(&world, instances), 20, &placed, 4);
        let slow: Vec<u64> = times_ms.iter().copied().filter(|ms| *ms >= 2_000).collect();
        assert!(slow.len() <= 8, "{count} orders, {instances} instances: {slow:?}");
    }
}

#[test]
fn an_order_that_is_asked_to_wait_beyond_its_attempt_fails_by_itself_if_others_are_answered_meanwhile() {
    for (after_ms, every_s) in [(70_000, 20), (200_000, 60)] {
        let bad = ["bad-1", "bad-2"];
        let world = with_orders_asked_to_wait(&bad, after_ms, |_| done());
        let times_ms = two_hours(Shop::new(&world, 1), every_s, &[(10, "bad-1"), (12, "bad-2")], 9);
        assert!(times_ms.last().is_some_and(|ms| *ms < 2_000), "{after_ms}: {times_ms:?}");
    }
}

#[test]
fn an_order_alone_that_is_asked_to_wait_beyond_its_attempt_waits_and_no_failure_is_counted() {
    let world = with_orders_asked_to_wait(&["bad"], 70_000, |_| done());
    let mut shop = Shop::new(&world, 1);
    shop.place("good");
    shop.place("bad");
    shop.run_until_ms(1_800_000);
    assert_eq!((shop.order("bad").failures, shop.order("bad").ended, shop.times_ms().len()), (0, None, 1));
    assert!((20..=27).contains(&world.seen().len()), "{} calls", world.seen().len());
}

#[test]
fn what_a_service_asks_of_one_order_holds_up_no_other() {
    // One before a moment in which all fail, and one in it.
    let bad = ["bad-1", "bad-2"];
    for after_ms in [30_000, 120_000] {
        let is_out = |at_ms| (8_000..9_500).contains(&at_ms);
        let world =
            with_orders_asked_to_wait(&bad, after_ms, move |at_ms| if is_out(at_ms) { retry() } else { done() });
        let mut shop = Shop::new(&world, 1);
        shop.place("bad-1");
        for second in 0..8 {
            shop.run_until_ms(second * 1_000);
            shop.place(&second.to_string());
        }
        shop.run_until_ms(8_000);
        shop.place("bad-2");
        (8..16).for_each(|n: u32| shop.place(&n.to_string()));
        shop.run_until_ms(25_000);
        let times_ms = shop.times_ms();
        assert!(times_ms.len() == 16 && times_ms[15] < 6_000, "{times_ms:?}");
    }
}

#[test]
fn an_order_alone_in_an_outage_waits_and_no_failure_is_counted() {
    let world = world(|at_ms, _| Act::Answer(if at_ms < 600_000 { retry() } else { done() }));
    let mut shop = Shop::new(&world, 1);
    shop.place("alone");
    shop.run_until_ms(600_000);
    let calls = world.seen().len();
    assert!((20..=200).contains(&calls), "{calls} calls in ten minutes");
    shop.run_until_ms(700_000);
    assert_eq!((shop.order("alone").failures, shop.times_ms().len()), (0, 1));
}

#[test]
fn orders_in_an_outage_wait_though_the_service_answered_one_of_them_meanwhile() {
    // For a moment in the middle of ten minutes it works.
    let world = world(|at_ms, _| {
        let is_out = (60_000..660_000).contains(&at_ms) && !(300_000..301_000).contains(&at_ms);
        Act::Answer(if is_out { retry() } else { done() })
    });
    let mut shop = Shop::new(&world, 1);
    for second in (0..900).step_by(10) {
        shop.run_until_ms(second * 1_000);
        shop.place(&second.to_string());
    }
    let before = world.call_times_ms().into_iter().filter(|at_ms| (60_000..660_000).contains(at_ms)).count();
    assert!(before <= 250, "{before} calls during the outage");
    shop.run_until_ms(1_000_000);
    assert_eq!(shop.times_ms().len(), shop.orders.len());
    let failures: u32 = shop.orders.values().map(|order| order.failures).sum();
    assert!(failures <= 2, "{failures} failures are counted");
}

#[test]
fn orders_in_an_outage_wait_though_a_front_still_rejects_each_fifth() {
    let key = |second: u64| patient(&second.to_string()).idempotency_key.to_string();
    let rejected: Vec<String> = (0..400).step_by(40).map(key).collect();
    let world = world(move |at_ms, key| {
        Act::Answer(match (45_000..330_000).contains(&at_ms) {
            true if rejected.iter().any(|rejected| rejected == key) => Answer::fail("invalid", "no"),
            true => retry(),
            false => done(),
        })
    });
    let mut shop = Shop { budget_ms: 30_000, ..Shop::new(&world, 1) };
    for second in (0..400).step_by(8) {
        shop.run_until_ms(second * 1_000);
        shop.place(&second.to_string());
    }
    shop.run_until_ms(600_000);
    let failures: Vec<u32> = shop.orders.values().map(|order| order.failures).filter(|count| *count > 0).collect();
    assert_eq!((failures, shop.times_ms().len()), (vec![], shop.orders.len()));
}

#[test]
fn what_one_order_opened_holds_up_no_other_and_five_orders_open_it_for_all() {
    let world = world(|_, _| Act::Answer(retry()));
    let instance = world.instance();
    let calls_of = |key: &str| {
        let before = world.seen().len();
        let mut message = delivery(key, patient(key));
        while world.seen().len() - before < 5 && world.breaker() == Breaker::Closed {
            message.receive_count += 1;
            instance.handle(vec![message.clone()]);
        }
        instance.handle(vec![delivery(key, patient(key))]);
        world.seen().len() - before
    };
    assert_eq!((calls_of("a"), world.breaker()), (5, Breaker::Open));
    assert_eq!(calls_of("a"), 0, "it waits itself");
    for key in ["b", "c", "d", "e"] {
        assert_eq!(calls_of(key), 1, "{key}");
    }
    assert_eq!((calls_of("f"), calls_of("b")), (0, 0), "it is the service");
}

#[test]
fn one_order_that_is_refused_says_only_after_a_minute_that_the_service_is_misconfigured() {
    let world = world(|_, _| Act::Answer(Answer::misconfigured("HTTP 404")));
    let mut shop = Shop::new(&world, 1);
    shop.place("alone");
    let reason = |world: &World| world.health_record().unwrap().outage.unwrap().reason;
    shop.run_until_ms(40_000);
    assert_eq!((reason(&world), world.health_record().unwrap().unsent), (OutageReason::Failing, None));
    shop.run_until_ms(90_000);
    assert_eq!(reason(&world), OutageReason::Misconfigured);
    assert!(world.health_record().unwrap().unsent.is_some());
}
