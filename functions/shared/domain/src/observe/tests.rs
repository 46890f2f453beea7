//! Each transition is counted once, on every path.

use super::*;
use crate::limits::DEFERRAL_MS_MAX;
use crate::machine::testing::{Case, failed};
use crate::message::{Deferral, Outcome};

/// The events of a change, in words.
fn seen(case: &mut Case, change: impl FnOnce(&mut Case)) -> Vec<String> {
    change(case);
    case.words()
}

fn deferred(case: &mut Case, name: &str, wait_ms: u64) {
    let reply = case.reply_of(name, Outcome::Deferred(Deferral::after(wait_ms)));
    case.take(&reply);
}

/// One step with this many attempts; then the order is held.
fn one(options: &str) -> Case {
    let mut case = Case::new(&[("a", &[], options)], false);
    case.wake();
    case
}

#[test]
fn a_healthy_order_is_claims_and_results_with_their_latency_and_one_end() {
    let mut case = Case::chain();
    assert_eq!(seen(&mut case, |case| _ = case.wake()), ["a claimed #1"]);
    case.pass_ms(100);
    assert_eq!(seen(&mut case, |case| _ = case.done("a")), ["a processed #1", "b claimed #1"]);
    assert_eq!(step_latency_ms(&case.task, 0), Some(100));
    case.pass_ms(20);
    assert_eq!(seen(&mut case, |case| _ = case.done("b")), ["b processed #1", "c claimed #1"]);
    case.pass_ms(3);
    assert_eq!(seen(&mut case, |case| _ = case.done("c")), ["c processed #1", "Processed"]);
    assert_eq!((step_latency_ms(&case.task, 2), order_latency_ms(&case.task)), (Some(3), 123));
}

#[test]
fn what_changes_nothing_is_nothing() {
    let mut case = Case::new(&[("a", &[], "")], true);
    case.wake();
    assert!(seen(&mut case, |case| _ = case.wake_again()).is_empty());
    assert!(seen(&mut case, |case| _ = case.all_sent()).is_empty(), "a notice that was sent is no transition");
    let reply = case.reply_of("a", crate::machine::testing::done());
    case.take(&reply);
    assert!(seen(&mut case, |case| _ = case.take(&reply)).is_empty(), "a duplicate");
    assert!(seen(&mut case, |case| _ = case.next_sweep()).is_empty(), "a notice that is sent again");
}

#[test]
fn an_expired_attempt_is_asked_for_again_until_the_step_is_exhausted() {
    let mut case = one("max_failures = 2");
    assert_eq!(seen(&mut case, Case::expire_all), ["a failed, to be tried again"]);
    assert_eq!(seen(&mut case, Case::retry_all), ["a claimed #2"]);
    assert_eq!(seen(&mut case, Case::expire_all), ["a expired #2", "a given up #2", "a exhausted #2", "Error"]);
    assert_eq!(seen(&mut case, |case| _ = case.resubmit()), ["resubmitted", "a claimed #3"]);
}

#[test]
fn an_order_that_is_undone_for_an_exhausted_step_is_exhausted_and_turned_once() {
    let mut case = one("max_failures = 1\non_exhausted = \"compensate\"");
    let turned = seen(&mut case, Case::expire_all);
    assert_eq!(turned, ["a expired #1", "a given up #1", "a exhausted #1", "Compensating"]);
    assert_eq!(reason_of_undo(&case.task), "exhausted");
    assert_eq!(seen(&mut case, Case::retry_all), ["undo of a claimed #2"]);
    case.pass_ms(5);
    assert_eq!(seen(&mut case, |case| _ = case.done("a")), ["undo of a processed #2", "Compensated"]);
    assert_eq!((step_latency_ms(&case.task, 0), reason_of_undo(&case.task)), (Some(5), "exhausted"));
}

#[test]
fn two_steps_that_are_exhausted_at_once_hold_their_order_once() {
    let mut case = Case::new(&[("a", &[], "max_failures = 1"), ("b", &[], "max_failures = 1")], false);
    case.wake();
    let both =
        ["a expired #1", "a given up #1", "a exhausted #1", "b expired #1", "b given up #1", "b exhausted #1", "Error"];
    assert_eq!(seen(&mut case, Case::expire_all), both);
}

#[test]
fn a_step_that_is_taken_back_with_its_order_is_not_asked_for_again() {
    let undone = "max_failures = 1\non_exhausted = \"compensate\"";
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], undone)], false);
    case.wake();
    let turned = ["a failed, to be tried again", "b expired #1", "b given up #1", "b exhausted #1", "Compensating"];
    assert_eq!(seen(&mut case, Case::expire_all), turned);
}

#[test]
fn a_refusal_turns_or_holds_the_order() {
    let mut case = one("");
    let turned = ["a rejected #1", "Compensating", "undo of a claimed #2"];
    assert_eq!(seen(&mut case, |case| _ = case.rejected("a")), turned, "its undo is claimed in the same write");
    let failed = ["undo of a rejected #2", "Error"];
    assert_eq!(seen(&mut case, |case| _ = case.rejected("a")), failed);
    assert_eq!(reason_of_undo(&case.task), "rejected");
    let on = seen(&mut case, |case| _ = case.resubmit());
    assert_eq!(on, ["resubmitted", "undo of a claimed #3"]);

    let mut case = one("on_rejected = \"hold\"");
    assert_eq!(seen(&mut case, |case| _ = case.rejected("a")), ["a rejected #1", "Error"]);
}

#[test]
fn an_attempt_that_is_given_back_is_deferred_even_if_it_is_claimed_again_at_once() {
    let mut case = one("");
    assert_eq!(seen(&mut case, |case| deferred(case, "a", 1_000)), ["a put off #1"]);
    case.pass_ms(1_000);
    assert_eq!(seen(&mut case, |case| _ = case.wake()), ["a claimed #2"]);
    assert_eq!(seen(&mut case, |case| deferred(case, "a", 0)), ["a put off #2", "a claimed #3"]);
}

#[test]
fn a_step_that_is_deferred_beyond_its_horizon_is_exhausted_without_an_expiry() {
    let compensated = ["Compensating", "undo of a claimed #2"];
    for (options, end) in [("", &["Error"][..]), ("on_exhausted = \"compensate\"", &compensated)] {
        let mut case = one(options);
        case.pass_ms(case.workflow.steps[0].horizon_ms);
        let given_up = ["a put off #1", "a given up #1", "a exhausted #1"];
        assert_eq!(seen(&mut case, |case| deferred(case, "a", DEFERRAL_MS_MAX)), [&given_up, end].concat());
    }
}

#[test]
fn a_dead_letter_holds_the_order_and_is_no_refusal() {
    let mut case = one("");
    let dead_letter =
        crate::machine::DeadLetterSubject::Attempt { step: "a".into(), direction: Direction::Forward, attempt: 1 };
    let held = seen(&mut case, |case| _ = case.apply(crate::machine::Event::DeadLetter { dead_letter: &dead_letter }));
    assert_eq!(held, ["a given up #1", "Error"]);
}

#[test]
fn what_an_operator_does_is_counted() {
    let mut case = one("");
    assert_eq!(seen(&mut case, |case| _ = case.pause()), ["paused"]);
    assert_eq!(seen(&mut case, |case| _ = case.resume()), ["resumed"]);
    assert_eq!(seen(&mut case, |case| _ = case.cancel()), ["Compensating", "cancelled"]);

    let mut untouched = Case::chain();
    let cancelled = ["Compensating", "Compensated", "cancelled"];
    assert_eq!(seen(&mut untouched, |case| _ = case.cancel()), cancelled);

    let mut held = one("on_rejected = \"hold\"");
    held.rejected("a");
    let cancelled = ["Compensating", "cancelled", "undo of a claimed #2"];
    assert_eq!(seen(&mut held, |case| _ = case.cancel()), cancelled);

    let mut paused = one("");
    paused.pause();
    let resumed = ["Compensating", "resumed", "cancelled"];
    assert_eq!(seen(&mut paused, |case| _ = case.cancel()), resumed, "that ends the pause");
    assert!(!paused.task.history.iter().any(|line| line.what == What::Resumed));
}

#[test]
fn a_result_that_comes_after_the_order_was_held_is_counted_with_it() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &[], "")], false);
    case.wake();
    let refused = case.reply_of("a", failed());
    case.take(&refused);
    assert_eq!(seen(&mut case, |case| _ = case.done("b")), ["b processed #1"]);
}

#[test]
fn an_attempt_found_late_beyond_belief_is_doubted_first() {
    let mut case = one("max_failures = 2");
    case.workflow.supervision.doubt_after_ms = Some(1_000);
    case.pass_ms(10 * 60_000);
    assert_eq!(seen(&mut case, |case| _ = case.sweep()), ["a doubted #1"]);
    assert_eq!(seen(&mut case, |case| _ = case.next_sweep()), ["a failed, to be tried again"]);
}
