//! Rules 1 to 4: claim, commit and send, nonce, idempotency key.

use crate::json::Json;
use crate::machine::testing::{Case, done};
use crate::machine::{Dropped, Event, Verdict, request};
use crate::order::Order;
use crate::task::{ProcessState, StepState, Task};
use crate::workflow::Workflow;

// ---- rule 1: claim

#[test]
fn a_claim_sets_holder_deadline_state_and_attempt_in_one_version() {
    let mut case = Case::chain();
    case.wake();
    let step = case.step("a");
    assert_eq!((step.process_state, step.attempt), (StepState::Processing, 1));
    assert_eq!(step.locked_by.as_deref(), Some("scheduler-1"));
    assert_eq!(step.complete_by, Some(case.now.plus_ms(10_000)));
    assert_eq!((case.task.version, case.state(), case.requested()), (2, ProcessState::Processing, vec!["a"]));
}

#[test]
fn completing_a_step_and_claiming_the_next_is_one_write() {
    let mut case = Case::chain();
    case.wake();
    case.done("a");
    assert_eq!((case.states().as_str(), case.task.version, case.requested()), ("+>.", 3, vec!["b"]));
}

#[test]
fn a_step_is_not_claimed_twice() {
    let mut case = Case::chain();
    case.wake();
    assert_eq!(case.wake(), Verdict::Nothing);
    assert!(case.effects.is_empty());
}

#[test]
fn steps_without_a_path_between_them_run_side_by_side_and_the_join_waits_for_both() {
    let mut case = Case::diamond();
    case.wake();
    case.done("a");
    assert_eq!((case.states().as_str(), case.requested()), ("+>>.", vec!["b", "c"]));
    case.done("c");
    assert_eq!((case.states().as_str(), case.requested()), ("+>+.", vec![]));
    case.done("b");
    assert_eq!((case.states().as_str(), case.requested()), ("+++>", vec!["d"]));
    case.done("d");
    assert_eq!(case.state(), ProcessState::Processed);
}

#[test]
fn a_step_is_not_claimed_before_its_time_and_the_wake_is_for_then() {
    let mut case = Case::chain();
    case.draw = 1;
    case.wake();
    case.expire_all();
    assert_eq!((case.step("a").not_before, case.wakes()), (Some(case.now.plus_ms(1_000)), vec![1_000]));
    case.pass_ms(999);
    case.wake();
    assert_eq!((case.states().as_str(), case.wakes()), ("...", vec![1]));
    case.pass_ms(1);
    case.wake();
    assert_eq!((case.states().as_str(), case.step("a").attempt), (">..", 2));
}

// ---- rule 2: commit, then send, then acknowledge

#[test]
fn a_redelivered_wake_sends_the_same_attempt_again_and_counts_nothing() {
    let mut case = Case::chain();
    case.wake();
    assert_eq!(case.wake_again(), Verdict::Taken);
    assert_eq!((case.requested(), case.step("a").attempt, case.step("a").failure_count), (vec!["a"], 1, 0));
    let before = case.task.clone();
    assert_eq!(case.wake_again(), Verdict::Nothing);
    assert_eq!((case.requested(), &case.task), (vec!["a"], &before));
}

#[test]
fn f62_a_request_that_is_sent_again_says_and_the_task_keeps_that_a_call_of_the_attempt_may_be_under_way() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], ""), ("c", &["a", "b"], "")], false);
    case.wake();
    case.wake_again();
    let settled = case.step("a").complete_by.map(|at| at.plus_ms(30_000));
    let (_, sent) = request(&case.task, &case.workflow, 0, &case.order(), case.now, 0).unwrap().unwrap();
    assert_eq!((case.step("a").may_run_until, sent.may_run_until), (settled, settled));
    // The redelivered reply of a sibling says it of the steps that are in flight, and of no other.
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], ""), ("c", &["a"], "")], false);
    case.wake();
    let reply = case.reply_of("a", done());
    case.apply(Event::Reply { reply: &reply, redelivered: true });
    let marked = ["a", "b", "c"].map(|name| case.step(name).may_run_until.is_some());
    assert_eq!((marked, case.requested()), ([false, true, false], vec!["c", "b"]));
}

#[test]
fn a_request_that_is_sent_again_after_a_clock_jumped_says_no_time_that_no_call_can_last() {
    let mut case = Case::chain();
    case.wake();
    case.task.steps[0].complete_by = Some(case.now.plus_ms(1 << 40));
    case.wake_again();
    let longest_ms = case.workflow.steps[0].complete_within_ms + crate::limits::SETTLES_WITHIN_MS_MAX;
    assert_eq!(case.step("a").may_run_until, Some(case.now.plus_ms(longest_ms)));
}

#[test]
fn a_redelivered_reply_finds_the_change_made_and_sends_what_followed() {
    let mut case = Case::chain();
    case.wake();
    let reply = case.reply_of("a", done());
    case.take(&reply);
    let verdict = case.apply(Event::Reply { reply: &reply, redelivered: true });
    assert_eq!((verdict, case.requested()), (Verdict::Dropped(Dropped::Closed), vec!["b"]));
}

#[test]
fn an_attempt_past_its_deadline_is_not_sent_again() {
    let mut case = Case::chain();
    case.wake();
    case.pass_ms(10_000);
    case.wake_again();
    assert!(case.requested().is_empty());
}

// ---- rule 3: every version has its own nonce (checked at each step by `testing::Case`)

#[test]
fn a_change_carries_the_nonce_it_was_given() {
    let mut case = Case::chain();
    let nonce = case.task.nonce + 1;
    case.wake();
    assert_eq!(case.task.nonce, nonce);
}

// ---- rule 4: idempotency key

#[test]
fn every_attempt_of_a_direction_has_the_same_key_and_the_same_outputs() {
    let mut case = Case::diamond();
    case.wake();
    case.done("a");
    let first = message(&case.task, &case.workflow, "b");
    case.expire_all();
    case.retry_all();
    case.done("c");
    let second = message(&case.task, &case.workflow, "b");
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!((&first.idempotency_key, &first.outputs), (&second.idempotency_key, &second.outputs));
    assert_eq!(first.outputs.keys().map(|name| &**name).collect::<Vec<_>>(), ["a"]);
    case.cancel();
    case.retry_all();
    let undo = message(&case.task, &case.workflow, "c");
    assert_eq!(*undo.idempotency_key, format!("{}/c/undo", case.task.order_id));
    assert_eq!(undo.outputs.keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "c"]);
}

fn message(task: &Task, workflow: &Workflow, name: &str) -> crate::message::Request {
    let order = Order {
        order_id: task.order_id,
        document: Json::document(b"{}").unwrap(),
        fingerprint: "f".into(),
        submitted_at: task.history[0].at,
        submitter: "test".into(),
        reply_channel: None,
        correlation_id: None,
        priority: None,
        workflow: None,
        terms: Vec::new(),
        again_of: None,
    };
    let (index, _) = task.step(name).unwrap();
    request(task, workflow, index, &order, task.history[0].at, 1).unwrap().unwrap().1
}

#[test]
fn the_history_names_step_attempt_and_direction() {
    let mut case = Case::chain();
    case.wake();
    case.done("a");
    case.rejected("b");
    case.wake();
    let lines: Vec<String> = case.task.history.iter().map(|line| case.words_of(line)).collect();
    assert_eq!(lines[1..5], ["a claimed #1", "a processed #1", "b claimed #1", "b rejected #1"]);
    assert_eq!(lines[5..], ["Compensating", "undo of b claimed #2"]);
}
