//! Compensated orders that are posted again.

use super::*;
use crate::limits::SHARDS;
use crate::message::Action;
use crate::order::Order;

fn again_spec() -> Spec {
    Spec { action: BulkAction::Again, ..spec() }
}

/// An order that is `Compensated` since `ms`, because step `a` was rejected.
fn compensated(name: &str, ms: u64) -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "")], false);
    case.task.order_id = OrderId::from_idempotency_key("test", name);
    case.now = at(ms);
    case.wake();
    case.rejected("a");
    case.done("a");
    assert_eq!(case.state(), ProcessState::Compensated);
    case
}

fn page_of(tasks: &[&Task]) -> Page {
    Page { tasks: tasks.iter().map(|task| Arc::new((*task).clone())).collect(), next: None, read: tasks.len() }
}

/// The order that posts the one of this name again, for the job's operator, with this reason and job.
fn new_order(name: &str, reason: &str, bulk: Option<&str>) -> Case {
    let order_id = OrderId::from_idempotency_key("test", name);
    let options = "on_rejected = \"hold\"\non_exhausted = { wait = \"2h\", times = 3 }\nmax_failures = 1";
    let mut case = Case::new(&[("a", &[], options), ("b", &["a"], "")], false);
    let origin = AgainOf { order_id, by: "ann".into(), reason: reason.into(), bulk: bulk.map(Into::into) };
    let order = Order { order_id, ..case.order() }.again(origin, case.now);
    case.task = Task::new(&order, &case.workflow, SHARDS, 1);
    case.wake();
    case
}

#[test]
fn compensated_orders_are_selected_by_their_reason_and_by_when_they_were_compensated() {
    let case = compensated("x", 5_000);
    let with = |change: &dyn Fn(&mut Selector)| {
        let mut spec = again_spec();
        change(&mut spec.selector);
        spec.selects(&case.task)
    };
    assert!(with(&|_| {}));
    assert!(with(&|it| it.state = Some("Compensated".into())));
    assert!(with(&|it| it.reason_code = Some(reason::REJECTED.into())));
    assert!(!with(&|it| it.reason_code = Some(reason::CANCELLED.into())));
    assert!(with(&|it| it.step = Some("a".into())));
    assert!(!with(&|it| it.step = Some("b".into())));
    assert!(with(&|it| (it.failed_since, it.failed_until) = (Some(at(5_000)), Some(at(5_000)))));
    assert!(!with(&|it| it.failed_since = Some(at(5_001))));
    assert!(!with(&|it| it.failed_until = Some(at(4_999))));
    assert!(!again_spec().selects(&in_error("y", 0)), "an order in Error is not posted again");
    assert!(!spec().selects(&case.task), "a compensated order is not resubmitted");
}

#[test]
fn a_job_sends_new_orders_that_name_it_at_the_rate_and_repeats_them_as_they_were() {
    let cases: Vec<Case> = (0..5).map(|n| compensated(&n.to_string(), 0)).collect();
    let page = page_of(&cases.iter().map(|case| &case.task).collect::<Vec<_>>());
    let Next { job: after, send } = carry_on(&started(again_spec()), &[], &[page], at(0), TICK_MS);
    let after = after.unwrap();
    assert_eq!((after.under_way.len(), after.found.len(), send.len()), (3, 2, 3), "the canaries");
    for (outgoing, entry) in send.iter().zip(&after.under_way) {
        let origin =
            AgainOf { order_id: entry.order_id, by: "ann".into(), reason: "mended".into(), bulk: Some("j".into()) };
        assert_eq!((&outgoing.entry, &outgoing.errand), (entry, &Errand::Again(origin)));
        assert_eq!(at(outgoing.delay_ms), entry.at);
    }
    let Next { send: repeats, .. } =
        carry_on(&after, &all(&after, EntryState::Untouched), &[], at(RESEND_AFTER_MS + 20), TICK_MS);
    let of = |send: &[Outgoing]| send.iter().map(|it| (it.entry.at, it.errand.clone())).collect::<Vec<_>>();
    assert_eq!(of(&repeats), of(&send));
    let stored = serde_json::to_string(&after).unwrap();
    assert!(stored.contains(r#""Action":"Again""#));
    assert_eq!(serde_json::from_str::<Job>(&stored).unwrap(), after);
}

#[test]
fn an_order_that_is_compensated_after_the_plan_is_not_posted_again() {
    let planned = Job::plan("j".into(), again_spec(), DryRun::default(), at(1_000)).unwrap();
    let job = planned.start("ann", "go", at(2_000)).unwrap();
    let (before, after) = (compensated("a", 1_000), compensated("b", 1_001));
    let (job, sent) = step(&job, &[], &[page_of(&[&after.task, &before.task])], 3_000);
    assert_eq!((sent, job.under_way[0].order_id), (1, before.task.order_id));
}

#[test]
fn a_new_order_of_the_job_is_no_candidate_of_it_whatever_the_clocks_say() {
    let job = started(again_spec());
    let mut posted = compensated("a", 0);
    posted.task.order_id = posted.task.order_id.again();
    assert!(job.is_candidate(&posted.task, at(1)));
    posted.task.history[0].bulk = Some(job.id.clone());
    assert!(!job.is_candidate(&posted.task, at(1)));
    let other = Job { id: "k".into(), ..job };
    assert!(other.is_candidate(&posted.task, at(1)), "a later job may post it again");
}

#[test]
fn rule_46_an_erased_order_is_not_posted_again() {
    let mut case = compensated("a", 0);
    let job = started(again_spec());
    case.task.erased_at = Some(at(1));
    assert!(!job.is_candidate(&case.task, at(1)));
    assert_eq!(again_state(&job, None, Some(&case.task)), EntryState::PassedOver);
    assert_eq!(again_state(&job, None, None), EntryState::PassedOver, "it was deleted");
}

#[test]
fn the_progress_is_that_of_the_new_order() {
    let job = started(again_spec());
    let old = compensated("a", 0);
    let stands = |case: &Case| again_state(&job, Some(&case.task), Some(&old.task));
    assert_eq!(again_state(&job, None, Some(&old.task)), EntryState::Untouched);
    let new = || new_order("a", "mended", Some("j"));
    let mut case = new();
    assert_eq!(stands(&case), EntryState::OnItsWay);
    case.done("a");
    case.done("b");
    assert_eq!(stands(&case), EntryState::Recovered);

    let mut held = new();
    held.rejected("a");
    assert_eq!((held.state(), stands(&held)), (ProcessState::Error, EntryState::FailedAgain));
    held.apply_command(Action::Close, Some(held.task.version));
    assert_eq!((held.state(), stands(&held)), (ProcessState::Closed, EntryState::PassedOver));

    let mut refused = new();
    refused.done("a");
    refused.rejected("b");
    assert_eq!((refused.state(), stands(&refused)), (ProcessState::Compensating, EntryState::OnItsWay));
    refused.done("b");
    refused.done("a");
    assert_eq!((refused.state(), stands(&refused)), (ProcessState::Compensated, EntryState::FailedAgain));

    let mut longer = new();
    longer.expire_all();
    assert!(longer.step("a").waits_longer());
    assert_eq!(stands(&longer), EntryState::FailedAgain);
    let mut waiting = new();
    waiting.task.watch = Some(crate::task::Watch::Wait(0));
    assert_eq!(stands(&waiting), EntryState::OnItsWay, "it waits as its workflow says: the canary's time judges it");
    let mut paused = new();
    paused.pause();
    assert_eq!(stands(&paused), EntryState::PassedOver, "the time of its end is unknown");
    let mut cancelled = new();
    cancelled.cancel();
    assert_eq!(stands(&cancelled), EntryState::PassedOver, "an operator cancelled it");
    cancelled.task.process_state = ProcessState::Compensated;
    assert_eq!(stands(&cancelled), EntryState::PassedOver);
}

#[test]
fn a_new_order_of_another_operator_or_job_is_not_counted_for_the_job() {
    let job = started(again_spec());
    for (reason, bulk) in [("bulk j: mended", None), ("again of j, by ann: bulk j: mended", Some("k"))] {
        let mut case = new_order("a", reason, bulk);
        assert_eq!(again_state(&job, Some(&case.task), None), EntryState::PassedOver, "{reason}");
        case.done("a");
        case.done("b");
        assert_eq!(again_state(&job, Some(&case.task), None), EntryState::PassedOver, "{reason}");
    }
}

#[test]
fn the_first_line_of_a_new_order_names_its_job() {
    let id = "01a1f9ff083f-0000000000000000";
    let case = new_order("a", "mended", Some(id));
    assert_eq!(case.task.history[0].bulk.as_deref(), Some(id));
    assert_eq!(case.task.quoted().jobs().iter().map(|job| &**job).collect::<Vec<_>>(), [id]);
    let other = new_order("a", &format!("bulk {id}: mended"), None);
    assert!(other.task.quoted().jobs().is_empty(), "a reason is no more than a reason");
}
