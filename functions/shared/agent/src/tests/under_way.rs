//! Calls that are under way when their caller has no answer (rule 16).

use domain::limits::{LOOKED_MS_MAX, SETTLES_WITHIN_MS_DEFAULT};
use domain::message::{Acceptance, Deferral, Delivery, Failure, Outcome, Request};
use domain::time::Timestamp;

use crate::testing::{Act, START, World, delivery, done, request, retry};
use crate::{Answer, HealthPolicy, MemoPolicy};

/// What HTTP's 409 means: at work on an earlier call, or no.
fn conflict() -> Act {
    Act::Answer(Answer::UnderWay { after_ms: None, unless_alone: Some(no()), poll: None })
}

fn taken_on(after_ms: u64) -> Act {
    Act::Answer(Answer::UnderWay { after_ms: Some(after_ms), unless_alone: None, poll: None })
}

fn no() -> Failure {
    Failure { code: "in-use".into(), message: "no".into() }
}

fn declined() -> Act {
    Act::Answer(Answer::Fail(no()))
}

/// The outcome of a delivery, and the time until which a call may have its effect.
fn of_delivery(acts: impl IntoIterator<Item = Act>, delivery: Delivery<Request>) -> (Outcome, Option<Timestamp>) {
    let acts: Vec<Act> = acts.into_iter().collect();
    let calls = acts.len();
    let world = World::new(acts);
    assert!(world.handle(vec![delivery]).is_empty(), "let go");
    assert_eq!(world.seen().len(), calls, "the whole script was played");
    let [reply] = world.replies().try_into().unwrap();
    (reply.outcome, reply.may_run_until)
}

fn of(acts: impl IntoIterator<Item = Act>) -> (Outcome, Option<Timestamp>) {
    of_delivery(acts, delivery("m", request()))
}

fn settled(started_after_ms: u64) -> Option<Timestamp> {
    Some(START.plus_ms(started_after_ms + SETTLES_WITHIN_MS_DEFAULT))
}

#[test]
fn f62_a_conflict_while_an_earlier_call_may_be_at_work_is_no_rejection() {
    let (outcome, may_run_until) = of([Act::Hang, conflict(), conflict(), Act::Answer(done())]);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    assert_eq!(may_run_until, settled(0), "a conflict does not extend it");
}

#[test]
fn a_conflict_without_an_earlier_call_is_a_rejection_and_a_duplicate_may_be_at_work() {
    let of_a_duplicate = settled(LOOKED_MS_MAX);
    assert_eq!(of([conflict()]), (Outcome::Failed(no()), of_a_duplicate));
    assert_eq!(of([Act::Answer(retry()), conflict()]), (Outcome::Failed(no()), of_a_duplicate), "503 is an answer");
}

#[test]
fn a_conflict_after_the_last_call_has_settled_is_a_rejection() {
    let settled_at = |at| delivery("m", Request { may_run_until: Some(at), ..request() });
    let (outcome, _) = of_delivery([conflict(), Act::Answer(done())], settled_at(START.plus_ms(1)));
    assert!(matches!(outcome, Outcome::Done(_)), "an attempt before this one may have called");
    let (outcome, _) = of_delivery([conflict()], settled_at(START));
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
}

#[test]
fn an_earlier_delivery_may_have_called() {
    let second = Delivery { receive_count: 2, ..delivery("m", request()) };
    let (outcome, may_run_until) = of_delivery([conflict(), Act::Answer(done())], second);
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
    assert_eq!(may_run_until, settled(0));
}

#[test]
fn an_instance_remembers_what_came_of_the_calls_before_it_returned_a_request() {
    let failing = || Act::Answer(Answer::Retry { after_ms: Some(700), problem: "503".to_owned() });
    let busy = || Act::Answer(Answer::UnderWay { after_ms: Some(700), unless_alone: Some(no()), poll: None });
    let unknown = || Act::Answer(Answer::Unknown { after_ms: Some(700), problem: "504".to_owned() });
    let after = |acts: Vec<Act>, deliveries: &[u32]| {
        let world = World::new(acts).with_policy(|policy| policy.wait_in_invocation_ms_max = 0);
        let instance = world.instance();
        for receive_count in deliveries {
            instance.handle(vec![Delivery { receive_count: *receive_count, ..delivery("m", request()) }]);
        }
        assert_eq!(world.seen().len(), deliveries.len(), "one call for each");
        world.outcomes()
    };
    let rejected = [Outcome::Failed(no())];
    assert_eq!(after(vec![failing(), busy()], &[1, 2]), rejected, "503 is an answer");
    assert_eq!(after(vec![failing(), failing(), busy()], &[1, 2, 3]), rejected);
    assert_eq!(after(vec![unknown(), busy()], &[1, 2]), [], "504 is none: the call may be at work");
    assert_eq!(after(vec![unknown(), failing(), busy()], &[1, 2, 3]), []);
    assert_eq!(after(vec![failing(), busy()], &[1, 3]), [], "another instance may have called in between");
}

#[test]
fn f61_a_rejection_says_until_when_a_call_before_it_may_have_its_effect() {
    assert_eq!(of([declined()]), (Outcome::Failed(no()), None));
    assert_eq!(of([Act::Answer(retry()), declined()]), (Outcome::Failed(no()), None), "503 is an answer");
    assert_eq!(of([Act::Hang, declined()]), (Outcome::Failed(no()), settled(0)));
    let unknown = Act::Answer(Answer::unknown("connection reset"));
    assert_eq!(of([unknown, declined()]), (Outcome::Failed(no()), settled(0)));
    assert_eq!(of([taken_on(0), declined()]), (Outcome::Failed(no()), settled(0)));
    let slow = Request { settles_within_ms: 3_600_000, ..request() };
    let (_, may_run_until) = of_delivery([Act::Hang, declined()], delivery("m", slow));
    assert_eq!(may_run_until, Some(START.plus_ms(3_600_000)));
}

#[test]
fn f63_a_call_that_was_taken_on_is_asked_for_again_not_before_the_service_says_and_costs_no_failure() {
    let world = World::new([taken_on(700), taken_on(700), Act::Answer(done())]);
    assert!(world.handle(vec![delivery("m", request())]).is_empty());
    assert_eq!(world.call_times_ms(), [0, 700, 1_400]);
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Done(_)]));
    assert_eq!(world.troubles(), [], "nothing is wrong");

    // It would be asked for again after the deadline: the attempt is given back.
    let (outcome, _) = of([taken_on(60_000)]);
    assert_eq!(outcome, Outcome::Deferred(Deferral::after(60_000)));
}

#[test]
fn an_attempt_that_ends_at_a_conflict_is_given_back_until_its_calls_have_settled() {
    let busy = Act::Answer(Answer::UnderWay { after_ms: Some(20_000), unless_alone: Some(no()), poll: None });
    let earlier = Request { may_run_until: Some(START.plus_ms(100_000)), ..request() };
    let (outcome, _) = of_delivery([busy], delivery("m", earlier));
    let wait_ms = START.ms_until(request().complete_by) + SETTLES_WITHIN_MS_DEFAULT;
    assert_eq!(outcome, Outcome::Deferred(Deferral::after(wait_ms)), "so that the next attempt can tell a no");
}

#[test]
fn an_attempt_whose_retries_end_at_a_conflict_is_given_back_until_its_calls_have_settled_too() {
    let busy = Act::Answer(Answer::UnderWay { after_ms: None, unless_alone: Some(no()), poll: None });
    let world = World::new([busy]).with_policy(|policy| policy.retries_max = 0);
    let earlier = Request { may_run_until: Some(START.plus_ms(100_000)), ..request() };
    assert!(world.handle(vec![delivery("m", earlier)]).is_empty());
    let wait_ms = START.ms_until(request().complete_by) + SETTLES_WITHIN_MS_DEFAULT;
    assert_eq!(world.outcomes(), [Outcome::Deferred(Deferral::after(wait_ms))]);
}

#[test]
fn f64_an_attempt_that_ends_at_a_fault_of_the_configuration_is_given_back() {
    let refused = Act::Answer(Answer::misconfigured("HTTP 401"));
    let world = World::new([refused]).with_policy(|policy| policy.retries_max = 0);
    assert!(world.handle(vec![delivery("m", request())]).is_empty());
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Deferred(_)]), "{:?}", world.outcomes());
}

#[test]
fn f64_a_fault_of_the_configuration_counts_as_a_failure_of_the_service_and_never_as_a_rejection() {
    let refused = || Act::Answer(Answer::misconfigured("HTTP 401"));
    let world = World::new([refused(), refused()]).with_policy(|policy| {
        policy.health = HealthPolicy { failures_to_open: 2, ..HealthPolicy::default() };
    });
    let left = world.handle(vec![delivery("m", request())]);
    assert_eq!((left.len(), world.outcomes().len(), world.seen().len()), (1, 0, 2), "parked by the open breaker");
}

fn not_called() -> Act {
    Act::Answer(Answer::NotCalled { problem: "too many open files".into() })
}

#[test]
fn f70_a_call_that_could_not_be_made_is_made_later_and_is_no_failure_of_its_service() {
    let world = World::new([not_called(), not_called(), Act::Answer(done())])
        .with_policy(|policy| policy.health.failures_to_open = 1);
    assert!(world.handle(vec![delivery("m", request())]).is_empty());
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Done(_)]), "{:?}", world.outcomes());
    let world = World::new([not_called()]).with_policy(|policy| {
        policy.retries_max = 0;
        policy.health.failures_to_open = 1;
    });
    assert!(world.handle(vec![delivery("m", request())]).is_empty());
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Deferred(_)]), "{:?}", world.outcomes());
    assert!(world.health_record().is_none_or(|health| health.failures_in_a_row == 0));
}

#[test]
fn f70_a_call_that_could_not_be_made_in_time_is_given_back_and_not_cut_off() {
    let wanting = |ms| Act::after(move |world| world.pass_ms(ms), not_called());
    for (ms, calls) in [(2_500, 3), (2_501, 2)] {
        let world = World::new([wanting(ms), wanting(ms), Act::Answer(done())]);
        assert!(world.handle(vec![delivery("m", request())]).is_empty());
        assert_eq!(world.seen().len(), calls, "5 s of its 10 must be left");
        let (is_done, is_told) = (matches!(world.outcomes()[..], [Outcome::Done(_)]), !world.troubles().is_empty());
        assert_eq!((is_done, is_told), (calls == 3, calls == 2), "{:?}", world.outcomes());
    }
    // The same on its queue: it waits 3.1 s, and may come back a second late.
    for (ms, parked) in [(900, true), (901, false)] {
        let world = World::new([wanting(ms)]).drawing([u64::MAX]).with_policy(|policy| {
            policy.backoff.slot_time_ms = 3_100;
            policy.wait_in_invocation_ms_max = 0;
        });
        assert_eq!(!world.handle(vec![delivery("m", request())]).is_empty(), parked, "{ms}");
        assert_eq!(world.outcomes().len(), usize::from(!parked), "{ms}");
    }
}

#[test]
fn rule_32_a_call_that_was_sent_is_not_blamed_for_one_that_could_not_be_made() {
    let world = World::new([not_called(), not_called(), Act::Hang, Act::Hang]);
    assert!(world.handle(vec![delivery("m", request())]).is_empty());
    assert_eq!((world.seen().len(), world.outcomes().len()), (4, 0), "the calls failed");
    assert_eq!(world.troubles(), []);
}

#[test]
fn rule_36_a_call_that_was_taken_on_is_accepted_where_the_result_may_come_later() {
    let patient = || Request { wait_within_ms: Some(86_400_000), ..request() };
    let accepted = Outcome::Accepted(Acceptance::default());
    assert_eq!(of_delivery([taken_on(700)], delivery("m", patient())), (accepted.clone(), settled(0)));
    assert_eq!(of_delivery([Act::Answer(retry()), taken_on(0)], delivery("m", patient())).0, accepted);
    let (outcome, _) = of_delivery([Act::Hang, conflict(), Act::Answer(done())], delivery("m", patient()));
    assert!(matches!(outcome, Outcome::Done(_)), "a conflict is asked again: {outcome:?}");
}

#[test]
fn rule_36_a_conflict_after_a_lost_answer_is_awaited_like_the_202_that_it_may_have_been() {
    let waits_ms = 86_400_000;
    let patient = Request { wait_within_ms: Some(waits_ms), ..request() };
    let settled_at = |at| Request { may_run_until: Some(at), ..patient.clone() };
    let accepted = Outcome::Accepted(Acceptance::default());
    assert_eq!(of_delivery([conflict()], delivery("m", settled_at(START))), (accepted.clone(), settled(0)));
    let world = World::new([conflict()]);
    assert!(world.handle(vec![delivery("m", settled_at(START))]).is_empty());
    assert_eq!(
        world.troubles(),
        [(3, "no: taken for a 202, as an answer got lost before".into())],
        "a person sees why"
    );
    let over = START.plus_ms(SETTLES_WITHIN_MS_DEFAULT).minus_ms(waits_ms);
    assert_eq!(of_delivery([conflict()], delivery("m", settled_at(over.plus_ms(1)))).0, accepted);
    let rejected = Outcome::Failed(no());
    assert_eq!(of_delivery([conflict()], delivery("m", settled_at(over))).0, rejected, "it was awaited");
    assert_eq!(of_delivery([conflict()], delivery("m", patient.clone())).0, rejected, "no call before it");
    let world = World::new([conflict()]).with_policy(|policy| policy.memo = Some(MemoPolicy::default()));
    assert!(world.handle(vec![delivery("m", settled_at(START))]).is_empty());
    assert_eq!(world.outcomes(), [rejected], "a memo knows no such calls");
}

#[test]
fn rule_36_an_agent_with_a_memo_asks_again_for_a_call_that_was_taken_on() {
    let world = World::new([taken_on(700), Act::Answer(done())])
        .with_policy(|policy| policy.memo = Some(MemoPolicy::default()));
    let patient = Request { wait_within_ms: Some(86_400_000), ..request() };
    assert!(world.handle(vec![delivery("m", patient)]).is_empty());
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Done(_)]), "{:?}", world.outcomes());
}
