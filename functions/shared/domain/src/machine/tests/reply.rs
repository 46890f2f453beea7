//! Rules 5 and 8: the replies that count, and the effect of a rejection.

use std::collections::BTreeSet;

use crate::json::Json;
use crate::limits::{DEFERRAL_MS_MAX, OUTPUT_BYTES_MAX, STEPS_MAX};
use crate::machine::testing::{Case, done, failed};
use crate::machine::{Dropped, Event, Verdict};
use crate::message::{Deferral, Outcome};
use crate::task::{Direction, ProcessState, StepState, What, reason};

// ---- rule 5: replies

#[test]
fn a_duplicate_reply_changes_nothing() {
    let mut case = Case::chain();
    case.wake();
    let reply = case.reply_of("a", done());
    case.take(&reply);
    assert_eq!(case.take(&reply), Verdict::Dropped(Dropped::Closed));
    assert!(case.effects.is_empty());
}

#[test]
fn a_late_success_of_an_earlier_attempt_counts_once() {
    let mut case = Case::chain();
    case.wake();
    let first = case.reply_of("a", done());
    case.expire_all();
    case.retry_all();
    let second = case.reply_of("a", done());
    assert_eq!((first.attempt, second.attempt), (1, 2));
    assert_eq!(case.take(&first), Verdict::Taken);
    assert_eq!(case.take(&second), Verdict::Dropped(Dropped::Closed));
    assert_eq!((case.states().as_str(), case.step("b").attempt), ("+>.", 1));
}

#[test]
fn rule_16_an_output_with_two_readings_is_no_answer_whoever_sends_it() {
    let mut case = Case::chain();
    case.wake();
    let output = |text: &str| Outcome::Done(Json::parse(text.as_bytes(), 100).unwrap());
    let twice = case.reply_of("a", output(r#"{"ID":1,"\u0049D":2}"#));
    assert_eq!(case.take(&twice), Verdict::Dropped(Dropped::Ambiguous));
    assert_eq!(case.states(), ">..", "the attempt is asked again when it expires");
    let once = case.reply_of("a", output(r#"{"ID":1,"In":{"ID":2}}"#));
    assert_eq!(case.take(&once), Verdict::Taken);
}

#[test]
fn a_success_counts_while_the_step_waits_to_be_claimed_again() {
    let mut case = Case::chain();
    case.wake();
    let first = case.reply_of("a", done());
    case.expire_all();
    assert_eq!(case.take(&first), Verdict::Taken);
    assert_eq!(case.states(), "+>.");
}

#[test]
fn a_failure_counts_only_from_the_current_attempt() {
    let mut case = Case::chain();
    case.wake();
    let stale = case.reply_of("a", failed());
    case.expire_all();
    assert_eq!(case.take(&stale), Verdict::Dropped(Dropped::StaleFailure), "counted when it expired");
    case.retry_all();
    assert_eq!(case.take(&stale), Verdict::Dropped(Dropped::StaleFailure));
    assert_eq!((case.states().as_str(), case.step("a").failure_count), (">..", 1));
}

#[test]
fn unknown_and_forged_replies_are_dropped() {
    let mut case = Case::chain();
    case.wake();
    let good = case.reply_of("a", done());
    let mut unknown = good.clone();
    unknown.step = "z".into();
    assert_eq!(case.take(&unknown), Verdict::Dropped(Dropped::UnknownStep));
    for attempt in [0, 2, u32::MAX] {
        let mut forged = good.clone();
        forged.attempt = attempt;
        assert_eq!(case.take(&forged), Verdict::Dropped(Dropped::UnknownAttempt));
    }
    let mut undo = good;
    undo.direction = Direction::Undo;
    assert_eq!(case.take(&undo), Verdict::Dropped(Dropped::OtherDirection));
    let mut of_a_step_not_begun = case.reply_of("c", done());
    of_a_step_not_begun.attempt = 1;
    assert_eq!(case.take(&of_a_step_not_begun), Verdict::Dropped(Dropped::UnknownAttempt));
    assert_eq!(case.task.version, 2);
}

#[test]
fn a_reply_to_a_finished_order_is_dropped() {
    let mut case = Case::new(&[("a", &[], "")], false);
    case.wake();
    let reply = case.reply_of("a", done());
    case.take(&reply);
    assert_eq!(case.state(), ProcessState::Processed);
    assert_eq!(case.take(&reply), Verdict::Dropped(Dropped::Finished));
}

#[test]
fn an_output_above_the_limit_is_refused_with_a_clear_failure() {
    let mut case = Case::chain();
    case.wake();
    let text = format!("\"{}\"", "x".repeat(OUTPUT_BYTES_MAX));
    let reply = case.reply_of("a", Outcome::Done(Json::parse(text.as_bytes(), text.len()).unwrap()));
    case.take(&reply);
    let error = case.step("a").last_error.clone().unwrap();
    assert_eq!(&*error.code, "output-too-large");
    assert!(error.message.contains(&OUTPUT_BYTES_MAX.to_string()), "{}", error.message);
    assert_eq!(case.state(), ProcessState::Compensating);
}

#[test]
fn outputs_that_are_too_large_together_are_refused() {
    let names: Vec<String> = (0..STEPS_MAX).map(|n| format!("s{n}")).collect();
    let steps: Vec<(&str, &[&str], &str)> = names.iter().map(|name| (&**name, [].as_slice(), "")).collect();
    let mut case = Case::new(&steps, false);
    case.wake();
    let text = format!("\"{}\"", "x".repeat(OUTPUT_BYTES_MAX - 2));
    let output = Json::parse(text.as_bytes(), OUTPUT_BYTES_MAX).unwrap();
    for name in &names[..16] {
        assert_eq!(case.take(&case.reply_of(name, Outcome::Done(output.clone()))), Verdict::Taken);
        assert_eq!(case.step(name).process_state, StepState::Processed, "{name}");
    }
    case.take(&case.reply_of("s16", Outcome::Done(output)));
    assert_eq!(case.step("s16").last_error.as_ref().map(|error| &*error.code), Some("output-too-large"));
}

// ---- rule 8: non-transient failure

#[test]
fn a_rejection_is_compensated_or_held_as_the_workflow_says() {
    let mut case = Case::chain();
    case.wake();
    case.rejected("a");
    let why = case.task.reason.clone().unwrap();
    assert_eq!(
        (case.state(), &*why.code, why.step.as_deref()),
        (ProcessState::Compensating, reason::REJECTED, Some("a"))
    );
    assert!(why.message.contains("declined"), "{}", why.message);

    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    case.wake();
    case.rejected("a");
    assert_eq!(
        (case.state(), case.states().as_str(), case.notified()),
        (ProcessState::Error, "!", vec!["OrderNeedsOperator"])
    );
    assert_eq!(case.step("a").failure_count, 1);
}

#[test]
fn a_deferred_attempt_counts_no_failure_and_is_made_again_later() {
    let mut case = Case::chain();
    case.wake();
    let deferral = case.reply_of("a", Outcome::Deferred(Deferral::after(5_000)));
    assert_eq!(case.take(&deferral), Verdict::Taken);
    assert_eq!((case.states().as_str(), case.step("a").failure_count, case.wakes()), ("...", 0, vec![5_000]));
    assert_eq!(case.take(&deferral), Verdict::Dropped(Dropped::StaleFailure), "only the attempt that holds the claim");
    case.retry_all();
    assert_eq!((case.states().as_str(), case.step("a").attempt), (">..", 2));
    assert_eq!(case.take(&deferral), Verdict::Dropped(Dropped::StaleFailure));
}

#[test]
fn the_longest_deferral_waits_for_the_calls_under_way_too() {
    let not_before_ms = |wait_ms| {
        let mut case = Case::chain();
        case.workflow.steps[0].settles_within_ms = 3_600_000;
        case.wake();
        let reply = case.reply_of("a", Outcome::Deferred(Deferral::after(wait_ms)));
        case.take(&reply);
        case.step("a").not_before.map(|at| case.now.ms_until(at))
    };
    assert_eq!(not_before_ms(DEFERRAL_MS_MAX - 1), Some(DEFERRAL_MS_MAX - 1));
    assert_eq!(not_before_ms(DEFERRAL_MS_MAX), Some(1_000 + 3_600_000));
}

#[test]
fn f34_an_outage_of_hours_cuts_no_chain_and_ends_at_the_horizon_with_an_operator() {
    let mut case = Case::new(&[("a", &[], "horizon = \"2h\"")], false);
    case.wake();
    let started_at = case.now;
    let mut hops = 0;
    while case.state() == ProcessState::Processing {
        let mut deferral = case.reply_of("a", Outcome::Deferred(Deferral::after(20_000)));
        deferral.hops = hops + 2;
        case.pass_ms(5_000);
        assert_eq!(case.take(&deferral), Verdict::Taken);
        hops = case.hops().unwrap_or(0);
        case.retry_all();
        hops = hops.max(case.hops().unwrap_or(0));
        assert!(hops <= 2, "each deferral starts a new chain");
    }
    let tried_ms = started_at.ms_until(case.now);
    assert!((7_200_000..7_300_000).contains(&tried_ms), "{tried_ms}");
    assert_eq!((case.state(), case.step("a").failure_count), (ProcessState::Error, 0));
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::EXHAUSTED));
    assert_eq!(case.task.history[0].what, What::Submitted, "the outage did not push out how it began");
    case.resubmit();
    assert_eq!((case.states().as_str(), case.step("a").started_at), (">", Some(case.now)), "the horizon begins anew");
}

#[test]
fn f34_a_deferral_after_the_horizon_reports_it() {
    for (horizon, ms) in [("2h", 7_200_000), ("1m 30s", 90_000)] {
        let mut case = Case::new(&[("a", &[], &format!("horizon = \"{horizon}\""))], false);
        case.wake();
        case.pass_ms(ms);
        case.take(&case.reply_of("a", Outcome::Deferred(Deferral::after(20_000))));
        let why = case.task.reason.clone().unwrap();
        assert_eq!((case.state(), &*why.code), (ProcessState::Error, reason::EXHAUSTED));
        assert!(why.message.contains(&format!("put off until its horizon of {horizon} was over")), "{}", why.message);
    }
}

#[test]
fn f34_a_wait_that_a_service_asks_for_ends_at_the_horizon() {
    let mut case = Case::new(&[("a", &[], "horizon = \"1m\"")], false);
    case.wake();
    let horizon = case.now.plus_ms(60_000);
    case.pass_ms(5_000);
    case.take(&case.reply_of("a", Outcome::Deferred(Deferral::after(600_000))));
    assert_eq!((case.step("a").not_before, case.wakes()), (Some(horizon), vec![55_000]));
    case.retry_all();
    assert_eq!((case.state(), case.now), (ProcessState::Error, horizon));
    assert!(case.requested().is_empty(), "its key may be forgotten");
}

#[test]
fn f34_expired_attempts_end_at_the_horizon_too() {
    let mut case = Case::new(&[("a", &[], "horizon = \"30s\"\nmax_failures = 1000")], false);
    case.wake();
    for _ in 0..4 {
        if case.state() == ProcessState::Processing {
            case.expire_all();
            case.retry_all();
        }
    }
    assert_eq!((case.state(), case.step("a").failure_count), (ProcessState::Error, 3));
}

#[test]
fn f34_a_step_whose_turn_comes_again_only_after_its_horizon_is_not_tried_again() {
    let mut case = Case::new(&[("a", &[], "horizon = \"2h\""), ("b", &[], "horizon = \"2h\"")], false);
    case.wake();
    case.expire_all();
    case.pause();
    case.pass_ms(3 * 3_600_000);
    case.resume();
    assert_eq!((case.state(), case.states().as_str()), (ProcessState::Error, "!."), "no key that may be forgotten");
    assert_eq!((case.requested(), case.notified()), (vec![], vec!["OrderNeedsOperator"]));
    case.resubmit();
    assert_eq!((case.states().as_str(), case.requested()), (">>", vec!["a", "b"]), "somebody vouches for both");
}

// ---- wakes for steps that wait

fn defer(case: &mut Case, name: &str, wait_ms: u64) {
    let reply = case.reply_of(name, Outcome::Deferred(Deferral::after(wait_ms)));
    assert_eq!(case.take(&reply), Verdict::Taken);
}

/// Three steps side by side, each deferred for one of these waits.
fn three_deferred(waits_ms: [u64; 3]) -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], ""), ("c", &[], "")], false);
    case.wake();
    for (name, wait_ms) in ["a", "b", "c"].into_iter().zip(waits_ms) {
        defer(&mut case, name, wait_ms);
        assert_eq!(case.wakes(), [wait_ms], "each has a wake of its own");
    }
    case
}

#[test]
fn a_wake_that_starts_a_step_is_used_up_and_the_others_wait_for_their_own() {
    let mut case = three_deferred([2_000, 4_000, 4_500]);
    case.pass_ms(2_000);
    case.wake();
    assert_eq!((case.requested(), case.wakes()), (vec!["a"], vec![]));
    case.pass_ms(2_500);
    case.wake();
    assert_eq!((case.requested(), case.wakes()), (vec!["b", "c"], vec![]));
    case.wake();
    assert_eq!((case.requested(), case.wakes()), (vec![], vec![]), "its step was started by the one before");
}

#[test]
fn a_wake_that_comes_a_little_early_comes_again_and_none_is_there_for_good() {
    let mut case = three_deferred([5_000, 9_000, 9_000]);
    case.pass_ms(4_799);
    case.wake();
    assert_eq!(case.wakes(), [] as [u64; 0], "as early as that it is another's");
    case.pass_ms(1);
    case.apply(Event::Wake { hops: 7, redelivered: false });
    assert_eq!((case.wakes(), case.hops()), (vec![200], Some(7)), "to wait is no hop");
    case.pass_ms(200);
    case.wake();
    assert_eq!(case.requested(), ["a"]);
    case.wake();
    assert_eq!(case.wakes(), [] as [u64; 0], "those that wait longer have their own");
    case.wake_again();
    assert_eq!(case.wakes(), [4_000], "the delivery before may have died before it could send");
}

#[test]
fn an_outage_that_puts_off_steps_side_by_side_takes_one_wake_for_each_and_cuts_no_chain() {
    let mut case = three_deferred([2_000, 3_000, 4_000]);
    let mut under_way: BTreeSet<_> = [2_000, 3_000, 4_000].map(|ms| case.now.plus_ms(ms)).into();
    for _ in 0..500 {
        case.now = under_way.pop_first().unwrap();
        case.wake();
        assert_eq!((case.requested().len(), case.wakes().len(), case.hops()), (1, 0, Some(1)));
        let name = case.requested()[0].to_owned();
        defer(&mut case, &name, 3_000);
        under_way.extend(case.wakes().into_iter().map(|delay_ms| case.now.plus_ms(delay_ms)));
        assert_eq!((under_way.len(), case.state()), (3, ProcessState::Processing));
    }
}
