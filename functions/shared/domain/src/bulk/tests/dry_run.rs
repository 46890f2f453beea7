//! Counting without a job.

use futures_util::FutureExt;

use super::*;
use crate::testing::FakePorts;

#[test]
fn a_dry_run_counts_those_that_are_meant_over_all_pages() {
    let task = |name: &str| Arc::new(in_error(name, 0));
    let other = Arc::new(Case::chain().task);
    let pages = [
        Page { tasks: vec![task("a"), other, task("b")], next: Some("c1".into()), read: 3 },
        Page { tasks: vec![task("c")], next: None, read: 1 },
    ];
    let store = FakePorts::new(None, None);
    store.pages.lock().unwrap().extend(pages);
    let counted = dry_run(&store, &spec()).now_or_never().unwrap().unwrap();
    assert_eq!(counted, DryRun { matching: 3, complete: true });
    let asked = ["None", "Some(\"c1\")"].map(|after| format!("list Some(Error) after {after}, 100 at most"));
    assert_eq!(store.logged(), asked);
}

#[test]
fn a_dry_run_that_does_not_come_to_the_end_says_so() {
    let store = FakePorts::new(None, None);
    // A page has one order that matches, among many in other states.
    for n in 0..20 {
        let tasks = vec![Arc::new(in_error(&n.to_string(), 0))];
        store.pages.lock().unwrap().push_back(Page { read: 1_000, tasks, next: Some("more".into()) });
    }
    let counted = dry_run(&store, &spec()).now_or_never().unwrap().unwrap();
    assert_eq!(counted, DryRun { matching: (DRY_RUN_READ_MAX / 1_000) as u64, complete: false });
}
