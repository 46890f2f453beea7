//! Many worlds.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rehearsal::faults::{Counts, Fault};
use tests::simulation::{ORDERS, Outcome, run};

/// The number of worlds in the reduced run. `.ci/run` has a thousand, and a command all of them.
const SEEDS: u64 = 200;
/// The number of these worlds that run again.
const AGAIN: u64 = 20;

/// Seeds of worlds that once failed, beyond those of the reduced run. A 409 that meant no was taken for a call under way
/// until the horizon, since each attempt made the next one believe so.
const REGRESSIONS: [u64; 2] = [2_725, 3_101];

/// The results of the reduced run's worlds, by seed.
fn outcomes() -> &'static [Outcome] {
    static OUTCOMES: OnceLock<Vec<Outcome>> = OnceLock::new();
    OUTCOMES.get_or_init(|| run_all(SEEDS))
}

/// Runs worlds on all processors.
fn run_all(seeds: u64) -> Vec<Outcome> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(0);
    let work = || {
        let mine = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < seeds));
        mine.map(|seed| run(seed, ORDERS, false)).collect::<Vec<Outcome>>()
    };
    let mut outcomes: Vec<Outcome> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a world")).collect()
    });
    outcomes.sort_by_key(|outcome| outcome.seed);
    outcomes
}

fn told(outcome: &Outcome) -> Vec<String> {
    outcome.violations.iter().map(|violation| format!("seed {}: {violation}", outcome.seed)).collect()
}

#[test]
fn two_hundred_worlds_in_which_everything_goes_wrong_lose_no_order_and_double_no_effect() {
    let violations: Vec<String> = outcomes().iter().flat_map(told).collect();
    assert_eq!(violations, Vec::<String>::new(), "see them with: cargo run -p tests --bin simulate -- --seed N");
}

#[test]
fn every_fault_strikes_in_two_hundred_worlds() {
    let mut counts = Counts::default();
    outcomes().iter().for_each(|outcome| counts.merge(&outcome.counts));
    assert_eq!(counts.missing().map(Fault::name).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn some_worlds_run_again_are_the_same() {
    let again = run_all(AGAIN);
    for (first, second) in outcomes().iter().zip(&again) {
        assert_eq!((first.seed, first.hash, first.lasted_ms), (second.seed, second.hash, second.lasted_ms));
        assert_eq!(first.counts, second.counts, "seed {}", first.seed);
    }
    let different = outcomes().iter().map(|outcome| outcome.hash).collect::<std::collections::BTreeSet<u64>>();
    assert_eq!(different.len(), outcomes().len(), "no two worlds are the same");
}

#[test]
fn a_world_is_the_same_whether_or_not_its_lines_are_kept() {
    for seed in 0..5 {
        let (told, silent) = (run(seed, ORDERS, true), run(seed, ORDERS, false));
        assert_eq!((told.hash, told.lasted_ms), (silent.hash, silent.lasted_ms));
        assert!(!told.lines.is_empty() && silent.lines.is_empty());
    }
}

#[test]
fn worlds_that_once_failed_hold() {
    let violations: Vec<String> = REGRESSIONS.iter().flat_map(|seed| told(&run(*seed, ORDERS, false))).collect();
    assert_eq!(violations, Vec::<String>::new());
}
