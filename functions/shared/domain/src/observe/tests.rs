//! Each transition is counted once, whichever way it came about.

use super::*;
use crate::limits::DEFERRAL_MS_MAX;
use crate::machine::testing::{Case, failed};
use crate::message::{Deferral, Outcome};

/// What is seen of a change, in words: `name step`, `name reason` or `name step ms`.
fn seen(case: &mut Case, change: impl FnOnce(&mut Case)) -> Vec<String> {
    let before = case.task.clone();
    change(case);
    observe(&before, &case.task).map(words).collect()
}

fn words(observation: Observation<'_>) -> String {
    match observation {
        Observation::Claimed(step) => format!("claimed {} #{}", step.name, step.attempt),
        Observation::PutOff(step) => format!("put off {}", step.name),
        Observation::Expired(step, error) => format!("expired {} #{}", step.name, error.attempt),
        Observation::Repended(step) => format!("re-pended {}", step.name),
        Observation::Exhausted(step) => format!("exhausted {}", step.name),
        Observation::Rejected(step, error) => format!("rejected {} #{}", step.name, error.attempt),
        Observation::Doubted(step) => format!("doubted {}", step.name),
        Observation::Done { step, latency_ms } => format!("{} {} {latency_ms}", step.direction.name(), step.name),
        Observation::Processed { latency_ms } => format!("processed {latency_ms}"),
        Observation::Compensating(reason) => format!("compensating {reason}"),
        Observation::Compensated(reason) => format!("compensated {reason}"),
        Observation::Held(reason) => format!("held {reason}"),
        Observation::Resubmitted => "resubmitted".to_owned(),
        Observation::Paused => "paused".to_owned(),
        Observation::Resumed => "resumed".to_owned(),
    }
}

fn deferred(case: &mut Case, name: &str, wait_ms: u64) {
    let reply = case.reply_of(name, Outcome::Deferred(Deferral { wait_ms }));
    case.take(&reply);
}

/// One step that does so many attempts and is then held.
fn one(options: &str) -> Case {
    let mut case = Case::new(&[("a", &[], options)], false);
    case.wake();
    case
}

#[test]
fn a_healthy_order_is_claims_and_results_with_their_latency_and_one_end() {
    let mut case = Case::chain();
    assert_eq!(seen(&mut case, |case| _ = case.wake()), ["claimed a #1"]);
    case.pass_ms(100);
    assert_eq!(seen(&mut case, |case| _ = case.done("a")), ["Forward a 100", "claimed b #1"]);
    case.pass_ms(20);
    assert_eq!(seen(&mut case, |case| _ = case.done("b")), ["Forward b 20", "claimed c #1"]);
    case.pass_ms(3);
    assert_eq!(seen(&mut case, |case| _ = case.done("c")), ["Forward c 3", "processed 123"]);
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
    assert_eq!(seen(&mut case, Case::expire_all), ["expired a #1", "re-pended a"]);
    assert_eq!(seen(&mut case, Case::retry_all), ["claimed a #2"]);
    assert_eq!(seen(&mut case, Case::expire_all), ["expired a #2", "exhausted a", "held exhausted"]);
    assert_eq!(seen(&mut case, |case| _ = case.resubmit()), ["claimed a #3", "resubmitted"]);
}

#[test]
fn an_order_that_is_undone_for_an_exhausted_step_is_exhausted_and_turned_once() {
    let mut case = one("max_failures = 1\non_exhausted = \"compensate\"");
    let turned = seen(&mut case, Case::expire_all);
    assert_eq!(turned, ["expired a #1", "exhausted a", "compensating exhausted"]);
    assert_eq!(seen(&mut case, |case| _ = case.wake()), ["claimed a #2"]);
    case.pass_ms(5);
    assert_eq!(seen(&mut case, |case| _ = case.done("a")), ["Undo a 5", "compensated exhausted"]);
}

#[test]
fn two_steps_that_are_exhausted_at_once_hold_their_order_once() {
    let mut case = Case::new(&[("a", &[], "max_failures = 1"), ("b", &[], "max_failures = 1")], false);
    case.wake();
    let both = ["expired a #1", "exhausted a", "expired b #1", "exhausted b", "held exhausted"];
    assert_eq!(seen(&mut case, Case::expire_all), both);
}

#[test]
fn a_step_that_is_taken_back_with_its_order_is_not_asked_for_again() {
    let undone = "max_failures = 1\non_exhausted = \"compensate\"";
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], undone)], false);
    case.wake();
    let turned = ["expired a #1", "expired b #1", "exhausted b", "compensating exhausted"];
    assert_eq!(seen(&mut case, Case::expire_all), turned);
}

#[test]
fn a_refusal_turns_or_holds_the_order() {
    let mut case = one("");
    let turned = ["rejected a #1", "claimed a #2", "compensating rejected"];
    assert_eq!(seen(&mut case, |case| _ = case.rejected("a")), turned, "its undo is claimed in the same write");
    assert_eq!(seen(&mut case, |case| _ = case.rejected("a")), ["rejected a #2", "held compensation-failed"]);
    let on = seen(&mut case, |case| _ = case.resubmit());
    assert_eq!(on, ["claimed a #3", "resubmitted"], "it is undone for the reason it had before");

    let mut case = one("on_rejected = \"hold\"");
    assert_eq!(seen(&mut case, |case| _ = case.rejected("a")), ["rejected a #1", "held rejected"]);
}

#[test]
fn an_attempt_that_is_given_back_is_put_off_even_if_it_is_claimed_again_at_once() {
    let mut case = one("");
    assert_eq!(seen(&mut case, |case| deferred(case, "a", 1_000)), ["put off a"]);
    case.pass_ms(1_000);
    assert_eq!(seen(&mut case, |case| _ = case.wake()), ["claimed a #2"]);
    assert_eq!(seen(&mut case, |case| deferred(case, "a", 0)), ["put off a", "claimed a #3"]);
}

#[test]
fn a_step_that_is_put_off_beyond_its_horizon_is_exhausted_without_an_expiry() {
    for (options, end) in [("", "held exhausted"), ("on_exhausted = \"compensate\"", "compensating exhausted")] {
        let mut case = one(options);
        case.pass_ms(case.workflow.steps[0].horizon_ms);
        let end = match end {
            "held exhausted" => vec!["exhausted a", end],
            turned => vec!["exhausted a", "claimed a #2", turned],
        };
        assert_eq!(seen(&mut case, |case| deferred(case, "a", DEFERRAL_MS_MAX)), end);
    }
}

#[test]
fn a_dead_letter_holds_the_order_and_is_no_refusal() {
    let mut case = one("");
    let dead_letter =
        crate::machine::DeadLetterSubject::Attempt { step: "a".into(), direction: Direction::Forward, attempt: 1 };
    let held = seen(&mut case, |case| _ = case.apply(crate::machine::Event::DeadLetter { dead_letter: &dead_letter }));
    assert_eq!(held, ["held dead-letter"]);
}

#[test]
fn what_an_operator_does_is_counted() {
    let mut case = one("");
    assert_eq!(seen(&mut case, |case| _ = case.pause()), ["paused"]);
    assert_eq!(seen(&mut case, |case| _ = case.resume()), ["resumed"]);
    assert_eq!(seen(&mut case, |case| _ = case.cancel()), ["compensating cancelled"]);

    let mut untouched = Case::chain();
    let cancelled = ["compensating cancelled", "compensated cancelled"];
    assert_eq!(seen(&mut untouched, |case| _ = case.cancel()), cancelled);

    let mut held = one("on_rejected = \"hold\"");
    held.rejected("a");
    let cancelled = ["claimed a #2", "compensating cancelled"];
    assert_eq!(seen(&mut held, |case| _ = case.cancel()), cancelled, "that is no resubmit");
}

#[test]
fn a_result_that_comes_after_the_order_was_held_is_counted_with_it() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &[], "")], false);
    case.wake();
    let refused = case.reply_of("a", failed());
    case.take(&refused);
    assert_eq!(seen(&mut case, |case| _ = case.done("b")), ["Forward b 0"]);
}

#[test]
fn an_attempt_found_late_beyond_belief_is_doubted_first() {
    let mut case = one("max_failures = 2");
    case.workflow.supervision.doubt_after_ms = Some(1_000);
    case.pass_ms(10 * 60_000);
    assert_eq!(seen(&mut case, |case| _ = case.sweep()), ["doubted a"]);
    assert_eq!(seen(&mut case, |case| _ = case.next_sweep()), ["expired a #1", "re-pended a"]);
}
