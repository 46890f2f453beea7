//! Rule 36: the looks at a call that was taken on.

use std::sync::Arc;

use crate::json::Json;
use crate::limits::PATH_CHARS_MAX;
use crate::machine::testing::Case;
use crate::machine::{Dropped, Verdict, Wanted, look, request, wanted};
use crate::message::{Acceptance, Deferral, Outcome, Request};
use crate::task::{Poll, ProcessState, StepState, Watch};
use crate::template::PollPath;

const MINUTE_MS: u64 = 60_000;
const WITHIN_MS: u64 = 10 * MINUTE_MS;
const POLL: &str = "wait_within = \"10m\"\nkeep = { ID = \"/id\" }\n\
    poll = { path = \"transfers/{/id}\", every = \"3m\", answers = [{ status = 200, when = '/s == 1', means = \"no\" }] }";

fn accepted(case: &mut Case, poll: Option<&str>) -> Verdict {
    let reply = case.reply_of("a", Outcome::Accepted(Acceptance { poll: poll.map(Arc::from) }));
    case.take(&reply)
}

/// The result of a is awaited, and its state is asked for.
fn awaiting(more: &str) -> Case {
    let mut case = Case::new(&[("a", &[], &format!("{POLL}\n{more}")), ("b", &["a"], "")], false);
    case.wake();
    accepted(&mut case, Some("transfers/7"));
    case
}

/// The request of the look that the last turn sends.
fn looked(case: &Case) -> Request {
    assert_eq!(case.looked_at(), ["a"]);
    look(&case.task, &case.workflow, 0, case.now, 1).unwrap().1
}

/// The times of the looks from now on, in milliseconds, until the supervisor counts the failure.
fn looks(case: &mut Case) -> Vec<u64> {
    let (began, mut looks) = (case.now, Vec::new());
    for _ in 0..20 {
        if case.step("a").failure_count > 0 {
            return looks;
        }
        case.now = case.task.watch_at.unwrap().max(case.now);
        case.sweep();
        looks.extend(case.looked_at().iter().map(|_| began.ms_until(case.now)));
    }
    panic!("the wait does not end: {looks:?}")
}

#[test]
fn rule_36_the_state_is_asked_in_turns_and_once_more_at_the_end_of_the_wait() {
    let mut case = awaiting("");
    assert_eq!(looks(&mut case), [3, 6, 9, 10].map(|minutes| minutes * MINUTE_MS));
    let step = case.step("a");
    assert_eq!((step.attempt, step.failure_count, &step.poll), (1, 1, &None));
}

#[test]
fn rule_36_a_look_is_no_attempt_and_carries_nothing_of_the_order() {
    let mut case = awaiting("");
    case.pass_ms(3 * MINUTE_MS);
    let before = case.step("a").clone();
    assert_eq!(case.sweep(), Verdict::Taken);
    let request = looked(&case);
    assert_eq!((request.attempt, &*request.look.as_ref().unwrap().path), (1, "transfers/7"));
    assert_eq!((request.order.text(), request.outputs.len(), request.wait_within_ms), ("{}", 0, None));
    assert_eq!((request.complete_by, request.budget_ms), (case.now.plus_ms(10_000), 10_000));
    assert_eq!((request.look.as_ref().unwrap().answers.len(), request.keep.is_some()), (1, true));
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(crate::message::decode::<Request>(text.as_bytes()), Ok(request));
    let after = case.step("a").clone();
    assert_eq!((after.attempt, after.failure_count, after.waits_until), (before.attempt, 0, before.waits_until));
    assert!(matches!(case.task.watch, Some(Watch::Due(_))));
    assert_eq!(case.task.watch_at, Some(case.now.plus_ms(3 * MINUTE_MS)));
}

#[test]
fn rule_36_no_wait_ends_as_a_failure_before_its_last_look_however_late_the_supervisor_comes() {
    let mut case = awaiting("");
    case.pass_ms(24 * 60 * MINUTE_MS);
    case.sweep();
    assert_eq!((case.looked_at(), case.step("a").failure_count), (vec!["a"], 0));
    assert_eq!(case.step("a").waits_until, Some(case.now.plus_ms(10_000)));
    case.pass_ms(11_999);
    assert_eq!(case.sweep(), Verdict::Nothing);
    case.pass_ms(1);
    case.sweep();
    assert_eq!((case.looked_at(), case.step("a").failure_count), (vec![], 1));
    let mut case = awaiting("");
    case.pass_ms(24 * 60 * MINUTE_MS);
    case.sweep();
    assert_eq!((case.done("a"), case.states().as_str()), (Verdict::Taken, "+>"), "the last look brings it");
    let doubted = Case::with(&[("a", &[], POLL)], "supervision.doubt_after = \"90s\"", false);
    let mut case = doubted;
    case.wake();
    accepted(&mut case, Some("t"));
    case.pass_ms(60 * MINUTE_MS);
    case.sweep();
    assert_eq!((case.looked_at(), case.step("a").waits_until < Some(case.now)), (vec!["a"], true));
    assert_eq!(looks(&mut case), [3, 6, 9, 10].map(|minutes| minutes * MINUTE_MS), "a wrong clock ends no wait");
}

#[test]
fn rule_36_a_look_that_is_put_off_is_made_later_and_the_wait_ends_no_sooner() {
    let put_off = |case: &mut Case, wait_ms| {
        let reply = case.reply_of("a", Outcome::Deferred(Deferral::after(wait_ms)));
        case.take(&reply)
    };
    let mut case = awaiting("");
    let end = case.step("a").waits_until;
    case.pass_ms(3 * MINUTE_MS);
    case.sweep();
    assert_eq!(put_off(&mut case, MINUTE_MS), Verdict::Taken);
    let at = case.now.plus_ms(MINUTE_MS);
    assert_eq!((case.step("a").poll.as_ref().unwrap().at, case.step("a").waits_until), (Some(at), end));
    assert!(case.task.watch_at <= Some(at));
    // The last one is not lost.
    case.pass_ms(WITHIN_MS);
    case.sweep();
    assert_eq!((case.looked_at(), case.step("a").poll.as_ref().unwrap().at), (vec!["a"], None));
    put_off(&mut case, 5 * MINUTE_MS);
    assert_eq!(case.step("a").waits_until, Some(case.now.plus_ms(5 * MINUTE_MS + 10_000)));
    assert_eq!(case.step("a").failure_count, 0);
    let waits = looks(&mut case);
    assert_eq!(waits, [5 * MINUTE_MS, 5 * MINUTE_MS + 10_000]);
    assert_eq!((case.step("a").attempt, case.step("a").failure_count), (1, 1));
}

#[test]
fn rule_36_no_look_is_put_off_beyond_the_horizon_nor_without_a_poll() {
    let mut case = awaiting("horizon = \"20m\"");
    let horizon = case.step("a").started_at.unwrap().plus_ms(20 * MINUTE_MS);
    case.pass_ms(19 * MINUTE_MS);
    case.sweep();
    let reply = case.reply_of("a", Outcome::Deferred(Deferral::after(15 * MINUTE_MS)));
    assert_eq!(case.take(&reply), Verdict::Taken);
    assert_eq!(case.step("a").waits_until, Some(horizon));
    case.pass_ms(MINUTE_MS);
    case.sweep();
    assert_eq!((case.take(&reply), case.looked_at()), (Verdict::Dropped(Dropped::TakenOn), vec![]));
    case.pass_ms(MINUTE_MS);
    case.sweep();
    assert_eq!(case.step("a").failure_count, 1);
}

#[test]
fn rule_36_a_look_has_its_turn_and_the_last_one_the_time_of_an_attempt() {
    let mut case = Case::new(&[("a", &[], &POLL.replace("3m", "5s"))], false);
    case.wake();
    accepted(&mut case, Some("t"));
    case.pass_ms(5_000);
    case.sweep();
    assert_eq!(looked(&case).budget_ms, 5_000);
    case.pass_ms(WITHIN_MS);
    case.sweep();
    assert_eq!((looked(&case).budget_ms, looked(&case).complete_by), (10_000, case.now.plus_ms(10_000)));
}

#[test]
fn rule_36_a_heartbeat_makes_the_wait_longer_and_a_look_does_not() {
    let mut case = awaiting("");
    let began = case.now;
    case.pass_ms(9 * MINUTE_MS);
    accepted(&mut case, None);
    assert_eq!(case.step("a").waits_until, Some(began.plus_ms(9 * MINUTE_MS + WITHIN_MS)));
    assert_eq!(case.step("a").poll, Some(Poll { path: "transfers/7".into(), at: Some(began.plus_ms(3 * MINUTE_MS)) }));
    // After the last look too.
    case.pass_ms(WITHIN_MS);
    case.sweep();
    assert_eq!(case.step("a").poll.as_ref().unwrap().at, None);
    accepted(&mut case, Some("transfers/8"));
    let poll = Poll { path: "transfers/8".into(), at: Some(case.now.plus_ms(3 * MINUTE_MS)) };
    assert_eq!(case.step("a").poll, Some(poll));
}

#[test]
fn rule_36_a_step_without_a_path_is_told_its_result() {
    for path in [None, Some(""), Some("a b"), Some("caf\u{e9}"), Some(&*"x".repeat(PATH_CHARS_MAX + 1))] {
        let mut case = Case::new(&[("a", &[], POLL)], false);
        case.wake();
        accepted(&mut case, path);
        assert_eq!((case.step("a").poll.as_ref(), case.step("a").is_awaited()), (None, true), "{path:?}");
        assert_eq!(looks(&mut case), [0; 0]);
    }
    let mut case = Case::new(&[("a", &[], "wait_within = \"10m\"")], false);
    case.wake();
    accepted(&mut case, Some("transfers/7"));
    assert_eq!(case.step("a").poll, None, "the workflow asks for nothing");
}

#[test]
fn rule_36_an_order_that_turned_round_is_not_asked_about_any_more() {
    let mut case = awaiting("");
    let request = look(&case.task, &case.workflow, 0, case.now, 1).unwrap().1;
    case.cancel();
    // Its undo still waits for the call.
    assert_eq!((case.step("a").attempt, wanted(&case.task, &request)), (1, Wanted::Over));
    let mut case = awaiting("");
    case.pass_ms(3 * MINUTE_MS);
    case.sweep();
    let request = looked(&case);
    assert_eq!(wanted(&case.task, &request), Wanted::Yes);
    let call = Request { look: None, ..request.clone() };
    assert_eq!(wanted(&case.task, &call), Wanted::Over);
    case.pause();
    assert_eq!(wanted(&case.task, &request), Wanted::Yes, "it has no effect");
    case.resume();
    case.cancel();
    assert_eq!((wanted(&case.task, &request), &case.step("a").poll), (Wanted::Over, &None));
    case.pass_ms(60_000);
    case.wake();
    assert_eq!((case.state(), case.step("a").process_state), (ProcessState::Compensating, StepState::Processing));
    accepted(&mut case, Some("transfers/7"));
    assert_eq!((case.step("a").is_awaited(), &case.step("a").poll), (true, &None), "nobody asks about an undo");
    assert_eq!(wanted(&case.task, &request), Wanted::Over);
}

#[test]
fn rule_23_a_look_that_a_wrong_clock_set_too_far_ahead_is_made_now() {
    let mut case = awaiting("");
    case.task.steps[0].poll.as_mut().unwrap().at = Some(case.now.plus_ms(100 * MINUTE_MS));
    case.task.watch_at = Some(case.now);
    case.sweep();
    assert_eq!(case.looked_at(), ["a"]);
}

#[test]
fn rule_23_a_wait_that_was_doubted_becomes_longer_beside_the_end_that_a_wrong_clock_wrote() {
    let doubted = || {
        let mut case = awaiting("");
        case.task.steps[0].waits_until = Some(case.now.plus_ms(100 * MINUTE_MS));
        case.task.watch_at = Some(case.now);
        case.sweep();
        assert_eq!(case.step("a").doubted_at, Some(case.now));
        case.pass_ms(9 * MINUTE_MS);
        case.sweep();
        case
    };
    let mut case = doubted();
    assert_eq!(looks(&mut case), [MINUTE_MS]);
    // The look is deferred, and is the last one.
    let mut case = doubted();
    let reply = case.reply_of("a", Outcome::Deferred(Deferral::after(5 * MINUTE_MS)));
    case.take(&reply);
    assert_eq!(looks(&mut case), [5 * MINUTE_MS, 5 * MINUTE_MS + 10_000]);
    // A heartbeat.
    let mut case = doubted();
    accepted(&mut case, None);
    assert_eq!(looks(&mut case).last(), Some(&WITHIN_MS));
    // It comes late, and its answer has the time of an attempt.
    let mut case = doubted();
    case.pass_ms(3 * MINUTE_MS);
    case.sweep();
    assert_eq!(case.looked_at(), ["a"]);
    case.pass_ms(11_999);
    assert_eq!((case.sweep(), case.step("a").failure_count), (Verdict::Nothing, 0));
    // A wrong clock's end that nobody doubted yet.
    let mut case = awaiting("");
    case.task.steps[0].waits_until = Some(case.now.plus_ms(100 * MINUTE_MS));
    accepted(&mut case, None);
    assert_eq!(looks(&mut case).last(), Some(&WITHIN_MS));
}

#[test]
fn rule_23_a_heartbeat_under_a_slow_clock_ends_no_wait() {
    let mut case = awaiting("");
    let right = case.now;
    let end = case.step("a").waits_until;
    case.now = right.minus_ms(24 * 60 * MINUTE_MS);
    case.task.watch_at = Some(case.now);
    case.sweep();
    case.pass_ms(MINUTE_MS);
    accepted(&mut case, None);
    assert!(case.step("a").doubted_at > Some(case.now.minus_ms(1)));
    case.now = right.plus_ms(MINUTE_MS);
    assert_eq!((case.step("a").waits_until, looks(&mut case).last()), (end, Some(&(9 * MINUTE_MS))));
}

#[test]
fn rule_46_an_erased_order_keeps_no_path() {
    let mut case = awaiting("");
    case.task.erase();
    assert_eq!(case.step("a").poll, None);
}

#[test]
fn rule_36_the_scheduler_fills_in_the_order_and_the_agent_the_answer() {
    let more = "wait_within = \"1h\"\nsend = { x = 1 }\nundo = \"none\"\nkeep = \"/x\"\npoll.path = \"of/{/OrderID}/{/id}?n={/Order/Total}\"";
    let mut case = Case::new(&[("a", &[], more)], false);
    case.wake();
    let sent = request(&case.task, &case.workflow, 0, &case.order(), case.now, 0).unwrap().unwrap().1;
    let expected = format!("\"of/{}/{{/id}}?n=1\"", case.task.order_id);
    assert_eq!(serde_json::to_string(&sent.poll).unwrap(), expected);
    assert_eq!((sent.order.text(), sent.body), ("{}", Json::parse(b"{\"x\":1}", 9).ok()));
    let poll: PollPath = serde_json::from_str(&expected).unwrap();
    assert_eq!(sent.poll, Some(poll));
    let mut case =
        Case::new(&[("a", &[], "wait_within = \"1h\"\nkeep = \"/x\"\npoll.path = \"{/Order/None}\"")], false);
    case.wake();
    let failed = request(&case.task, &case.workflow, 0, &case.order(), case.now, 0).unwrap().unwrap_err();
    assert!(matches!(failed.outcome, Outcome::Failed(failure) if failure.message.starts_with("`poll.path` needs")));
}
