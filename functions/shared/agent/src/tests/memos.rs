//! A service that does not recognise a repeated key: every call has an effect.

use domain::limits::OUTPUT_BYTES_MAX;
use domain::message::{Delivery, Failure, Outcome, Request, idempotency_key};
use domain::ports::{Breaker, MemoState};
use domain::task::Direction;
use domain::time::Timestamp;
use memory::faulty::Fault;

use crate::testing::{Act, START, World, delivery, done, json, request, retry};
use crate::{Answer, MemoPolicy, OUTPUT_TOO_LARGE, UNDONE};

const HOUR_MS: u64 = 3_600_000;

/// A service whose calls all have an effect, behind an agent that remembers.
fn keyless(acts: impl IntoIterator<Item = Act>) -> World {
    World::new(acts).with_policy(|policy| policy.memo = Some(MemoPolicy::default()))
}

fn undo() -> Request {
    let idempotency_key = idempotency_key(request().order_id, "charge-payment", Direction::Undo);
    Request { direction: Direction::Undo, idempotency_key, attempt: 4, ..request() }
}

fn again() -> Vec<Delivery<Request>> {
    vec![Delivery { receive_count: 2, ..delivery("m", request()) }]
}

/// Effects of forward calls, and of undo calls.
fn effects(world: &World) -> (usize, usize) {
    let seen = world.seen();
    let forward = seen.iter().filter(|seen| seen.direction == Direction::Forward).count();
    (forward, seen.len() - forward)
}

fn forward_memo(world: &World) -> Option<MemoState> {
    world.memo_state(&request().idempotency_key)
}

fn receipt() -> Outcome {
    Outcome::Done(json("{\"Receipt\":7}"))
}

fn nothing() -> Outcome {
    Outcome::Done(json("{}"))
}

fn code(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Failed(Failure { code, .. }) => code,
        Outcome::Done(_) | Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => {
            panic!("a failure expected, got {outcome:?}")
        }
    }
}

#[test]
fn f24_after_a_lost_reply_a_repeat_is_answered_from_the_memo() {
    let world = keyless([Act::Answer(done())]);
    world.sends_fail(true);
    assert!(world.instance().handle_one(request()));
    assert_eq!(forward_memo(&world), Some(MemoState::Completed(receipt())), "written before the reply");
    world.sends_fail(false);
    for _ in 0..3 {
        assert!(world.instance().handle(again()).is_empty());
    }
    assert_eq!((effects(&world), world.outcomes()), ((1, 0), vec![receipt(); 3]));
    assert_eq!(world.memo_version(&request().idempotency_key), 2, "the claim and the result, and no write since");
}

#[test]
fn f25_a_call_whose_answer_is_lost_is_made_again_with_the_same_key() {
    // Without keys, two effects cannot be avoided. With keys there is one effect.
    for world in [keyless([Act::Hang, Act::Answer(done())]), World::new([Act::Hang, Act::Answer(done())])] {
        assert!(!world.instance().handle_one(request()));
        let seen = world.seen();
        assert_eq!((seen.len(), &seen[0].key), (2, &seen[1].key));
        assert_eq!(world.outcomes(), [receipt()]);
    }
}

#[test]
fn f28_a_result_that_comes_after_the_deadline_is_remembered_in_silence() {
    let world = keyless([Act::Frozen(10_001, done())]);
    assert!(!world.instance().handle_one(request()));
    assert!(world.replies().is_empty());
    let next_attempt = Request { attempt: 4, complete_by: START.plus_ms(60_000), ..request() };
    assert!(!world.instance().handle_one(next_attempt));
    assert_eq!((effects(&world), world.outcomes()), ((1, 0), vec![receipt()]));
}

#[test]
fn f32_the_same_request_in_two_instances_at_once_has_one_effect() {
    let duplicate = |world: &World| assert!(world.instance().handle_one(request()), "parked");
    let world = keyless([Act::after(duplicate, Act::Answer(done()))]);
    assert!(!world.instance().handle_one(request()));
    assert_eq!((effects(&world), world.outcomes()), ((1, 0), vec![receipt()]));
    assert_eq!(world.returned(), [("payment".to_owned(), 1_000)]);
    assert!(world.instance().handle(again()).is_empty());
    assert_eq!((effects(&world), world.outcomes()), ((1, 0), vec![receipt(); 2]));
}

#[test]
fn f32_a_duplicate_without_time_to_wait_leaves_the_reply_to_the_call_that_is_under_way() {
    let duplicate = |world: &World| {
        world.pass_ms(9_100);
        assert!(!world.instance().handle_one(request()), "let go");
        assert!(world.replies().is_empty() && world.returned().is_empty());
    };
    let world =
        keyless([Act::after(duplicate, Act::Answer(done()))]).with_policy(|policy| policy.call_timeout_ms = 10_000);
    assert!(!world.instance().handle_one(request()));
    assert_eq!((effects(&world), world.outcomes()), ((1, 0), vec![receipt()]));
}

#[test]
fn f33_an_orphaned_claim_expires_and_the_call_is_made() {
    let world = keyless([Act::Answer(done())]);
    // An instance claims the key and dies before it calls.
    world.orphan_claim(&request().idempotency_key, 5_000);
    let instance = world.instance();
    assert!(instance.handle_one(request()), "parked");
    assert_eq!(effects(&world), (0, 0));
    world.pass_ms(5_000);
    assert!(instance.handle(again()).is_empty());
    assert_eq!((effects(&world), world.outcomes()), ((1, 0), vec![receipt()]));
}

#[test]
fn f14_a_request_delayed_until_its_claim_is_over_claims_again_before_it_calls() {
    let world = keyless([Act::Answer(done())]);
    // Its call may take 5 s, so its claim lasts as long; it is written only after 6 s.
    world.at_next("memos.set_memo", |world| world.pass_ms(6_000));
    let patient = Request { complete_by: START.plus_ms(20_000), budget_ms: 20_000, ..request() };
    assert!(!world.instance().handle_one(patient));
    assert_eq!((effects(&world), world.outcomes()), ((1, 0), vec![receipt()]));
    assert_eq!(world.memo_version(&request().idempotency_key), 3, "two claims and the result");
}

#[test]
fn f32_a_request_that_lost_its_claim_does_not_release_that_of_the_duplicate() {
    let undo = Request { complete_by: START.plus_ms(60_000), budget_ms: 60_000, ..undo() };
    let key = undo.idempotency_key.clone();
    let duplicate_claims = move |world: &World| {
        world.pass_ms(5_000);
        world.orphan_claim(&key, 30_000);
    };
    let world = keyless([Act::Answer(done()), Act::after(duplicate_claims, Act::Hang)]);
    assert!(!world.instance().handle_one(request()));
    assert!(world.instance().handle_one(undo.clone()), "it waits for the duplicate");
    let duplicate = MemoState::InProgress(START.plus_ms(5_000 + 30_000));
    assert_eq!((world.memo_state(&undo.idempotency_key), effects(&world)), (Some(duplicate), (1, 1)));
}

#[test]
fn a_call_without_a_result_gives_its_claim_back() {
    let world = keyless([Act::Answer(Answer::Retry { after_ms: Some(2_000), problem: "busy".to_owned() })]);
    assert!(world.instance().handle_one(request()));
    assert_eq!(forward_memo(&world), Some(MemoState::InProgress(Timestamp::default())), "over by every clock");
    world.play([Act::Answer(done())]);
    world.pass_ms(2_000);
    assert!(world.instance().handle(again()).is_empty(), "not put off");
    assert_eq!(world.outcomes(), [receipt()]);
}

#[test]
fn retries_in_one_invocation_keep_the_claim() {
    let world = keyless([Act::Answer(retry()), Act::Answer(retry()), Act::Answer(done())]);
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.seen().len(), world.outcomes()), (3, vec![receipt()]));
    world.play([Act::Answer(retry()), Act::Answer(done())]);
    assert!(!world.instance().handle_one(undo()));
    assert_eq!(effects(&world), (3, 2));
}

#[test]
fn a_call_does_not_outlast_its_claim_and_starts_in_time_however_long_the_claim_took() {
    let world = keyless([Act::Answer(done())]);
    world.at_next("memos.set_memo", |world| world.pass_ms(1_000));
    assert!(!world.instance().handle_one(request()));
    assert_eq!(world.seen()[0].timeout_ms, 4_000);
    let world = keyless([]);
    world.at_next("memos.set_memo", |world| world.pass_ms(9_600));
    assert!(!world.instance().handle_one(request()));
    assert!(world.seen().is_empty());
    assert!(matches!(world.outcomes()[..], [Outcome::Deferred(_)]), "no failure: {:?}", world.outcomes());
}

#[test]
fn a_refusal_is_repeated_to_a_repeat_and_asked_anew_for_a_resubmitted_step() {
    let world = keyless([Act::Answer(Answer::fail("card_declined", "no")), Act::Answer(done())]);
    world.pass_ms(10);
    assert!(!world.instance().handle_one(request()));
    assert!(world.instance().handle(again()).is_empty());
    assert_eq!((effects(&world).0, code(&world.outcomes()[1])), (1, "card_declined"));
    world.pass_ms(5_000);
    let resubmitted = Request { attempt: 4, complete_by: START.plus_ms(15_000), ..request() };
    assert!(!world.instance().handle_one(resubmitted));
    assert_eq!((effects(&world).0, &world.outcomes()[2]), (2, &receipt()));
}

#[test]
fn an_output_over_the_limit_has_its_effect_once_however_often_the_step_is_asked_for() {
    let large = || Answer::Done(json(&format!("\"{}\"", "x".repeat(OUTPUT_BYTES_MAX))));
    let world = keyless(std::iter::repeat_n(Act::Answer(large()), 5));
    assert!(!world.instance().handle_one(request()));
    for (attempt, at_ms) in [(4, 1_000), (5, 20_000), (1, 100_000)] {
        world.pass_ms(at_ms - world.now_ms());
        let resent = Request { attempt, complete_by: START.plus_ms(at_ms + 10_000), ..request() };
        assert!(!world.instance().handle_one(resent));
    }
    assert_eq!(effects(&world), (1, 0));
    assert_eq!(world.outcomes().iter().map(code).collect::<Vec<_>>(), [OUTPUT_TOO_LARGE; 4]);
    // The second call: the work can still be undone.
    let undo = Request { complete_by: START.plus_ms(200_000), ..undo() };
    assert!(!world.instance().handle_one(undo));
    assert_eq!((effects(&world).1, forward_memo(&world)), (1, Some(MemoState::Undone)));
}

#[test]
fn f44_undo_of_what_was_never_done_succeeds_without_a_call() {
    let world = keyless([]);
    for _ in 0..2 {
        assert!(!world.instance().handle_one(undo()));
    }
    assert_eq!((effects(&world), world.outcomes()), ((0, 0), vec![nothing(); 2]));
}

#[test]
fn the_undo_of_a_step_that_was_done_by_hand_is_called_once_though_no_memo_knows_of_it() {
    let world = keyless([Act::Answer(done())]);
    for _ in 0..2 {
        assert!(!world.instance().handle_one(Request { was_done: true, ..undo() }));
        assert_eq!(effects(&world), (0, 1));
    }
}

#[test]
fn f45_a_forward_call_after_its_undo_is_refused() {
    for was_done in [false, true] {
        let world = keyless(if was_done { vec![Act::Answer(done()), Act::Answer(done())] } else { vec![] });
        if was_done {
            assert!(!world.instance().handle_one(request()));
        }
        assert!(!world.instance().handle_one(undo()));
        let before = effects(&world);
        assert!(world.instance().handle(again()).is_empty());
        assert_eq!(code(world.outcomes().last().unwrap()), UNDONE);
        assert_eq!((effects(&world), before.0 == before.1), (before, true));
    }
}

#[test]
fn f45_an_undo_waits_for_a_forward_call_that_is_under_way() {
    let undo_meanwhile = |world: &World| {
        assert!(world.instance().handle_one(undo()), "parked");
        assert_eq!(effects(world), (1, 0));
    };
    let world = keyless([Act::after(undo_meanwhile, Act::Answer(done())), Act::Answer(done())]);
    assert!(!world.instance().handle_one(request()));
    assert!(world.instance().handle(vec![Delivery { receive_count: 2, ..delivery("m", undo()) }]).is_empty());
    assert_eq!(effects(&world), (1, 1));
    assert_eq!(forward_memo(&world), Some(MemoState::Undone));
}

#[test]
fn f45_an_undo_that_comes_between_the_look_at_the_memo_and_the_claim_wins() {
    // The forward request finds no memo and then asks for the health, which is when the undo is carried out.
    let world = keyless([]);
    world.at_next("services.health", |world| assert!(!world.instance().handle_one(undo())));
    assert!(!world.instance().handle_one(request()));
    assert_eq!(effects(&world), (0, 0));
    assert_eq!((&world.outcomes()[0], code(&world.outcomes()[1])), (&nothing(), UNDONE));
}

#[test]
fn f45_a_forward_call_that_comes_between_the_look_at_the_memo_and_the_mark_is_undone() {
    let world = keyless([Act::Answer(done()), Act::Answer(done())]);
    world.at_next("memos.set_memo", |world| assert!(!world.instance().handle_one(request())));
    assert!(!world.instance().handle_one(undo()));
    assert_eq!((effects(&world), forward_memo(&world)), ((1, 1), Some(MemoState::Undone)));
}

#[test]
fn f48_a_forward_call_with_unknown_outcome_is_undone_all_the_same() {
    let world = keyless([Act::Hang, Act::Hang, Act::Answer(done())]);
    assert!(!world.instance().handle_one(request()), "silent");
    let later = Request { complete_by: START.plus_ms(60_000), budget_ms: 10_000, ..undo() };
    assert!(!world.instance().handle_one(later));
    assert_eq!((effects(&world), world.replies().len()), ((2, 1), 1));
}

#[test]
fn f47_an_undo_that_died_after_its_mark_is_not_taken_for_an_empty_one() {
    let world = keyless([Act::Answer(done()), Act::Hang, Act::Answer(done())]);
    assert!(!world.instance().handle_one(request()));
    // Marked and called, without an answer until the deadline.
    let short = Request { complete_by: START.plus_ms(1_000), ..undo() };
    assert!(!world.instance().handle_one(short));
    assert_eq!(forward_memo(&world), Some(MemoState::Undone));
    assert!(!world.instance().handle_one(undo()));
    assert_eq!((effects(&world), world.replies().len()), ((1, 2), 2));
}

#[test]
fn an_undo_is_remembered_like_a_forward_call() {
    let world = keyless([Act::Answer(done()), Act::Answer(done())]);
    assert!(!world.instance().handle_one(request()));
    for _ in 0..3 {
        assert!(!world.instance().handle_one(undo()));
    }
    assert_eq!((effects(&world), world.replies().len()), ((1, 1), 4));
}

#[test]
fn what_is_known_is_answered_while_the_breaker_is_open() {
    let world = keyless([Act::Answer(done())]).with_policy(|policy| policy.health.failures_to_open = 1);
    assert!(!world.instance().handle_one(request()));
    world.play([Act::Answer(retry())]);
    let other = Request { step: "other".into(), idempotency_key: "other".into(), ..request() };
    world.instance().handle_one(other);
    assert_eq!(world.breaker(), Breaker::Open);
    assert!(world.instance().handle(again()).is_empty());
    assert_eq!((world.seen().len(), world.outcomes()), (2, vec![receipt(); 2]));
}

#[test]
fn a_probe_that_finds_its_key_taken_lets_another_request_probe() {
    let world = keyless([Act::Answer(retry())]).with_policy(|policy| policy.health.failures_to_open = 1);
    let other = Request { step: "other".into(), idempotency_key: "other".into(), ..request() };
    world.instance().handle_one(other.clone());
    world.pass_ms(500);
    world.at_next("memos.set_memo", |world| world.orphan_claim(&request().idempotency_key, 5_000));
    assert!(world.instance().handle_one(request()), "parked");
    assert_eq!(world.breaker(), Breaker::Open);
    world.play([Act::Answer(done())]);
    assert!(!world.instance().handle_one(other));
    assert_eq!(world.breaker(), Breaker::Closed);
}

#[test]
fn with_the_memos_out_of_reach_no_call_is_made() {
    for operation in ["memos.memo", "memos.set_memo"] {
        let world = keyless([]);
        world.ports.is_down(operation);
        assert!(world.instance().handle_one(request()), "it comes back");
        assert_eq!((effects(&world), world.replies().len()), ((0, 0), 0));
    }
}

#[test]
fn a_result_that_cannot_be_written_down_is_replied_after_some_tries() {
    let world = keyless([Act::after(|world| world.ports.is_down("memos"), Act::Answer(done()))]);
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.outcomes(), world.slept_ms()), (vec![receipt()], vec![100; 3]));
    // A memo that can be written at the second try is written.
    let world = keyless([Act::after(|world| world.ports.next("memos.set_memo", Fault::Fails), Act::Answer(done()))]);
    assert!(!world.instance().handle_one(request()));
    assert_eq!(forward_memo(&world), Some(MemoState::Completed(receipt())));
}

#[test]
fn of_two_results_the_first_counts() {
    // The instance is frozen beyond its time-out, and meanwhile the call is made again.
    let meanwhile = |world: &World| {
        world.pass_ms(5_000);
        world.play([Act::Answer(done())]);
        assert!(world.instance().handle(again()).is_empty());
    };
    let world = keyless([Act::after(meanwhile, Act::Answer(Answer::Done(json("{\"Receipt\":8}"))))]);
    assert!(!world.instance().handle_one(request()));
    assert_eq!(world.outcomes(), [receipt(), receipt()]);
    let calls: Vec<_> = world.replies().into_iter().map(|reply| reply.call_ms).collect();
    assert_eq!(calls, [Some(0), None], "the result of the duplicate was brought by its own call");
}

#[test]
fn without_a_memo_policy_no_memo_is_touched() {
    let world = World::new([Act::Answer(done())]);
    world.ports.is_down("memos");
    assert!(!world.instance().handle_one(request()));
    assert_eq!(world.outcomes(), [receipt()]);
}

#[test]
fn the_output_of_an_undo_is_left_out_when_it_is_too_large() {
    let large = json(&format!("\"{}\"", "x".repeat(OUTPUT_BYTES_MAX)));
    let world = World::new([Act::Answer(Answer::Done(large))]);
    assert!(!world.instance().handle_one(undo()));
    assert_eq!(world.outcomes(), [nothing()]);
}

#[test]
fn f69_a_claim_that_a_fast_clock_gave_back_holds_up_no_other_instance() {
    let world = keyless([Act::Answer(Answer::Retry { after_ms: Some(2_000), problem: "busy".to_owned() })]);
    world.pass_ms(HOUR_MS);
    let fast = Request { complete_by: START.plus_ms(HOUR_MS + 10_000), ..request() };
    assert!(world.instance().handle_one(fast));
    world.set_back_ms(HOUR_MS);
    world.play([Act::Answer(done())]);
    assert!(world.instance().handle(again()).is_empty(), "not put off");
    assert_eq!(world.outcomes(), [receipt()]);
}
