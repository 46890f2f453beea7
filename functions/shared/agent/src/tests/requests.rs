//! The rules of an agent, each under its name.

use std::iter::repeat_n;
use std::sync::Arc;

use domain::limits::{DEFERRAL_MS_MAX, ERROR_CHARS_MAX, NESTING_MAX, OUTPUT_BYTES_MAX};
use domain::message::{Deferral, Delivery, Failure, Outcome, Reply, Request, Undecodable, decode, idempotency_key};
use domain::task::Direction;

use crate::testing::{Act, START, World, delivery, done, drive, json, request, retry};
use crate::{Agent, Answer, OUTPUT_TOO_LARGE, Policy, WAIT_IN_INVOCATION_MS_MAX};

/// Whether one request in its first delivery is to be delivered again.
fn handle_one(world: &World, request: Request) -> bool {
    !world.handle(vec![delivery("m", request)]).is_empty()
}

fn redelivery(receive_count: u32) -> Delivery<Request> {
    Delivery { receive_count, ..delivery("m", request()) }
}

fn failure(world: &World) -> Failure {
    match world.outcomes().as_slice() {
        [Outcome::Failed(failure)] => failure.clone(),
        other => panic!("one failure expected, got {other:?}"),
    }
}

#[test]
fn a_success_is_replied_with_its_output_and_the_message_let_go() {
    let world = World::new([Act::Answer(done())]);
    assert!(!handle_one(&world, request()));
    let reply = request().reply(Outcome::Done(json("{\"Receipt\":7}")));
    assert_eq!(world.replies(), [Reply { call_ms: Some(0), ..reply }]);
    assert_eq!((world.seen().len(), world.slept_ms().len()), (1, 0));
}

#[test]
fn f71_a_call_has_the_time_that_the_service_sees() {
    let world = World::new([Act::Answer(done())]);
    world.jump(3_600_000);
    handle_one(&world, request());
    assert_eq!(world.call_times_ms(), [3_600_000]);
}

#[test]
fn a_reply_says_how_long_the_call_took_that_brought_its_outcome() {
    let no = || Answer::Fail(Failure { code: "no".into(), message: "no".into() });
    for (last, call_ms) in [(Act::Within(700, done()), 700), (Act::Within(40, no()), 40)] {
        let world = World::new([Act::Within(90, retry()), last]);
        handle_one(&world, request());
        let last = world.replies().pop().unwrap();
        assert_eq!(last.call_ms, Some(call_ms), "{:?}", last.outcome);
    }
}

#[test]
fn of_a_large_answer_only_what_the_request_keeps_is_replied_and_has_to_fit() {
    let answer = format!("{{\"id\":1.10,\"page\":\"{}\"}}", "x".repeat(OUTPUT_BYTES_MAX));
    let outcome = |keep: &str| {
        let world = World::new([Act::Answer(Answer::Done(json(&answer)))]);
        handle_one(&world, Request { keep: decode(keep.as_bytes()).unwrap(), ..request() });
        world.outcomes().remove(0)
    };
    assert_eq!(outcome(r#"{"ID":"/id","Old":"/old?"}"#), Outcome::Done(json(r#"{"ID":1.10}"#)));
    for keep in [r#"{"All":"/page"}"#, "null"] {
        let Outcome::Failed(failure) = outcome(keep) else { panic!("too large") };
        assert!(&*failure.code == OUTPUT_TOO_LARGE && failure.message.contains("limit of 16384"), "{failure:?}");
    }
}

#[test]
fn an_undo_request_undoes() {
    let undo = Request {
        direction: Direction::Undo,
        idempotency_key: idempotency_key(request().order_id, "charge-payment", Direction::Undo),
        ..request()
    };
    let world = World::new([Act::Answer(done())]);
    assert!(!handle_one(&world, undo.clone()));
    let seen = world.seen();
    assert_eq!((seen[0].direction, seen[0].key.as_str()), (Direction::Undo, &*undo.idempotency_key));
    assert_eq!(world.replies()[0].direction, Direction::Undo);
}

#[test]
fn f27_a_permanent_failure_is_replied_without_a_retry() {
    let world = World::new([Act::Answer(Answer::fail("card_declined", "no money"))]);
    assert!(!handle_one(&world, request()));
    assert_eq!(failure(&world), Failure { code: "card_declined".into(), message: "no money".into() });
    assert_eq!(world.seen().len(), 1);
}

#[test]
fn no_call_starts_after_complete_by_minus_margin() {
    for (at_ms, calls) in [(9_499, 1), (9_500, 0), (9_999, 0)] {
        let world = World::new([Act::Answer(done())]);
        world.pass_ms(at_ms);
        assert!(!handle_one(&world, request()), "let go at {at_ms}");
        assert_eq!((world.seen().len(), world.replies().len()), (calls, calls), "at {at_ms}");
    }
}

#[test]
fn no_retry_starts_after_complete_by_minus_margin() {
    let world = World::new(repeat_n(Act::Within(2_400, retry()), 9));
    assert!(!handle_one(&world, request()));
    assert_eq!(world.call_times_ms(), [0, 2_400, 4_800, 7_200]);
    assert!(world.replies().is_empty());
}

#[test]
fn f29_delivered_after_complete_by_it_is_dropped_without_a_call() {
    let world = World::new([]);
    world.pass_ms(60_000);
    assert!(!handle_one(&world, request()));
    assert!(world.replies().is_empty() && world.returned().is_empty());
}

#[test]
fn f28_after_complete_by_it_is_silent_even_about_errors() {
    for answer in [done(), Answer::fail("card_declined", "no money"), retry()] {
        for (frozen_ms, replies) in [(9_999, 1), (10_000, 0), (12_000, 0)] {
            let world = World::new([Act::Frozen(frozen_ms, answer.clone())]);
            assert!(!handle_one(&world, request()), "let go after {frozen_ms}");
            let replies = if answer == retry() { 0 } else { replies };
            assert_eq!(world.replies().len(), replies, "{answer:?} after {frozen_ms}");
            assert!(world.returned().is_empty());
        }
    }
}

#[test]
fn the_earlier_of_complete_by_and_budget_counts() {
    let late_clock = Request { complete_by: START.plus_ms(360_000), budget_ms: 2_000, ..request() };
    let early_clock = Request { complete_by: START.plus_ms(2_000), budget_ms: 360_000, ..request() };
    for request in [late_clock, early_clock] {
        let world = World::new([Act::Hang]);
        assert!(!handle_one(&world, request));
        assert_eq!(world.seen()[0].timeout_ms, 2_000);
        assert!(world.replies().is_empty());
    }
}

#[test]
fn rule_6_a_short_attempt_is_called_too_and_a_long_one_has_its_whole_margin() {
    for (budget_ms, last_ms) in [(100, 80), (500, 400), (1_000, 800), (2_500, 2_000), (10_000, 9_500)] {
        for (waited_ms, calls) in [(0, 1), (last_ms - 1, 1), (last_ms, 0)] {
            let patient = |policy: &mut Policy| policy.queued_percent_max = 100;
            let world = World::new([Act::Answer(done())]).with_policy(patient);
            world.pass_ms(waited_ms);
            handle_one(&world, Request { complete_by: START.plus_ms(budget_ms), budget_ms, ..request() });
            assert_eq!(world.seen().len(), calls, "{budget_ms} ms, after {waited_ms}");
        }
    }
}

#[test]
fn rule_16_a_success_of_which_the_step_cannot_keep_what_it_needs_is_asked_again() {
    let keep = || decode(br#"{"ID":"/id"}"#).unwrap();
    for lost in ["{}", r#"{"ID":7}"#, "null", r#"{"id":1,"id":2}"#] {
        let world = World::new([Act::Answer(Answer::Done(json(lost))), Act::Answer(Answer::Done(json(r#"{"id":7}"#)))]);
        handle_one(&world, Request { keep: keep(), ..request() });
        let [reply] = world.replies().try_into().unwrap();
        assert_eq!((reply.outcome, world.seen().len()), (Outcome::Done(json(r#"{"ID":7}"#)), 2));
        assert!(reply.may_run_until.is_some(), "the first call may still have its effect");
    }
    let world = World::new([Act::Answer(Answer::Done(json("{}")))]);
    handle_one(&world, Request { keep: None, ..request() });
    assert_eq!(world.outcomes(), [Outcome::Done(json("{}"))], "nothing is needed of it");
}

#[test]
fn a_call_is_given_up_after_its_time_out_or_at_the_deadline_and_asked_again() {
    let world = World::new([Act::Hang, Act::Hang]);
    assert!(!handle_one(&world, Request { complete_by: START.plus_ms(8_000), ..request() }));
    let timeouts_ms: Vec<u64> = world.seen().iter().map(|seen| seen.timeout_ms).collect();
    assert_eq!((world.call_times_ms(), timeouts_ms), (vec![0, 5_000], vec![5_000, 3_000]));
    assert!(world.replies().is_empty());
}

#[test]
fn after_a_time_out_the_next_call_gets_a_fresh_service_object() {
    let world = World::new([Act::Answer(retry()), Act::Hang, Act::Answer(done())]);
    assert!(!handle_one(&world, request()));
    let objects: Vec<usize> = world.seen().iter().map(|seen| seen.object).collect();
    assert_eq!(objects, [1, 1, 2]);
    assert_eq!(world.replies().len(), 1);
}

#[test]
fn a_short_wait_stays_in_the_invocation_a_long_one_goes_back_to_the_queue() {
    let world = World::new(repeat_n(Act::Answer(retry()), 4)).drawing([1, 2, 3, 4]);
    assert!(handle_one(&world, request()), "a parked message is not deleted");
    assert_eq!(world.slept_ms(), [100, 300, 700]);
    assert_eq!(world.call_times_ms(), [0, 100, 400, 1_100]);
    assert_eq!(world.returned(), [("payment".to_owned(), 1_500)]);
    assert!(world.replies().is_empty());
}

#[test]
fn exactly_the_longest_wait_allowed_stays_in_the_invocation() {
    for (after_ms, parked) in [(1_000, false), (1_001, true)] {
        let answer = Answer::Retry { after_ms: Some(after_ms), problem: "busy".to_owned() };
        let world = World::new([Act::Answer(answer), Act::Answer(done())]);
        assert_eq!(handle_one(&world, request()), parked);
        assert_eq!((world.returned().len(), world.replies().len()), if parked { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn retry_after_is_honoured() {
    let busy = |after_ms| Act::Answer(Answer::Retry { after_ms: Some(after_ms), problem: "busy".to_owned() });
    for answer in [
        Answer::Unknown { after_ms: Some(7_000), problem: "HTTP 504".to_owned() },
        Answer::Misconfigured { after_ms: Some(7_000), problem: "HTTP 403".to_owned() },
    ] {
        let world = World::new([Act::Answer(answer)]);
        assert!(handle_one(&world, request()));
        assert_eq!(world.returned(), [("payment".to_owned(), 7_000)]);
    }
    // The longer of the service's wait and the back-off's draw.
    let world = World::new([busy(900), busy(50), Act::Answer(done())]).drawing([0, 2]);
    assert!(!handle_one(&world, request()));
    assert_eq!(world.slept_ms(), [900, 300]);
    let world = World::new([busy(7_000)]);
    assert!(handle_one(&world, request()));
    assert_eq!(world.returned(), [("payment".to_owned(), 7_000)]);
}

#[test]
fn a_wait_beyond_the_attempt_gives_it_back_if_the_service_asked_for_it_and_else_ends_in_silence() {
    let busy = |after_ms| Act::Answer(Answer::Retry { after_ms: Some(after_ms), problem: "busy".to_owned() });
    let world = World::new([busy(8_499)]);
    assert!(handle_one(&world, request()), "there is time for a call");
    assert_eq!(world.returned().len(), 1);
    for (asked_ms, waits_ms) in [(9_500, 9_500), (u64::MAX, DEFERRAL_MS_MAX)] {
        let world = World::new([busy(asked_ms)]);
        assert!(!handle_one(&world, request()));
        assert_eq!(world.outcomes(), [Outcome::Deferred(Deferral::after(waits_ms))]);
    }
    // The back-off alone would be too late.
    let world = World::new([busy(9_500)]).drawing([1]);
    assert!(!handle_one(&world, Request { complete_by: START.plus_ms(600), ..request() }));
    assert_eq!((world.returned().len(), world.outcomes()), (0, vec![]));
}

#[test]
fn retries_are_bounded_and_then_it_is_silent() {
    let world = World::new(repeat_n(Act::Answer(retry()), 9)).with_policy(|policy| policy.retries_max = 3);
    assert!(!handle_one(&world, request()));
    assert_eq!(world.seen().len(), 4);
    assert!(world.replies().is_empty() && world.returned().is_empty());
}

#[test]
fn rule_32_operators_see_what_is_wrong_from_the_second_failed_call_on_and_ever_more_rarely() {
    for (failures, told) in [(1, 0), (2, 1), (3, 1), (4, 2), (7, 2), (8, 3)] {
        let world = World::new(repeat_n(Act::Answer(retry()), failures).chain([Act::Answer(done())]));
        assert!(!handle_one(&world, request()));
        assert_eq!(world.troubles().len(), told, "after {failures} failed calls");
        assert_eq!(world.outcomes(), [Outcome::Done(json("{\"Receipt\":7}"))]);
        assert!(
            world
                .troubles()
                .iter()
                .all(|(attempt, problem)| (*attempt, &**problem) == (request().attempt, "out of order"))
        );
    }
}

#[test]
fn rule_32_before_an_agent_is_silent_it_says_what_was_wrong_unless_it_is_too_late() {
    let world = World::new([Act::Answer(retry())]).with_policy(|policy| policy.retries_max = 0);
    assert!(!handle_one(&world, request()));
    assert_eq!((world.troubles().len(), world.replies().len()), (1, 0));
    let late = World::new([Act::Frozen(10_000, retry())]);
    assert!(!handle_one(&late, request()));
    assert_eq!((late.troubles().len(), late.replies().len()), (0, 0));
}

#[test]
fn rule_32_the_work_goes_on_if_the_scheduler_cannot_be_told_what_is_wrong() {
    let world = World::new([Act::Answer(retry()), Act::Answer(retry()), Act::Answer(done())]);
    world.sends_fail(true);
    assert!(handle_one(&world, request()), "its reply could not be sent either");
    assert_eq!((world.seen().len(), world.troubles().len(), world.replies().len()), (3, 0, 0));
}

#[test]
fn the_back_off_and_its_count_go_on_over_redeliveries() {
    // The third delivery draws from 0..=3 at once, where the first would draw from 0..=1: 3 % 4 and 3 % 2.
    let world = World::new([Act::Answer(retry()), Act::Answer(done())]).drawing([3]);
    assert!(world.handle(vec![redelivery(3)]).is_empty());
    assert_eq!(world.slept_ms(), [700]);
    // With the count used up, one call is left: it returns a lost reply again.
    for (answer, replies) in [(done(), 1), (retry(), 0)] {
        let world = World::new([Act::Answer(answer)]).with_policy(|policy| policy.retries_max = 3);
        assert!(world.handle(vec![redelivery(1_000)]).is_empty());
        assert_eq!(world.replies().len(), replies);
    }
}

#[test]
fn the_key_is_the_same_over_all_attempts() {
    let world = World::new([Act::Answer(retry()), Act::Panic, Act::Hang, Act::Answer(done())]);
    assert!(handle_one(&world, request()), "the panic sends it back");
    assert!(world.handle(vec![redelivery(2)]).is_empty());
    let seen = world.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|seen| seen.key == *request().idempotency_key && seen.attempt == 3), "{seen:?}");
}

#[test]
fn a_panic_fails_one_message_alone() {
    let world = World::new([Act::Answer(done()), Act::Panic, Act::Answer(done())]).drawing([1]);
    let batch = ["a", "b", "c"].map(|id| delivery(id, request())).to_vec();
    assert_eq!(world.handle(batch), ["b"]);
    assert_eq!(world.replies().len(), 2);
    assert_eq!(world.returned(), [("payment".to_owned(), 100)], "even a short wait is on the queue");
    let objects: Vec<usize> = world.seen().iter().map(|seen| seen.object).collect();
    assert_eq!(objects, [1, 2, 3], "each message gets a fresh service object");
}

#[test]
fn a_panicking_message_comes_back_until_its_deadline_and_not_longer() {
    let world = World::new([Act::Panic]).drawing([1]);
    world.pass_ms(9_450);
    assert!(!handle_one(&world, request()));
    assert!(world.returned().is_empty() && world.replies().is_empty());
}

#[test]
fn a_service_that_cannot_be_made_fails_one_message_alone() {
    let world = World::new([]);
    let make_service = || -> Never { panic!("no service today") };
    let agent = Agent::new("payment", Policy::default(), make_service).unwrap();
    let handling = crate::handle(&world.ports, &agent, vec![delivery("m", request())]);
    let failures = drive(handling);
    assert_eq!((failures.0.len(), world.returned().len()), (1, 1));
}

enum Never {}

impl crate::Service for Never {
    async fn forward(&mut self, _: &crate::Call<'_>) -> Answer {
        match *self {}
    }

    async fn undo(&mut self, _: &crate::Call<'_>) -> Answer {
        match *self {}
    }
}

#[test]
fn f24_a_reply_that_cannot_be_sent_keeps_the_message_and_the_service_is_asked_with_the_same_key() {
    let world = World::new([Act::Answer(done()), Act::Answer(done())]);
    world.sends_fail(true);
    assert!(handle_one(&world, request()));
    assert!(world.replies().is_empty());
    world.sends_fail(false);
    assert!(world.handle(vec![redelivery(2)]).is_empty());
    assert_eq!(world.replies().len(), 1);
    let seen = world.seen();
    assert_eq!((seen.len(), &seen[0].key), (2, &seen[1].key));
}

#[test]
fn f57_a_corrupt_body_fails_alone() {
    let corrupt = Delivery { body: Err(Undecodable { problem: "poison".into() }), ..delivery("b", request()) };
    let world = World::new([Act::Answer(done()), Act::Answer(done())]);
    assert_eq!(world.handle(vec![delivery("a", request()), corrupt, delivery("c", request())]), ["b"]);
    assert_eq!(world.replies().len(), 2);
    assert!(world.returned().is_empty(), "the queue decides when it comes again");
}

#[test]
fn f56_an_output_over_the_limit_is_refused_with_a_clear_failure() {
    let of_bytes = |bytes: usize| Answer::Done(json(&format!("\"{}\"", "x".repeat(bytes - 2))));
    let world = World::new([Act::Answer(of_bytes(OUTPUT_BYTES_MAX))]);
    assert!(!handle_one(&world, request()));
    assert!(matches!(world.outcomes().as_slice(), [Outcome::Done(_)]));

    let world = World::new([Act::Answer(of_bytes(OUTPUT_BYTES_MAX + 1))]);
    assert!(!handle_one(&world, request()));
    let refused = failure(&world);
    assert_eq!(&*refused.code, OUTPUT_TOO_LARGE);
    assert_eq!(&*refused.message, "the service's output has 16385 bytes, which is over the limit of 16384");
}

#[test]
fn an_output_nested_too_deep_is_refused_likewise() {
    let deep = domain::message::decode(["[".repeat(NESTING_MAX + 1), "]".repeat(NESTING_MAX + 1)].concat().as_bytes());
    let world = World::new([Act::Answer(Answer::Done(deep.unwrap()))]);
    assert!(!handle_one(&world, request()));
    assert_eq!(&*failure(&world).code, OUTPUT_TOO_LARGE);
    assert!(failure(&world).message.contains("nested deeper than 64 levels"));
}

#[test]
fn the_texts_of_a_failure_are_shortened() {
    let novel: Arc<str> = "ä".repeat(10 * ERROR_CHARS_MAX).into();
    let world = World::new([Act::Answer(Answer::fail(novel.clone(), novel))]);
    assert!(!handle_one(&world, request()));
    let Failure { code, message } = failure(&world);
    assert_eq!((code.chars().count(), message.chars().count()), (ERROR_CHARS_MAX + 1, ERROR_CHARS_MAX + 1));
}

#[test]
fn an_agent_without_a_name_or_sense_is_refused() {
    assert!(Agent::new("", Policy::default(), || ()).is_err());
    let impatient = Policy { wait_in_invocation_ms_max: WAIT_IN_INVOCATION_MS_MAX + 1, ..Policy::default() };
    assert_eq!(Agent::new("payment", impatient, || ()).unwrap_err().field, "wait_in_invocation_ms_max");
    assert_eq!(&**Agent::new("payment", Policy::default(), || ()).unwrap().name(), "payment");
}
