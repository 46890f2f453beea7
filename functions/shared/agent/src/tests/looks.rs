//! Looks at a call that was taken on (rule 36).

use std::sync::Arc;

use domain::message::{Acceptance, Deferral, Failure, Look, Outcome, Request};
use domain::output::OUTPUT_TOO_LARGE;
use domain::ports::Breaker;
use domain::task::Step;

use super::over::{change_step, turn_round, with_task};
use crate::testing::{Act, START, World, delivery, done, json, request, retry};
use crate::{Answer, HealthPolicy};

fn look() -> Request {
    Request { look: Some(Look { path: "/t/7".into(), answers: Vec::new() }), ..request() }
}

fn no() -> Failure {
    Failure { code: "declined".into(), message: "no".into() }
}

/// A world whose step is awaited.
fn awaited(acts: impl IntoIterator<Item = Act>) -> World {
    let world = with_task(World::new(acts));
    change_step(&world, |step: &mut Step| step.waits_until = Some(START.plus_ms(60_000)));
    world
}

/// What a look with these acts replies, and tells operators.
fn looked(acts: impl IntoIterator<Item = Act>) -> (Vec<Outcome>, Vec<Arc<str>>) {
    let world = awaited(acts);
    assert!(world.handle(vec![delivery("m", look())]).is_empty(), "let go");
    assert!(world.seen().iter().all(|call| call.is_look && call.callback_url.is_none()));
    assert!(world.replies().iter().all(|reply| (reply.may_run_until, reply.call_ms) == (None, None)));
    (world.outcomes(), world.troubles().into_iter().map(|(_, problem)| problem).collect())
}

#[test]
fn rule_36_a_look_replies_a_result_and_nothing_else() {
    assert_eq!(looked([Act::Answer(done())]), (vec![Outcome::Done(json("{\"Receipt\":7}"))], vec![]));
    assert_eq!(looked([Act::Answer(Answer::Fail(no()))]), (vec![Outcome::Failed(no())], vec![]));
    assert_eq!(looked([Act::Answer(Answer::under_way())]), (vec![], vec![]));
    for (act, problem) in [
        (Act::Answer(Answer::misconfigured("HTTP 404 Not Found")), "look at the state: HTTP 404 Not Found"),
        (Act::Panic, "look at the state: the service's caller panicked"),
        (Act::Answer(Answer::fail(OUTPUT_TOO_LARGE, "it is too large")), "look at the state: it is too large"),
    ] {
        assert_eq!(looked([act]), (vec![], vec![problem.into()]));
    }
}

#[test]
fn rule_36_a_look_that_fails_is_repeated_while_its_wait_is_short() {
    assert_eq!(looked([Act::Answer(retry()), Act::Answer(done())]).0.len(), 1);
    let asked_later = Answer::Retry { after_ms: Some(5_000), problem: "HTTP 503".to_owned() };
    let wait = Outcome::Deferred(Deferral::after(5_000));
    assert_eq!(looked([Act::Answer(asked_later)]), (vec![wait], vec!["look at the state: HTTP 503".into()]));
}

#[test]
fn rule_36_a_look_that_comes_late_or_finds_no_place_is_put_off() {
    let late = awaited([]);
    late.pass_ms(3_600_000);
    assert!(late.handle(vec![delivery("m", look())]).is_empty());
    assert_eq!((late.seen().len(), late.outcomes()), (0, vec![Outcome::Deferred(Deferral::after(0))]));
    // Its order may have turned round meanwhile.
    let late = awaited([]);
    turn_round(&late);
    late.pass_ms(3_600_000);
    assert!(late.handle(vec![delivery("m", look())]).is_empty());
    assert_eq!(late.outcomes(), vec![]);
    let no_place = || Act::Answer(Answer::NotCalled { problem: "no file".to_owned() });
    let world = awaited(std::iter::repeat_with(no_place).take(99)).with_policy(|policy| policy.retries_max = 1);
    assert!(world.handle(vec![delivery("m", look())]).is_empty());
    assert!(matches!(world.outcomes()[..], [Outcome::Deferred(_)]), "{:?}", world.outcomes());
}

#[test]
fn rule_36_no_look_is_made_of_what_is_not_awaited_any_more() {
    for change in [
        turn_round as fn(&World),
        |world| change_step(world, |step| step.waits_until = None),
        |world| change_step(world, |step| step.attempt += 1),
    ] {
        let world = awaited([]);
        change(&world);
        world.pass_ms(2_000);
        assert!(world.handle(vec![delivery("m", look())]).is_empty());
        assert_eq!((world.seen().len(), world.outcomes()), (0, vec![]));
    }
    let world = awaited([Act::Answer(done())]);
    world.pass_ms(2_000);
    assert!(world.handle(vec![delivery("m", look())]).is_empty());
    assert_eq!((world.seen().len(), world.outcomes().len()), (1, 1));
}

#[test]
fn rule_36_a_look_says_nothing_about_the_health_of_its_service() {
    let world =
        awaited([Act::Answer(Answer::misconfigured("HTTP 401")), Act::Answer(Answer::misconfigured("HTTP 401"))]);
    let world = world.with_policy(|policy| policy.health = HealthPolicy { failures_to_open: 1, ..policy.health });
    for id in ["m", "n"] {
        assert!(world.handle(vec![delivery(id, look())]).is_empty());
    }
    assert!(world.health_record().is_none_or(|record| record.state == Breaker::Closed));
}

#[test]
fn rule_36_an_open_breaker_holds_up_no_look_and_a_look_is_no_probe() {
    let failing = Act::Answer(Answer::Retry { after_ms: None, problem: "HTTP 503".to_owned() });
    let world = awaited([failing, Act::Answer(done()), Act::Answer(done())]);
    let world = world.with_policy(|policy| {
        policy.health = HealthPolicy { failures_to_open: 1, ..policy.health };
        policy.retries_max = 0;
    });
    change_step(&world, |step: &mut Step| step.waits_until = None);
    world.handle(vec![delivery("call", request())]);
    let opened = world.health_record().unwrap();
    assert_eq!(opened.state, Breaker::Open);
    change_step(&world, |step: &mut Step| step.waits_until = Some(START.plus_ms(60_000)));
    let calls = world.seen().len();
    assert!(world.handle(vec![delivery("m", look())]).is_empty());
    let open_ms = opened.since.ms_until(opened.until);
    world.pass_ms(open_ms);
    let complete_by = look().complete_by.plus_ms(open_ms);
    assert!(world.handle(vec![delivery("n", Request { complete_by, ..look() })]).is_empty());
    assert_eq!(world.seen().len(), calls + 2, "when the probe is due, it is none");
    assert_eq!(world.health_record().unwrap(), opened);
}

#[test]
fn rule_36_an_agent_says_where_the_state_is_asked_or_why_nowhere() {
    let accepted = |poll: Option<Result<Arc<str>, String>>| {
        let act = Act::Answer(Answer::UnderWay { after_ms: None, unless_alone: None, poll });
        let world = with_task(World::new([act]));
        let patient = Request { wait_within_ms: Some(86_400_000), ..request() };
        assert!(world.handle(vec![delivery("m", patient)]).is_empty());
        let [Outcome::Accepted(Acceptance { poll })] = &world.outcomes()[..] else { panic!("{:?}", world.outcomes()) };
        (poll.clone(), world.troubles().into_iter().map(|(_, problem)| problem).collect::<Vec<_>>())
    };
    assert_eq!(accepted(None), (None, vec![]));
    assert_eq!(accepted(Some(Ok("/t/7".into()))), (Some("/t/7".into()), vec![]));
    let problem = "the state is not asked: another host".into();
    assert_eq!(accepted(Some(Err("another host".to_owned()))), (None, vec![problem]));
}
