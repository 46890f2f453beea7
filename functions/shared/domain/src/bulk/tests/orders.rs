//! How a job judges an order by its own history.

use super::*;
use crate::machine::Verdict;
use crate::message::{Action, Command};

/// An order that was rejected at its first step.
pub(super) fn failed_case() -> Case {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &["a"], "")], false);
    case.wake();
    case.rejected("a");
    case
}

fn like(other: &Case) -> Case {
    let mut case = failed_case();
    case.task = other.task.clone();
    case
}

pub(super) fn resubmit(case: &mut Case, job: &Job) {
    let seen = Some(case.task.version);
    let command = Command { bulk: Some(job.id.clone()), ..case.command(Action::Resubmit, seen) };
    assert_eq!(case.apply(crate::machine::Event::Command { command: &command, redelivered: false }), Verdict::Taken);
}

fn entry_of(task: &Task) -> Entry {
    let (order_id, version, priority) = (task.order_id, task.version, task.priority);
    Entry {
        order_id,
        version,
        undoing: task.process_state == ProcessState::Compensating,
        priority,
        at: at(0),
        resent: 0,
    }
}

#[test]
fn an_order_stands_as_its_own_history_says() {
    let job = started(spec());
    let mut case = failed_case();
    let entry = entry_of(&case.task);
    let stands = |case: &Case| entry_state(&job, &entry, Some(&case.task));
    assert_eq!(entry_state(&job, &entry, None), EntryState::PassedOver);
    assert_eq!(stands(&case), EntryState::Untouched);
    case.all_sent();
    assert_eq!(stands(&case), EntryState::Untouched, "a notice that was sent is no change of the error");
    resubmit(&mut case, &job);
    assert_eq!(stands(&case), EntryState::OnItsWay);
    let mut again = like(&case);
    again.rejected("a");
    assert_eq!(stands(&again), EntryState::FailedAgain);
    let mut cancelled = like(&case);
    cancelled.cancel();
    assert_eq!(stands(&cancelled), EntryState::PassedOver, "an operator cancelled it");
    let mut paused = like(&case);
    paused.pause();
    assert_eq!(stands(&paused), EntryState::PassedOver, "the time of its end is unknown");
    case.done("a");
    case.done("b");
    assert_eq!(stands(&case), EntryState::Recovered);
}

#[test]
fn rule_39_an_order_that_waits_longer_after_its_resubmit_failed_again() {
    let options = "max_failures = 1\non_rejected = \"hold\"\non_exhausted = { wait = \"2h\", times = 3 }";
    let mut case = Case::new(&[("a", &[], options)], false);
    case.wake();
    case.rejected("a");
    let job = started(spec());
    let entry = entry_of(&case.task);
    resubmit(&mut case, &job);
    case.expire_all();
    assert!(case.step("a").waits_longer());
    assert_eq!(entry_state(&job, &entry, Some(&case.task)), EntryState::FailedAgain);
}

#[test]
fn what_another_operator_did_is_not_counted_for_the_job() {
    let job = started(spec());
    let mut case = failed_case();
    let entry = entry_of(&case.task);
    case.resubmit();
    assert_eq!(entry_state(&job, &entry, Some(&case.task)), EntryState::PassedOver);
    case.rejected("a");
    assert_eq!(entry_state(&job, &entry, Some(&case.task)), EntryState::PassedOver);
}

#[test]
fn an_order_that_is_undone_instead_of_carried_out_failed_again_unless_undoing_it_was_the_point() {
    let job = started(spec());
    let mut case = failed_case();
    let entry = entry_of(&case.task);
    resubmit(&mut case, &job);
    case.task.process_state = ProcessState::Compensated;
    assert_eq!(entry_state(&job, &entry, Some(&case.task)), EntryState::FailedAgain);
    assert_eq!(entry_state(&job, &Entry { undoing: true, ..entry }, Some(&case.task)), EntryState::Recovered);
}

#[test]
fn of_an_order_that_failed_while_it_was_undone_the_job_knows_that() {
    let mut case = Case::chain();
    case.wake();
    case.rejected("a");
    case.rejected("a");
    assert_eq!(case.state(), ProcessState::Error);
    let mut job = started(Spec { selector: Selector { failed_until: None, ..Selector::default() }, ..spec() });
    job.absorb(&Page { tasks: vec![case.task.into(), page(1).tasks.remove(0)], ..Page::default() }, at(0));
    assert_eq!(job.found.iter().map(|entry| entry.undoing).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn an_order_failed_when_it_came_into_error_whatever_happened_to_it_since() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &[], "")], false);
    case.now = at(5_000);
    case.wake();
    case.rejected("a");
    case.now = at(9_000);
    case.done("b");
    let since = |ms| Spec { selector: Selector { failed_since: Some(at(ms)), ..Selector::default() }, ..spec() };
    assert!(since(5_000).selects(&case.task));
    assert!(!since(5_001).selects(&case.task));
}

/// An order whose undo of a was refused, and the entry of a job for it.
fn undo_refused() -> (Case, Entry) {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "")], false);
    case.wake();
    case.done("a");
    case.rejected("b");
    case.done("b");
    case.rejected("a");
    let entry = Entry { undoing: true, ..entry_of(&case.task) };
    (case, entry)
}

fn job_that(action: BulkAction, step: Option<&str>) -> Job {
    let selector = Selector { step: step.map(Into::into), ..Selector::default() };
    started(Spec { action, selector, ..spec() })
}

/// Carries out the command that the job sends for the order.
fn handle(case: &mut Case, job: &Job) {
    let page = Page { tasks: vec![Arc::new(case.task.clone())], next: None, read: 1 };
    let Next { send, .. } = carry_on(job, &[], &[page], at(0), TICK_MS);
    let [Outgoing { errand: Errand::Command(command), .. }] = send.as_slice() else { panic!("{send:?}") };
    assert_eq!(case.apply(crate::machine::Event::Command { command, redelivered: false }), Verdict::Taken);
}

#[test]
fn a_job_that_closes_orders_recovers_those_that_it_closed() {
    let job = job_that(BulkAction::Close, None);
    let (mut case, entry) = undo_refused();
    handle(&mut case, &job);
    assert_eq!(
        (case.state(), entry_state(&job, &entry, Some(&case.task))),
        (ProcessState::Closed, EntryState::Recovered)
    );
    let (mut other, entry) = undo_refused();
    other.apply_command(Action::Close, Some(other.task.version));
    assert_eq!(entry_state(&job, &entry, Some(&other.task)), EntryState::PassedOver, "an operator closed it");
}

#[test]
fn a_job_that_cancels_orders_recovers_those_that_are_undone() {
    let job = job_that(BulkAction::Cancel, None);
    let mut case = failed_case();
    let entry = entry_of(&case.task);
    handle(&mut case, &job);
    assert_eq!(
        (case.state(), entry_state(&job, &entry, Some(&case.task))),
        (ProcessState::Compensating, EntryState::OnItsWay)
    );
    let mut refused = like(&case);
    refused.rejected("a");
    assert_eq!(entry_state(&job, &entry, Some(&refused.task)), EntryState::FailedAgain);
    case.done("a");
    assert_eq!(
        (case.state(), entry_state(&job, &entry, Some(&case.task))),
        (ProcessState::Compensated, EntryState::Recovered)
    );
}

#[test]
fn a_job_that_settles_a_step_says_done_or_undone_as_the_order_runs() {
    let job = job_that(BulkAction::Settle, Some("a"));
    let (mut undone, entry) = undo_refused();
    handle(&mut undone, &job);
    assert_eq!(
        (undone.state(), entry_state(&job, &entry, Some(&undone.task))),
        (ProcessState::Compensated, EntryState::Recovered)
    );
    let mut forward = failed_case();
    let entry = entry_of(&forward.task);
    handle(&mut forward, &job);
    assert_eq!(entry_state(&job, &entry, Some(&forward.task)), EntryState::OnItsWay);
    forward.done("b");
    assert_eq!(entry_state(&job, &entry, Some(&forward.task)), EntryState::Recovered);
}

#[test]
fn an_order_with_another_step_in_error_is_not_settled_for_ever() {
    let hold = "on_rejected = \"hold\"";
    let mut case = Case::new(&[("a", &[], hold), ("b", &[], hold)], false);
    case.wake();
    case.rejected("a");
    case.rejected("b");
    let (job, entry) = (job_that(BulkAction::Settle, Some("a")), entry_of(&case.task));
    handle(&mut case, &job);
    assert_eq!(
        (case.state(), entry_state(&job, &entry, Some(&case.task))),
        (ProcessState::Error, EntryState::FailedAgain)
    );
    let (after, sent) = step(&job, &[], &[Page { tasks: vec![Arc::new(case.task)], next: None, read: 1 }], 0);
    assert_eq!((after.found.len(), sent), (0, 0), "it was handled");
}

#[test]
fn an_order_whose_call_may_still_have_its_effect_is_left_out_of_a_close() {
    let (mut case, _) = undo_refused();
    case.task.steps[0].may_run_until = Some(at(5_000));
    let found = |ms| {
        let page = Page { tasks: vec![Arc::new(case.task.clone())], next: None, read: 1 };
        step(&job_that(BulkAction::Close, None), &[], &[page], ms).1
    };
    assert_eq!((found(4_999), found(5_000)), (0, 1));
}

#[test]
fn a_full_history_does_not_make_anothers_close_the_jobs_own() {
    let job = job_that(BulkAction::Close, None);
    let (mut case, entry) = undo_refused();
    case.apply_command(Action::Close, Some(case.task.version));
    let line = case.task.history[0].clone();
    case.task.history.splice(0..0, std::iter::repeat_n(line, crate::limits::HISTORY_MAX));
    assert_eq!(entry_state(&job, &entry, Some(&case.task)), EntryState::PassedOver);
}
