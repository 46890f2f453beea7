//! Some worlds of the adapters of AWS, over a network that throttles, breaks and falls silent.

use std::collections::BTreeMap;

use tests::simulation::aws::{FAULTS, ORDERS, run, run_through_outage};

/// The worlds in the reduced run: in each of them some fault occurs that is in no other. `.ci/run` has more, and a command
/// all of them.
const SEEDS: [u64; 3] = [18, 29, 34];

#[test]
fn some_worlds_of_aws_lose_no_order_and_write_over_no_version() {
    let (mut violations, mut missing) = (Vec::new(), FAULTS.map(|what| (what, 0)).into_iter().collect());
    let missing: &mut BTreeMap<_, u64> = &mut missing;
    for seed in SEEDS {
        let outcome = run(seed, ORDERS, false);
        violations.extend(outcome.violations.into_iter().map(|(_, words)| format!("seed {seed}: {words}")));
        missing.iter_mut().for_each(|(what, times)| *times += outcome.counts.of(what));
    }
    assert_eq!(violations, Vec::<String>::new(), "see them with: simulate --on aws --seed N");
    missing.retain(|_, times| *times == 0);
    assert!(missing.is_empty(), "they never happened: {missing:?}");
}

#[test]
fn f72_an_outage_of_dynamodb_of_six_hours_ends_without_a_dead_letter() {
    // What fails for a reason that lasts is given up after some 5 hours, and any message by its queue after 7 to 9.
    const OUTAGE_MS: u64 = 6 * 3_600_000;
    let outcome = run_through_outage(8, 1, OUTAGE_MS);
    let violations: Vec<_> = outcome.violations.iter().map(|(_, words)| words).collect();
    assert!(violations.is_empty(), "{violations:?}");
    assert_eq!(outcome.counts.of("dead letter"), 0);
    let hidden = outcome.counts.of("message hidden");
    // One message comes some 700 times.
    assert!(hidden > 1_400, "{hidden}: several messages came more often than a failure that lasts is borne");
}

#[test]
fn a_world_of_aws_run_again_is_the_same() {
    for seed in 0..1 {
        let [first, again] = [run(seed, ORDERS, false), run(seed, ORDERS, false)];
        assert_eq!((first.hash, first.lasted_ms, first.counts), (again.hash, again.lasted_ms, again.counts), "{seed}");
    }
}
