//! Rules 7 and 14: the supervisor.

use std::collections::BTreeSet;

use crate::limits::UNWATCHED_MS_MAX;
use crate::machine::testing::{Case, done};
use crate::machine::{Dropped, Event, Verdict};
use crate::task::{Direction, ProcessState, StepState, Watch, reason};

#[test]
fn an_expired_step_is_counted_freed_and_waits_for_its_back_off() {
    let mut case = Case::chain();
    case.draw = 1;
    case.wake();
    case.expire_all();
    let step = case.step("a");
    assert_eq!((step.process_state, step.failure_count, step.attempt), (StepState::Pending, 1, 1));
    assert_eq!((&step.locked_by, step.complete_by), (&None, None));
    assert_eq!((step.not_before, case.wakes()), (Some(case.now.plus_ms(1_000)), vec![1_000]));
    assert_eq!(step.last_error.as_ref().map(|error| (&*error.code, error.attempt)), Some(("expired", 1)));
}

#[test]
fn nothing_expires_before_complete_by_plus_the_grace() {
    let mut case = Case::chain();
    case.wake();
    let deadline = case.step("a").complete_by.unwrap().plus_ms(case.workflow.supervision.grace_ms);
    case.task.watch_at = Some(case.now);
    case.now = deadline.minus_ms(1);
    case.sweep();
    assert_eq!((case.states().as_str(), case.step("a").failure_count), (">..", 0));
    case.now = deadline;
    case.sweep();
    assert_eq!((case.states().as_str(), case.step("a").failure_count), ("...", 1));
}

#[test]
fn an_expired_step_is_counted_once_by_two_supervisors() {
    let mut case = Case::chain();
    case.wake();
    case.now = case.task.watch_at.unwrap();
    let (first, second) = (case.decide(Event::Sweep), case.decide(Event::Sweep));
    assert_eq!(first.change.as_ref().map(|task| task.version), second.change.map(|task| task.version));
    case.task = first.change.unwrap();
    assert_eq!(case.sweep(), Verdict::Nothing, "the one that lost the write reads again and finds nothing due");
    assert_eq!(case.step("a").failure_count, 1);
}

#[test]
fn at_the_threshold_the_workflow_decides_hold() {
    let mut case = Case::chain();
    case.wake();
    for failures in 1..3 {
        case.expire_all();
        assert_eq!((case.state(), case.step("a").failure_count), (ProcessState::Processing, failures));
        case.retry_all();
    }
    case.expire_all();
    let why = case.task.reason.clone().unwrap();
    assert_eq!((case.state(), &*why.code, why.step.as_deref()), (ProcessState::Error, reason::EXHAUSTED, Some("a")));
    assert_eq!((case.step("a").attempt, case.notified()), (3, vec!["OrderNeedsOperator"]));
}

#[test]
fn at_the_threshold_the_workflow_decides_compensate_and_the_scheduler_claims_the_undo() {
    let mut case =
        Case::new(&[("a", &[], ""), ("b", &["a"], "max_failures = 1\non_exhausted = \"compensate\"")], false);
    case.wake();
    case.done("a");
    case.expire_all();
    assert_eq!((case.state(), case.requested()), (ProcessState::Compensating, vec![]));
    // The attempt expired 2 s after its deadline, and a call of it settles 30 s after that.
    assert_eq!(case.wakes(), [28_000]);
    case.retry_all();
    assert_eq!((case.requested(), case.step("b").direction), (vec!["b"], Direction::Undo));
}

#[test]
fn where_two_steps_are_exhausted_at_once_compensation_goes_before_hold() {
    let options = ["max_failures = 1", "max_failures = 1\non_exhausted = \"compensate\""];
    let mut case = Case::new(&[("a", &[], options[0]), ("b", &[], options[1])], false);
    case.wake();
    case.expire_all();
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Compensating, ".."));
    assert!(case.notified().is_empty());
    let mut case = Case::new(&[("a", &[], options[0]), ("b", &[], options[0])], false);
    case.wake();
    case.expire_all();
    assert_eq!(
        (case.states().as_str(), case.notified()),
        ("!!", vec!["OrderNeedsOperator"]),
        "one alert for one order"
    );
}

#[test]
fn a_task_that_lost_its_wake_is_woken_and_nothing_is_counted() {
    let mut case = Case::chain();
    case.next_sweep();
    assert_eq!((case.wakes(), case.step("a").failure_count, case.state()), (vec![0], 0, ProcessState::Pending));
    assert_eq!(case.sweep(), Verdict::Nothing, "not again at the next tick");
    case.next_sweep();
    assert_eq!(case.wakes(), [0]);
    case.wake();
    assert_eq!(case.states(), ">..");
}

#[test]
fn a_watch_that_is_not_due_or_an_index_that_lags_changes_nothing() {
    let mut case = Case::chain();
    case.wake();
    assert_eq!(case.sweep(), Verdict::Nothing);
    let mut case = Case::new(&[("a", &[], "")], false);
    case.wake();
    case.done("a");
    case.pass_ms(100_000);
    assert_eq!((case.sweep(), case.state()), (Verdict::Nothing, ProcessState::Processed));
}

#[test]
fn a_healthy_order_writes_the_watch_twice() {
    let mut case = Case::chain();
    let mut watches = vec![(case.task.watch, case.task.watch_at)];
    case.wake();
    watches.push((case.task.watch, case.task.watch_at));
    for name in ["a", "b", "c"] {
        case.pass_ms(300);
        case.done(name);
        watches.push((case.task.watch, case.task.watch_at));
    }
    watches.dedup();
    assert_eq!(watches.len(), 2, "{watches:?}");
    assert_eq!(watches.last(), Some(&(None, None)));
}

#[test]
fn an_early_watch_is_moved_to_the_real_deadline_and_never_beyond() {
    let mut case = Case::chain();
    case.wake();
    case.pass_ms(9_000);
    case.done("a");
    let real = case.step("b").complete_by.unwrap().plus_ms(case.workflow.supervision.grace_ms);
    assert!(case.task.watch_at.unwrap() < real, "starting b did not move it");
    case.next_sweep();
    assert_eq!((case.task.watch_at, case.step("b").failure_count), (Some(real), 0));
    assert!(case.effects.is_empty());
}

#[test]
fn an_expiry_that_races_a_success_has_one_winner() {
    let mut case = Case::chain();
    case.wake();
    let success = case.reply_of("a", done());
    case.now = case.task.watch_at.unwrap();
    let lost = case.decide(Event::Sweep);
    case.take(&success);
    assert_ne!(lost.change.unwrap(), case.task);
    case.sweep();
    assert_eq!((case.states().as_str(), case.step("a").failure_count), ("+>.", 0));
}

#[test]
fn an_instance_that_was_paused_past_a_re_pend_is_fenced() {
    let mut case = Case::chain();
    let paused = case.decide(Event::Wake { hops: 0, redelivered: false }).change.unwrap();
    case.wake();
    case.expire_all();
    assert!(paused.version <= case.task.version, "its write is conditional on a version that is gone");
}

#[test]
fn other_steps_of_a_held_order_may_end_but_nothing_new_starts() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &[], ""), ("c", &["b"], "")], false);
    case.wake();
    case.rejected("a");
    assert_eq!(case.done("b"), Verdict::Taken);
    assert_eq!((case.states().as_str(), case.state(), case.requested()), ("!+.", ProcessState::Error, vec![]));
    case.resubmit();
    assert_eq!((case.states().as_str(), case.requested()), (">+>", vec!["a", "c"]));
}

#[test]
fn an_attempt_left_behind_by_a_held_order_is_found_after_the_resubmit() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &[], "")], false);
    case.wake();
    case.rejected("a");
    case.all_sent();
    assert!(matches!(case.task.watch, Some(Watch::Error(_))));
    case.pass_ms(3_600_000);
    case.resubmit();
    assert!(case.task.watch_at.unwrap() <= case.now, "b expired long ago");
    case.sweep();
    assert_eq!((case.states().as_str(), case.step("b").failure_count), (">.", 1));
}

#[test]
fn a_late_success_of_a_step_that_was_given_up_is_dropped() {
    let mut case = Case::new(&[("a", &[], "max_failures = 1")], false);
    case.wake();
    let late = case.reply_of("a", done());
    case.expire_all();
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::Closed));
    case.resubmit();
    assert_eq!(case.take(&late), Verdict::Taken, "after the resubmit the step is open again");
    assert_eq!(case.state(), ProcessState::Processed);
}

#[test]
fn f41_a_supervisor_whose_clock_is_minutes_ahead_only_delays() {
    let mut case = Case::chain();
    case.workflow.supervision.doubt_after_ms = Some(90_000);
    case.wake();
    // Six minutes ahead: a claim that was just made looks long expired.
    case.pass_ms(360_000);
    assert_eq!((case.sweep(), case.states().as_str()), (Verdict::Taken, ">.."));
    assert_eq!((case.step("a").failure_count, case.step("a").doubted_at), (0, Some(case.now)));
    case.pass_ms(11_999);
    case.sweep();
    assert_eq!(case.states(), ">..", "it gets its whole time by the supervisor's clock");
    let mut answered = case.reply_of("a", done());
    answered.attempt = 1;
    case.take(&answered);
    assert_eq!((case.states().as_str(), case.step("a").failure_count), ("+>.", 0));
}

#[test]
fn f41_a_doubted_attempt_that_is_really_over_is_counted_later() {
    let mut case = Case::chain();
    case.workflow.supervision.doubt_after_ms = Some(90_000);
    case.wake();
    case.pass_ms(360_000);
    case.sweep();
    case.next_sweep();
    assert_eq!((case.step("a").failure_count, case.step("a").doubted_at), (1, None));
    assert!(case.task.watch.is_some());
}

#[test]
fn f41_a_supervisor_whose_clock_is_minutes_behind_comes_later() {
    let mut case = Case::chain();
    case.wake();
    let claimed_at = case.now;
    case.now = claimed_at.minus_ms(360_000).plus_ms(20_000);
    assert_eq!(case.sweep(), Verdict::Nothing);
    case.now = claimed_at.plus_ms(12_000);
    case.sweep();
    assert_eq!(case.step("a").failure_count, 1);
}

#[test]
fn f41_an_expiry_is_doubted_only_when_it_is_found_later_than_the_workflow_says() {
    let late = |ms: u64| {
        let mut case = Case::chain();
        case.workflow.supervision.doubt_after_ms = Some(90_000);
        case.wake();
        case.pass_ms(12_000 + ms);
        case.sweep();
        case.step("a").failure_count
    };
    assert_eq!((late(90_000), late(90_001)), (1, 0));
}

#[test]
fn of_steps_that_expire_side_by_side_each_is_woken_for_at_its_time() {
    let mut times = Vec::new();
    for draw in 0..64 {
        let mut case = Case::new(&[("a", &[], ""), ("b", &[], "")], false);
        case.wake();
        case.draw = draw;
        case.expire_all();
        let waits_ms = ["a", "b"].map(|name| case.now.ms_until(case.step(name).not_before.unwrap()));
        let [woken, waiting] = [case.wakes(), waits_ms.to_vec()].map(|ms| ms.into_iter().collect::<BTreeSet<_>>());
        assert_eq!(woken, waiting, "draw {draw}");
        times.push(waiting);
    }
    let of_both = times.iter().filter(|times| times.len() == 2);
    assert!(of_both.clone().any(|times| times.contains(&0)), "one may start at once and one has to wait: {times:?}");
}

#[test]
fn the_supervisor_comes_back_when_the_wake_after_a_back_off_would_be_lost() {
    let mut case = Case::chain();
    case.draw = u64::MAX;
    case.wake();
    case.expire_all();
    let not_before = case.step("a").not_before.unwrap();
    assert!(not_before > case.now);
    assert_eq!(case.task.watch_at, Some(not_before.plus_ms(case.workflow.supervision.wake_lost_after_ms)));
}

const HOUR_MS: u64 = 3_600_000;

/// Lets the supervisor look by a clock that was set back, and then when the order is due.
fn set_back_and_sweep(case: &mut Case) {
    case.now = case.now.minus_ms(2 * HOUR_MS);
    assert_eq!(case.sweep(), Verdict::Taken, "its watch lies too far ahead");
    assert!(case.now.ms_until(case.task.watch_at.unwrap()) <= UNWATCHED_MS_MAX);
}

#[test]
fn f71_an_attempt_whose_clock_was_set_back_has_its_whole_time_once_more_and_is_counted_then() {
    let mut case = Case::chain();
    case.wake();
    set_back_and_sweep(&mut case);
    let begun = case.now;
    assert_eq!((case.step("a").doubted_at, case.step("a").failure_count), (Some(begun), 0));
    case.next_sweep();
    assert_eq!((case.now, case.step("a").failure_count), (begun.plus_ms(12_000), 1), "10 s and the grace");
}

#[test]
fn f71_a_supervisor_whose_clock_is_hours_behind_takes_no_time_from_an_attempt() {
    let mut case = Case::chain();
    case.wake();
    let right = case.now;
    set_back_and_sweep(&mut case);
    case.now = right.plus_ms(5_000);
    case.sweep();
    assert_eq!((case.step("a").failure_count, case.states().as_str()), (0, ">.."));
}

#[test]
fn f71_a_back_off_that_lies_too_far_ahead_is_over() {
    for set_back_ms in [10 * 60_000, 2 * HOUR_MS] {
        let mut case = Case::chain();
        case.draw = 6;
        case.wake();
        case.expire_all();
        case.now = case.now.minus_ms(set_back_ms);
        case.wake();
        let is_claimed = case.step("a").attempt == 2;
        assert_eq!(
            is_claimed,
            set_back_ms == 2 * HOUR_MS,
            "no honest back-off is longer than a deferral: {set_back_ms}"
        );
    }
}

#[test]
fn f71_a_back_off_that_is_over_makes_no_second_wake_for_another_step() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], "")], false);
    case.draw = 7;
    case.wake();
    case.expire_all();
    assert!(case.step("a").not_before.is_some_and(|at| case.now < at), "its wake is in flight");
    case.task.steps[1].not_before = Some(case.now.plus_ms(2 * HOUR_MS));
    case.wake();
    assert_eq!((case.requested(), case.wakes()), (vec!["b"], vec![]));
}

#[test]
fn f71_an_undo_waits_for_the_calls_of_its_step_by_a_clock_that_was_set_back_too() {
    let mut case = Case::chain();
    case.wake();
    case.now = case.now.minus_ms(2 * HOUR_MS);
    case.cancel();
    // The attempt's time, and an hour in which calls settle with whatever setting.
    let settled = case.now.plus_ms(10_000 + HOUR_MS);
    assert_eq!((case.step("a").may_run_until, case.step("a").not_before), (Some(settled), Some(settled)));
    case.now = case.now.minus_ms(2 * HOUR_MS);
    case.wake();
    let settled = case.now.plus_ms(10_000 + HOUR_MS);
    assert_eq!((case.step("a").not_before, case.step("a").attempt), (Some(settled), 1), "set back again");
    case.now = settled;
    case.wake();
    assert_eq!((case.step("a").direction, case.step("a").attempt), (Direction::Undo, 2));
}

#[test]
fn f71_no_order_in_flight_goes_unwatched_for_longer_than_its_bound() {
    let mut case = Case::new(&[("a", &[], "horizon = \"12h\"")], false);
    case.workflow.steps[0].complete_within_ms = 6 * HOUR_MS;
    case.wake();
    let written = case.task.version;
    while case.step("a").failure_count == 0 {
        assert!(case.now.ms_until(case.task.watch_at.unwrap()) <= UNWATCHED_MS_MAX);
        case.next_sweep();
    }
    assert_eq!(case.task.version - written, 18 + 1, "one write in 20 minutes, and the end");
}
