//! Rules 10 to 12 and 15: notices, operators' actions, and bounds.

use crate::machine::testing::{Case, done};
use crate::machine::{DeadLetterSubject, Dropped, Event, Impossible, Moment, Refused, TooLarge, Verdict, decide};
use crate::message::{Action, Failure, Outcome};
use crate::task::{Direction, Notice, NoticeKind, ProcessState, StepState, Task, Watch, What, reason};

#[test]
fn a_refusal_has_the_name_of_its_reason() {
    let named = [
        Refused::NotInError,
        Refused::NothingToSettle,
        Refused::UnderWay { until: Case::chain().now },
        Refused::OutputTooLarge(TooLarge::One(1)),
        Refused::Stale,
        Refused::PastPivot { step: "a".into() },
        Refused::OwnOrder("ann".into()),
        Refused::NotCompensated,
    ];
    for refused in named {
        assert!(format!("{refused:?}").starts_with(refused.name()) && refused.name().len() > 4, "{refused:?}");
    }
    assert_eq!(Refused::NamedInOrder("ann".into()).name(), "OwnOrder");
}

// ---- rules 10 and 11: notices

#[test]
fn an_order_with_a_reply_channel_gets_notices_of_receipt_and_end() {
    let mut case = Case::new(&[("a", &[], "")], true);
    case.wake();
    assert_eq!(case.notified(), ["OrderReceived"]);
    case.all_sent();
    case.done("a");
    assert_eq!(case.notified(), ["OrderProcessed"]);
    assert_eq!(
        case.task.unsent.iter().map(|notice| (notice.kind, notice.version)).collect::<Vec<_>>(),
        [(NoticeKind::OrderProcessed, case.task.version)]
    );
    assert!(case.task.watch.is_some(), "the watch stays until the alert is sent");
    case.all_sent();
    assert_eq!((case.task.watch, case.task.unsent.len()), (None, 0));
}

#[test]
fn a_reply_channel_that_is_gone_ends_in_one_alert_and_ever_rarer_tries() {
    let mut case = Case::new(&[("a", &[], "")], true);
    case.wake();
    case.done("a");
    assert_eq!(case.state(), ProcessState::Processed, "the order is not held up");
    let (mut alerts, mut pauses) = (0, Vec::new());
    for _ in 0..20 {
        let before = case.now;
        assert_eq!(case.next_sweep(), Verdict::Taken);
        pauses.push(before.ms_until(case.now));
        let alert: Vec<Notice> =
            case.task.unsent.iter().copied().filter(|notice| notice.kind == NoticeKind::ReplyChannelFailing).collect();
        alerts += alert.len();
        assert!(case.notified().contains(&"OrderProcessed"));
        case.apply(Event::Sent { notices: &alert });
    }
    assert_eq!(alerts, 1);
    assert_eq!((pauses[1], pauses[2], pauses[19]), (60_000, 120_000, 30_000 << 7));
    case.all_sent();
    assert_eq!(case.task.watch, None);
}

#[test]
fn an_alert_that_was_not_sent_is_sent_by_the_supervisor() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    case.rejected("a");
    assert!(matches!(case.task.watch, Some(Watch::Due(_))));
    assert_eq!(case.sweep(), Verdict::Nothing, "not at once");
    assert_eq!(case.next_sweep(), Verdict::Taken);
    assert_eq!(case.notified(), ["OrderNeedsOperator"]);
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
    let line = case.task.history.iter().find(|line| line.what == What::Resubmitted).unwrap();
    assert_eq!((&*line.who, line.why.as_deref()), ("ann", Some("mended")));
    assert!(case.task.unsent.is_empty(), "nobody needs to be called for it any more");
}

#[test]
fn a_redelivered_resubmit_finds_its_command_done_and_sends_what_followed() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    case.rejected("a");
    let command = case.command(Action::Resubmit, Some(case.task.version));
    case.apply(Event::Command { command: &command, redelivered: false });
    let again = Event::Command { command: &command, redelivered: true };
    assert_eq!(case.apply(again), Verdict::Refused(Refused::NotInError));
    assert_eq!((case.requested(), case.step("a").attempt), (vec!["a"], 2));
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
    assert_eq!(case.apply_command(Action::Resubmit, Some(seen)), Verdict::Refused(Refused::Stale));
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
    assert_eq!((case.state(), case.wakes()), (ProcessState::Compensating, vec![40_000]), "b may still run");
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
    let longest = case.decide(Event::Wake { hops: limit, redelivered: false });
    assert_eq!(longest.change.map(|after| after.process_state), Some(ProcessState::Processing), "it may be so long");
    case.apply(Event::Wake { hops: limit + 1, redelivered: false });
    assert_eq!(
        (case.state(), case.notified(), case.requested()),
        (ProcessState::Error, vec!["OrderNeedsOperator"], vec![])
    );
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::HOP_LIMIT));
    case.resubmit();
    assert_eq!((case.state(), case.requested()), (ProcessState::Processing, vec!["a"]));
    let mut reply = case.reply_of("a", done());
    reply.hops = limit;
    let longest = case.decide(Event::Reply { reply: &reply, redelivered: false });
    assert_eq!(longest.change.map(|after| after.process_state), Some(ProcessState::Processing), "it may be so long");
    reply.hops = limit + 1;
    case.take(&reply);
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Error, "+.."), "what was done is kept");
    let mut forged = case.reply_of("b", done());
    forged.attempt = 77;
    case.resubmit();
    assert_eq!(
        case.take(&forged),
        Verdict::Dropped(Dropped::UnknownAttempt),
        "and what was never asked for cuts nothing"
    );
}

#[test]
fn a_task_that_does_not_fit_its_workflow_is_a_typed_error() {
    let case = Case::chain();
    let other = Case::diamond();
    let instance = "scheduler-1".into();
    let moment = Moment { now: case.now, instance: &instance, nonce: 1, draw: 1 };
    let event = Event::Wake { hops: 0, redelivered: false };
    assert!(matches!(decide(&case.task, &other.workflow, event, moment), Err(Impossible::OtherWorkflow { .. })));
    for other in [Task { workflow_version: 2, ..case.task.clone() }, Task { workflow: "v".into(), ..case.task.clone() }]
    {
        assert!(matches!(decide(&other, &case.workflow, event, moment), Err(Impossible::OtherWorkflow { .. })));
    }
    let mut broken = case.task.clone();
    broken.steps[0].process_state = StepState::Processing;
    assert!(matches!(decide(&broken, &case.workflow, event, moment), Err(Impossible::ClaimWithoutDeadline { .. })));
}

#[test]
fn a_count_that_is_at_its_end_is_a_typed_error_and_does_not_begin_again() {
    let case = Case::chain();
    let instance = "scheduler-1".into();
    let moment = Moment { now: case.now, instance: &instance, nonce: 9, draw: 1 };
    let broken = |count: &'static str, change: fn(&mut Task)| {
        let mut task = case.task.clone();
        change(&mut task);
        assert_eq!(decide(&task, &case.workflow, Event::Sweep, moment), Err(Impossible::CountedOut { count }));
    };
    broken("Version", |task| task.version = u64::MAX);
    broken("Attempt", |task| task.steps[2].attempt = u32::MAX);
    broken("FailureCount", |task| task.steps[0].failure_count = u32::MAX);
}

// ---- pause and resume

#[test]
fn a_paused_order_starts_nothing_new_and_lets_attempts_end() {
    let mut case = Case::chain();
    case.wake();
    assert_eq!(case.pause(), Verdict::Taken);
    assert_eq!(case.pause(), Verdict::Refused(Refused::AlreadyPaused));
    case.done("a");
    assert_eq!((case.states().as_str(), case.requested()), ("+..", vec![]));
    assert!(matches!(case.task.watch, Some(Watch::Error(_))), "it waits for an operator");
    case.wake_again();
    assert!(case.requested().is_empty());
    assert_eq!(case.resume(), Verdict::Taken);
    assert_eq!((case.states().as_str(), case.requested(), &case.task.paused), ("+>.", vec!["b"], &None));
    assert_eq!(case.resume(), Verdict::Refused(Refused::NotPaused));
}

#[test]
fn a_late_duplicate_of_a_pause_or_a_resume_does_nothing() {
    let mut case = Case::chain();
    let seen = Some(case.task.version);
    case.pause();
    let resumed_after = Some(case.task.version);
    case.resume();
    assert_eq!(case.apply_command(Action::Pause, seen), Verdict::Refused(Refused::Stale));
    case.pause();
    assert_eq!(case.apply_command(Action::Resume, resumed_after), Verdict::Refused(Refused::Stale));
    assert!(case.task.paused.is_some());
}

#[test]
fn a_pause_or_a_resume_that_is_meant_for_the_version_before_comes_too_late_and_one_meant_for_it_does_not() {
    let mut case = Case::chain();
    let before = case.task.version;
    case.pause();
    assert_eq!(case.apply_command(Action::Resume, Some(before)), Verdict::Refused(Refused::Stale));
    let paused = case.task.version;
    assert_eq!(case.apply_command(Action::Resume, Some(paused)), Verdict::Taken);
    assert_eq!(case.apply_command(Action::Pause, Some(paused)), Verdict::Refused(Refused::Stale));
    assert_eq!(case.apply_command(Action::Pause, Some(case.task.version)), Verdict::Taken);
}

#[test]
fn an_order_in_error_waits_since_it_came_there_whatever_still_ends() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\""), ("b", &[], "")], false);
    case.wake();
    case.rejected("a");
    case.all_sent();
    let since = (case.task.watch, case.task.watch_at);
    assert!(matches!(since.0, Some(Watch::Error(_))));
    case.pass_ms(5_000);
    assert_eq!(case.done("b"), Verdict::Taken);
    assert_eq!((case.task.watch, case.task.watch_at), since);
}

#[test]
fn of_a_pause_and_a_claim_at_the_same_time_one_wins() {
    let mut case = Case::chain();
    let claim = case.decide(Event::Wake { hops: 0, redelivered: false }).change.unwrap();
    case.pause();
    assert_eq!(claim.version, case.task.version, "both writes are conditional on the same version");
    case.wake();
    assert_eq!(case.states(), "...");
}

#[test]
fn an_attempt_that_expires_while_paused_is_counted_and_not_claimed_again() {
    let mut case = Case::chain();
    case.wake();
    case.pause();
    case.expire_all();
    assert_eq!((case.step("a").failure_count, case.wakes()), (1, vec![]));
    case.pass_ms(1_000_000);
    case.wake();
    assert_eq!(case.states(), "...");
    case.resume();
    assert_eq!((case.states().as_str(), case.step("a").attempt), (">..", 2));
}

#[test]
fn cancel_undoes_a_paused_order_as_well() {
    let mut case = Case::chain();
    case.wake();
    case.done("a");
    case.pause();
    case.cancel();
    case.retry_all();
    assert_eq!((case.state(), case.requested()), (ProcessState::Compensating, vec!["b"]));
}

// ---- dead letters

#[test]
fn a_dead_letter_of_the_current_attempt_stops_the_order_and_a_stale_one_is_dropped() {
    let mut case = Case::chain();
    case.wake();
    let dead_letter = |attempt| DeadLetterSubject::Attempt { step: "a".into(), direction: Direction::Forward, attempt };
    assert_eq!(case.apply(Event::DeadLetter { dead_letter: &dead_letter(2) }), Verdict::Nothing);
    assert_eq!(case.apply(Event::DeadLetter { dead_letter: &dead_letter(1) }), Verdict::Taken);
    assert_eq!((case.state(), case.notified()), (ProcessState::Error, vec!["OrderNeedsOperator"]));
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::DEAD_LETTER));
    assert_eq!(case.apply(Event::DeadLetter { dead_letter: &dead_letter(1) }), Verdict::Nothing, "counted once");
    case.resubmit();
    assert_eq!((case.states().as_str(), case.step("a").attempt), (">..", 2));
    assert_eq!(
        case.apply(Event::DeadLetter { dead_letter: &dead_letter(1) }),
        Verdict::Nothing,
        "a week-old dead letter is stale"
    );
}

#[test]
fn f50_a_dead_letter_of_an_attempt_past_its_time_is_left_to_the_supervisor() {
    let mut case = Case::chain();
    case.wake();
    let dead_letter = DeadLetterSubject::Attempt { step: "a".into(), direction: Direction::Forward, attempt: 1 };
    case.now = case.step("a").complete_by.unwrap();
    assert_eq!(case.apply(Event::DeadLetter { dead_letter: &dead_letter }), Verdict::Nothing);
    case.expire_all();
    assert_eq!((case.state(), case.step("a").failure_count), (ProcessState::Processing, 1));
}

#[test]
fn a_dead_wake_matters_only_while_the_task_still_needs_a_wake() {
    let mut case = Case::chain();
    let mut woken = Case::chain();
    woken.wake();
    assert_eq!(woken.apply(Event::DeadLetter { dead_letter: &DeadLetterSubject::Wake }), Verdict::Nothing);
    assert_eq!(case.apply(Event::DeadLetter { dead_letter: &DeadLetterSubject::Wake }), Verdict::Taken);
    assert_eq!(case.state(), ProcessState::Error);
    case.resubmit();
    assert_eq!(case.states(), ">..");
}

#[test]
fn a_resubmit_finishes_an_order_whose_last_step_ended_meanwhile() {
    let mut case = Case::new(&[("a", &[], "")], false);
    case.wake();
    let reply = case.reply_of("a", done());
    case.apply(Event::Wake { hops: u32::MAX, redelivered: false });
    assert_eq!(case.take(&reply), Verdict::Taken);
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Error, "+"));
    case.resubmit();
    assert_eq!((case.state(), case.task.watch), (ProcessState::Processed, None));
}

#[test]
fn a_late_duplicate_of_a_cancel_does_not_touch_a_later_error() {
    let mut case = Case::chain();
    case.wake();
    let seen = Some(case.task.version);
    case.apply_command(Action::Cancel, seen);
    case.retry_all();
    case.rejected("a");
    assert_eq!(case.apply_command(Action::Cancel, seen), Verdict::Refused(Refused::Stale));
    assert_eq!((case.state(), case.task.unsent.len()), (ProcessState::Error, 1));
}

#[test]
fn texts_of_others_are_kept_short() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    for _ in 0..30 {
        let novel: std::sync::Arc<str> = "x".repeat(200_000).into();
        let failure = Failure { code: novel.clone(), message: novel };
        case.take(&case.reply_of("a", Outcome::Failed(failure)));
        case.resubmit();
    }
    assert!(serde_json::to_string(&case.task).unwrap().len() < 64_000);
}

#[test]
fn an_action_is_decided_on_as_its_refusal_says_in_every_state() {
    for action in Action::ALL {
        for state in ProcessState::ALL {
            for is_paused in [false, true] {
                let mut case = Case::chain();
                case.pause();
                case.task.process_state = state;
                if !is_paused {
                    case.task.paused = None;
                }
                let refusal = action.refusal(&case.task);
                let is_offered = refusal.is_none() && action != Action::Erase;
                assert_eq!(is_offered, Action::allowed(&case.task).any(|allowed| allowed == action));
                let expected = refusal.map_or(Verdict::Taken, Verdict::Refused);
                let version = case.task.version;
                assert_eq!(
                    case.apply_command(action, Some(version)),
                    expected,
                    "{action:?} in {state}, paused: {is_paused}"
                );
            }
        }
    }
}
