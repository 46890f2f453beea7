//! Counting the orders of a bulk job without a job.

use std::sync::Arc;

use domain::bulk::{BulkAction, DRY_RUN_READ_MAX, DryRun, Spec, dry_run};
use domain::limits::SHARDS;
use domain::ports::{ListError, Page};
use domain::task::{ProcessState, Task};
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::faulty::Faulty;
use memory::sample;

use crate::{START, ports};

fn spec() -> Spec {
    serde_json::from_str(r#"{"By":"ann","Reason":"mended","Canary":3,"RatePerSecond":100,"CanaryTimeoutMs":60000}"#)
        .unwrap()
}

fn store(ports: &Faulty, name: &str, state: ProcessState) {
    let order = sample::order("test", name, "{}", START);
    let task = Task::new(&order, Workflows::shipped().unwrap().current(), SHARDS, 1);
    ports.store_order(order, Task { process_state: state, ..task });
}

fn counted(ports: &Faulty, spec: &Spec) -> DryRun {
    dry_run(ports, spec).now_or_never().unwrap().unwrap()
}

#[test]
fn a_dry_run_counts_those_that_are_meant_over_all_pages() {
    let ports = ports();
    ports.has_short_pages(2);
    ["a", "b", "c"].into_iter().for_each(|name| store(&ports, name, ProcessState::Error));
    assert_eq!(counted(&ports, &spec()), DryRun { matching: 3, complete: true });
    assert_eq!(ports.calls_of("store.list"), ["Some(Error) 100"; 2]);
}

#[test]
fn a_dry_run_counts_no_order_that_a_lagging_index_still_lists() {
    let ports = ports();
    store(&ports, "a", ProcessState::Error);
    ports.on_answers("store.list", |_, page: &mut Result<Page, ListError>| {
        let page = page.as_mut().unwrap();
        page.tasks.push(Arc::new(Task { process_state: ProcessState::Processed, ..Task::clone(&page.tasks[0]) }));
    });
    assert_eq!(counted(&ports, &spec()), DryRun { matching: 1, complete: true });
}

#[test]
fn a_dry_run_counts_the_compensated_orders() {
    let ports = ports();
    store(&ports, "a", ProcessState::Compensated);
    store(&ports, "b", ProcessState::Error);
    store(&ports, "c", ProcessState::Compensated);
    let spec = Spec { action: BulkAction::Again, ..spec() };
    assert_eq!(counted(&ports, &spec), DryRun { matching: 2, complete: true });
    assert_eq!(ports.calls_of("store.list"), ["Some(Compensated) 100"]);
}

#[test]
fn a_dry_run_that_does_not_come_to_the_end_says_so() {
    let ports = ports();
    store(&ports, "a", ProcessState::Error);
    // Every page has one order that matches, among many in other states.
    ports.on_answers("store.list", |_, page: &mut Result<Page, ListError>| {
        let page = page.as_mut().unwrap();
        (page.read, page.next) = (1_000, Some("before-1".to_owned()));
    });
    let matching = (DRY_RUN_READ_MAX / 1_000) as u64;
    assert_eq!(counted(&ports, &spec()), DryRun { matching, complete: false });
}
