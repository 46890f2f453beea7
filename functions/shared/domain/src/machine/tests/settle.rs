//! Rule 27: a step that an operator ends by hand.

use crate::json::Json;
use crate::limits::{OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX};
use crate::machine::testing::{Case, done, failed};
use crate::machine::{DeadLetterSubject, Dropped, Event, Refused, TooLarge, Verdict, request};
use crate::message::{Action, Command, Reply, Settled};
use crate::task::{Attempt, Direction, ProcessState, StepState, What, reason};

const NOTHING: Verdict = Verdict::Refused(Refused::NothingToSettle);

/// A settle of another step is refused with the names of those that can be settled.
fn others(named: &str) -> Verdict {
    Verdict::Refused(Refused::OthersToSettle(named.into()))
}

/// a, then b and c side by side, all held when they are rejected, then d.
fn held() -> Case {
    let hold = "on_rejected = \"hold\"";
    Case::new(&[("a", &[], hold), ("b", &["a"], hold), ("c", &["a"], hold), ("d", &["b", "c"], hold)], false)
}

/// An order whose undo of b, and later that of a, is refused for good.
fn undo_refused() -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "")], false);
    case.wake();
    case.done("a");
    case.rejected("b");
    case.rejected("b");
    assert_eq!((case.state(), case.requested()), (ProcessState::Error, vec![]));
    case
}

fn settled(step: usize, direction: Direction, number: u32) -> What {
    What::Settled(Attempt { step, direction, number })
}

fn reason_of(case: &Case) -> (&str, Option<&str>) {
    let reason = case.task.reason.as_ref().unwrap();
    (&reason.code, reason.step.as_deref())
}

#[test]
fn a_step_that_is_settled_as_done_has_the_output_of_the_operator_and_the_order_goes_on() {
    let mut case = held();
    case.wake();
    case.rejected("a");
    assert_eq!(case.settle("a", Settled::Done, Some("{\"Receipt\":7}")), Verdict::Taken);
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Processing, "+>>."));
    assert_eq!((case.requested(), &case.task.reason), (vec!["b", "c"], &None));
    let sent = request(&case.task, &case.workflow, 1, &case.order(), case.now, 0).unwrap().unwrap().1;
    assert_eq!(sent.outputs["a"].text(), "{\"Receipt\":7}", "the steps after it get this output");
    let line = case.task.history.iter().find(|line| line.what == settled(0, Direction::Forward, 1)).unwrap();
    assert_eq!((&*line.who, line.why.as_deref()), ("ann", Some("mended")));
    assert!(case.task.unsent.is_empty(), "nobody needs to be called for it any more");
}

#[test]
fn a_settle_without_an_output_leaves_an_empty_one_and_null_is_one() {
    for (output, kept) in [(None, "{}"), (Some("null"), "null")] {
        let mut case = held();
        case.wake();
        case.rejected("a");
        case.settle("a", Settled::Done, output);
        assert_eq!(case.step("a").output.as_ref().map(Json::text), Some(kept));
    }
}

#[test]
fn an_undo_that_is_settled_counts_and_the_rest_of_the_order_is_undone() {
    let mut case = undo_refused();
    assert_eq!(case.settle("b", Settled::Undone, None), Verdict::Taken);
    assert_eq!((case.state(), case.requested()), (ProcessState::Compensating, vec!["a"]));
    assert_eq!(reason_of(&case), (reason::REJECTED, Some("b")), "the reason of the compensation");
    let rejected = Reply { call_ms: Some(9), ..case.reply_of("a", failed()) };
    case.take(&rejected);
    assert_eq!((case.state(), case.step("a").call_ms), (ProcessState::Error, Some(9)));
    case.settle("a", Settled::Undone, None);
    assert_eq!(case.step("a").call_ms, None, "no call ended it");
    assert_eq!((case.state(), case.task.watch), (ProcessState::Compensated, None));
    assert_eq!(case.task.history.last().unwrap().what, What::Entered(ProcessState::Compensated));
}

#[test]
fn only_a_step_in_error_is_settled_and_only_in_its_direction() {
    let mut case = held();
    assert_eq!(case.settle("a", Settled::Done, None), Verdict::Refused(Refused::NotInError));
    case.wake();
    case.done("a");
    case.rejected("b");
    assert_eq!(case.states(), "+!>.");
    for (step, outcome) in [
        ("a", Settled::Done),
        ("b", Settled::Undone),
        ("c", Settled::Done),
        ("d", Settled::Done),
        ("nobody", Settled::Done),
    ] {
        assert_eq!(case.settle(step, outcome, None), others("settle ID b --outcome done"), "{step}");
    }
    assert_eq!(case.apply_command(Action::Settle, None), NOTHING, "it names no step");
    let mut case = undo_refused();
    for step in ["a", "b"] {
        assert_eq!(
            case.settle(step, Settled::Done, None),
            others("settle ID b --outcome undone"),
            "{step} is being undone"
        );
    }
    // An order can be in Error though none of its steps is.
    let mut case = held();
    case.apply(Event::DeadLetter { dead_letter: &DeadLetterSubject::Wake });
    assert_eq!(
        (case.state(), Action::Settle.refusal(&case.task)),
        (ProcessState::Error, Some(Refused::NothingToSettle))
    );
}

#[test]
fn an_order_stays_in_error_until_its_last_failed_step_is_settled() {
    let mut case = held();
    case.wake();
    case.done("a");
    case.rejected("b");
    case.rejected("c");
    let (since, seen) = (case.task.reason.as_ref().unwrap().since_version, case.task.version);
    case.all_sent();
    assert_eq!(reason_of(&case), (reason::REJECTED, Some("b")));
    assert_eq!(case.settle("b", Settled::Done, None), Verdict::Taken);
    assert_eq!((case.state(), case.states().as_str(), case.requested()), (ProcessState::Error, "++!.", vec![]));
    assert_eq!(reason_of(&case), (reason::REJECTED, Some("c")), "the reason of what is left");
    assert_eq!(case.task.reason.as_ref().unwrap().since_version, since);
    assert!(case.notified().is_empty(), "the operator knows of it");
    // Who saw both errors may settle both.
    let second = Command { version: Some(seen), ..case.settlement("c", Settled::Done, None) };
    assert_eq!(case.apply(Event::Command { command: &second, redelivered: false }), Verdict::Taken);
    assert_eq!((case.state(), case.requested()), (ProcessState::Processing, vec!["d"]));
}

#[test]
fn the_reason_of_what_is_left_has_its_own_code() {
    let hold = "on_rejected = \"hold\"\nmax_failures = 1";
    let mut case = Case::new(&[("x", &[], ""), ("a", &[], hold), ("b", &["x"], hold)], false);
    case.wake();
    case.pass_ms(9_000);
    case.done("x");
    case.now = case.step("a").complete_by.unwrap().plus_ms(case.workflow.supervision.grace_ms);
    case.sweep();
    case.rejected("b");
    assert_eq!((case.states().as_str(), reason_of(&case)), ("+!!", (reason::EXHAUSTED, Some("a"))));
    case.now = case.step("a").may_run_until.unwrap();
    case.settle("a", Settled::Done, None);
    assert_eq!(reason_of(&case), (reason::REJECTED, Some("b")));
}

#[test]
fn the_reason_of_what_is_left_says_how_it_failed() {
    let hold = "on_rejected = \"hold\"\nmax_failures = 1";
    let mut case = Case::new(&[("a", &[], hold), ("b", &[], hold)], false);
    case.wake();
    case.expire_all();
    assert_eq!((case.states().as_str(), case.state()), ("!!", ProcessState::Error));
    case.now = case.step("a").may_run_until.unwrap();
    case.settle("a", Settled::Done, None);
    assert_eq!(reason_of(&case), (reason::EXHAUSTED, Some("b")));
    assert_eq!(&*case.task.reason.as_ref().unwrap().message, "b: no answer within 10000 ms (expired)");
    case.settle("b", Settled::Done, None);
    assert_eq!(case.state(), ProcessState::Processed);
}

#[test]
fn a_step_is_not_settled_while_a_call_of_it_may_still_have_its_effect() {
    let mut case = Case::new(&[("a", &[], "max_failures = 1")], false);
    case.wake();
    case.expire_all();
    let until = case.step("a").may_run_until.unwrap();
    assert_eq!(case.settle("a", Settled::Done, None), Verdict::Refused(Refused::UnderWay { until }));
    case.now = until;
    assert_eq!(case.settle("a", Settled::Done, None), Verdict::Taken);
}

#[test]
fn no_settle_waits_for_a_time_that_a_wrong_clock_wrote() {
    let mut case = held();
    case.wake();
    case.rejected("a");
    case.task.steps[0].may_run_until = Some(case.now.plus_ms(14 * 3_600_000));
    assert_eq!(case.settle("a", Settled::Done, None), Verdict::Taken);
}

#[test]
fn a_reply_that_comes_after_the_settle_counts_nowhere() {
    let mut case = held();
    case.wake();
    let late = case.reply_of("a", done());
    case.rejected("a");
    case.settle("a", Settled::Done, Some("\"by hand\""));
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::Closed));
    assert_eq!(case.step("a").output.as_ref().map(Json::text), Some("\"by hand\""));
    let mut case = undo_refused();
    let late = case.reply_of("b", done());
    case.settle("b", Settled::Undone, None);
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::Closed));
}

#[test]
fn a_repeated_or_late_settle_does_nothing() {
    let mut case = held();
    case.wake();
    case.rejected("a");
    let command = case.settlement("a", Settled::Done, None);
    case.apply(Event::Command { command: &command, redelivered: false });
    case.rejected("b");
    let again = Event::Command { command: &command, redelivered: false };
    assert_eq!(case.apply(again), Verdict::Refused(Refused::Stale), "it was meant for another error");
    let mut case = held();
    case.wake();
    case.rejected("a");
    let command = case.settlement("a", Settled::Done, None);
    case.resubmit();
    case.rejected("a");
    let late = Event::Command { command: &command, redelivered: false };
    assert_eq!(case.apply(late), Verdict::Refused(Refused::Stale));
}

#[test]
fn a_redelivered_settle_sends_what_followed_from_it() {
    let mut case = held();
    case.wake();
    case.rejected("a");
    let command = case.settlement("a", Settled::Done, None);
    case.apply(Event::Command { command: &command, redelivered: false });
    let again = Event::Command { command: &command, redelivered: true };
    assert_eq!(case.apply(again), Verdict::Refused(Refused::NotInError));
    assert_eq!((case.requested(), case.step("b").attempt), (vec!["b", "c"], 1));
}

#[test]
fn an_output_beyond_its_limit_is_refused() {
    let output = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let mut case = held();
    case.wake();
    case.rejected("a");
    let refused = Verdict::Refused(Refused::OutputTooLarge(TooLarge::One(OUTPUT_BYTES_MAX + 1)));
    assert_eq!(case.settle("a", Settled::Done, Some(&output(OUTPUT_BYTES_MAX + 1))), refused);
    let others = OUTPUTS_BYTES_MAX - OUTPUT_BYTES_MAX + 1;
    case.task.steps[3].output = Some(Json::parse(output(others).as_bytes(), others).unwrap());
    let refused = Verdict::Refused(Refused::OutputTooLarge(TooLarge::All(OUTPUTS_BYTES_MAX + 1)));
    assert_eq!(case.settle("a", Settled::Done, Some(&output(OUTPUT_BYTES_MAX))), refused);
    assert_eq!(case.settle("a", Settled::Done, Some(&output(OUTPUT_BYTES_MAX - 1))), Verdict::Taken);
}

#[test]
fn the_undo_of_a_step_says_that_the_step_was_done() {
    let mut case = held();
    case.wake();
    case.rejected("a");
    case.settle("a", Settled::Done, None);
    case.rejected("b");
    case.cancel();
    let was_done = |case: &Case, index: usize| {
        request(&case.task, &case.workflow, index, &case.order(), case.now, 0).unwrap().unwrap().1.was_done
    };
    assert!(!was_done(&case, 1), "b was rejected");
    case.done("b");
    case.retry_all();
    case.done("c");
    assert_eq!((case.requested(), was_done(&case, 0)), (vec!["a"], true));
}

#[test]
fn a_settle_does_not_begin_the_horizon_of_another_step_anew() {
    let hold = "on_rejected = \"hold\"\nhorizon = \"1m\"";
    let mut case = Case::new(&[("a", &[], hold), ("b", &[], hold)], false);
    case.wake();
    let reply = case.reply_of("b", crate::message::Outcome::Deferred(crate::message::Deferral::after(1_000)));
    case.take(&reply);
    case.rejected("a");
    case.pass_ms(3_600_000);
    case.settle("a", Settled::Done, None);
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Error, "+!"), "its service may not know the key");
    assert_eq!((reason_of(&case), case.notified()), ((reason::EXHAUSTED, Some("b")), vec!["OrderNeedsOperator"]));
    assert_eq!(case.step("b").process_state, StepState::Error);
}
