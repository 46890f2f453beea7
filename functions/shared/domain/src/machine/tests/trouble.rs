//! Rule 32: what is wrong with an attempt while it goes on.

use std::sync::Arc;

use crate::limits::ERROR_CHARS_MAX;
use crate::machine::testing::Case;
use crate::machine::{Dropped, Verdict};
use crate::message::{Outcome, Reply, Trouble};
use crate::task::{StepError, StepState};

fn trouble(case: &Case, problem: &str) -> Reply {
    case.reply_of("a", Outcome::Retrying(Trouble { problem: problem.into() }))
}

fn tell(case: &mut Case, problem: &str) -> Verdict {
    let reply = trouble(case, problem);
    case.take(&reply)
}

fn in_flight() -> Case {
    let mut case = Case::chain();
    case.wake();
    case
}

fn message(case: &Case) -> Arc<str> {
    case.step("a").last_error.as_ref().unwrap().message.clone()
}

#[test]
fn the_last_error_of_an_attempt_that_goes_on_is_kept_and_nothing_else_changes() {
    let mut case = in_flight();
    let before = case.task.clone();
    assert_eq!(tell(&mut case, "HTTP 503"), Verdict::Taken);
    let expected = StepError { code: "retrying".into(), message: "HTTP 503".into(), attempt: 1, at: case.now };
    assert_eq!(case.step("a").last_error, Some(expected));
    assert_eq!((case.effects.len(), case.happened.len()), (0, 0));
    let mut after = case.task.clone();
    (after.version, after.nonce, after.steps[0].last_error) = (before.version, before.nonce, None);
    assert_eq!(after, before);
}

#[test]
fn the_same_words_of_an_attempt_are_written_once() {
    let mut case = in_flight();
    tell(&mut case, "HTTP 503");
    let version = case.task.version;
    case.pass_ms(1_000);
    assert_eq!((tell(&mut case, "HTTP 503"), case.task.version), (Verdict::Nothing, version));
    assert_eq!((tell(&mut case, "no route"), &*message(&case)), (Verdict::Taken, "no route"));
    tell(&mut case, &"x".repeat(2 * ERROR_CHARS_MAX));
    assert_eq!(message(&case).chars().count(), ERROR_CHARS_MAX + 1);
}

#[test]
fn an_attempt_that_expires_keeps_what_its_last_call_said() {
    let mut case = in_flight();
    tell(&mut case, "HTTP 503");
    case.expire_all();
    assert_eq!(&*message(&case), "no success within 10000 ms; the last call: HTTP 503");
    assert_eq!(case.step("a").failure_count, 1);
    case.retry_all();
    case.expire_all();
    assert_eq!(&*message(&case), "no answer within 10000 ms", "it was another attempt's");
}

#[test]
fn a_step_that_was_answered_with_errors_is_given_up_for_no_success_and_a_silent_one_for_no_answer() {
    for (problem, words) in [
        (Some("HTTP 500"), "a: no success in 3 attempts; the last call: HTTP 500"),
        (None, "a: no answer in 3 attempts"),
    ] {
        let mut case = in_flight();
        for _ in 0..3 {
            problem.map(|problem| tell(&mut case, problem));
            case.expire_all();
            case.retry_all();
        }
        assert_eq!(&*case.task.reason.as_ref().unwrap().message, words);
    }
}

#[test]
fn the_trouble_of_an_attempt_that_is_over_is_dropped() {
    let mut case = in_flight();
    let late = trouble(&case, "HTTP 503");
    case.expire_all();
    assert_eq!(case.step("a").process_state, StepState::Pending);
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::StaleFailure));
    case.retry_all();
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::StaleFailure));
    case.done("a");
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::Closed));
}

#[test]
fn an_undo_shows_its_own_trouble() {
    let mut case = in_flight();
    case.done("a");
    case.rejected("b");
    case.done("b");
    assert_eq!(tell(&mut case, "HTTP 500"), Verdict::Taken);
    assert_eq!(&*message(&case), "HTTP 500");
}
