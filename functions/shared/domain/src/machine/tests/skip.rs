//! Rule 33: steps that do not apply, optional steps, and steps without an undo.

use crate::machine::testing::{Case, done};
use crate::machine::{DeadLetterSubject, Dropped, Event, Refused, Verdict};
use crate::message::{Reply, Settled};
use crate::task::{Direction, ProcessState, StepState, What};

/// The words of the last line of the history about this step, with its reason.
fn line(case: &Case, step: &str) -> String {
    let is_about = |what: &What| what.attempt().is_some_and(|attempt| attempt.name(&case.task.steps) == step);
    let line = case.task.history.iter().rev().find(|line| is_about(&line.what)).unwrap();
    format!("{}: {}", case.words_of(line), line.why.as_deref().unwrap_or_default())
}

// ---- when

#[test]
fn a_step_that_does_not_apply_by_the_document_is_stored_as_skipped() {
    let case = Case::new(
        &[
            ("a", &[], "when = \"/Order/Total > 0.99\""),
            ("b", &["a"], "when = [\"/Order/Total exists\", \"/Order/Total > 1\"]"),
            ("c", &["b"], "when = \"/Order/Note missing\""),
        ],
        false,
    );
    assert_eq!((case.states().as_str(), case.state(), case.task.version), (".-.", ProcessState::Pending, 1));
    assert_eq!(line(&case, "b"), "b skipped #0: it does not apply: /Order/Total > 1");
    assert_eq!((case.step("b").attempt, case.step("b").finished_at), (0, None));
}

#[test]
fn a_comparison_with_a_value_that_is_missing_or_of_another_type_says_so() {
    let steps: [(&str, &[&str], &str); 3] = [
        ("a", &[], "when = \"/Order/Total == \\\"1\\\"\""),
        ("b", &[], "when = \"/Order/Weight > 1\""),
        ("c", &["b"], "when = \"/Outputs/b/Id > 1\""),
    ];
    let mut case = Case::new(&steps, false);
    case.wake();
    assert_eq!(line(&case, "a"), "a skipped #0: it does not apply: /Order/Total == \"1\", and it is a number");
    assert_eq!(line(&case, "b"), "b skipped #0: it does not apply: /Order/Weight > 1, and it is missing");
    assert_eq!(line(&case, "c"), "c skipped #0: it does not apply: /Outputs/b/Id > 1, and it is missing");
}

#[test]
fn a_step_behind_one_that_was_skipped_before_is_looked_at_in_whatever_order_the_file_has_them() {
    let mut case = Case::new(
        &[
            ("c", &["b"], "when = \"/Outputs/r/x == 1\""),
            ("b", &["x"], "when = \"/Order/Total > 1\""),
            ("x", &["r"], "when = \"/Outputs/r/x == 2\""),
            ("r", &[], ""),
        ],
        false,
    );
    case.wake();
    case.done("r");
    assert_eq!((case.states().as_str(), case.requested()), ("---+", vec![]));
}

#[test]
fn the_steps_after_a_skipped_one_start_when_the_others_before_them_are_done() {
    let mut case = Case::new(
        &[("a", &[], ""), ("b", &[], "when = \"/Order/Total > 1\""), ("c", &["a", "b"], ""), ("d", &["b"], "")],
        false,
    );
    case.wake();
    assert_eq!((case.requested(), case.states().as_str()), (vec!["a", "d"], ">-.>"));
    case.done("a");
    assert_eq!(case.requested(), ["c"]);
    case.done("c");
    case.done("d");
    assert_eq!((case.states().as_str(), case.state()), ("+-++", ProcessState::Processed));
}

#[test]
fn a_step_waits_for_those_before_a_step_that_is_skipped_from_the_start() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "when = \"/Order/Total > 1\""), ("c", &["b"], "")], false);
    case.wake();
    assert_eq!((case.requested(), case.states().as_str()), (vec!["a"], ">-."));
    case.done("a");
    assert_eq!(case.requested(), ["c"]);
}

#[test]
fn a_step_that_does_not_apply_by_an_output_is_skipped_in_the_write_that_makes_it_ready() {
    let steps: [(&str, &[&str], &str); 4] = [
        ("d", &["c"], ""),
        ("a", &[], ""),
        ("b", &["a"], "when = \"/Outputs/a/Id != 7\""),
        ("c", &["b"], "when = [\"/Order/Total == 1\", \"/Outputs/b/Id exists\"]"),
    ];
    let mut case = Case::new(&steps, false);
    case.wake();
    let version = case.task.version;
    case.done("a");
    assert_eq!((case.states().as_str(), case.requested()), (">+--", vec!["d"]), "a chain of them in one turn");
    assert_eq!(case.task.version, version + 1);
    assert_eq!(line(&case, "b"), "b skipped #0: it does not apply: /Outputs/a/Id != 7");
    assert_eq!(line(&case, "c"), "c skipped #0: it does not apply: /Outputs/b/Id exists");
}

#[test]
fn a_step_that_applies_by_an_output_is_claimed() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "when = \"/Outputs/a/Id == 7.0\"")], false);
    case.wake();
    case.done("a");
    assert_eq!(case.requested(), ["b"]);
}

#[test]
fn an_order_whose_steps_are_all_skipped_is_processed_at_its_first_wake() {
    let steps: [(&str, &[&str], &str); 2] =
        [("a", &[], "when = \"/Order/Total == 2\""), ("b", &["a"], "when = \"/Outputs/a exists\"")];
    let mut case = Case::new(&steps, true);
    assert_eq!(case.state(), ProcessState::Pending);
    assert_eq!(case.wake(), Verdict::Taken);
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Processed, "--"));
    assert_eq!(case.notified(), ["OrderProcessed", "OrderReceived"]);
}

#[test]
fn a_lost_wake_of_an_order_whose_steps_are_all_skipped_is_found() {
    let mut case = Case::new(&[("a", &[], "when = \"/Order/Total == 2\"")], false);
    assert_eq!(case.next_sweep(), Verdict::Taken);
    assert_eq!(case.wakes(), [0]);
    let dead_letter = DeadLetterSubject::Wake;
    case.apply(Event::DeadLetter { dead_letter: &dead_letter });
    assert_eq!(case.state(), ProcessState::Error);
    case.resubmit();
    assert_eq!(case.state(), ProcessState::Processed);
}

#[test]
fn a_paused_order_skips_nothing_until_it_goes_on() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "when = \"/Outputs/a/Id != 7\"")], false);
    case.wake();
    case.pause();
    case.done("a");
    assert_eq!(case.states(), "+.");
    case.resume();
    assert_eq!((case.states().as_str(), case.state()), ("+-", ProcessState::Processed));
}

#[test]
fn a_step_that_does_not_apply_is_not_undone() {
    let mut case =
        Case::new(&[("a", &[], ""), ("b", &["a"], "when = \"/Outputs/a/Id != 7\""), ("c", &["b"], "")], false);
    case.wake();
    case.done("a");
    case.rejected("c");
    case.done("c");
    assert_eq!(case.requested(), ["a"]);
    case.done("a");
    assert_eq!((case.state(), case.step("b").direction), (ProcessState::Compensated, Direction::Forward));
}

// ---- optional

fn optional() -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "optional = true"), ("c", &["b"], "")], false);
    case.wake();
    case.done("a");
    case
}

#[test]
fn an_optional_step_that_is_rejected_does_not_turn_the_order_round() {
    let mut case = optional();
    assert_eq!(case.rejected("b"), Verdict::Taken);
    assert_eq!((case.states().as_str(), case.state(), case.requested()), ("+->", ProcessState::Processing, vec!["c"]));
    assert_eq!(line(&case, "b"), "b skipped #1: no (declined), and it is optional");
    let error = case.step("b").last_error.as_ref().unwrap();
    assert_eq!((&*error.code, error.attempt, case.step("b").locked_by.as_deref()), ("declined", 1, None));
    let late = Reply { attempt: 1, ..case.reply_of("b", done()) };
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::Closed));
    case.done("c");
    assert_eq!(case.state(), ProcessState::Processed);
}

#[test]
fn an_optional_step_that_is_rejected_last_ends_the_order() {
    let mut case = Case::new(&[("a", &[], "optional = true")], true);
    case.wake();
    case.rejected("a");
    assert_eq!((case.state(), case.notified()), (ProcessState::Processed, vec!["OrderProcessed"]));
}

#[test]
fn an_optional_step_that_was_rejected_is_undone_like_any_other() {
    let mut case = optional();
    case.rejected("b");
    case.rejected("c");
    case.done("c");
    assert_eq!(case.requested(), ["b"]);
    case.done("b");
    case.done("a");
    assert_eq!(case.state(), ProcessState::Compensated);
}

#[test]
fn an_optional_step_without_an_answer_waits_for_an_operator_who_may_skip_it() {
    let mut case = optional();
    for _ in 0..3 {
        case.expire_all();
        case.retry_all();
    }
    assert_eq!((case.states().as_str(), case.state()), ("+!.", ProcessState::Error));
    let until = case.step("b").may_run_until.unwrap();
    assert_eq!(case.settle("b", Settled::Skipped, None), Verdict::Refused(Refused::UnderWay { until }));
    case.now = until;
    assert_eq!(case.settle("b", Settled::Skipped, None), Verdict::Taken);
    assert_eq!((case.states().as_str(), case.state(), case.requested()), ("+->", ProcessState::Processing, vec!["c"]));
    assert_eq!(line(&case, "b"), "b settled #3: mended");
    case.rejected("c");
    case.done("c");
    assert_eq!(case.requested(), ["b"], "its effect is unknown");
}

#[test]
fn no_other_step_is_settled_as_skipped() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &["a"], "optional = true")], false);
    case.wake();
    case.rejected("a");
    assert_eq!(case.settle("a", Settled::Skipped, None), Verdict::Refused(Refused::NotOptional));
    let others = Refused::OthersToSettle("settle ID a --outcome done".into());
    assert_eq!(case.settle("b", Settled::Skipped, None), Verdict::Refused(others));
}

#[test]
fn a_rejection_of_an_optional_step_is_kept_while_the_order_is_in_error() {
    let mut case = Case::new(&[("a", &[], "optional = true"), ("b", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    case.rejected("b");
    case.rejected("a");
    assert_eq!((case.states().as_str(), case.state()), ("-!", ProcessState::Error));
    case.settle("b", Settled::Done, None);
    assert_eq!(case.state(), ProcessState::Processed);
}

// ---- undo = "none"

#[test]
fn a_step_without_an_undo_counts_as_undone_in_its_turn_and_nothing_is_sent() {
    let none = "undo = \"none\"";
    let steps: [(&str, &[&str], &str); 4] =
        [("a", &[], ""), ("b", &["a"], none), ("c", &["b"], none), ("d", &["c"], "")];
    let mut case = Case::new(&steps, false);
    case.wake();
    for step in ["a", "b", "c"] {
        case.done(step);
    }
    case.rejected("d");
    assert_eq!((case.requested(), case.states().as_str()), (vec!["d"], "...>"));
    case.done("d");
    assert_eq!((case.requested(), case.states().as_str()), (vec!["a"], ">+++"), "both in one turn");
    assert!(case.step("b").is_undone() && case.step("b").attempt == 1);
    assert_eq!(line(&case, "b"), "undo of b skipped #1: it has no undo");
    case.done("a");
    assert_eq!(case.state(), ProcessState::Compensated);
}

#[test]
fn a_step_without_an_undo_waits_until_its_calls_have_settled() {
    let mut case = Case::new(&[("a", &[], "undo = \"none\"")], false);
    case.wake();
    case.cancel();
    assert_eq!((case.state(), case.wakes()), (ProcessState::Compensating, vec![40_000]));
    case.pass_ms(39_999);
    case.wake();
    assert_eq!(case.state(), ProcessState::Compensating);
    case.pass_ms(1);
    case.wake();
    assert_eq!((case.state(), case.requested().len()), (ProcessState::Compensated, 0));
}

#[test]
fn the_supervisor_finds_an_undo_that_needs_no_call() {
    let mut case = Case::new(&[("a", &[], "undo = \"none\"\nmax_failures = 1\non_exhausted = \"compensate\"")], false);
    case.wake();
    case.expire_all();
    case.now = case.step("a").not_before.unwrap();
    case.next_sweep();
    assert_eq!((case.state(), case.wakes()), (ProcessState::Compensating, vec![0]));
    case.wake();
    assert_eq!(case.state(), ProcessState::Compensated);
}

#[test]
fn a_wake_that_ended_a_step_without_a_call_is_used_up() {
    let steps: [(&str, &[&str], &str); 2] = [("a", &[], "undo = \"none\""), ("b", &[], "")];
    let mut case = Case::new(&steps, false);
    case.wake();
    case.pass_ms(100);
    let mut reply = case.reply_of("a", done());
    reply.may_run_until = Some(case.now.plus_ms(10_000));
    case.take(&reply);
    let mut reply = case.reply_of("b", done());
    reply.may_run_until = Some(case.now.plus_ms(10_100));
    case.cancel();
    assert_eq!(case.step("b").process_state, StepState::Pending);
    case.now = case.step("a").not_before.unwrap();
    case.task.steps[1].not_before = Some(case.now.plus_ms(100));
    case.wake();
    assert!(case.step("a").is_undone() && case.wakes().is_empty(), "{:?}", case.wakes());
}
