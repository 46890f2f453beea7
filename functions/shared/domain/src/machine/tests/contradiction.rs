//! Results that contradict how a step or its order ended (rule 5).

use crate::machine::Verdict;
use crate::machine::testing::{Case, done, failed};
use crate::message::{Failure, Outcome, Reply, Settled};
use crate::situation::Situation;
use crate::tally::Tally;
use crate::task::{Direction, ProcessState, StepState, Task, Watch, What};

fn lines(task: &Task) -> usize {
    task.history.iter().filter(|line| matches!(line.what, What::Contradicted(_))).count()
}

/// Takes a reply, and says what followed: the lines that it added, and the notices that it sends. Nothing else may.
fn takes(case: &mut Case, reply: &Reply) -> (usize, Vec<&'static str>) {
    let before = case.task.clone();
    assert!(matches!(case.take(reply), Verdict::Dropped(_)));
    let after = &case.task;
    assert_eq!(
        (after.process_state, &after.steps, &after.reason),
        (before.process_state, &before.steps, &before.reason)
    );
    assert_eq!((case.requested(), case.wakes()), (vec![], vec![]), "no step starts");
    (lines(after) - lines(&before), case.notified())
}

fn forward(case: &Case, name: &str, outcome: Outcome) -> Reply {
    Reply { direction: Direction::Forward, ..case.reply_of(name, outcome) }
}

fn told() -> (usize, Vec<&'static str>) {
    (1, vec!["OrderNeedsOperator"])
}

/// An order of one step that is compensated, whose step was never known to be done.
fn compensated() -> Case {
    let mut case = Case::new(&[("a", &[], "")], false);
    case.wake();
    case.cancel();
    case.retry_all();
    case.done("a");
    case.all_sent();
    assert_eq!(case.state(), ProcessState::Compensated);
    case
}

#[test]
fn rule_5_a_first_success_after_the_undo_is_told_once_and_changes_nothing_else() {
    let mut case = compensated();
    let paid = forward(&case, "a", done());
    assert_eq!(takes(&mut case, &paid), told());
    assert_eq!(takes(&mut case, &paid), (0, vec![]), "a repeat");
    assert!(case.task.is_contradicted());
    assert_eq!(case.task.watch, Some(Watch::Due(0)), "each deployment has a supervisor that sends the alert again");
    let Situation { text, to_do, waits, .. } = Situation::of(&case.task);
    assert!(text.contains("for a: it is reported done after its undo began") && to_do.is_some() && !waits, "{text}");
    case.all_sent();
    assert!(case.task.watch.is_none() && case.task.unsent.is_empty());
}

#[test]
fn rule_5_a_repeat_of_a_success_that_was_known_before_its_undo_is_no_contradiction() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "")], false);
    case.wake();
    let paid = case.reply_of("a", done());
    case.take(&paid);
    case.rejected("b");
    for name in ["b", "a"] {
        case.retry_all();
        case.done(name);
    }
    assert_eq!(case.state(), ProcessState::Compensated);
    assert_eq!(takes(&mut case, &paid), (0, vec![]));
    let late_no = forward(&case, "a", failed());
    assert_eq!(takes(&mut case, &late_no), (0, vec![]), "what is undone had no effect");
}

#[test]
fn rule_5_before_the_undo_began_a_success_is_what_the_undo_is_for() {
    for is_in_time in [true, false] {
        let mut case = Case::new(&[("a", &[], "")], false);
        case.wake();
        case.cancel();
        let paid = forward(&case, "a", done());
        if is_in_time {
            assert_eq!(case.take(&paid), Verdict::Taken);
        }
        case.retry_all();
        let told = if is_in_time { (0, vec![]) } else { told() };
        assert_eq!(takes(&mut case, &paid), told, "the undo may have come first, or it is known");
    }
}

#[test]
fn rule_5_a_no_after_a_success_is_told_and_one_of_an_earlier_attempt_is_not() {
    let mut case = Case::new(&[("a", &[], "max_failures = 3")], false);
    case.wake();
    case.expire_all();
    case.retry_all();
    case.done("a");
    assert_eq!(case.state(), ProcessState::Processed);
    let earlier = Reply { attempt: 1, ..case.reply_of("a", failed()) };
    assert_eq!(takes(&mut case, &earlier), (0, vec![]), "it was overtaken");
    let no = case.reply_of("a", failed());
    assert_eq!(takes(&mut case, &no), told());
    assert_eq!(takes(&mut case, &no), (0, vec![]));
}

#[test]
fn rule_5_a_refused_undo_after_its_success_is_told() {
    let mut case = compensated();
    let no = case.reply_of("a", failed());
    assert_eq!((no.direction, takes(&mut case, &no)), (Direction::Undo, told()));
    // What came of the other direction is told too.
    let paid = forward(&case, "a", done());
    assert_eq!(takes(&mut case, &paid), told());
}

#[test]
fn rule_5_a_success_after_the_step_was_given_up_skipped_or_closed_is_told() {
    let mut held = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    held.wake();
    held.rejected("a");
    let no = held.reply_of("a", failed());
    assert_eq!(takes(&mut held, &no), (0, vec![]), "a repeat of the same no");
    let paid = held.reply_of("a", done());
    assert_eq!(takes(&mut held, &paid), told());

    let mut skipped = Case::new(&[("a", &[], "optional = true")], false);
    skipped.wake();
    skipped.rejected("a");
    assert_eq!((skipped.state(), skipped.step("a").process_state), (ProcessState::Processed, StepState::Skipped));
    let paid = skipped.reply_of("a", done());
    assert_eq!(takes(&mut skipped, &paid), told());

    let close = || {
        let mut closed = Case::new(&[("a", &[], ""), ("b", &[], "on_rejected = \"hold\"")], false);
        closed.wake();
        closed.rejected("b");
        closed.pass_ms(1_000_000_000);
        closed.apply_command(crate::message::Action::Close, Some(closed.task.version));
        assert_eq!((closed.state(), closed.step("a").process_state), (ProcessState::Closed, StepState::Processing));
        closed
    };
    let mut closed = close();
    let no = closed.reply_of("a", failed());
    assert_eq!(takes(&mut closed, &no), (0, vec![]));
    let paid = closed.reply_of("a", done());
    assert_eq!(takes(&mut closed, &paid), told());

    let mut before_its_undo = close();
    let step = &mut before_its_undo.task.steps[0];
    (step.direction, step.process_state, step.started_at) = (Direction::Undo, StepState::Pending, None);
    (step.locked_by, step.complete_by) = (None, None);
    let paid = forward(&before_its_undo, "a", done());
    assert_eq!(takes(&mut before_its_undo, &paid), told());
}

#[test]
fn rule_5_the_rejection_that_an_operator_settled_is_known_and_another_one_is_not() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    let no = case.reply_of("a", failed());
    case.take(&no);
    case.pass_ms(1_000_000_000);
    assert_eq!(case.settle("a", Settled::Done, None), Verdict::Taken);
    assert_eq!(takes(&mut case, &no), (0, vec![]));
    let other = Outcome::Failed(Failure { code: "charged-back".into(), message: "no".into() });
    let other = case.reply_of("a", other);
    assert_eq!(takes(&mut case, &other), told());
}

#[test]
fn rule_5_nothing_that_says_no_result_and_nothing_forged_is_a_contradiction() {
    let mut case = compensated();
    let reply = |case: &Case, attempt, outcome| Reply { attempt, ..forward(case, "a", outcome) };
    let ahead = case.step("a").attempt + 1;
    for (attempt, outcome) in [
        (0, done()),
        (ahead, done()),
        (1, Outcome::Accepted(crate::message::Acceptance::default())),
        (1, Outcome::Retrying(crate::message::Trouble { problem: "HTTP 503".into() })),
    ] {
        let reply = reply(&case, attempt, outcome);
        assert_eq!(takes(&mut case, &reply), (0, vec![]), "{reply:?}");
    }
    let unknown = Reply { step: "z".into(), ..forward(&case, "a", done()) };
    assert_eq!(takes(&mut case, &unknown), (0, vec![]));

    let mut case = Case::new(&[("a", &[], "undo = \"none\"")], false);
    case.wake();
    case.cancel();
    case.retry_all();
    assert_eq!(case.state(), ProcessState::Compensated);
    let done = forward(&case, "a", done());
    assert_eq!(takes(&mut case, &done), (0, vec![]), "its effect may stay");
}

#[test]
fn rule_46_an_erased_order_sends_no_message_and_its_line_is_counted_once() {
    let mut case = compensated();
    case.apply_command(crate::message::Action::Erase, None);
    let (before, paid) = (case.task.clone(), forward(&case, "a", done()));
    assert_eq!(takes(&mut case, &paid), (1, vec![]));
    let mut tally = Tally::default();
    tally.count(Some(&before), &case.task);
    assert_eq!((tally.orders().contradicted, takes(&mut case, &paid)), (1, (0, vec![])));
}

#[test]
fn rule_46_what_was_known_before_an_erase_is_no_news_after_it() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "")], false);
    case.wake();
    case.done("a");
    case.cancel();
    case.retry_all();
    for name in ["b", "a"] {
        case.done(name);
        case.retry_all();
    }
    case.all_sent();
    assert_eq!(case.state(), ProcessState::Compensated);
    case.apply_command(crate::message::Action::Erase, None);
    let paid = forward(&case, "a", done());
    assert_eq!(takes(&mut case, &paid), (0, vec![]));
}

#[test]
fn rule_26_a_contradiction_is_counted_once() {
    let mut case = compensated();
    let before = case.task.clone();
    let paid = forward(&case, "a", done());
    case.take(&paid);
    let mut tally = Tally::default();
    tally.count(Some(&before), &case.task);
    case.take(&paid);
    assert_eq!(tally.orders().contradicted, 1);
}
