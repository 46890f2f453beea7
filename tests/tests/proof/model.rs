//! The small model check, and that the checker finds what is broken. `cargo run --release -p tests --bin model` does more.

use std::collections::HashSet;
use std::time::Duration;

use tests::model::bounds::{Bounds, Detail, SMALL};
use tests::model::broken;
use tests::model::explore::{Seen, explore, seen};
use tests::model::protocol::Protocol;
use tests::model::report::{check, text};

const THREADS: usize = 2;

#[test]
fn every_state_of_the_small_worlds_keeps_the_invariants() {
    // Fewer states than these: something that could happen does not happen any more.
    for (world, unique_min) in SMALL.into_iter().zip([128_000, 69_000, 18_500, 14_000, 16_000, 32_000, 230_000]) {
        let outcome = check(Protocol::new(world.clone()), THREADS, None);
        assert!(outcome.holds(), "{}", text(world.name, &outcome));
        assert!(outcome.unique >= unique_min, "only {} states: {}", outcome.unique, world.name);
    }
}

#[test]
fn whatever_is_broken_on_purpose_is_found() {
    for broken in broken::ALL {
        let outcome = check(broken.protocol(), THREADS, None);
        assert!(outcome.breaks(broken.breaks), "{}", text(broken.name, &outcome));
    }
}

#[test]
fn a_check_that_runs_out_of_time_does_not_pass() {
    let outcome = check(Protocol::new(SMALL[0].clone()), THREADS, Some(Duration::from_millis(1)));
    assert!(!outcome.is_exhaustive && !outcome.holds());
}

/// A world of which all states fit into a test.
const TINY: Bounds = Bounds { attempts: 1, declines: false, undo_declines: false, drains: false, ..Bounds::ONE };

#[test]
fn to_send_in_the_action_of_the_write_comes_to_the_same_as_to_send_later() {
    let reachable = |detail, in_flight_max| -> HashSet<Seen> {
        let world = Protocol::new(Bounds { detail, in_flight_max, declines: true, ..TINY });
        explore(&world, |_, _, _| {}).iter().map(|state| seen(&state.orders[0])).collect()
    };
    // What is not sent yet takes no room in flight, so the fine world with room for two is between two coarse ones.
    let fine = reachable(Detail::Fine, 2);
    assert!(reachable(Detail::Coarse, 2).is_subset(&fine));
    assert!(fine.is_subset(&reachable(Detail::Coarse, 3)));
    assert!(fine.len() > 70, "{}", fine.len());
}

#[test]
fn two_orders_come_to_what_each_comes_to_alone() {
    let world = Bounds { supervisors: 0, declines: true, detail: Detail::Coarse, ..TINY };
    let alone = Protocol::new(world.clone());
    let alone: HashSet<Seen> = explore(&alone, |_, _, _| {}).iter().map(|state| seen(&state.orders[0])).collect();
    let both = Protocol::new(Bounds { orders: 2, ..world });
    let both = explore(&both, |before, action, after| {
        let changed = (0..2).filter(|&order| before.orders[order] != after.orders[order]).count();
        assert!(changed <= 1, "{action:?} touches both orders");
    });
    for order in 0..2 {
        let its: HashSet<Seen> = both.iter().map(|state| seen(&state.orders[order])).collect();
        assert_eq!(its, alone);
    }
    let pairs: HashSet<(Seen, Seen)> =
        both.iter().map(|state| (seen(&state.orders[0]), seen(&state.orders[1]))).collect();
    assert_eq!(pairs.len(), alone.len() * alone.len(), "and to every pair of these");
}
