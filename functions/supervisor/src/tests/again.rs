//! Jobs that post orders again, end to end, with crashes.

use domain::bulk::{BulkAction, DryRun, JobState, RESEND_AFTER_MS, Spec, Tally};
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::json::Json;
use domain::message::Action;
use domain::order::{AgainOf, Order};
use domain::ports::{Environment, Store};
use domain::redaction::Redaction;
use domain::task::{ProcessState, Task};
use futures_util::future::join;
use memory::faulty::Faulty;

use super::bulk::{all_well, job, start, tick, to_the_end, to_the_end_killed_at};
use super::{command, failed, no, settings, work};
use crate::bulk;
use crate::testing::{instance, ports, run, workflows, workflows_with};

fn spec() -> Spec {
    Spec {
        by: "ann".into(),
        reason: "the carrier is back".into(),
        action: BulkAction::Again,
        selector: domain::bulk::Selector::default(),
        canary: 2,
        canary_timeout_ms: 60_000,
        rate_per_second: 1_000,
        stop_at_failed_percent: 20,
    }
}

/// Stores orders that were compensated.
fn compensated(ports: &Faulty, numbers: std::ops::Range<usize>) -> Vec<OrderId> {
    let ids = failed(ports, numbers);
    for &order_id in &ids {
        command(ports, order_id, Action::Cancel, "cal", None);
    }
    // An undo waits for the calls under way.
    for _ in 0..100 {
        ports.advance(1_000);
        for &order_id in &ids {
            super::wake(ports, order_id);
        }
        work(ports, all_well);
        if ids.iter().all(|&id| ports.stored(id).process_state == ProcessState::Compensated) {
            return ids;
        }
    }
    panic!("not compensated: {:#?}", ports.stored(ids[0]));
}

/// The orders that were posted again, among these.
fn posted(ports: &Faulty, ids: &[OrderId]) -> usize {
    ids.iter().filter(|id| is_stored(ports, id.again())).count()
}

fn is_stored(ports: &Faulty, order_id: OrderId) -> bool {
    ports.orders().iter().any(|(order, _)| order.order_id == order_id)
}

/// Changes a stored order and its task.
fn change(ports: &Faulty, order_id: OrderId, change: impl FnOnce(&mut Order, &mut Task)) {
    let mut order = Order::clone(&ports.stored_order(order_id));
    let mut task = Task::clone(&ports.stored(order_id));
    change(&mut order, &mut task);
    ports.store_order(order, task);
}

/// An operator posts one order again, without the job.
fn post_again(ports: &Faulty, order_id: OrderId) {
    let now = ports.now();
    let origin = AgainOf { order_id, by: "bob".into(), reason: "it was asked for".into(), bulk: None };
    let order = ports.stored_order(order_id).again(origin, now);
    let task = Task::new(&order, workflows().current(), 16, 1);
    let again = order.order_id;
    run(ports.insert(order.into(), task.into())).unwrap();
    super::wake(ports, again);
}

#[test]
fn every_compensated_order_is_posted_again_once_under_the_name_of_the_job() {
    let ports = ports();
    let ids = compensated(&ports, 0..20);
    let counted = start(&ports, spec());
    assert_eq!((counted, posted(&ports, &ids)), (DryRun { matching: 20, complete: true }, 0));
    to_the_end(&ports, all_well);
    assert_eq!(job(&ports).state, JobState::Done);
    assert_eq!(job(&ports).tally, Tally { begun: 20, recovered: 20, ..Tally::default() });
    for &id in &ids {
        let order = ports.stored_order(id.again());
        let task = ports.stored(id.again());
        assert_eq!(task.process_state, ProcessState::Processed);
        let words = format!("again of {id}, by ann: the carrier is back");
        assert_eq!(task.history[0].why.as_deref(), Some(&*words));
        let old = ports.stored_order(id);
        let kept = |order: &Order| (order.document.clone(), order.submitter.clone(), order.correlation_id.clone());
        assert_eq!(kept(&order), kept(&old));
        assert_eq!(order.workflow, Some(workflows().current().pin()), "it is pinned like every order");
        assert_eq!(ports.stored(id).process_state, ProcessState::Compensated, "the old order is as it was");
    }
    assert_eq!(ports.orders().len(), 40);
}

#[test]
fn killed_at_any_await_a_job_posts_each_order_again_exactly_once() {
    let mut kills = 0;
    for kill_at in 0.. {
        let ports = ports();
        let ids = compensated(&ports, 0..5);
        start(&ports, spec());
        let was_killed = to_the_end_killed_at(&ports, kill_at);
        assert_eq!(job(&ports).state, JobState::Done, "killed at {kill_at}");
        assert_eq!((posted(&ports, &ids), ports.orders().len()), (5, 10), "killed at {kill_at}");
        assert_eq!(job(&ports).tally, Tally { begun: 5, recovered: 5, ..Tally::default() }, "killed at {kill_at}");
        if !was_killed {
            break;
        }
        kills += 1;
    }
    assert!(kills > 50, "the job was killed at {kills} places only");
}

#[test]
fn two_supervisors_with_broken_leases_count_each_order_once() {
    let ports = ports();
    let ids = compensated(&ports, 0..9);
    start(&ports, spec());
    ports.break_leases();
    let (one, other, settings, redaction) = (instance("one"), instance("other"), settings(), Redaction::default());
    while !job(&ports).state.is_final() {
        let both = join(bulk(&ports, &one, &settings, &redaction), bulk(&ports, &other, &settings, &redaction));
        let (one, other) = run(both);
        assert!(one.is_ok() && other.is_ok());
        ports.advance(1_000);
        work(&ports, all_well);
    }
    assert_eq!((posted(&ports, &ids), ports.orders().len()), (9, 18));
    assert_eq!(job(&ports).tally, Tally { begun: 9, recovered: 9, ..Tally::default() });
}

#[test]
fn where_the_canaries_fail_again_the_others_are_left_alone() {
    let ports = ports();
    let ids = compensated(&ports, 0..10);
    start(&ports, spec());
    to_the_end(&ports, |_| Some(no()));
    assert_eq!(job(&ports).state, JobState::Stopped("2 of 2 canaries failed again, more than 20 %".into()));
    assert_eq!(posted(&ports, &ids), 2);
}

#[test]
fn an_order_that_was_posted_again_before_is_neither_sent_nor_counted() {
    let ports = ports();
    let ids = compensated(&ports, 0..6);
    post_again(&ports, ids[0]);
    work(&ports, all_well);
    start(&ports, Spec { canary: 0, ..spec() });
    to_the_end(&ports, all_well);
    assert_eq!(job(&ports).tally, Tally { begun: 5, recovered: 5, ..Tally::default() });
    let why = ports.stored(ids[0].again()).history[0].why.clone().unwrap();
    assert!(why.contains("by bob: it was asked for"), "{why}");
}

#[test]
fn an_order_that_another_operator_posts_again_before_its_turn_is_passed_over() {
    let ports = ports();
    compensated(&ports, 0..4);
    start(&ports, Spec { canary: 0, rate_per_second: 1, ..spec() });
    tick(&ports);
    let waiting = job(&ports).found[1].order_id;
    post_again(&ports, waiting);
    let sent_before = ports.submitted().len();
    to_the_end(&ports, all_well);
    assert_eq!(
        (sent_before, job(&ports).tally),
        (1, Tally { begun: 4, recovered: 3, passed_over: 1, ..Tally::default() })
    );
}

#[test]
fn rule_46_an_order_that_is_erased_before_its_turn_is_passed_over() {
    let ports = ports();
    compensated(&ports, 0..3);
    start(&ports, Spec { canary: 0, rate_per_second: 1, ..spec() });
    tick(&ports);
    let waiting = job(&ports).found[0].order_id;
    change(&ports, waiting, |order, task| {
        *order = order.erased();
        task.erased_at = Some(ports.now());
    });
    to_the_end(&ports, all_well);
    assert_eq!(job(&ports).tally, Tally { begun: 3, recovered: 2, passed_over: 1, ..Tally::default() });
    assert!(!is_stored(&ports, waiting.again()));
}

#[test]
fn a_new_order_that_was_lost_on_the_way_is_sent_again_as_it_was() {
    let ports = ports();
    let ids = compensated(&ports, 0..2);
    start(&ports, spec());
    tick(&ports);
    let lost = ports.submitted();
    assert_eq!(lost.len(), 2);
    ports.retain_submitted(|_| false);
    ports.advance(RESEND_AFTER_MS + 1_000);
    assert_eq!(tick(&ports), 2);
    assert_eq!(ports.submitted(), lost);
    to_the_end(&ports, all_well);
    assert_eq!(posted(&ports, &ids), 2);
}

#[test]
fn new_orders_go_at_the_rate() {
    let ports = ports();
    let ids = compensated(&ports, 0..20);
    start(&ports, Spec { canary: 0, rate_per_second: 5, ..spec() });
    let began = ports.now();
    to_the_end(&ports, all_well);
    assert_eq!(posted(&ports, &ids), 20);
    let mut times: Vec<_> = ids.iter().map(|id| ports.stored_order(id.again()).submitted_at).collect();
    times.sort();
    assert!(times.windows(2).all(|pair| pair[0].ms_until(pair[1]) >= 200), "{times:?}");
    assert!(began <= times[0], "none was posted before the job");
}

#[test]
fn rule_28_a_new_order_is_found_like_every_order_and_by_nothing_that_is_redacted() {
    let ports = ports();
    let ids = compensated(&ports, 0..1);
    change(&ports, ids[0], |order, _| order.correlation_id = Some("c-1".into()));
    start(&ports, spec());
    run(bulk(&ports, &instance("s"), &settings(), &Redaction::of(["Total"]))).unwrap();
    assert_eq!(ports.submitted()[0].terms, [domain::index::Term::correlation("c-1")]);
}

#[test]
fn what_its_workflow_refuses_by_now_is_not_posted_again() {
    let ports = ports();
    let ids = compensated(&ports, 0..2);
    change(&ports, ids[0], |order, _| order.document = Json::document(br#"{"NotBefore": "never"}"#).unwrap());
    start(&ports, Spec { canary: 0, stop_at_failed_percent: 100, ..spec() });
    assert_eq!(tick(&ports), 1);
    assert_eq!(ports.submitted()[0].order_id, ids[1].again());
}

#[test]
fn rule_44_an_order_whose_new_order_may_have_been_deleted_is_not_posted_again() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
    for (days, sent) in [(1, 1), (2, 0)] {
        let ports = ports();
        compensated(&ports, 0..1);
        ports.advance(days * DAY_MS);
        start(&ports, spec());
        let workflows = workflows_with("[retain]\nprocessed = \"2d\"\n");
        let instance = Instance { catalogue: Catalogue::new(workflows), ..instance("s") };
        let report = run(bulk(&ports, &instance, &settings(), &Redaction::default())).unwrap();
        assert_eq!(report.sent, sent, "after {days} days");
    }
}
