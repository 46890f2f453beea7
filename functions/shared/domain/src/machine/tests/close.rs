//! Rule 31: an order that an operator ends as it is.

use crate::limits::{COMPLETE_WITHIN_MS_MAX, SETTLES_WITHIN_MS_MAX};
use crate::machine::testing::{Case, done};
use crate::machine::{Dropped, Event, Happened, Refused, Verdict};
use crate::message::Action;
use crate::task::{ProcessState, What, reason};

const HOLD: &str = "on_rejected = \"hold\"";

/// a, then b and c side by side; a is done, b is rejected and held, and c is in flight.
fn held() -> Case {
    let mut case = Case::new(&[("a", &[], HOLD), ("b", &["a"], HOLD), ("c", &["a"], HOLD)], true);
    case.wake();
    case.done("a");
    case.rejected("b");
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Error, "+!>"));
    case
}

/// An order whose undo of a is refused for good.
fn undo_refused() -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "")], true);
    case.wake();
    case.done("a");
    case.rejected("b");
    case.done("b");
    case.rejected("a");
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Error, "!+"));
    case
}

fn close(case: &mut Case) -> Verdict {
    case.apply_command(Action::Close, Some(case.task.version))
}

#[test]
fn a_closed_order_is_over_and_its_steps_stay_as_they_are() {
    let mut case = undo_refused();
    let steps = case.task.steps.clone();
    assert_eq!(close(&mut case), Verdict::Taken);
    assert_eq!((case.state(), &case.task.steps), (ProcessState::Closed, &steps));
    assert_eq!((case.requested(), case.wakes()), (vec![], vec![]), "nobody is called");
    assert_eq!(case.happened, [Happened::What(What::Entered(ProcessState::Closed))]);
    let line = case.task.history.last().unwrap();
    assert_eq!((&*line.who, line.why.as_deref()), ("ann", Some("mended")));
    case.all_sent();
    assert_eq!((case.task.watch, case.task.watch_at), (None, None), "nobody looks at it any more");
}

#[test]
fn rule_6_a_redelivered_command_asks_for_no_call_of_an_order_that_is_over() {
    let mut case = held();
    let command = case.command(Action::Close, Some(case.task.version));
    let again = Event::Command { command: &command, redelivered: true };
    let Verdict::Refused(_) = case.decide(again).verdicts[0] else { panic!("a call may have its effect") };
    case.task.process_state = ProcessState::Closed;
    let before = case.task.clone();
    assert_eq!(case.apply(again), Verdict::Refused(Refused::NotInError));
    assert_eq!((case.requested(), case.wakes()), (vec![], vec![]));
    assert_eq!(case.task, before, "what is over stays as it is");
}

#[test]
fn the_reason_says_who_closed_it_and_why_it_was_in_error() {
    let mut case = undo_refused();
    close(&mut case);
    let closed = case.task.reason.as_ref().unwrap();
    assert_eq!((&*closed.code, &*closed.message, &closed.step), (reason::CLOSED, "closed by ann: mended", &None));
    let error = closed.earlier.as_ref().unwrap();
    assert_eq!((&*error.code, error.step.as_deref()), (reason::COMPENSATION_FAILED, Some("a")));
    assert_eq!(&*error.earlier.as_ref().unwrap().code, reason::REJECTED);
}

#[test]
fn the_reply_channel_learns_of_the_end_and_nobody_is_alerted_any_more() {
    let mut case = undo_refused();
    close(&mut case);
    let unsent: Vec<_> = case.task.unsent.iter().map(|notice| notice.kind.name()).collect();
    assert!(unsent.contains(&"OrderClosed") && !unsent.contains(&"OrderNeedsOperator"), "{unsent:?}");
    assert!(case.notified().contains(&"OrderClosed"), "{:?}", case.notified());
}

#[test]
fn only_an_order_in_error_is_closed() {
    let mut case = Case::chain();
    assert_eq!((case.state(), close(&mut case)), (ProcessState::Pending, Verdict::Refused(Refused::NotInError)));
    case.wake();
    assert_eq!((case.state(), close(&mut case)), (ProcessState::Processing, Verdict::Refused(Refused::NotInError)));
    case.cancel();
    assert_eq!((case.state(), close(&mut case)), (ProcessState::Compensating, Verdict::Refused(Refused::NotInError)));
    let mut case = undo_refused();
    close(&mut case);
    assert_eq!(close(&mut case), Verdict::Refused(Refused::NotInError), "delivered once more");
}

#[test]
fn an_order_is_not_closed_while_a_call_may_still_have_its_effect() {
    let mut case = held();
    let in_flight = case.step("c").complete_by.unwrap().plus_ms(SETTLES_WITHIN_MS_MAX);
    assert_eq!(close(&mut case), Verdict::Refused(Refused::UnderWay { until: in_flight }));
    let (until, ahead) =
        (in_flight.plus_ms(5_000), in_flight.plus_ms(COMPLETE_WITHIN_MS_MAX + SETTLES_WITHIN_MS_MAX + 60_000));
    case.task.steps[1].may_run_until = Some(until);
    case.now = until.minus_ms(1);
    assert_eq!(close(&mut case), Verdict::Refused(Refused::UnderWay { until }));
    // A time that no right clock wrote does not hide the attempt in flight.
    case.task.steps[1].may_run_until = None;
    case.task.steps[2].may_run_until = Some(ahead);
    case.now = in_flight.minus_ms(1);
    assert_eq!(close(&mut case), Verdict::Refused(Refused::UnderWay { until: in_flight }));
    case.now = in_flight;
    case.task.steps[2].may_run_until = None;
    assert_eq!(close(&mut case), Verdict::Taken);
}

#[test]
fn a_call_may_have_its_effect_as_late_as_both_limits_together_allow() {
    let mut case = undo_refused();
    let until = case.now.plus_ms(COMPLETE_WITHIN_MS_MAX + SETTLES_WITHIN_MS_MAX);
    case.task.steps[0].may_run_until = Some(until);
    assert_eq!(close(&mut case), Verdict::Refused(Refused::UnderWay { until }));
}

#[test]
fn a_question_to_people_does_not_hold_up_a_close() {
    // A longer wait would be taken for the time of a wrong clock.
    let question = "[[step]]\nname = \"b\"\nkind = \"approval\"\nrole = \"manager\"\nwait_within = \"2h\"\n";
    let mut case = Case::with(&[("a", &[], HOLD)], question, false);
    case.wake();
    case.rejected("a");
    assert!(case.step("b").is_asked());
    assert_eq!((case.state(), close(&mut case)), (ProcessState::Error, Verdict::Taken));
}

#[test]
fn a_time_that_no_right_clock_wrote_holds_up_no_close() {
    let mut case = undo_refused();
    let ahead = case.now.plus_ms(COMPLETE_WITHIN_MS_MAX + SETTLES_WITHIN_MS_MAX + 60_000);
    case.task.steps[0].may_run_until = Some(ahead);
    assert_eq!(close(&mut case), Verdict::Taken);
}

#[test]
fn a_close_that_was_meant_for_an_earlier_error_is_refused() {
    let mut case = undo_refused();
    let seen = case.task.version;
    case.resubmit();
    case.rejected("a");
    assert_eq!(
        (case.state(), case.apply_command(Action::Close, Some(seen))),
        (ProcessState::Error, Verdict::Refused(Refused::Stale))
    );
}

#[test]
fn a_reply_that_comes_after_the_close_is_told_and_changes_nothing_else() {
    let mut case = held();
    let late = case.reply_of("c", done());
    case.now = case.step("c").complete_by.unwrap().plus_ms(SETTLES_WITHIN_MS_MAX);
    assert_eq!(close(&mut case), Verdict::Taken);
    let steps = case.task.steps.clone();
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::Finished));
    assert_eq!((case.task.is_contradicted(), case.state(), &case.task.steps), (true, ProcessState::Closed, &steps));
    let closed = case.task.clone();
    case.wake();
    case.wake_again();
    assert_eq!((&case.task, case.requested()), (&closed, vec![]));
}
