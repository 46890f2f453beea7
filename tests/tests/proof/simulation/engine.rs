//! Some worlds of the real engine, on a disk that loses power, fails and fills up.

use std::collections::BTreeMap;

use tests::simulation::ORDERS;
use tests::simulation::engine::{FAULTS, run};

/// The worlds in the reduced run: in each of them some fault occurs that is in no other. `.ci/run` has more, and a command
/// all of them.
const SEEDS: [u64; 7] = [5, 16, 39, 69, 99, 127, 131];

#[test]
fn some_worlds_of_the_engine_lose_no_order_and_have_no_effect_without_its_claim() {
    let (mut violations, mut missing) = (Vec::new(), FAULTS.map(|what| (what, 0)).into_iter().collect());
    let missing: &mut BTreeMap<_, u64> = &mut missing;
    for seed in SEEDS {
        let outcome = run(seed, ORDERS, false);
        violations.extend(outcome.violations.into_iter().map(|(_, words)| format!("seed {seed}: {words}")));
        missing.iter_mut().for_each(|(what, times)| *times += outcome.counts.of(what));
    }
    assert_eq!(violations, Vec::<String>::new(), "see them with: simulate --on engine --seed N");
    missing.retain(|_, times| *times == 0);
    assert!(missing.is_empty(), "they never happened: {missing:?}");
}

#[test]
fn a_world_of_the_engine_run_again_is_the_same() {
    for seed in 0..2 {
        let [first, again] = [run(seed, ORDERS, false), run(seed, ORDERS, false)];
        assert_eq!((first.hash, first.lasted_ms, first.counts), (again.hash, again.lasted_ms, again.counts), "{seed}");
    }
}
