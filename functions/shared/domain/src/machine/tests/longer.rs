//! Rule 39: a longer wait at the threshold.

use crate::machine::Verdict;
use crate::machine::testing::Case;
use crate::message::Outcome;
use crate::situation::Situation;
use crate::task::{Direction, ProcessState, StepError, StepState, Watch, reason};
use crate::time::Timestamp;

const HOUR_MS: u64 = 3_600_000;

/// a, then b, which waits for two hours after its second and its third failure.
fn patient(more: &str) -> Case {
    let b = format!("max_failures = 2\non_exhausted = {{ wait = \"2h\", times = 2 }}\n{more}");
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], &b)], false);
    case.wake();
    case.done("a");
    case
}

/// b has had its failures below the threshold, and one more.
fn waiting(more: &str) -> Case {
    let mut case = patient(more);
    case.expire_all();
    assert_eq!(case.step("b").waits_until, None, "below the threshold there is a back-off");
    case.retry_all();
    case.expire_all();
    case
}

/// Lets the wait pass, as the supervisor finds it, and the scheduler claims the step.
fn pass_wait(case: &mut Case) {
    let until = case.step("b").waits_until.unwrap();
    // The first look may have been planned before.
    while case.now < until {
        assert_eq!(case.next_sweep(), Verdict::Taken);
    }
    assert_eq!(case.wakes(), [0]);
    assert_eq!(case.wake(), Verdict::Taken);
    assert_eq!(case.requested(), ["b"]);
}

#[test]
fn rule_39_at_the_threshold_a_step_waits_longer_and_nothing_but_the_watch_remembers_it() {
    let mut case = waiting("");
    let until = case.now.plus_ms(2 * HOUR_MS);
    let b = case.step("b");
    assert_eq!((b.process_state, b.failure_count, b.waits_until), (StepState::Pending, 2, Some(until)));
    assert_eq!((case.effects.len(), case.state()), (0, ProcessState::Processing));
    assert_eq!(
        (case.task.watch.map(|watch| matches!(watch, Watch::Wait(_))), case.task.watch_at),
        (Some(true), Some(until))
    );
    let line = case.task.history.last().unwrap();
    assert_eq!(line.why.as_deref(), Some("attempt 2 expired, failure 2; longer wait 1 of 2: 2h"));
    case.now = Timestamp::from_epoch_ms(until.epoch_ms() - 1);
    assert_eq!((case.wake(), case.sweep()), (Verdict::Nothing, Verdict::Nothing), "not a millisecond earlier");
}

#[test]
fn rule_39_one_attempt_follows_each_longer_wait_and_then_the_remedy_decides() {
    for (then, state, code) in [
        ("", ProcessState::Error, reason::EXHAUSTED),
        (", then = \"compensate\"", ProcessState::Compensating, reason::EXHAUSTED),
    ] {
        let options = format!("max_failures = 1\non_exhausted = {{ wait = \"2h\", times = 2{then} }}");
        let mut case = Case::new(&[("b", &[], &options)], false);
        case.wake();
        for failures in 1..=2 {
            case.expire_all();
            assert_eq!((case.step("b").failure_count, case.states().as_str()), (failures, "."));
            let why = format!("attempt {failures} expired, failure {failures}; longer wait {failures} of 2: 2h");
            assert_eq!(case.task.history.last().unwrap().why.as_deref(), Some(&*why));
            pass_wait(&mut case);
        }
        case.expire_all();
        let why = case.task.reason.clone().unwrap();
        assert_eq!((case.state(), &*why.code, &*why.message), (state, code, "b: no answer in 3 attempts"));
        assert_eq!(case.step("b").waits_until, None);
    }
}

#[test]
fn rule_39_no_longer_wait_ends_after_the_horizon() {
    // The first wait ends within it, and the second would not.
    let mut case = waiting("horizon = \"4h 10s\"");
    pass_wait(&mut case);
    case.expire_all();
    assert_eq!((case.state(), case.step("b").failure_count), (ProcessState::Error, 3));
    assert_eq!(&*case.step("b").last_error.as_ref().unwrap().code, StepError::EXPIRED);
}

#[test]
fn rule_39_a_result_that_comes_during_the_wait_counts_and_a_cancel_ends_the_wait() {
    let mut case = waiting("");
    assert_eq!((case.done("b"), case.state()), (Verdict::Taken, ProcessState::Processed));
    assert_eq!(case.step("b").waits_until, None);
    let mut case = waiting("");
    assert_eq!((case.cancel(), case.step("b").waits_until), (Verdict::Taken, None));
    assert_eq!((case.state(), case.step("b").failure_count), (ProcessState::Compensating, 0));
}

#[test]
fn rule_39_a_pause_does_not_lengthen_the_wait_and_a_resubmit_starts_afresh() {
    let mut case = waiting("");
    let until = case.step("b").waits_until;
    case.pause();
    case.pass_ms(3 * HOUR_MS);
    assert_eq!((case.wake(), case.step("b").waits_until), (Verdict::Nothing, until));
    assert_eq!((case.resume(), case.requested()), (Verdict::Taken, vec!["b"]));
    for _ in 0..2 {
        case.expire_all();
        if case.state() == ProcessState::Processing {
            pass_wait(&mut case);
        }
    }
    assert_eq!(case.state(), ProcessState::Error);
    assert_eq!((case.resubmit(), case.step("b").failure_count), (Verdict::Taken, 0));
}

#[test]
fn rule_39_an_undo_waits_longer_too_and_then_asks_for_an_operator() {
    let mut case = patient("");
    case.rejected("b");
    // The undo waits for the calls of its step first.
    case.retry_all();
    case.expire_all();
    case.retry_all();
    case.expire_all();
    let (until, direction) = (case.step("b").waits_until.unwrap(), case.step("b").direction);
    assert_eq!((until, direction), (case.now.plus_ms(2 * HOUR_MS), Direction::Undo));
    let situation = Situation::of(&case.task);
    assert_eq!(situation.head, format!("The undo of b waits until {until} (2 failures so far), as the workflow says."));
    let to_do = "Nothing. It starts then. Once its service is well, a resubmit starts it at once.";
    assert_eq!(situation.to_do.as_deref(), Some(to_do));
    for _ in 0..2 {
        pass_wait(&mut case);
        case.expire_all();
    }
    assert_eq!(case.state(), ProcessState::Error);
    assert_eq!(&*case.task.reason.as_ref().unwrap().code, reason::COMPENSATION_FAILED);
}

#[test]
fn rule_39_a_rejection_after_a_longer_wait_is_a_rejection() {
    let mut case = waiting("");
    pass_wait(&mut case);
    assert_eq!((case.rejected("b"), case.state()), (Verdict::Taken, ProcessState::Compensating));
    let mut case = waiting("");
    let late = case.reply_of("b", Outcome::Failed(crate::message::Failure { code: "no".into(), message: "no".into() }));
    assert!(matches!(case.take(&late), Verdict::Dropped(_)), "its attempt has ended");
}

#[test]
fn rule_23_a_longer_wait_that_a_wrong_clock_wrote_begins_anew() {
    let mut case = waiting("");
    let believed = Some(case.now.plus_ms(4 * HOUR_MS));
    case.task.steps[1].waits_until = believed;
    case.task.watch_at = Some(case.now);
    case.sweep();
    assert_eq!(case.step("b").waits_until, believed, "at most as long again");
    case.task.steps[1].waits_until = Some(case.now.plus_ms(5 * HOUR_MS));
    case.task.watch_at = Some(case.now);
    assert_eq!((case.sweep(), case.step("b").waits_until), (Verdict::Taken, Some(case.now.plus_ms(2 * HOUR_MS))));
}

#[test]
fn rule_39_a_resubmit_ends_the_wait_and_a_repeat_of_it_changes_nothing() {
    let mut case = waiting("");
    assert_eq!((case.resubmit(), case.requested()), (Verdict::Taken, vec!["b"]));
    assert_eq!((case.step("b").failure_count, case.step("b").waits_until), (0, None));
    assert_eq!(case.step("b").started_at, Some(case.now), "the horizon begins anew");
    assert!(matches!(case.resubmit(), Verdict::Refused(_)), "nothing waits any more");

    let mut case = patient("");
    case.rejected("b");
    let reason = case.task.reason.clone();
    for _ in 0..2 {
        case.retry_all();
        case.expire_all();
    }
    assert_eq!((case.resubmit(), case.requested()), (Verdict::Taken, vec!["b"]));
    assert_eq!(
        (case.state(), &case.task.reason),
        (ProcessState::Compensating, &reason),
        "it is undone for the same reason"
    );
}

#[test]
fn rule_39_a_resubmit_of_another_step_ends_the_wait_too() {
    let longer = "max_failures = 1\non_exhausted = { wait = \"2h\", times = 1 }";
    let mut case = Case::new(&[("b", &[], longer), ("c", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    let late = case.reply_of("b", crate::machine::testing::done());
    case.expire_all();
    case.retry_all();
    case.rejected("c");
    assert!(case.step("b").waits_longer() && case.state() == ProcessState::Error);
    assert_eq!((case.resubmit(), case.requested()), (Verdict::Taken, vec!["b", "c"]));
    assert_eq!((case.take(&late), case.states().as_str()), (Verdict::Taken, "+>"), "a late result counts");
}
