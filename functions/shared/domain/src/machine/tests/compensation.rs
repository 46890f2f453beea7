//! Rule 9: compensation.

use crate::machine::testing::{Case, done};
use crate::machine::{Dropped, Verdict};
use crate::task::{Direction, ProcessState, reason};

// ---- rule 9: compensation

#[test]
fn every_claimed_step_is_undone_in_reverse_order() {
    let mut case = Case::diamond();
    case.wake();
    case.done("a");
    case.done("b");
    case.done("c");
    case.rejected("d");
    assert_eq!((case.state(), case.requested()), (ProcessState::Compensating, vec!["d"]), "the rejected one as well");
    case.done("d");
    assert_eq!(case.requested(), ["b", "c"]);
    case.done("c");
    assert!(case.requested().is_empty(), "a waits for b");
    case.done("b");
    assert_eq!(case.requested(), ["a"]);
    case.done("a");
    assert_eq!((case.state(), case.task.watch), (ProcessState::Compensated, None));
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::REJECTED));
}

#[test]
fn a_step_that_was_never_claimed_is_not_undone() {
    let mut case = Case::chain();
    case.wake();
    case.rejected("a");
    case.done("a");
    assert_eq!(case.state(), ProcessState::Compensated);
    assert_eq!((case.step("b").attempt, case.step("b").direction), (0, Direction::Forward));
}

#[test]
fn the_undo_of_an_attempt_that_may_still_run_waits_for_its_complete_by() {
    let mut case = Case::diamond();
    case.wake();
    case.done("a");
    case.pass_ms(4_000);
    case.rejected("c");
    assert_eq!((case.requested(), case.wakes()), (vec!["c"], vec![6_000]));
    case.done("c");
    assert!(case.wakes().is_empty(), "the wake for b is under way");
    case.pass_ms(5_999);
    case.wake();
    assert!(case.requested().is_empty());
    case.pass_ms(1);
    case.wake();
    assert_eq!(case.requested(), ["b"]);
    let late_success = {
        let mut reply = case.reply_of("b", done());
        reply.direction = Direction::Forward;
        reply.attempt = 1;
        reply
    };
    assert_eq!(case.take(&late_success), Verdict::Dropped(Dropped::OtherDirection));
}

#[test]
fn an_undo_counts_its_own_failures() {
    let mut case = Case::chain();
    case.wake();
    case.expire_all();
    case.retry_all();
    case.rejected("a");
    let step = case.step("a");
    assert_eq!((step.direction, step.failure_count, step.attempt), (Direction::Undo, 0, 3));
}

#[test]
fn an_undo_that_exhausts_its_failures_ends_in_error_never_compensated() {
    let mut case = Case::chain();
    case.wake();
    case.rejected("a");
    for _ in 0..2 {
        case.expire_all();
        case.retry_all();
    }
    case.expire_all();
    assert_eq!((case.state(), case.notified()), (ProcessState::Error, vec!["OrderNeedsOperator"]));
    let why = case.task.reason.clone().unwrap();
    assert_eq!(
        (&*why.code, why.earlier.map(|earlier| earlier.code.to_string())),
        (reason::COMPENSATION_FAILED, Some("rejected".to_owned()))
    );
    assert_eq!(case.resubmit(), Verdict::Taken);
    assert_eq!((case.state(), case.requested()), (ProcessState::Compensating, vec!["a"]));
    case.done("a");
    assert_eq!(case.state(), ProcessState::Compensated);
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::REJECTED));
}

#[test]
fn a_rejected_undo_asks_for_an_operator() {
    let mut case = Case::chain();
    case.wake();
    case.rejected("a");
    case.rejected("a");
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::COMPENSATION_FAILED));
    assert_eq!((case.state(), case.notified()), (ProcessState::Error, vec!["OrderNeedsOperator"]));
}

#[test]
fn an_undo_that_was_never_claimed_cannot_be_confirmed() {
    let mut case = Case::diamond();
    case.wake();
    case.done("a");
    case.rejected("c");
    let forged = case.reply_of("b", done());
    assert_eq!((forged.direction, forged.attempt), (Direction::Undo, 1), "1 was forward");
    assert_eq!(case.take(&forged), Verdict::Dropped(Dropped::UnknownAttempt));
}
