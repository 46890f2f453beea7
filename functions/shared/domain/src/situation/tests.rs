use std::collections::HashSet;

use super::*;
use crate::backoff::{Backoff, BackoffPolicy};
use crate::json::Json;
use crate::limits::SHARDS;
use crate::machine::testing::Case;
use crate::message::{Acceptance, Failure, Outcome, Settled, Trouble};
use crate::ports::{Breaker, Outage, OutageReason, ServiceHealth};
use crate::ports::{Evidence, Rejections};
use crate::task::Poll;

fn of(case: &Case) -> Situation {
    Situation::of(&case.task)
}

fn shown(case: &Case) -> (String, String) {
    let Situation { head, text, .. } = of(case);
    (head, text)
}

fn held() -> Case {
    Case::new(&[("a", &[], "on_rejected = \"hold\"")], false)
}

#[test]
fn a_new_order_starts_in_a_moment() {
    let case = Case::chain();
    assert_eq!(shown(&case), ("A starts in a moment.".to_owned(), String::new()));
    assert!(!of(&case).waits && of(&case).to_do.is_some());
}

#[test]
fn an_attempt_in_flight_is_named_with_its_deadline() {
    let mut case = Case::chain();
    case.wake();
    let complete_by = case.step("a").complete_by.unwrap();
    let head = format!("A was handed to any (attempt 1), answer due by {complete_by}.");
    assert_eq!(shown(&case), (head, String::new()));
    assert!(!of(&case).waits);
}

#[test]
fn steps_side_by_side_are_all_named() {
    let mut case = Case::diamond();
    case.wake();
    case.done("a");
    case.wake();
    let (head, _) = shown(&case);
    assert!(
        head.contains("B was handed to any (attempt 1)") && head.contains("C was handed to any (attempt 1)"),
        "{head}"
    );
    assert!(!head.contains("D was"), "{head}");
}

#[test]
fn a_retry_is_shown_with_its_time_and_the_number_of_failures() {
    let mut case = Case::chain();
    case.wake();
    case.expire_all();
    let not_before = case.step("a").not_before.unwrap();
    assert_eq!(of(&case).head, format!("A waits until {not_before} (1 failure so far)."));
    assert!(of(&case).waits);
    case.retry_all();
    case.expire_all();
    let not_before = case.step("a").not_before.unwrap();
    assert_eq!(of(&case).head, format!("A waits until {not_before} (2 failures so far)."));
    assert!(of(&case).text.starts_with("Last error, of attempt 2: "), "{}", of(&case).text);
}

/// The head, and what an operator is to do.
fn told(case: &Case) -> (String, Cow<'static, str>) {
    let Situation { head, to_do, .. } = of(case);
    (head, to_do.unwrap())
}

/// Steps `a`, and `b` after it. The order names a time for `b`, so many milliseconds from now.
fn with_time(in_ms: i64) -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "not_before = \"/Order/On\"")], false);
    let mut order = case.order();
    let on = Timestamp::from_epoch_ms(case.now.epoch_ms() + in_ms);
    order.document = Json::document(format!("{{\"On\":\"{on}\"}}").as_bytes()).unwrap();
    case.task = Task::new(&order, &case.workflow, SHARDS, 1);
    case
}

#[test]
fn a_wait_is_shown_once_it_is_the_turn_of_the_step() {
    let mut case = with_time(3_600_000);
    let until = case.step("b").waits_until.unwrap();
    assert_eq!(of(&case).head, "A starts in a moment.");
    case.wake();
    assert!(!of(&case).head.contains("waits"), "{}", of(&case).head);
    case.done("a");
    let head = format!("B waits until {until}, as the workflow or the order says.");
    assert_eq!(told(&case), (head, "Nothing. It starts then, and a cancel ends the wait.".into()));
    assert!(of(&case).waits);
    case.cancel();
    assert!(!of(&case).head.contains("B waits"), "{}", of(&case).head);
    assert_eq!(case.task.wait_of(case.step("b")), None);
}

#[test]
fn a_wait_that_is_past_is_not_shown() {
    let mut case = with_time(-3_600_000);
    case.wake();
    case.done("a");
    assert!(of(&case).head.starts_with("B was handed to any"), "{}", of(&case).head);
    let case = with_time(-3_600_000);
    assert_eq!(case.task.wait_of(case.step("b")), None);
}

#[test]
fn a_wait_of_the_workflow_is_shown_beside_an_attempt_in_flight_and_past_a_pivot_no_cancel_ends_it() {
    let mut case = Case::new(&[("a", &[], "pivot = true"), ("b", &[], "wait = \"2h\"")], false);
    case.wake();
    let until = case.step("b").waits_until.unwrap();
    let (head, to_do) = told(&case);
    assert!(head.starts_with("A was handed to any") && head.contains(&format!("B waits until {until}, as")), "{head}");
    assert!(to_do.starts_with("Nothing. The supervisor"), "{to_do}");
    case.done("a");
    assert_eq!(told(&case).1, "Nothing. It starts then.");
}

#[test]
fn an_order_whose_result_is_awaited_says_what_comes_of_it() {
    let mut case = Case::new(&[("a", &[], "wait_within = \"2d\"\nmax_failures = 1")], false);
    case.wake();
    let accepted = case.reply_of("a", Outcome::Accepted(Acceptance::default()));
    case.take(&accepted);
    let until = case.step("a").waits_until.unwrap();
    let head = format!("Any took a on, and tells the result later: attempt 1, awaited until {until}.");
    let mut polled = case.task.clone();
    polled.steps[0].poll = Some(Poll { path: "transfers/7".into(), at: Some(until) });
    let asked = head.replace("tells the result later", &format!("is asked for the result at {until}"));
    assert_eq!(Situation::of(&polled).head, asked);
    let to_do = "Nothing. If no result comes by then, the attempt counts as failed and the service is asked again.";
    assert_eq!(told(&case), (head.clone(), to_do.into()));
    let trouble = case.reply_of("a", Outcome::Retrying(Trouble { problem: "409: taken for a 202".into() }));
    case.take(&trouble);
    assert_eq!(told(&case).0, format!("{head} Before that: 409: taken for a 202."));
    case.next_sweep();
    case.next_sweep();
    assert_eq!(case.state(), ProcessState::Error);
    assert_eq!(&*case.task.reason.as_ref().unwrap().message, "a: no result in 1 attempt");
    let until = case.step("a").may_run_until.unwrap();
    let text = format!(
        "A service took the call on, and its result did not come. A: no result in 1 attempt. A call for a may have its \
         effect until {until}: a close, or a settle of a, comes after that."
    );
    assert_eq!(of(&case).text, text);
    let to_do = "Ask the service what became of it. Then settle the step as done, or resubmit: the service is asked \
                 again under the same key.";
    assert_eq!(told(&case).1, to_do);

    let mut case = Case::new(&[("a", &[], "wait_within = \"2d\"\nmax_failures = 2")], false);
    case.wake();
    case.expire_all();
    case.retry_all();
    case.expire_all();
    assert_eq!(&*case.task.reason.as_ref().unwrap().message, "a: no answer in 2 attempts");
    assert_eq!(told(&case).1, explain(reason::EXHAUSTED).1, "it was never taken on");
    assert!(told(&case).1.contains("look there first, and settle the step if it was done"), "its key may be forgotten");
}

#[test]
fn rule_19_an_answer_without_what_keep_takes_is_the_workflows_fault() {
    let words = format!("HTTP 200, but the answer is of no use: it has nothing at /parcel{NOT_KEPT}");
    let mut case = Case::new(&[("a", &[], "max_failures = 1")], false);
    case.wake();
    let trouble = case.reply_of("a", Outcome::Retrying(Trouble { problem: words.as_str().into() }));
    case.take(&trouble);
    case.expire_all();
    assert_eq!(case.state(), ProcessState::Error);
    assert!(of(&case).text.starts_with(NOT_KEPT_IN_ERROR.0), "{}", of(&case).text);
    assert_eq!(of(&case).to_do.as_deref(), Some(NOT_KEPT_IN_ERROR.1));
    let since = Timestamp::from_epoch_ms(1_000);
    let outage = Outage { reason: OutageReason::Failing, problem: words.into(), since };
    let to_do = outage_to_do("svc", &outage);
    assert!(to_do.contains("`keep`") && !to_do.contains("Restore"), "{to_do}");
}

#[test]
fn a_finished_order_leaves_nothing_to_do() {
    let mut case = Case::new(&[("a", &[], "")], false);
    case.wake();
    case.done("a");
    assert_eq!(case.state(), ProcessState::Processed);
    assert_eq!(shown(&case), ("Processed.".to_owned(), "Every step is done.".to_owned()));
    assert_eq!((of(&case).to_do, of(&case).waits), (None, false));
}

#[test]
fn a_cancelled_order_says_so_while_it_is_undone_and_afterwards() {
    let mut case = Case::chain();
    case.wake();
    case.cancel();
    let reason = "Reason: Cancelled by ann: mended.";
    let not_before = case.step("a").not_before.unwrap();
    let text = format!("The order is being undone. {reason}");
    let until = "until then a call for a may still have its effect";
    assert_eq!(shown(&case), (format!("The undo of a waits until {not_before}: {until}."), text));
    assert!(of(&case).waits);
    assert_eq!(of(&case).to_do.as_deref(), Some("Nothing. The undo starts then by itself."));
    case.retry_all();
    assert!(of(&case).head.starts_with("The undo of a was handed to any (attempt "), "{}", of(&case).head);
    assert!(!of(&case).waits);
    case.done("a");
    assert_eq!(case.state(), ProcessState::Compensated);
    let text = format!("{reason} Every step that was begun is undone.");
    assert_eq!(shown(&case), ("Compensated.".to_owned(), text));
    assert_eq!((of(&case).to_do, of(&case).waits), (None, false));
}

#[test]
fn a_refused_step_waits_for_an_operator_with_its_reason() {
    let mut case = held();
    case.wake();
    case.rejected("a");
    assert_eq!(of(&case).head, "Waiting for an operator: rejected at a.");
    let (meaning, to_do) = explain("rejected");
    assert!(of(&case).text.starts_with(meaning), "{}", of(&case).text);
    assert_eq!((of(&case).to_do.as_deref(), of(&case).waits), (Some(to_do), true));
}

#[test]
fn rule_50_the_remedy_for_a_line_is_to_drop_it_unless_it_is_the_last_one() {
    let each = "for_each = \"/Order/Lines\"\nsend = {}\nundo = { send = {} }\non_rejected = \"hold\"";
    let mut case = Case::new(&[("a", &[], each)], false);
    case.wake();
    for (step, is_last) in [("a/0001", false), ("a/0002", false), ("a/0003", true)] {
        case.rejected(step);
        let to_do = of(&case).to_do.unwrap();
        assert_eq!(to_do.ends_with("and the order goes on without it."), !is_last, "{step}: {to_do}");
        case.settle(step, Settled::Dropped, None);
    }
}

#[test]
fn rule_49_a_child_that_has_ended_is_not_asked_again_by_a_resubmit() {
    let held = |before: &[(&str, &[&str], &str)], more: &str, code: &str| {
        let step = "name = \"b\"\nkind = \"order\"\nworkflow = \"w\"\nsend = {}\non_rejected = \"hold\"";
        let mut case = Case::with(before, &format!("[[step]]\n{step}\n{more}"), false);
        case.wake();
        if !before.is_empty() {
            case.done("a");
            case.wake();
        }
        let failure = Failure { code: code.into(), message: "it has ended".into() };
        let reply = case.reply_of("b", Outcome::Failed(failure));
        case.take(&reply);
        case
    };
    let to_do = |case: &Case| of(case).to_do.unwrap();
    for code in ["child-compensated", "child-closed"] {
        let case = held(&[], "", code);
        assert!(to_do(&case).starts_with("A resubmit finds that order again") && to_do(&case).contains("Or cancel"));
        let forward = held(&[("a", &[], "pivot = true")], "after = [\"a\"]\n", code);
        assert!(to_do(&forward).contains("settle the step as done") && !to_do(&forward).contains("cancel"));
    }
    assert!(to_do(&held(&[], "", "schema-mismatch")).starts_with("Resubmit once the cause is gone"));
    let other = "[[step]]\nname = \"p\"\nagent = \"any\"\non_rejected = \"hold\"\nundo = \"none\"";
    // Another step was rejected first.
    let mut beside = held(&[], other, "child-closed");
    let last = beside.task.steps.last_mut().unwrap();
    last.process_state = StepState::Error;
    beside.task.reason.as_mut().unwrap().step = Some("p".into());
    assert!(to_do(&beside).starts_with("Resubmit once the cause is gone"));
    let mut undone = held(&[], "", "child-closed");
    undone.cancel();
    let stays = Failure { code: "child-closed".into(), message: "it has ended".into() };
    let reply = undone.reply_of("b", Outcome::Failed(stays));
    undone.take(&reply);
    assert!(to_do(&undone).contains("settle the step as undone"), "{}", to_do(&undone));
}

#[test]
fn a_refused_undo_is_shown_with_the_reason_of_the_undo() {
    let mut case = Case::chain();
    case.wake();
    case.done("a");
    case.wake();
    case.rejected("b");
    for _ in 0..9 {
        case.wake();
        let open = case.task.steps.iter().find(|step| step.process_state == StepState::Processing);
        let Some(name) = open.map(|step| step.name.to_string()) else { break };
        case.rejected(&name);
    }
    assert_eq!(case.state(), ProcessState::Error);
    assert!(of(&case).head.starts_with("Waiting for an operator: compensation-failed at "), "{}", of(&case).head);
    assert!(of(&case).text.contains("The order was being undone. Reason: rejected."), "{}", of(&case).text);
}

#[test]
fn a_paused_order_says_by_whom_and_whether_an_attempt_may_end() {
    let mut case = Case::chain();
    case.pause();
    let since = case.now;
    let head = format!("Paused by ann since {since}: mended.");
    assert_eq!(shown(&case), (head.clone(), "No new step starts.".to_owned()));
    assert!(of(&case).waits && of(&case).to_do.is_some());
    let mut case = Case::chain();
    case.wake();
    case.pause();
    assert_eq!(shown(&case), (head, "An attempt in flight may end. No new step starts.".to_owned()));
}

#[test]
fn an_order_without_an_open_step_goes_on_in_a_moment() {
    let mut case = Case::new(&[("a", &[], "")], false);
    case.wake();
    case.done("a");
    case.task.process_state = ProcessState::Processing;
    assert_eq!(of(&case).head, "The order goes on in a moment.");
}

#[test]
fn an_error_without_a_reason_and_one_of_a_later_version_have_words() {
    let mut case = held();
    case.wake();
    case.rejected("a");
    case.task.reason.as_mut().unwrap().code = "a-new-one".into();
    assert_eq!(of(&case).head, "Waiting for an operator: a-new-one at a.");
    assert!(of(&case).text.starts_with("The order stands still."), "{}", of(&case).text);
    case.task.reason.as_mut().unwrap().step = None;
    assert_eq!(of(&case).head, "Waiting for an operator: a-new-one.");
    case.task.reason = None;
    assert_eq!(shown(&case), ("Waiting for an operator.".to_owned(), "The order stands still.".to_owned()));
}

#[test]
fn every_reason_code_has_its_own_words() {
    let codes = [
        reason::EXHAUSTED,
        reason::REJECTED,
        reason::COMPENSATION_FAILED,
        reason::DEAD_LETTER,
        reason::HOP_LIMIT,
        reason::CANCELLED,
        "another",
    ];
    let words: HashSet<_> = codes.into_iter().map(explain).collect();
    assert_eq!(words.len(), codes.len());
}

#[test]
fn an_outage_is_described_only_while_requests_do_not_go_through() {
    let until = Timestamp::from_epoch_ms(1_000);
    let health = |state, outage| ServiceHealth {
        service: "payment".into(),
        version: 1,
        era: 0,
        state,
        failures_in_a_row: 5,
        until,
        backoff: Backoff::new(BackoffPolicy { slot_time_ms: 1_000, ceiling: 3, stay_at_ceiling: true }),
        since: until,
        release: None,
        outage,
        unsent: None,
        rejections: Rejections::default(),
        pace: None,
        evidence: Evidence::default(),
    };
    let of = |state, outage| super::outage(&health(state, outage)).map(|(text, _)| text);
    assert_eq!(of(Breaker::Closed, None), None);
    assert_eq!(of(Breaker::Open, None).unwrap(), format!("payment is failing; the next probe is at {until}."));
    let outage = |reason| Some(Outage { reason, problem: "HTTP 401".into(), since: until });
    let texts = [OutageReason::Failing, OutageReason::Misconfigured, OutageReason::Rejections]
        .map(|reason| of(Breaker::HalfOpen, outage(reason)).unwrap());
    let (because, probe) = (format!("since {until}: HTTP 401"), "a probe is in flight.");
    assert_eq!(
        texts,
        [
            format!("payment is failing {because}; {probe}"),
            format!("payment is misconfigured and refuses every call {because}; {probe}"),
            format!("payment rejects most steps {because}; {probe}"),
        ]
    );
    let mut of_one = health(Breaker::Open, outage(OutageReason::Failing));
    let restore = "Restore payment. Its orders then go on by themselves.";
    assert_eq!(super::outage(&of_one).unwrap().1, restore);
    of_one.evidence.orders.push(Case::chain().task.order_id);
    let only = "Only one order failed there so far: what it sends may be the cause.";
    assert_eq!(super::outage(&of_one).unwrap().1, format!("{restore} {only}"));
    let (_, to_do) = super::outage(&health(Breaker::Open, outage(OutageReason::Rejections))).unwrap();
    assert!(to_do.contains("stepwarden services accept-rejections payment"), "{to_do}");
}

#[test]
fn a_sentence_ends_with_one_full_stop() {
    assert_eq!([sentence("a"), sentence("a."), sentence("a?"), sentence("")], ["a.", "a.", "a?", ""]);
}
