use crate::limits::UNWATCHED_MS_MAX;
use crate::machine::testing::Case;
use crate::machine::{Effect, Verdict};
use crate::task::{Direction, NoticeKind, ProcessState, Watch, What, reason};

const HOUR_MS: u64 = 3_600_000;

/// a, then b, to be finished within an hour.
fn chain(on_late: &str) -> Case {
    let top = format!("complete_within = \"1h\"\non_late = {on_late:?}");
    Case::with(&[("a", &[], ""), ("b", &["a"], "")], &top, false)
}

/// The same, past its deadline, with nothing in flight.
fn late(on_late: &str) -> Case {
    let mut case = chain(on_late);
    case.wake();
    case.pass_ms(HOUR_MS);
    case
}

fn is_marked(case: &Case) -> bool {
    let lines = case.task.history.iter().filter(|line| line.what == What::Late).count();
    assert!(lines <= 1, "it is marked once");
    assert_eq!(case.task.late_since.is_some(), lines == 1);
    lines == 1
}

fn alerts(case: &Case) -> usize {
    let is_alert = |effect: &&Effect| matches!(effect, Effect::Alert(notice) if notice.kind == NoticeKind::OrderLate);
    case.effects.iter().filter(is_alert).count()
}

#[test]
fn rule_37_an_order_that_is_late_is_told_once_and_goes_on() {
    let mut case = late("alert");
    assert_eq!((case.done("a"), case.requested(), alerts(&case)), (Verdict::Taken, vec!["b"], 1));
    assert_eq!((is_marked(&case), case.task.late_since), (true, Some(case.now)));
    case.all_sent();
    case.pass_ms(1_000);
    assert_eq!((case.done("b"), alerts(&case)), (Verdict::Taken, 0));
    assert_eq!((case.state(), is_marked(&case)), (ProcessState::Processed, true));
}

#[test]
fn rule_37_an_order_that_ends_before_anybody_looked_is_not_late() {
    let mut case = chain("compensate");
    case.wake();
    case.done("a");
    case.pass_ms(2 * HOUR_MS);
    assert_eq!((case.done("b"), case.state()), (Verdict::Taken, ProcessState::Processed));
    assert!(!is_marked(&case));
    case.pass_ms(HOUR_MS);
    assert_eq!((case.sweep(), case.wake_again(), is_marked(&case)), (Verdict::Nothing, Verdict::Nothing, false));
}

#[test]
fn rule_37_a_millisecond_before_its_deadline_an_order_is_not_late() {
    let mut case = late("hold");
    case.now = case.now.minus_ms(1);
    assert_eq!((case.done("a"), is_marked(&case), case.state()), (Verdict::Taken, false, ProcessState::Processing));
}

#[test]
fn rule_37_the_supervisor_notices_a_late_order_and_compensates_it_as_a_cancel_does() {
    let mut case = late("compensate");
    case.task.steps[0].complete_by = Some(case.now.plus_ms(5_000));
    assert_eq!((case.next_sweep(), case.state()), (Verdict::Taken, ProcessState::Compensating));
    let given = case.task.reason.clone().unwrap();
    assert_eq!((&*given.code, given.step), (reason::LATE, None));
    assert_eq!(case.step("a").direction, Direction::Undo);
    assert!(is_marked(&case));
    case.retry_all();
    assert_eq!((case.done("a"), case.state()), (Verdict::Taken, ProcessState::Compensated));
}

#[test]
fn rule_37_a_late_order_of_which_no_step_began_is_compensated_at_once() {
    let mut case = chain("compensate");
    case.pass_ms(HOUR_MS);
    assert_eq!((case.wake(), case.state(), case.requested()), (Verdict::Taken, ProcessState::Compensated, vec![]));
    assert!(is_marked(&case));
}

#[test]
fn rule_37_past_its_pivot_a_late_order_goes_on() {
    let top = "complete_within = \"1h\"\non_late = \"compensate\"";
    let mut case = Case::with(&[("a", &[], "pivot = true"), ("b", &["a"], "")], top, false);
    case.wake();
    case.pass_ms(HOUR_MS);
    assert_eq!((case.done("a"), case.requested(), alerts(&case)), (Verdict::Taken, vec!["b"], 1));
    assert_eq!((case.state(), is_marked(&case)), (ProcessState::Processing, true));
}

#[test]
fn rule_37_a_pivot_is_not_begun_after_the_deadline() {
    let top = "complete_within = \"1h\"\non_late = \"compensate\"";
    let mut case = Case::with(&[("a", &[], ""), ("b", &["a"], "pivot = true")], top, false);
    case.wake();
    case.pass_ms(HOUR_MS);
    case.done("a");
    assert_eq!((case.state(), case.step("b").attempt), (ProcessState::Compensating, 0));
}

#[test]
fn rule_37_a_late_order_that_is_held_goes_on_after_a_resubmit_and_is_not_stopped_again() {
    let mut case = late("hold");
    case.done("a");
    assert_eq!((case.state(), case.requested()), (ProcessState::Error, vec![]));
    assert_eq!(&*case.task.reason.as_ref().unwrap().code, reason::LATE);
    assert!(case.task.unsent.iter().any(|notice| notice.kind == NoticeKind::OrderNeedsOperator));
    assert_eq!((case.resubmit(), case.requested()), (Verdict::Taken, vec!["b"]));
    case.pass_ms(HOUR_MS);
    assert_eq!((case.done("b"), case.state()), (Verdict::Taken, ProcessState::Processed));
    assert!(is_marked(&case));
}

#[test]
fn rule_37_an_order_that_waits_for_an_operator_is_marked_alone() {
    for on_late in ["alert", "compensate", "hold"] {
        let top = format!("complete_within = \"1h\"\non_late = {on_late:?}");
        let mut case = Case::with(&[("a", &[], "on_rejected = \"hold\"")], &top, false);
        let deadline = case.task.complete_by;
        case.wake();
        case.rejected("a");
        case.all_sent();
        assert_eq!(case.task.watch_at, deadline, "the supervisor looks at the deadline");
        assert!(matches!(case.task.watch, Some(Watch::Wait(_))), "and not before");
        assert_eq!((case.next_sweep(), case.state(), alerts(&case)), (Verdict::Taken, ProcessState::Error, 1));
        assert_eq!(&*case.task.reason.as_ref().unwrap().code, reason::REJECTED);
        case.all_sent();
        assert!(matches!(case.task.watch, Some(Watch::Error(_))), "only an operator is left");
        assert!(is_marked(&case));
    }
}

#[test]
fn rule_37_a_deadline_that_passed_while_an_order_waited_for_an_operator_does_not_stop_its_resubmit() {
    let top = "complete_within = \"1h\"\non_late = \"hold\"";
    let mut case = Case::with(&[("a", &[], "on_rejected = \"hold\"")], top, false);
    case.wake();
    case.rejected("a");
    case.pass_ms(HOUR_MS);
    assert_eq!(
        (case.resubmit(), case.requested(), case.state()),
        (Verdict::Taken, vec!["a"], ProcessState::Processing)
    );
    assert!(is_marked(&case));
}

#[test]
fn rule_37_a_compensation_that_has_begun_goes_on() {
    let mut case = late("hold");
    case.now = case.now.minus_ms(1_000);
    case.done("a");
    case.cancel();
    case.pass_ms(HOUR_MS);
    assert_eq!((case.next_sweep(), case.state(), alerts(&case)), (Verdict::Taken, ProcessState::Compensating, 1));
    assert_eq!(&*case.task.reason.as_ref().unwrap().code, reason::CANCELLED);
    assert!(is_marked(&case));
}

#[test]
fn rule_37_a_late_order_that_is_paused_turns_round_and_waits_for_the_end_of_its_pause() {
    let mut case = chain("compensate");
    case.wake();
    let deadline = case.task.complete_by;
    case.pause();
    case.done("a");
    case.next_sweep();
    assert_eq!((case.task.watch_at, matches!(case.task.watch, Some(Watch::Wait(_)))), (deadline, true));
    case.next_sweep();
    assert_eq!((case.state(), case.task.paused.is_some()), (ProcessState::Compensating, true));
    assert!(matches!(case.task.watch, Some(Watch::Due(_))), "its alert is not sent yet");
    case.all_sent();
    assert!(is_marked(&case));
    assert_eq!((case.resume(), case.requested()), (Verdict::Taken, vec!["a"]));
}

#[test]
fn rule_37_an_order_that_does_nothing_but_wait_is_looked_at_when_it_is_late() {
    for (wait, looks_ms) in [("30m", 1_800_000), ("2d", HOUR_MS)] {
        let step = format!("wait = {wait:?}");
        let mut case = Case::new(&[("a", &[], &step)], false);
        let accepted = case.now;
        case.task.complete_by = Some(accepted.plus_ms(HOUR_MS));
        case.wake();
        case.next_sweep();
        assert!(matches!(case.task.watch, Some(Watch::Wait(_))));
        assert_eq!(case.task.watch_at, Some(accepted.plus_ms(looks_ms)), "{wait}");
    }
}

#[test]
fn rule_37_a_look_at_an_order_in_flight_is_no_later_than_its_deadline() {
    for (within, at_ms) in [("5m", 300_000), ("30m", 19 * 60_000 + 2_000)] {
        let top = format!("complete_within = {within:?}");
        let mut case = Case::with(&[("a", &[], "")], &top, false);
        case.workflow.steps[0].complete_within_ms = 19 * 60_000;
        let accepted = case.now;
        case.wake();
        case.next_sweep();
        assert_eq!(case.task.watch_at, Some(accepted.plus_ms(at_ms)), "{within}");
    }
    let mut case = Case::with(&[("a", &[], "")], "complete_within = \"5s\"", false);
    assert_eq!(case.task.watch_at, Some(case.now.plus_ms(5_000)));
    case.wake();
    case.pass_ms(UNWATCHED_MS_MAX);
    assert_eq!((case.sweep(), is_marked(&case)), (Verdict::Taken, true));
}

#[test]
fn rule_37_a_step_that_waited_for_its_next_attempt_is_undone_in_time() {
    let mut case = late("compensate");
    case.task.steps[0].complete_by = Some(case.now.minus_ms(3_000));
    case.now = case.now.minus_ms(1);
    assert_eq!((case.sweep(), case.state()), (Verdict::Taken, ProcessState::Processing));
    case.now = case.now.plus_ms(1);
    case.wake();
    assert_eq!(case.state(), ProcessState::Compensating);
    assert_eq!(case.wakes().len(), 1, "the undo waits for its calls, with a wake of its own");
}

#[test]
fn rule_37_an_order_without_a_deadline_is_stored_as_before() {
    let case = Case::chain();
    let text = serde_json::to_string(&case.task).unwrap();
    assert!(!text.contains("Late") && !text.contains("\"CompleteBy\":\""), "{text}");
}
