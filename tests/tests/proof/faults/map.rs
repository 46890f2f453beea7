//! Every fault of the design has tests, and this map names their places.

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use tests::documents::{Kind, defined_by_the_design};

/// Folders or files, from the root of the repository, and the faults with a test in them.
const PROMISED: [(&str, &[RangeInclusive<u32>]); 17] = [
    ("tests/tests/proof/faults/submission.rs", &[1..=8]),
    ("tests/tests/proof/faults/scheduler.rs", &[9..=23]),
    ("tests/tests/proof/faults/agent.rs", &[24..=34]),
    ("tests/tests/proof/faults/supervisor.rs", &[35..=43]),
    ("tests/tests/proof/faults/compensation.rs", &[44..=48]),
    ("tests/tests/proof/faults/infrastructure.rs", &[49..=57, 59..=60]),
    ("tests/tests/proof/under_way.rs", &[61..=61]),
    ("tests/tests/proof/faults/durable.rs", &[3..=3, 9..=9, 20..=20, 24..=24]),
    ("tests/tests/adapters/telemetry.rs", &[58..=58]),
    ("tests/tests/proof/simulation/aws.rs", &[72..=72]),
    ("tests/tests/adapters/http", &[64..=65, 69..=69, 71..=71]),
    ("functions/api", &[1..=1, 6..=6]),
    ("functions/supervisor", &[8..=8, 35..=43, 50..=50, 53..=53, 57..=57, 71..=71]),
    ("functions/shared/agent", &[24..=33, 44..=45, 47..=48, 56..=57, 61..=65, 69..=70]),
    ("functions/shared/domain", &[41..=41, 61..=61, 71..=71]),
    ("functions/shared/embedded", &[66..=68]),
    // The faults that tests anywhere in this folder must cover.
    ("tests", &[1..=20, 22..=48, 50..=53, 55..=58]),
];

#[test]
fn every_fault_has_a_test_that_is_named_after_it_where_the_table_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (place, faults) in PROMISED {
        let mut found = BTreeSet::new();
        for file in sources(&root.join(place)) {
            found.extend(faults_tested_in(&fs::read_to_string(&file).unwrap()));
        }
        let missing: Vec<u32> = faults.iter().cloned().flatten().filter(|fault| !found.contains(fault)).collect();
        assert!(missing.is_empty(), "{place} has no test for {missing:?}");
    }
}

#[test]
fn every_fault_of_the_design_is_in_the_table() {
    let faults = defined_by_the_design().into_iter().filter(|(kind, _)| *kind == Kind::Fault);
    let promised: BTreeSet<u32> = PROMISED.iter().flat_map(|(_, faults)| faults.iter().cloned().flatten()).collect();
    assert_eq!(promised, faults.map(|(_, number)| number).collect());
}

/// The Rust files in a folder of the repository, or the file itself.
fn sources(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let is_ours = |path: &PathBuf| !path.ends_with("target") && !path.ends_with(".git");
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.filter(is_ours).partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().filter(is_source).chain(below).collect()
}

/// The faults in the names of this source's test functions.
fn faults_tested_in(source: &str) -> Vec<u32> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_test = |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    let named = |line: &str| {
        let name = line.trim_start_matches("async ").strip_prefix("fn f")?;
        let (number, rest) = name.split_at_checked(2)?;
        rest.starts_with('_').then(|| number.parse().ok()).flatten()
    };
    lines.windows(2).filter(|pair| is_test(&pair[0])).filter_map(|pair| named(pair[1])).collect()
}
