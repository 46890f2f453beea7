//! Rules 10 to 12 and 15: who is told, what an operator can do, and bounds.

use crate::machine::testing::{Case, done};
use crate::machine::{Event, Impossible, Moment, Refused, Verdict, decide};
use crate::task::{NoticeKind, ProcessState, StepState, Watch, reason};

// ---- rules 10 and 11: who is told

#[test]
fn an_order_with_a_reply_channel_is_told_of_receipt_and_end() {
    let mut case = Case::new(&[("a", &[], "")], true);
    case.wake();
    assert_eq!(case.told(), ["OrderReceived"]);
    case.all_sent();
    case.done("a");
    assert_eq!(case.told(), ["OrderProcessed"]);
    assert_eq!(
        case.task.unsent.iter().map(|notice| (notice.kind, notice.version)).collect::<Vec<_>>(),
        [(NoticeKind::OrderProcessed, case.task.version)]
    );
    assert!(case.task.watch.is_some(), "until it is sent somebody looks after it");
    case.all_sent();
    assert_eq!((case.task.watch, case.task.unsent.len()), (None, 0));
}

#[test]
fn an_alert_that_was_not_sent_is_sent_by_the_supervisor() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    case.rejected("a");
    assert!(matches!(case.task.watch, Some(Watch::Due(_))));
    assert_eq!(case.sweep(), Verdict::Nothing, "not at once");
    assert_eq!(case.next_sweep(), Verdict::Taken);
    assert_eq!(case.told(), ["OrderNeedsOperator"]);
    case.all_sent();
    assert!(matches!(case.task.watch, Some(Watch::Error(_))));
    case.pass_ms(100_000);
    assert_eq!(case.sweep(), Verdict::Nothing);
}

// ---- rule 12: operator

#[test]
fn resubmit_takes_the_failed_step_back_with_no_failures_counted() {
    let mut case = Case::chain();
    case.wake();
    for _ in 0..2 {
        case.expire_all();
        case.retry_all();
    }
    case.expire_all();
    assert_eq!((case.state(), case.step("a").failure_count), (ProcessState::Error, 3));
    assert_eq!(case.resubmit(), Verdict::Taken);
    let step = case.step("a");
    assert_eq!((step.failure_count, step.attempt, step.process_state), (0, 4, StepState::Processing));
    assert_eq!((case.state(), &case.task.reason, case.requested()), (ProcessState::Processing, &None, vec!["a"]));
    let line = case.task.history.iter().find(|line| &*line.what == "resubmitted").unwrap();
    assert_eq!((&*line.who, line.why.as_deref()), ("ann", Some("mended")));
    assert!(case.task.unsent.is_empty(), "nobody needs to be called for it any more");
}

#[test]
fn resubmit_is_refused_outside_error_and_when_meant_for_an_earlier_one() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    assert_eq!(case.resubmit(), Verdict::Refused(Refused::NotInError));
    case.wake();
    case.rejected("a");
    let seen = case.task.version;
    case.resubmit();
    case.rejected("a");
    let late = Event::Resubmit { by: &"ann".into(), why: &"again".into(), seen: Some(seen) };
    assert_eq!(case.apply(late), Verdict::Refused(Refused::Stale));
    assert_eq!(case.resubmit(), Verdict::Taken);
}

#[test]
fn cancel_turns_any_unfinished_order_round() {
    let mut case = Case::chain();
    assert_eq!(case.cancel(), Verdict::Taken);
    assert_eq!(case.state(), ProcessState::Compensated, "nothing was begun");
    assert_eq!(case.cancel(), Verdict::Refused(Refused::Finished));

    let mut case = Case::chain();
    case.wake();
    case.done("a");
    case.cancel();
    assert_eq!((case.state(), case.wakes()), (ProcessState::Compensating, vec![10_000]), "b may still run");
    assert_eq!(case.cancel(), Verdict::Refused(Refused::AlreadyCompensating));

    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    case.rejected("a");
    case.cancel();
    assert_eq!((case.state(), case.requested()), (ProcessState::Compensating, vec!["a"]));
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::CANCELLED));
}

#[test]
fn cancel_starts_a_failed_undo_afresh() {
    let mut case = Case::chain();
    case.wake();
    case.rejected("a");
    case.rejected("a");
    case.cancel();
    assert_eq!(
        (case.state(), case.requested(), case.step("a").failure_count),
        (ProcessState::Compensating, vec!["a"], 0)
    );
}

// ---- rule 15: bounds

#[test]
fn a_chain_of_messages_beyond_the_worst_case_ends_in_error_with_an_alert() {
    let mut case = Case::chain();
    let limit = case.workflow.hops_max();
    assert_eq!(case.decide(Event::Wake { hops: limit, redelivered: false }).verdict, Verdict::Taken);
    case.apply(Event::Wake { hops: limit + 1, redelivered: false });
    assert_eq!(
        (case.state(), case.told(), case.requested()),
        (ProcessState::Error, vec!["OrderNeedsOperator"], vec![])
    );
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::HOP_LIMIT));
    case.resubmit();
    assert_eq!((case.state(), case.requested()), (ProcessState::Processing, vec!["a"]));
    let mut reply = case.reply_of("a", done());
    reply.hops = limit + 1;
    case.take(&reply);
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Error, ">.."));
}

#[test]
fn a_task_that_does_not_fit_its_workflow_is_a_typed_error() {
    let case = Case::chain();
    let other = Case::diamond();
    let instance = "scheduler-1".into();
    let moment = Moment { now: case.now, instance: &instance, nonce: 1, draw: 1 };
    let event = Event::Wake { hops: 0, redelivered: false };
    assert!(matches!(decide(&case.task, &other.workflow, event, moment), Err(Impossible::OtherWorkflow { .. })));
    let mut broken = case.task.clone();
    broken.steps[0].process_state = StepState::Processing;
    assert!(matches!(decide(&broken, &case.workflow, event, moment), Err(Impossible::ClaimWithoutDeadline { .. })));
}
