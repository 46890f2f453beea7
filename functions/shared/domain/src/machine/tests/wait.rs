//! Rules 35 and 36: long waits, before a step and for its result.

use crate::json::Json;
use crate::limits::{HEARTBEAT_MS_MIN, SHARDS, UNWATCHED_MS_MAX, WAIT_MS_MAX};
use crate::machine::testing::{Case, done};
use crate::machine::{DeadLetterSubject, Dropped, Event, Verdict};
use crate::message::{Acceptance, Outcome};
use crate::task::{Direction, NoticeKind, ProcessState, StepError, Task, Watch, What};
use crate::time::Timestamp;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// a, then b, which waits for its result for two days.
fn patient(more: &str) -> Case {
    let b = format!("wait_within = \"2d\"\nhorizon = \"30d\"\n{more}");
    Case::new(&[("a", &[], ""), ("b", &["a"], &b), ("c", &["b"], "")], false)
}

fn accepted(case: &mut Case) -> Verdict {
    let reply = case.reply_of("b", Outcome::Accepted(Acceptance::default()));
    case.take(&reply)
}

/// The result of b is awaited, and the supervisor has seen it.
fn awaiting(more: &str) -> Case {
    let mut case = patient(more);
    case.wake();
    case.done("a");
    assert_eq!(accepted(&mut case), Verdict::Taken);
    case
}

/// The time of the supervisor's next look, if the task does nothing but wait.
fn look_after_wait(case: &Case) -> Option<Timestamp> {
    matches!(case.task.watch, Some(Watch::Wait(_))).then_some(case.task.watch_at).flatten()
}

#[test]
fn rule_35_a_step_waits_before_its_first_attempt_and_before_no_other() {
    let mut case = Case::new(&[("a", &[], "wait = \"1h\"")], false);
    case.wake();
    case.pass_ms(HOUR_MS);
    case.wake();
    for attempt in 1..=3 {
        assert_eq!((case.step("a").attempt, case.requested()), (attempt, vec!["a"]));
        case.expire_all();
        case.retry_all();
    }
    let waits = case.task.history.iter().filter(|line| matches!(line.what, What::Waiting(_))).count();
    assert_eq!(waits, 1);
}

#[test]
fn rule_10_of_two_waits_only_the_newest_is_told_and_nothing_else_is_forgotten() {
    let waits = "wait_within = \"2d\"";
    let mut case = Case::new(&[("a", &[], waits), ("b", &["a"], waits)], true);
    case.wake();
    for step in ["a", "b"] {
        case.take(&case.reply_of(step, Outcome::Accepted(Acceptance::default())));
        let owed = |kind| case.task.unsent.iter().filter(move |notice| notice.kind == kind);
        let waiting: Vec<u64> = owed(NoticeKind::OrderWaiting).map(|notice| notice.version).collect();
        assert_eq!((waiting, owed(NoticeKind::OrderReceived).count()), (vec![case.task.version], 1));
        case.done(step);
    }
}

#[test]
fn rule_10_a_wait_whose_result_came_in_the_same_write_is_not_told() {
    let waits = "wait_within = \"2d\"";
    let told = |ends: &[&str]| {
        let mut case = Case::new(&[("a", &[], waits), ("b", &[], waits)], true);
        case.wake();
        let accepted = |step| case.reply_of(step, Outcome::Accepted(Acceptance::default()));
        let is_done = |step: &&str| case.reply_of(step, done());
        let replies: Vec<_> = ["a", "b"].map(accepted).into_iter().chain(ends.iter().map(is_done)).collect();
        let events: Vec<_> = replies.iter().map(|reply| Event::Reply { reply, redelivered: false }).collect();
        case.apply_together(&events);
        let is_owed = case.task.unsent.iter().any(|notice| notice.kind == NoticeKind::OrderWaiting);
        assert_eq!(case.notified().contains(&"OrderWaiting"), is_owed);
        is_owed
    };
    assert_eq!([told(&[]), told(&["a"]), told(&["a", "b"])], [true, true, false]);
}

#[test]
fn rule_36_a_result_is_awaited_without_a_message_until_its_time_is_over() {
    let mut case = awaiting("");
    let until = case.now.plus_ms(2 * DAY_MS);
    assert_eq!((case.step("b").waits_until, case.effects.len()), (Some(until), 0));
    assert_eq!((case.wake_again(), case.effects.len()), (Verdict::Nothing, 0), "no request is sent again");
    assert_eq!(case.next_sweep(), Verdict::Taken, "the first look was planned before");
    assert_eq!((look_after_wait(&case), case.effects.len()), (Some(until.plus_ms(2_000)), 0));
    case.now = until.plus_ms(1_999);
    assert_eq!(case.sweep(), Verdict::Nothing);
    assert_eq!((case.done("b"), case.requested()), (Verdict::Taken, vec!["c"]));
    assert!(matches!(case.task.watch, Some(Watch::Due(_))), "the next step is looked after as usual");
}

#[test]
fn rule_36_a_result_that_does_not_come_is_asked_for_under_the_same_key_and_counted() {
    let mut case = awaiting("");
    case.next_sweep();
    assert_eq!(case.next_sweep(), Verdict::Taken);
    let error = case.step("b").last_error.clone().unwrap();
    assert_eq!((&*error.code, &*error.message), (StepError::EXPIRED, "no result within 2d"));
    assert_eq!((case.states().as_str(), case.step("b").failure_count, case.step("b").waits_until), ("+..", 1, None));
    case.retry_all();
    assert_eq!((case.requested(), case.step("b").attempt), (vec!["b"], 2));
    assert_eq!(accepted(&mut case), Verdict::Taken);
    let early = case.reply_of("b", crate::machine::testing::failed());
    let late = crate::message::Reply { attempt: 1, ..early.clone() };
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::StaleFailure), "a no counts from the present attempt only");
    assert_eq!((case.take(&early), case.state()), (Verdict::Taken, ProcessState::Compensating));
}

#[test]
fn rule_36_a_result_may_come_before_the_service_has_answered() {
    let mut case = patient("");
    case.wake();
    case.done("a");
    case.done("b");
    let accepted =
        crate::message::Reply { step: "b".into(), ..case.reply_of("b", Outcome::Accepted(Acceptance::default())) };
    assert_eq!(case.take(&accepted), Verdict::Dropped(Dropped::Closed));
}

#[test]
fn rule_36_a_heartbeat_extends_the_wait_and_one_that_adds_nothing_is_not_written() {
    let mut case = awaiting("");
    case.next_sweep();
    let version = case.task.version;
    case.now = case.now.plus_ms(HEARTBEAT_MS_MIN / 2);
    let first = case.step("b").waits_until.unwrap();
    case.now = first.minus_ms(2 * DAY_MS).plus_ms(HEARTBEAT_MS_MIN - 1);
    assert_eq!((accepted(&mut case), case.task.version), (Verdict::Nothing, version));
    case.pass_ms(DAY_MS);
    assert_eq!((accepted(&mut case), case.happened.len()), (Verdict::Taken, 0));
    assert_eq!(case.step("b").waits_until, Some(case.now.plus_ms(2 * DAY_MS)));
    assert_eq!(case.next_sweep(), Verdict::Taken, "found at the old time, and left alone");
    assert_eq!((case.states().as_str(), look_after_wait(&case).is_some()), ("+>.", true));
}

#[test]
fn rule_36_a_result_counts_in_error_and_a_cancelled_order_waits_for_no_result() {
    let mut case = Case::new(
        &[("a", &[], "on_rejected = \"hold\""), ("b", &[], "wait_within = \"2d\""), ("c", &["b"], "")],
        false,
    );
    case.wake();
    accepted(&mut case);
    case.rejected("a");
    assert_eq!(case.state(), ProcessState::Error);
    assert_eq!((case.done("b"), case.states().as_str()), (Verdict::Taken, "!+."));

    let mut case = awaiting("");
    case.pass_ms(HOUR_MS);
    case.cancel();
    assert_eq!((case.step("b").direction, case.step("b").waits_until), (Direction::Undo, None));
    assert_eq!(case.requested(), ["b"], "its calls have settled long ago");
    let late =
        crate::message::Reply { direction: Direction::Forward, ..case.reply_of("b", crate::machine::testing::done()) };
    assert_eq!(case.take(&late), Verdict::Dropped(Dropped::OtherDirection));
}

#[test]
fn rule_36_an_undo_may_be_taken_on_too() {
    let mut case = awaiting("");
    case.pass_ms(HOUR_MS);
    case.cancel();
    assert_eq!(accepted(&mut case), Verdict::Taken);
    assert_eq!(case.step("b").waits_until, Some(case.now.plus_ms(2 * DAY_MS)));
    assert_eq!((case.done("b"), case.requested()), (Verdict::Taken, vec!["a"]));
}

#[test]
fn rule_36_the_message_of_a_result_that_could_not_be_handled_stops_the_order_also_after_the_calls_deadline() {
    let mut case = awaiting("");
    case.pass_ms(HOUR_MS);
    let dead_letter = DeadLetterSubject::Attempt { step: "b".into(), direction: Direction::Forward, attempt: 1 };
    assert_eq!(case.apply(Event::DeadLetter { dead_letter: &dead_letter }), Verdict::Taken);
    assert_eq!(case.state(), ProcessState::Error);
}

#[test]
fn rule_36_a_wait_that_a_wrong_clock_made_too_long_gets_its_time_once_more() {
    let mut case = awaiting("");
    case.task.steps[1].waits_until = Some(case.now.plus_ms(10 * DAY_MS));
    case.task.watch_at = Some(case.now);
    assert_eq!(case.sweep(), Verdict::Taken);
    assert!(case.step("b").doubted_at.is_some());
    let again = case.now.plus_ms(2 * DAY_MS + 2_000);
    assert_eq!(case.task.watch_at, Some(again));
    case.now = again;
    assert_eq!((case.sweep(), case.step("b").failure_count), (Verdict::Taken, 1));
}

#[test]
fn rule_35_a_step_waits_from_the_moment_at_which_it_is_ready_and_no_message_does() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "wait = \"2d\""), ("c", &["a"], "")], false);
    case.wake();
    assert_eq!((case.done("a"), case.requested(), case.wakes().len()), (Verdict::Taken, vec!["c"], 0));
    let until = case.now.plus_ms(2 * DAY_MS);
    assert_eq!(case.step("b").waits_until, Some(until));
    assert_eq!(case.words(), ["a processed #1", "b waits", "c claimed #1"]);
    case.done("c");
    case.next_sweep();
    assert_eq!((look_after_wait(&case), case.effects.len()), (Some(until), 0));
    case.now = until.minus_ms(1);
    assert_eq!((case.wake(), case.states().as_str()), (Verdict::Nothing, "+.+"));
    assert_eq!((case.next_sweep(), case.wakes()), (Verdict::Taken, vec![0]));
    assert_eq!((case.wake(), case.requested(), case.step("b").waits_until), (Verdict::Taken, vec!["b"], None));
}

#[test]
fn rule_35_a_wait_begins_once_and_ends_with_its_order() {
    let mut case = Case::new(&[("a", &[], "wait = \"1h\"")], false);
    case.wake();
    let until = case.step("a").waits_until;
    case.pass_ms(1_000);
    assert_eq!((case.wake(), case.step("a").waits_until), (Verdict::Nothing, until));
    case.pause();
    assert!(matches!(case.task.watch, Some(Watch::Error(_))));
    case.resume();
    assert_eq!(case.step("a").waits_until, until, "a pause does not lengthen it");
    assert_eq!((case.cancel(), case.state()), (Verdict::Taken, ProcessState::Compensated));
}

#[test]
fn rule_35_a_wait_goes_on_while_its_order_is_paused_and_begins_then_too() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "wait = \"1d\"")], false);
    case.wake();
    case.pause();
    case.done("a");
    let until = case.now.plus_ms(DAY_MS);
    assert_eq!((case.step("b").waits_until, case.states().as_str()), (Some(until), "+."));
    case.pass_ms(2 * DAY_MS);
    case.resume();
    assert_eq!(case.requested(), ["b"]);
}

#[test]
fn rule_35_the_wait_of_a_step_comes_beside_the_time_that_its_order_names() {
    let wait_and_time = "wait = \"2d\"\nnot_before = \"/Order/On\"";
    for (on, days) in [(-5_i64, 2), (1, 2), (3, 3)] {
        let mut case = Case::new(&[("a", &[], wait_and_time)], false);
        let mut order = case.order();
        let at = Timestamp::from_epoch_ms(case.now.epoch_ms() + on * DAY_MS.cast_signed());
        order.document = Json::document(format!("{{\"On\":\"{at}\"}}").as_bytes()).unwrap();
        case.task = Task::new(&order, &case.workflow, SHARDS, 1);
        case.wake();
        assert_eq!(case.step("a").waits_until, Some(case.now.plus_ms(days * DAY_MS)), "{on}");
        case.pass_ms(HOUR_MS);
        case.wake();
        assert_eq!(case.step("a").waits_until, Some(case.now.plus_ms(days * DAY_MS - HOUR_MS)), "it begins once");
    }
}

#[test]
fn rule_23_a_wait_that_a_wrong_clock_made_too_long_begins_anew_at_the_next_look() {
    let mut case = Case::new(&[("a", &[], "wait = \"1h\"")], false);
    case.wake();
    let far = case.now.plus_ms(4 * WAIT_MS_MAX);
    case.task.steps[0].waits_until = Some(far);
    (case.task.watch, case.task.watch_at) = (case.task.watch.map(|watch| Watch::Wait(watch.shard())), Some(far));
    let until = case.now.plus_ms(HOUR_MS);
    assert_eq!((case.sweep(), case.step("a").waits_until), (Verdict::Taken, Some(until)));
    assert!(case.requested().is_empty() && case.task.watch_at <= Some(until.plus_ms(UNWATCHED_MS_MAX)));
}

#[test]
fn f71_a_wait_that_began_while_the_clock_was_a_day_ahead_lasts_no_longer_than_its_own_length() {
    let own = "wait = \"25s\"";
    let with_time = "wait = \"25s\"\nnot_before = \"/Order/On\"";
    for (keys, on, is_own) in [(own, None, true), (with_time, None, true), (with_time, Some(3), false)] {
        let mut case = Case::new(&[("a", &[], keys)], false);
        let right = case.now;
        case.now = right.plus_ms(DAY_MS);
        if let Some(days) = on {
            let mut order = case.order();
            let at = right.plus_ms(days * DAY_MS);
            order.document = Json::document(format!("{{\"On\":\"{at}\"}}").as_bytes()).unwrap();
            case.task = Task::new(&order, &case.workflow, SHARDS, 1);
        }
        case.wake();
        let written = case.step("a").waits_until;
        (case.now, case.task.watch_at) = (right, written);
        let looked = case.sweep();
        let until = if is_own { Some(right.plus_ms(25_000)) } else { written };
        assert_eq!((looked == Verdict::Taken, case.step("a").waits_until), (is_own, until), "{keys} {on:?}");
    }
}

#[test]
fn f71_a_result_is_awaited_once_more_where_a_clock_that_was_a_day_ahead_began_the_wait() {
    let mut case = Case::new(&[("a", &[], "wait_within = \"25s\"")], false);
    let right = case.now;
    case.now = right.plus_ms(DAY_MS);
    case.wake();
    let reply = case.reply_of("a", Outcome::Accepted(Acceptance::default()));
    case.take(&reply);
    (case.now, case.task.watch_at) = (right, case.step("a").waits_until);
    assert_eq!((case.sweep(), case.step("a").doubted_at), (Verdict::Taken, Some(right)));
    case.pass_ms(30_000);
    case.sweep();
    assert_eq!((case.states().as_str(), case.step("a").failure_count), (".", 1), "it expires in its own time");
}

#[test]
fn rule_23_a_clock_that_is_minutes_ahead_ends_no_long_wait() {
    let longest = "wait = \"400d\"\nwait_within = \"400d\"";
    let mut case = Case::new(&[("a", &[], longest)], false);
    case.wake();
    let until = case.step("a").waits_until;
    case.now = case.now.minus_ms(HOUR_MS);
    case.task.watch_at = Some(case.now);
    assert_eq!((case.sweep(), case.step("a").waits_until), (Verdict::Taken, until));
    assert!(case.wakes().is_empty() && case.requested().is_empty());

    let mut case = awaiting("");
    case.now = case.now.minus_ms(HOUR_MS);
    case.task.watch_at = Some(case.now);
    assert_eq!((case.sweep(), case.step("b").doubted_at), (Verdict::Taken, None));
    case.pass_ms(2 * HOUR_MS);
    assert_eq!(case.states().as_str(), "+>.");
}

#[test]
fn rule_36_a_duplicate_of_the_request_gives_a_call_that_was_taken_on_not_back() {
    let mut case = awaiting("");
    let deferred = case.reply_of("b", Outcome::Deferred(crate::message::Deferral::after(1_000)));
    assert_eq!(case.take(&deferred), Verdict::Dropped(Dropped::TakenOn));
    case.rejected("b");
    assert_eq!(case.state(), ProcessState::Compensating, "the service's only no counts");
}

#[test]
fn rule_14_an_order_with_another_attempt_in_flight_is_looked_at_as_before_and_a_short_wait_too() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], "wait_within = \"2d\"")], false);
    case.wake();
    let deadline = case.now.plus_ms(12_000);
    accepted(&mut case);
    case.pass_ms(1_000);
    case.sweep();
    assert_eq!((case.task.watch_at, matches!(case.task.watch, Some(Watch::Due(_)))), (Some(deadline), true));

    let mut case = Case::new(&[("a", &[], "wait = \"19m\"")], false);
    case.wake();
    case.next_sweep();
    assert!(
        matches!(case.task.watch, Some(Watch::Due(_)))
            && case.task.watch_at <= Some(case.now.plus_ms(UNWATCHED_MS_MAX))
    );
}

#[test]
fn rule_35_a_step_that_does_not_apply_does_not_wait_and_the_one_after_it_does() {
    let b = "when = \"/Outputs/a/Id == 8\"\nwait = \"1h\"";
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], b), ("c", &["b"], "wait = \"2h\"")], false);
    case.wake();
    case.done("a");
    assert_eq!((case.states().as_str(), case.step("b").waits_until), ("+-.", None));
    assert_eq!(case.step("c").waits_until, Some(case.now.plus_ms(2 * HOUR_MS)));
}
