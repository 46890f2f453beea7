//! Rule 40: people decide on a step.

use crate::machine::testing::{Case, done, failed};
use crate::machine::{Dropped, Refused, TooLarge, Verdict};
use crate::message::{Acceptance, Action, Command, Outcome, Settled};
use crate::task::{Direction, NoticeKind, ProcessState, StepError, StepState, Watch, What};

const DAY_MS: u64 = 24 * 3_600_000;

/// a, then b, which a manager approves within two days, then c.
fn asking(more: &str, notify: bool) -> Case {
    let mut case = Case::with(&[("a", &[], ""), ("c", &["b"], "")], &approval(more), notify);
    case.wake();
    case.done("a");
    case
}

/// The step b, as the first of a file. It comes after a.
fn approval(more: &str) -> String {
    format!(
        "[[step]]\nname = \"b\"\nkind = \"approval\"\nrole = \"manager\"\nafter = [\"a\"]\nwait_within = \"2d\"\n{more}"
    )
}

fn decide(case: &mut Case, action: Action, by: &str) -> Verdict {
    let command = command(case, action, by);
    case.apply(crate::machine::Event::Command { command: &command, redelivered: false })
}

fn command(case: &Case, action: Action, by: &str) -> Command {
    Command { by: by.into(), ..case.command(action, None) }
}

#[test]
fn rule_40_people_are_asked_without_a_message_and_their_decision_is_the_output() {
    let mut case = asking("", true);
    let until = case.now.plus_ms(2 * DAY_MS);
    let step = case.step("b");
    assert_eq!((step.process_state, step.attempt, step.waits_until), (StepState::Processing, 1, Some(until)));
    assert_eq!((case.requested().len(), case.wakes().len()), (0, 0), "no service and no queue knows of it");
    assert_eq!(case.notified(), ["OrderNeedsApproval", "OrderWaiting"]);
    case.all_sent();
    case.next_sweep();
    let look = until.plus_ms(case.workflow.supervision.grace_ms);
    assert_eq!(
        (case.task.watch.is_some_and(|watch| matches!(watch, Watch::Wait(_))), case.task.watch_at),
        (true, Some(look))
    );
    assert_eq!(decide(&mut case, Action::Approve, "ann"), Verdict::Taken);
    assert_eq!((case.states_by_name().as_str(), case.requested()), ("++>", vec!["c"]));
    let at = case.now;
    let output = case.step("b").output.clone().unwrap();
    assert_eq!(output.text(), format!("{{\"By\":\"ann\",\"Reason\":\"mended\",\"At\":\"{at}\"}}"));
    let line = case.task.history.iter().find(|line| matches!(line.what, What::Approved(_))).unwrap();
    assert_eq!(
        (&*line.who, line.why.as_deref(), case.words_of(line).as_str()),
        ("ann", Some("mended"), "b approved #1")
    );
}

#[test]
fn rule_40_a_question_that_was_answered_is_asked_of_nobody() {
    let mut case = asking("", true);
    let kinds = |case: &Case| case.task.unsent.iter().map(|notice| notice.kind).collect::<Vec<_>>();
    assert!(kinds(&case).contains(&NoticeKind::OrderNeedsApproval));
    let others: Vec<_> = kinds(&case).into_iter().filter(|kind| *kind != NoticeKind::OrderNeedsApproval).collect();
    assert!(!others.is_empty() && decide(&mut case, Action::Approve, "ann") == Verdict::Taken);
    assert_eq!(kinds(&case), others);
}

#[test]
fn rule_40_a_rejection_is_one_of_the_step_by_the_person() {
    for (more, state, states) in
        [("", ProcessState::Compensating, ".+."), ("on_rejected = \"hold\"", ProcessState::Error, "+!.")]
    {
        let mut case = asking(more, false);
        assert_eq!(decide(&mut case, Action::Reject, "ann"), Verdict::Taken);
        let error = case.step("b").last_error.clone().unwrap();
        assert_eq!((&*error.code, &*error.message), (StepError::NOT_APPROVED, "not approved by ann: mended"));
        assert_eq!(case.state(), state);
        let line = case.task.history.iter().find(|line| matches!(line.what, What::Rejected(_))).unwrap();
        assert_eq!((&*line.who, line.why.as_deref()), ("ann", Some("mended")));
        if state == ProcessState::Error {
            assert_eq!(case.states_by_name(), states);
            case.resubmit();
            assert_eq!((case.step("b").attempt, case.step("b").is_asked()), (2, true), "it is asked for again");
        } else {
            assert_eq!(case.requested(), ["a"], "an approval has nothing to undo, and nothing to wait for");
        }
    }
}

#[test]
fn rule_40_without_a_decision_the_step_is_given_up_at_its_time() {
    let mut case = asking("on_exhausted = \"compensate\"", false);
    case.all_sent();
    case.next_sweep();
    case.next_sweep();
    assert_eq!(case.state(), ProcessState::Compensating);
    let reason = case.task.reason.clone().unwrap();
    assert_eq!((&*reason.code, &*reason.message), ("exhausted", "b: no decision within 2d"));
    assert_eq!(decide(&mut case, Action::Approve, "ann"), Verdict::Refused(Refused::NotAsked), "it is too late");
}

#[test]
fn rule_40_who_asked_for_it_does_not_decide() {
    let mut case = asking("", false);
    for by in ["test", " TEST "] {
        let expected = Verdict::Refused(Refused::OwnOrder("test".into()));
        assert_eq!(decide(&mut case, Action::Approve, by), expected, "it submitted the order");
    }
    let approvers = case.task.steps.iter_mut().find_map(|step| step.approval.as_mut()).unwrap();
    approvers.not_by = Some("Ben".into());
    for action in [Action::Approve, Action::Reject] {
        assert_eq!(decide(&mut case, action, "ben"), Verdict::Refused(Refused::NamedInOrder("Ben".into())));
    }
    assert_eq!(decide(&mut case, Action::Approve, "ann"), Verdict::Taken);
}

#[test]
fn rule_40_of_two_decisions_the_first_counts() {
    let mut case = asking("", false);
    assert_eq!(decide(&mut case, Action::Reject, "ann"), Verdict::Taken);
    assert_eq!(decide(&mut case, Action::Approve, "bob"), Verdict::Refused(Refused::NotAsked));
    let mut case = asking("", false);
    assert_eq!(decide(&mut case, Action::Approve, "ann"), Verdict::Taken);
    assert_eq!(decide(&mut case, Action::Reject, "bob"), Verdict::Refused(Refused::NotAsked));
    assert_eq!(case.step("b").process_state, StepState::Processed);
}

#[test]
fn rule_40_no_agent_decides() {
    let mut case = asking("", false);
    for outcome in [done(), failed(), Outcome::Accepted(Acceptance::default())] {
        let reply = case.reply_of("b", outcome);
        assert_eq!(case.take(&reply), Verdict::Dropped(Dropped::NeedsPeople));
    }
}

#[test]
fn rule_40_a_decision_is_kept_in_error_and_while_the_order_is_paused() {
    let top = approval("").replace("after = [\"a\"]\n", "");
    let mut case = Case::with(&[("a", &[], "on_rejected = \"hold\""), ("c", &["b"], "")], &top, false);
    case.wake();
    case.rejected("a");
    assert_eq!((case.state(), decide(&mut case, Action::Approve, "ann")), (ProcessState::Error, Verdict::Taken));
    assert_eq!((case.states_by_name().as_str(), case.requested().len()), ("!+.", 0));

    let mut case = asking("", false);
    case.pause();
    assert_eq!((decide(&mut case, Action::Approve, "ann"), case.requested().len()), (Verdict::Taken, 0));
    assert_eq!((case.resume(), case.requested()), (Verdict::Taken, vec!["c"]));
}

#[test]
fn rule_40_where_several_steps_ask_the_decision_names_one() {
    let top = format!("{}\n{}", approval(""), approval("").replace("\"b\"", "\"b2\""));
    let mut case = Case::with(&[("a", &[], ""), ("c", &["b", "b2"], "")], &top, false);
    case.wake();
    case.done("a");
    assert_eq!(decide(&mut case, Action::Approve, "ann"), Verdict::Refused(Refused::WhichStep));
    for (step, requested) in [("b2", 0), ("b", 1)] {
        let command = Command { step: Some(step.into()), ..command(&case, Action::Approve, "ann") };
        let event = crate::machine::Event::Command { command: &command, redelivered: false };
        assert_eq!((case.apply(event), case.requested().len()), (Verdict::Taken, requested));
    }
}

#[test]
fn rule_40_only_a_decision_ends_an_approval() {
    let mut case = asking("on_rejected = \"hold\"", false);
    decide(&mut case, Action::Reject, "ann");
    assert_eq!(case.settle("b", Settled::Done, None), Verdict::Refused(Refused::NothingToSettle));
    assert_eq!(case.apply_command(Action::Close, None), Verdict::Taken, "no call of it can have an effect");
}

#[test]
fn rule_40_an_approval_is_not_settled_beside_a_step_that_may_be() {
    let top = approval("on_rejected = \"hold\"").replace("after = [\"a\"]\n", "");
    let mut case = Case::with(&[("a", &[], "on_rejected = \"hold\"")], &top, false);
    case.wake();
    case.rejected("a");
    decide(&mut case, Action::Reject, "ann");
    case.now = case.now.plus_ms(DAY_MS);
    assert_eq!(case.settle("b", Settled::Done, None), Verdict::Refused(Refused::NeedsApproval));
    assert_eq!(case.settle("a", Settled::Done, None), Verdict::Taken);
    assert_eq!(case.state(), ProcessState::Error, "the approval is missing still");
}

#[test]
fn rule_40_a_cancelled_order_asks_nobody_and_waits_for_no_call_of_an_approval() {
    let mut case = asking("", false);
    case.cancel();
    assert_eq!((case.step("b").direction, case.step("b").is_undone()), (Direction::Undo, true));
    assert_eq!(case.requested(), ["a"]);
    assert_eq!(decide(&mut case, Action::Approve, "ann"), Verdict::Refused(Refused::NotAsked));
    case.done("a");
    assert_eq!(decide(&mut case, Action::Approve, "ann"), Verdict::Refused(Refused::Finished));
}

#[test]
fn rule_40_a_decision_whose_words_are_too_many_for_the_outputs_is_refused() {
    let mut case = asking("", false);
    let long = Command { reason: "x".repeat(20_000).into(), ..command(&case, Action::Approve, "ann") };
    let verdict = case.apply(crate::machine::Event::Command { command: &long, redelivered: false });
    assert!(matches!(verdict, Verdict::Refused(Refused::OutputTooLarge(TooLarge::One(_)))));
}

#[test]
fn rule_40_a_decision_that_comes_again_does_not_count_for_the_next_question() {
    let top = format!("{}\n{}", approval(""), approval("").replace("\"b\"", "\"b2\"").replace("[\"a\"]", "[\"b\"]"));
    let mut case = Case::with(&[("a", &[], ""), ("c", &["b2"], "")], &top, false);
    case.wake();
    case.done("a");
    let command = Command { version: Some(case.task.version), ..command(&case, Action::Approve, "ann") };
    let command = command.for_step(&case.task);
    let event = crate::machine::Event::Command { command: &command, redelivered: true };
    assert_eq!((command.step.as_deref(), case.apply(event)), (Some("b"), Verdict::Taken));
    assert_eq!((case.step("b2").is_asked(), case.apply(event)), (true, Verdict::Refused(Refused::DoneBefore)));
}

#[test]
fn rule_40_a_decision_on_an_earlier_question_does_not_count_for_the_same_step_asked_again() {
    let mut case = asking("on_rejected = \"hold\"", false);
    let reject = Command { version: Some(case.task.version), ..command(&case, Action::Reject, "ann") };
    let event = crate::machine::Event::Command { command: &reject, redelivered: true };
    assert_eq!(case.apply(event), Verdict::Taken);
    assert_eq!((case.resubmit(), case.step("b").is_asked()), (Verdict::Taken, true));
    assert_eq!(case.apply(event), Verdict::Refused(Refused::Stale));
    let approve = Command { version: Some(case.task.version), ..command(&case, Action::Approve, "bob") };
    assert_eq!(case.apply(crate::machine::Event::Command { command: &approve, redelivered: false }), Verdict::Taken);
}

#[test]
fn rule_40_a_caller_who_is_known_is_compared_with_submitter_and_not_by() {
    let mut case = asking("", false);
    case.task.steps[0].approval.as_mut().unwrap().not_by = Some("Ben".into());
    let refusal = |by: &str| command(&case, Action::Approve, by).refusal(&case.task, case.now);
    assert_eq!(refusal("ann [Test]"), Some(Refused::OwnOrder("test".into())));
    assert_eq!(refusal("ann [ben]"), Some(Refused::NamedInOrder("Ben".into())));
    assert_eq!(refusal("Ben [eve]"), Some(Refused::NamedInOrder("Ben".into())));
    assert_eq!(refusal("ann [eve]"), None);
    case.task.history[0].who = "dept[7]|ann".into();
    assert_eq!(
        command(&case, Action::Approve, "bob [dept_7_|ann]").refusal(&case.task, case.now),
        Some(Refused::OwnOrder("dept[7]|ann".into()))
    );
}

#[test]
fn rule_40_a_rejected_approval_offers_no_settle() {
    let mut case = asking("on_rejected = \"hold\"", false);
    decide(&mut case, Action::Reject, "ann");
    assert!(Action::allowed(&case.task).all(|action| action != Action::Settle));
}

#[test]
fn only_the_newest_message_about_a_wait_is_owed() {
    let mut case = asking("on_rejected = \"hold\"", true);
    decide(&mut case, Action::Reject, "ann");
    case.resubmit();
    let waiting = case.task.unsent.iter().filter(|notice| notice.kind.name() == "OrderWaiting").count();
    assert_eq!(waiting, 1);
}
