//! Rule 38: results that come to the address of a call.

use crate::callback::{Awaited, NotTaken};
use crate::limits::SETTLES_WITHIN_MS_DEFAULT;
use crate::machine::testing::{Case, done, failed};
use crate::machine::{Dropped, Verdict};
use crate::message::{Acceptance, Outcome, Reply};
use crate::task::{Direction, ProcessState};

/// a, whose result may come later, then b.
fn patient() -> Case {
    Case::new(&[("a", &[], "wait_within = \"2d\""), ("b", &["a"], "")], false)
}

fn told(case: &Case, step: &str, direction: Direction, outcome: Outcome) -> Result<Reply, Dropped> {
    let awaited = Awaited { order_id: case.task.order_id, step: step.into(), direction, agent: None };
    match awaited.reply(&case.task, outcome) {
        Ok((reply, None)) => Ok(reply),
        Ok((_, Some(dropped))) | Err(NotTaken::Dropped(dropped)) => Err(dropped),
        Err(not_taken) => panic!("{not_taken}"),
    }
}

/// The result of a, forward.
fn told_of_a(case: &Case, outcome: Outcome) -> Result<Reply, Dropped> {
    told(case, "a", Direction::Forward, outcome)
}

fn accepted() -> Outcome {
    Outcome::Accepted(Acceptance::default())
}

#[test]
fn rule_38_a_result_counts_before_and_after_the_service_took_the_call_on_and_once() {
    for is_early in [true, false] {
        let mut case = patient();
        case.wake();
        if !is_early {
            let reply = case.reply_of("a", accepted());
            case.take(&reply);
        }
        let reply = told_of_a(&case, done()).unwrap();
        assert_eq!(reply.may_run_until.is_some(), is_early, "an early result comes while the call is under way");
        assert_eq!((case.take(&reply), case.requested()), (Verdict::Taken, vec!["b"]));
        assert_eq!(told_of_a(&case, done()), Err(Dropped::Closed), "the second one");
        assert_eq!(case.take(&reply), Verdict::Dropped(Dropped::Closed), "and as the scheduler sees it");
    }
}

#[test]
fn rule_16_the_undo_after_an_early_result_waits_for_the_call() {
    // No call begins more than a second after the result, nor after the end of the attempt.
    for (told_ms, begins_ms) in [(0, 1_000), (2_000, 3_000), (9_500, 10_000)] {
        let mut case = patient();
        case.wake();
        let settled = case.now.plus_ms(begins_ms + SETTLES_WITHIN_MS_DEFAULT);
        case.pass_ms(told_ms);
        let reply = told_of_a(&case, done()).unwrap();
        case.take(&reply);
        case.pass_ms(5_000);
        case.rejected("b");
        assert_eq!((case.step("a").direction, case.step("a").not_before), (Direction::Undo, Some(settled)));
    }
}

#[test]
fn rule_16_a_heartbeat_before_the_answer_to_the_call_leaves_it_open_and_a_later_one_opens_none() {
    let mut case = patient();
    case.wake();
    let settled = case.now.plus_ms(1_000 + SETTLES_WITHIN_MS_DEFAULT);
    for _ in 0..3 {
        let beat = told_of_a(&case, accepted()).unwrap();
        case.take(&beat);
        assert_eq!(case.step("a").may_run_until, Some(settled));
        case.pass_ms(5_000);
    }
    case.cancel();
    assert_eq!((case.step("a").direction, case.step("a").not_before), (Direction::Undo, Some(settled)));
}

#[test]
fn rule_38_a_no_counts_for_the_attempt_in_flight_alone() {
    let mut case = patient();
    assert_eq!(told_of_a(&case, done()), Err(Dropped::UnknownAttempt), "no call was made");
    case.wake();
    case.expire_all();
    assert_eq!(told_of_a(&case, failed()), Err(Dropped::StaleFailure), "it is asked for again");
    assert!(told_of_a(&case, done()).is_ok());
    case.retry_all();
    let reply = told_of_a(&case, failed()).unwrap();
    assert_eq!((case.take(&reply), case.state()), (Verdict::Taken, ProcessState::Compensating));
    let for_the_undo = told_of_a(&case, done()).unwrap();
    assert_eq!((case.take(&for_the_undo), case.step("a").output.is_some()), (Verdict::Taken, true));
    assert_eq!(told_of_a(&case, done()), Err(Dropped::OtherDirection));
}

#[test]
fn rule_38_after_a_cancel_only_the_undo_is_told() {
    let mut case = patient();
    case.wake();
    let reply = case.reply_of("a", accepted());
    case.take(&reply);
    case.pass_ms(3_600_000);
    case.cancel();
    assert_eq!(told_of_a(&case, done()), Err(Dropped::OtherDirection));
    let undone = told(&case, "a", Direction::Undo, done()).unwrap();
    assert_eq!((case.take(&undone), case.state()), (Verdict::Taken, ProcessState::Compensated));
    assert_eq!(told(&case, "a", Direction::Undo, done()), Err(Dropped::Finished));
}

#[test]
fn rule_38_a_heartbeat_extends_the_wait_of_a_call_in_flight() {
    let mut case = patient();
    case.wake();
    for _ in 0..2 {
        let beat = told_of_a(&case, accepted()).unwrap();
        assert_eq!(case.take(&beat), Verdict::Taken);
        assert_eq!(case.step("a").waits_until, Some(case.now.plus_ms(2 * 86_400_000)));
        case.pass_ms(86_400_000);
    }
    assert_eq!(told(&case, "b", Direction::Forward, accepted()), Err(Dropped::UnknownAttempt));
    assert_eq!(told(&case, "c", Direction::Forward, accepted()), Err(Dropped::UnknownStep));
}

#[test]
fn rule_41_the_webhook_of_an_agent_tells_results_of_its_own_steps_alone() {
    let mut case = patient();
    case.wake();
    let told_by = |agent: &str| {
        let agent = Some(agent.into());
        let awaited = Awaited { order_id: case.task.order_id, step: "a".into(), direction: Direction::Forward, agent };
        awaited.reply(&case.task, done()).map(|(reply, _)| reply.attempt)
    };
    let own = case.task.steps[0].agent.clone();
    assert_eq!((told_by(&own), told_by("another")), (Ok(1), Err(NotTaken::OtherAgent)));
}
