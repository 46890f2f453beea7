//! Rule 9: compensation.

use crate::json::Json;
use crate::machine::testing::{Case, done, failed};
use crate::machine::{DeadLetterSubject, Dropped, Event, Verdict, request};
use crate::message::{Acceptance, Deferral, Outcome, Reply};
use crate::task::{Direction, ProcessState, StepState, reason};

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
fn the_undo_of_an_attempt_that_may_still_run_waits_until_its_last_call_has_settled() {
    let mut case = Case::diamond();
    case.wake();
    case.done("a");
    case.pass_ms(4_000);
    case.rejected("c");
    // Ten seconds for the attempt, and thirty for a call at its end.
    assert_eq!((case.requested(), case.wakes()), (vec!["c"], vec![36_000]));
    case.done("c");
    assert!(case.wakes().is_empty(), "the wake for b is under way");
    case.pass_ms(35_999);
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

/// When the undo of step a is claimed, after its first attempt ended in this way and the order is cancelled at once.
fn undo_after_ms(end: impl FnOnce(&mut Case)) -> u64 {
    let mut case = Case::chain();
    case.wake();
    let claimed_at = case.now;
    end(&mut case);
    if case.state() != ProcessState::Compensating {
        case.cancel();
    }
    for wait_ms in case.wakes() {
        case.pass_ms(wait_ms);
        case.wake();
    }
    let undo = case.step("a");
    assert_eq!((undo.direction, undo.process_state), (Direction::Undo, StepState::Processing), "claimed");
    claimed_at.ms_until(case.now)
}

#[test]
fn f61_no_undo_is_sent_before_the_calls_of_its_step_have_settled() {
    let after = |outcome: Outcome, may_run_ms: Option<u64>| {
        undo_after_ms(|case| {
            case.pass_ms(1_000);
            let may_run_until = may_run_ms.map(|ms| case.now.plus_ms(ms));
            let reply = Reply { may_run_until, ..case.reply_of("a", outcome) };
            case.take(&reply);
        })
    };
    assert_eq!(after(failed(), None), 1_000, "every call was answered");
    assert_eq!(after(failed(), Some(25_000)), 26_000, "the agent says when its last call has settled");
    assert_eq!(after(failed(), Some(500_000)), 40_000, "but no later than for an attempt without an answer");
    let deferred = Outcome::Deferred(Deferral::after(1));
    assert_eq!(after(deferred.clone(), None), 32_000, "a duplicate of the request may begin a call within a second");
    assert_eq!(after(deferred.clone(), Some(35_000)), 36_000, "or the agent knows of a later one");
    assert_eq!(after(deferred, Some(500_000)), 40_000, "but no later than for an attempt without an answer");
    let taken_on = Outcome::Accepted(Acceptance::default());
    assert_eq!(after(taken_on.clone(), Some(25_000)), 26_000, "what was taken on is called no more");
    assert_eq!(after(taken_on.clone(), None), 32_000, "an agent that does not say when its call began");
    assert_eq!(after(taken_on, Some(500_000)), 32_000, "or names a time that no call has");
    assert_eq!(undo_after_ms(|case| case.pass_ms(9_000)), 40_000, "an attempt in flight");
    assert_eq!(undo_after_ms(Case::expire_all), 40_000, "an attempt that expired");
    assert_eq!(
        undo_after_ms(|case| {
            let (step, direction) = ("a".into(), Direction::Forward);
            let dead_letter = DeadLetterSubject::Attempt { step, direction, attempt: 1 };
            case.apply(Event::DeadLetter { dead_letter: &dead_letter });
        }),
        40_000,
        "an attempt whose messages could not be handled"
    );
}

#[test]
fn f61_the_undo_of_a_step_without_its_later_result_waits_for_the_call_that_was_taken_on_alone() {
    let end = "wait_within = \"5s\"\nmax_failures = 1\non_exhausted = \"compensate\"";
    let mut case = Case::new(&[("a", &[], end)], false);
    case.wake();
    let settled = Some(case.now.plus_ms(30_000));
    let reply = Reply { may_run_until: settled, ..case.reply_of("a", Outcome::Accepted(Acceptance::default())) };
    case.take(&reply);
    case.pass_ms(7_000);
    case.sweep();
    assert_eq!((case.state(), case.step("a").not_before), (ProcessState::Compensating, settled));
}

/// The same for one second.
fn undo_after_the_turn_ms(outcome: Outcome, may_run_ms: Option<u64>) -> (u64, Option<Json>) {
    undo_after_the_turn_for_ms(1_000, outcome, may_run_ms)
}

/// When the undo of step a is claimed, if its attempt ends this many milliseconds after the cancel.
fn undo_after_the_turn_for_ms(ms: u64, outcome: Outcome, may_run_ms: Option<u64>) -> (u64, Option<Json>) {
    let mut output = None;
    let undone_ms = undo_after_ms(|case| {
        let reply = case.reply_of("a", outcome);
        case.pass_ms(1_000);
        case.cancel();
        case.pass_ms(ms);
        let may_run_until = may_run_ms.map(|ms| case.now.plus_ms(ms));
        let reply = Reply { may_run_until, ..reply };
        case.take(&reply);
        output = case.step("a").output.clone();
        let again = case.decide(Event::Reply { reply: &reply, redelivered: false });
        assert_eq!(again.verdicts, [Verdict::Dropped(Dropped::OtherDirection)], "it says nothing new");
    });
    (undone_ms, output)
}

#[test]
fn f61_the_end_of_the_attempt_in_flight_at_the_turn_ends_the_wait_of_its_undo() {
    let Outcome::Done(output) = done() else { unreachable!() };
    assert_eq!(undo_after_the_turn_ms(done(), None), (2_000, Some(output.clone())), "a call of it has no other effect");
    assert_eq!(undo_after_the_turn_ms(done(), Some(5_000)), (7_000, Some(output.clone())));
    assert_eq!(undo_after_the_turn_ms(done(), Some(500_000)), (40_000, Some(output)), "never later than without it");
    assert_eq!(undo_after_the_turn_ms(failed(), None), (32_000, None), "its other calls have settled then");
    assert_eq!(undo_after_the_turn_ms(Outcome::Deferred(Deferral::after(0)), None), (32_000, None));
    assert_eq!(undo_after_the_turn_ms(Outcome::Deferred(Deferral::after(0)), Some(36_000)), (38_000, None));
}

#[test]
fn f61_a_request_that_comes_back_long_after_the_turn_does_not_make_the_wait_of_the_undo_longer() {
    let given_back = |ms| undo_after_the_turn_for_ms(ms, Outcome::Deferred(Deferral::after(0)), None).0;
    assert_eq!([0, 5_000, 8_000].map(given_back), [32_000; 3], "no call began more than a second after the turn");
}

#[test]
fn an_earlier_attempt_or_one_that_goes_on_ends_no_wait_of_an_undo() {
    let mut case = Case::chain();
    case.wake();
    let first = case.reply_of("a", done());
    case.expire_all();
    case.retry_all();
    let second = case.reply_of("a", Outcome::Accepted(Acceptance::default()));
    case.cancel();
    let before = case.task.clone();
    for reply in [first, second] {
        assert_eq!(case.take(&reply), Verdict::Dropped(Dropped::OtherDirection));
    }
    assert_eq!(case.task, before);
}

#[test]
fn a_step_that_is_done_is_undone_at_once_though_its_request_was_sent_again() {
    let undone_after_ms = undo_after_ms(|case| {
        case.wake_again();
        case.pass_ms(1_000);
        let reply = case.reply_of("a", done());
        case.take(&reply);
        let b = case.reply_of("b", failed());
        case.take(&b);
        case.done("b");
    });
    assert_eq!(undone_after_ms, 1_000);
}

#[test]
fn a_success_of_an_earlier_attempt_leaves_the_present_one_unanswered() {
    let undone_after_ms = undo_after_ms(|case| {
        let first = case.reply_of("a", done());
        case.expire_all();
        case.retry_all();
        case.take(&first);
        assert_eq!(case.states(), "+>.");
        // Step b is undone first, at the same time.
        let b = case.reply_of("b", failed());
        case.take(&b);
        case.done("b");
    });
    assert!(undone_after_ms >= 50_000, "the second attempt settles 40 s after its claim: {undone_after_ms}");
}

#[test]
fn an_agents_own_time_to_settle_counts_and_its_request_says_so() {
    let mut case = Case::chain();
    case.workflow.steps[0].settles_within_ms = 90_000;
    case.wake();
    let settled_at = case.now.plus_ms(100_000);
    case.expire_all();
    case.retry_all();
    let (_, request) = request(&case.task, &case.workflow, 0, &case.order(), case.now, 0).unwrap().unwrap();
    assert_eq!((request.settles_within_ms, request.may_run_until), (90_000, Some(settled_at)));
}

#[test]
fn an_undo_counts_its_own_failures() {
    let mut case = Case::chain();
    case.wake();
    case.expire_all();
    case.retry_all();
    case.rejected("a");
    case.retry_all();
    let step = case.step("a");
    assert_eq!((step.direction, step.failure_count, step.attempt), (Direction::Undo, 0, 3));
}

#[test]
fn an_undo_that_exhausts_its_failures_ends_in_error_never_compensated() {
    let mut case = Case::chain();
    case.wake();
    let rejected = Reply { call_ms: Some(9), ..case.reply_of("a", failed()) };
    case.take(&rejected);
    for _ in 0..2 {
        case.expire_all();
        case.retry_all();
    }
    case.expire_all();
    assert_eq!((case.state(), case.notified()), (ProcessState::Error, vec!["OrderNeedsOperator"]));
    assert_eq!(case.step("a").call_ms, None, "no call ended it");
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
