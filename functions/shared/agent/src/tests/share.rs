//! With many calls the share of the failures opens the breaker, and with few their number in a row (rule 17).

use std::collections::BTreeMap;

use domain::backoff::BackoffPolicy;
use domain::message::{Outcome, Request};
use domain::ports::Breaker;

use crate::testing::{Act, Fleet, START, World, delivery, done, request_of, retry, world_by_key};
use crate::{HealthPolicy, Policy};

/// The twenty calls that open the breaker, and the probes of ten minutes: a wait of the breaker is 4.8 s in the mean.
const OUTAGE_CALLS: usize = 20 + 600_000 / 4_800;

fn patient(key: &str) -> Request {
    Request { attempt: 1, complete_by: START.plus_ms(600_000), budget_ms: 600_000, ..request_of(key) }
}

/// Whether the n-th call fails, at random, of this many percent.
fn fails(n: u64, percent: u64) -> bool {
    // SplitMix64.
    let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) % 100 < percent
}

/// A service that fails this many percent of its calls at random, and all of them in an outage.
fn world(percent: u64, outage_ms: std::ops::Range<u64>) -> World {
    let calls = std::sync::atomic::AtomicU64::new(0);
    let behaviour = move |at_ms: u64, _: &str| {
        let n = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Act::Answer(if outage_ms.contains(&at_ms) || fails(n, percent) { retry() } else { done() })
    };
    world_by_key(behaviour).seeded(11).with_policy(|policy| {
        policy.health = HealthPolicy::default();
        policy.wait_in_invocation_ms_max = 0;
    })
}

/// Sends a new order each millisecond until then.
fn send_until_ms(fleet: &mut Fleet<'_>, world: &World, end_ms: u64) {
    while world.now_ms() < end_ms {
        fleet.send(patient(&world.now_ms().to_string()));
        fleet.run_until_ms(world.now_ms() + 1);
    }
}

#[test]
fn a_busy_service_that_fails_calls_by_chance_is_not_stopped() {
    for percent in [10, 30] {
        let world = world(percent, 0..0);
        let mut fleet = Fleet::new(&world, 1);
        send_until_ms(&mut fleet, &world, 20_000);
        let record = world.health_record();
        assert_eq!(record.map_or(0, |record| record.era), 0, "{percent} percent: it never opened");
        assert!(fleet.waiting() < 500, "{percent} percent: {} wait for their back-off", fleet.waiting());
        let (_, writes) = world.health_use();
        assert!(writes <= world.seen().len() / 100, "{percent} percent: {writes} writes");
    }
}

#[test]
fn a_busy_service_that_fails_all_calls_is_stopped_after_twenty() {
    let world = world(10, 2_000..600_000);
    let mut fleet = Fleet::new(&world, 1);
    send_until_ms(&mut fleet, &world, 3_000);
    assert_eq!(world.breaker(), Breaker::Open);
    let calls = world.call_times_ms().into_iter().filter(|at_ms| *at_ms >= 2_000).count();
    assert!((20..=24).contains(&calls), "{calls} calls");
}

/// How long the slowest of 10,000 orders takes at a service that fails 30 percent of its calls, in milliseconds.
fn slowest_ms(backoff: BackoffPolicy) -> u64 {
    let world = world(30, 0..0).with_policy(|policy| policy.backoff = backoff);
    let mut fleet = Fleet::new(&world, 1);
    send_until_ms(&mut fleet, &world, 10_000);
    fleet.run_until_ms(100_000);
    assert_eq!((fleet.waiting(), world.outcomes().len()), (0, 10_000));
    assert_eq!(world.health_record().map_or(0, |record| record.era), 0, "the breaker never opened, and held up none");
    let mut calls = BTreeMap::new();
    for seen in world.seen() {
        let (first, last) = calls.entry(seen.key).or_insert((seen.at_ms, seen.at_ms));
        (*first, *last) = (seen.at_ms.min(*first), seen.at_ms.max(*last));
    }
    calls.into_values().map(|(first, last)| last - first).max().unwrap_or(0)
}

#[test]
fn of_a_service_that_fails_calls_by_chance_the_back_off_alone_decides_how_long_the_slowest_order_takes() {
    let shipped = Policy::default().backoff;
    let short = BackoffPolicy { slot_time_ms: 20, ceiling: 4, ..shipped };
    // Some order has eight failures and more: its waits grow up to 25.5 s, or up to 0.3 s.
    let (shipped_ms, short_ms) = (slowest_ms(shipped), slowest_ms(short));
    assert!(shipped_ms > 3_000 && short_ms <= 1_500, "{shipped_ms} and {short_ms} ms");
}

/// The calls in an outage of ten minutes, with 64 orders in flight all the time.
fn calls_of_an_outage(seed: u64) -> usize {
    const FROM_MS: u64 = 200;
    let world = world(0, FROM_MS..FROM_MS + 600_000).seeded(seed);
    let (mut fleet, mut sent) = (Fleet::new(&world, 1), 0);
    while world.now_ms() < FROM_MS + 600_000 {
        while fleet.waiting() < 64 {
            sent += 1;
            let order = patient(&sent.to_string());
            fleet.send(Request { complete_by: START.plus_ms(3_600_000), budget_ms: 3_600_000, ..order });
        }
        fleet.run_until_ms(world.now_ms() + 10);
    }
    world.call_times_ms().into_iter().filter(|at_ms| *at_ms >= FROM_MS).count()
}

#[test]
fn an_outage_of_ten_minutes_costs_a_probe_each_five_seconds_however_many_orders_wait() {
    let calls: Vec<usize> = (1..=5).map(calls_of_an_outage).collect();
    assert!(calls.iter().sum::<usize>() <= calls.len() * OUTAGE_CALLS * 11 / 10, "{calls:?}");
}

#[test]
fn where_there_are_few_calls_five_failures_in_a_row_open_it() {
    let world = world(0, 60_000..600_000);
    let instance = world.instance();
    while world.breaker() == Breaker::Closed {
        instance.handle(vec![delivery("m", patient(&world.now_ms().to_string()))]);
        world.pass_ms(1_000);
    }
    assert_eq!(world.call_times_ms().into_iter().filter(|at_ms| *at_ms >= 60_000).count(), 5);
}

#[test]
fn a_release_begins_with_what_the_service_carried_before() {
    // 1,000 orders a second, and an outage of three seconds.
    let world = world(0, 3_000..6_000);
    let mut fleet = Fleet::new(&world, 1);
    send_until_ms(&mut fleet, &world, 6_000);
    let waiting = fleet.waiting();
    assert!(waiting > 2_900, "{waiting}");
    while world.breaker() != Breaker::Closed {
        fleet.run_until_ms(world.now_ms() + 1);
    }
    fleet.run_until_ms(world.now_ms() + 5_500);
    assert_eq!(fleet.waiting(), 0, "all are done");
    assert!(world.outcomes().iter().all(|outcome| matches!(outcome, Outcome::Done(_))));
    assert!(world.health_record().unwrap().release.is_some_and(|release| release.rate >= 1_000));
}

#[test]
fn a_release_shrinks_while_most_of_its_calls_fail() {
    // After the outage the service carries 40 calls a second, and fails all others.
    let carried = std::sync::Mutex::new((0, 0));
    let world = world_by_key(move |at_ms, _| {
        let mut carried = carried.lock().unwrap();
        let second = at_ms / 1_000;
        *carried = if carried.0 == second { (second, carried.1 + 1) } else { (second, 1) };
        Act::Answer(if at_ms < 3_000 || (at_ms >= 6_000 && carried.1 <= 40) { done() } else { retry() })
    });
    let world = world.seeded(11).with_policy(|policy| {
        policy.health = HealthPolicy::default();
        policy.wait_in_invocation_ms_max = 0;
    });
    let mut fleet = Fleet::new(&world, 1);
    send_until_ms(&mut fleet, &world, 6_000);
    fleet.run_until_ms(60_000);
    let calls = world.call_times_ms().into_iter().filter(|at_ms| (20_000..60_000).contains(at_ms)).count();
    assert!(calls <= 2 * 40 * 40, "{calls} calls in 40 s");
    let done = world.outcomes().len();
    assert!(done >= 3_000 + 40 * 20, "{done} orders are done");
}

/// The orders that are done within half a minute, with 64 in flight all the time, at a service that fails this many percent
/// of its calls at random, and all of them in an outage.
fn done_at_full_load(percent: u64, outage_ms: std::ops::Range<u64>, failures_to_open: u32) -> usize {
    let world = world(percent, outage_ms).with_policy(|policy| {
        policy.health.failures_to_open = failures_to_open;
        policy.backoff = Policy::default().backoff;
    });
    let (mut fleet, mut sent) = (Fleet::new(&world, 1), 0);
    while world.now_ms() < 30_000 {
        while fleet.waiting() < 64 {
            sent += 1;
            fleet.send(Request { complete_by: START.plus_ms(world.now_ms() + 600_000), ..patient(&sent.to_string()) });
        }
        fleet.run_until_ms(world.now_ms() + 200);
    }
    world.outcomes().len()
}

#[test]
fn after_a_short_outage_failures_by_chance_hold_up_a_busy_service_no_longer() {
    for percent in [10, 30] {
        for outage_ms in [0..200, 3_000..4_000] {
            let [with, without] = [5, u32::MAX].map(|opens| done_at_full_load(percent, outage_ms.clone(), opens));
            assert!(with * 10 >= without * 9, "{percent} percent after {outage_ms:?}: {with} orders of {without}");
        }
    }
}
