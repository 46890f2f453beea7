use super::*;
use crate::limits::COMPLETE_WITHIN_MS_MAX;
use crate::machine::testing::{Case, done};
use crate::machine::{DeadLetterSubject, Event, Verdict};
use crate::message::{Action, Deferral, Failure, Outcome, Reply, Settled, Trouble};

/// Counts each version of a case's task from now on.
#[derive(Default)]
struct Counted {
    tally: Tally,
    before: Option<Task>,
    states: States,
}

impl Counted {
    fn of(case: &Case) -> Self {
        let mut counted = Self::default();
        counted.take(case);
        counted
    }

    fn take(&mut self, case: &Case) {
        let before = self.before.replace(case.task.clone());
        self.tally.count(before.as_ref(), &case.task);
        self.states.moved(before.map(|task| task.process_state), case.task.process_state);
    }

    fn step(&self, name: &str) -> &Service {
        let [flow] = self.tally.workflows.values().collect::<Vec<_>>()[..] else { panic!("one workflow") };
        let [service] = flow.steps[name].values().collect::<Vec<_>>()[..] else { panic!("one service") };
        service
    }
}

fn orders(accepted: u64, processed: u64, compensated: u64, failed: u64, mended: u64) -> Orders {
    Orders { accepted, processed, compensated, failed, mended, ..Orders::default() }
}

fn without_times(tally: &Tally) -> Orders {
    Orders { took: Histogram::default(), ..tally.orders() }
}

/// Begun, done, expired, rejected.
const fn numbers(attempts: &Attempts) -> [u64; 4] {
    [attempts.begun, attempts.done, attempts.expired, attempts.rejected]
}

#[test]
fn a_healthy_order_is_counted_once_with_its_steps_and_times() {
    let mut case = Case::chain();
    let mut counted = Counted::of(&case);
    assert!(Tally::default().is_empty() && !counted.tally.is_empty());
    assert_eq!(without_times(&counted.tally), orders(1, 0, 0, 0, 0));
    case.wake();
    counted.take(&case);
    for name in ["a", "b", "c"] {
        case.pass_ms(7);
        case.done(name);
        counted.take(&case);
    }
    assert_eq!(without_times(&counted.tally), orders(1, 1, 0, 0, 0));
    assert_eq!(counted.tally.orders().took.percentile(99), Some(21));
    for name in ["a", "b", "c"] {
        let Service { forward, undo } = counted.step(name);
        assert_eq!((numbers(forward), forward.took.percentile(50), undo.is_empty()), ([1, 1, 0, 0], Some(7), true));
    }
    assert_eq!((counted.states.of(ProcessState::Processed), counted.states.of(ProcessState::Pending)), (1, 0));
    assert_eq!(counted.tally.services().values().map(|service| service.forward.done).sum::<u64>(), 3);
}

#[test]
fn failures_and_undos_are_told_apart() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "max_failures = 2")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.done("a");
    counted.take(&case);
    case.expire_all();
    counted.take(&case);
    case.retry_all();
    counted.take(&case);
    case.rejected("b");
    counted.take(&case);
    assert_eq!(numbers(&counted.step("b").forward), [2, 0, 1, 1]);
    case.retry_all();
    counted.take(&case);
    assert_eq!(numbers(&counted.step("b").undo), [1, 0, 0, 0]);
    for name in ["b", "a"] {
        case.done(name);
        counted.take(&case);
    }
    assert_eq!(numbers(&counted.step("a").undo), [1, 1, 0, 0]);
    assert_eq!(without_times(&counted.tally), orders(1, 0, 1, 0, 0));
    assert!(counted.tally.orders().took.is_empty(), "only processed orders have a time");
}

#[test]
fn rule_26_a_call_is_counted_with_the_success_or_the_rejection_that_it_brought() {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "max_failures = 2")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    let failed = || Outcome::Failed(Failure { code: "no".into(), message: "no".into() });
    for (name, outcome, call_ms) in [("a", done(), Some(12)), ("b", failed(), Some(3_000))] {
        if name == "b" {
            case.expire_all();
            counted.take(&case);
            case.retry_all();
            counted.take(&case);
        }
        let reply = Reply { call_ms, ..case.reply_of(name, outcome) };
        for _ in 0..2 {
            case.take(&reply);
            counted.take(&case);
        }
    }
    case.retry_all();
    counted.take(&case);
    for (name, call_ms) in [("b", Some(u64::MAX)), ("a", None)] {
        let reply = Reply { call_ms, ..case.reply_of(name, done()) };
        case.take(&reply);
        counted.take(&case);
    }
    assert_eq!(case.step("b").call_ms, Some(COMPLETE_WITHIN_MS_MAX), "no call takes longer");
    let calls = |attempts: &Attempts| attempts.calls.percentile(1).zip(attempts.calls.percentile(99));
    let [a, b] = ["a", "b"].map(|name| counted.step(name));
    assert_eq!((numbers(&a.forward), calls(&a.forward)), ([1, 1, 0, 0], Some((12, 12))));
    assert_eq!((numbers(&b.forward), calls(&b.forward)), ([2, 0, 1, 1], Some((3_071, 3_071))));
    assert_eq!((a.undo.done, calls(&a.undo)), (1, None), "nobody reported how long the undo took");
}

#[test]
fn rule_37_a_late_order_is_counted_once() {
    let mut case = Case::with(&[("a", &[], ""), ("b", &["a"], "")], "complete_within = \"1h\"", false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    for _ in 0..2 {
        assert_eq!(counted.tally.orders().late, u64::from(case.task.late_since.is_some()));
        case.pass_ms(3_600_000);
        let next = if case.states().starts_with('+') { "b" } else { "a" };
        case.done(next);
        counted.take(&case);
    }
    assert_eq!((counted.tally.orders().late, counted.tally.orders().processed), (1, 1));
}

#[test]
fn rule_33_a_skipped_step_is_counted_once_however_it_came_to_that() {
    // By the document: it is skipped before the first write.
    let mut case = Case::new(&[("a", &[], ""), ("b", &[], "when = \"/Order/Total > 1\"")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    let skipped = Attempts { skipped: 1, ..Attempts::default() };
    assert_eq!(counted.step("b").forward, skipped, "no attempt was made");
    // By the output of a step before it.
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "when = \"/Outputs/a/Ok == true\"")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.done("a");
    counted.take(&case);
    assert_eq!((case.states().as_str(), &counted.step("b").forward), ("+-", &skipped));
    // By its rejection.
    let mut case = Case::new(&[("a", &[], "optional = true"), ("b", &[], "")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.rejected("a");
    counted.take(&case);
    case.done("b");
    counted.take(&case);
    let forward = &counted.step("a").forward;
    assert_eq!((numbers(forward), forward.skipped, counted.step("b").forward.skipped), ([1, 0, 0, 1], 1, 0));
}

#[test]
fn a_failed_call_of_an_attempt_that_goes_on_is_not_counted() {
    let mut case = Case::chain();
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    for problem in ["HTTP 503", "no route"] {
        let trouble = case.reply_of("a", Outcome::Retrying(Trouble { problem: problem.into() }));
        case.take(&trouble);
        counted.take(&case);
    }
    assert_eq!(numbers(&counted.step("a").forward), [1, 0, 0, 0]);
    case.expire_all();
    counted.take(&case);
    assert_eq!(numbers(&counted.step("a").forward), [1, 0, 1, 0]);
}

#[test]
fn rule_26_a_deferred_attempt_is_counted_as_that_and_as_no_failure() {
    let mut case = Case::chain();
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    let trouble = case.reply_of("a", Outcome::Retrying(Trouble { problem: "HTTP 503".into() }));
    case.take(&trouble);
    counted.take(&case);
    for times in 1..3 {
        let deferral = case.reply_of("a", Outcome::Deferred(Deferral::after(1_000)));
        case.take(&deferral);
        counted.take(&case);
        let forward = &counted.step("a").forward;
        assert_eq!((numbers(forward), forward.deferred), ([times, 0, 0, 0], times));
        case.retry_all();
        counted.take(&case);
    }
    let at_once = case.reply_of("a", Outcome::Deferred(Deferral::after(0)));
    case.take(&at_once);
    counted.take(&case);
    assert_eq!((case.states().as_str(), counted.step("a").forward.deferred), (">..", 3), "it is claimed again at once");
    case.expire_all();
    counted.take(&case);
    let forward = &counted.step("a").forward;
    assert_eq!((numbers(forward), forward.deferred), ([4, 0, 1, 0], 3), "an expired attempt is not deferred");
}

#[test]
fn rule_26_a_deferral_past_the_horizon_is_counted_once() {
    let mut case = Case::new(&[("a", &[], "horizon = \"1m\"")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.pass_ms(60_000);
    let deferral = case.reply_of("a", Outcome::Deferred(Deferral::after(1_000)));
    case.take(&deferral);
    counted.take(&case);
    let forward = &counted.step("a").forward;
    assert_eq!((case.states().as_str(), numbers(forward), forward.deferred), ("!", [1, 0, 0, 0], 1));
}

#[test]
fn rule_46_an_erase_counts_no_failure_again() {
    let mut case = Case::new(&[("a", &[], "max_failures = 2")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.expire_all();
    counted.take(&case);
    case.retry_all();
    counted.take(&case);
    case.done("a");
    case.all_sent();
    counted.take(&case);
    let before = counted.tally.clone();
    let erase = case.command(Action::Erase, None);
    assert_eq!(case.apply(Event::Command { command: &erase, redelivered: false }), Verdict::Taken);
    counted.take(&case);
    assert!(case.step("a").last_error.is_some() && case.task.erased_at.is_some());
    assert_eq!(counted.tally, before);
}

#[test]
fn the_orders_by_state_of_a_version_with_other_states_are_not_read() {
    assert!(serde_json::from_str::<States>("[1,2,3,4,5,6,7]").is_ok());
    for other in ["[1,2,3,4,5,6]", "[1,2,3,4,5,6,7,8]"] {
        assert!(serde_json::from_str::<States>(other).is_err(), "{other}");
    }
}

#[test]
fn an_order_that_waits_for_an_operator_came_and_went() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.rejected("a");
    counted.take(&case);
    assert_eq!(counted.states.of(ProcessState::Error), 1);
    case.resubmit();
    counted.take(&case);
    assert_eq!(without_times(&counted.tally), orders(1, 0, 0, 1, 1));
    let reply = case.reply_of("a", done());
    case.take(&reply);
    counted.take(&case);
    assert_eq!(without_times(&counted.tally), orders(1, 1, 0, 1, 1));
    let (all, same) = (counted.tally.clone(), counted.before.clone());
    counted.tally.count(same.as_ref(), &case.task);
    assert_eq!(counted.tally, all, "a version without a transition counts nothing");
}

#[test]
fn what_an_operator_settles_counts_for_no_service() {
    let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.rejected("a");
    counted.take(&case);
    case.pass_ms(3_600_000);
    case.settle("a", Settled::Done, None);
    counted.take(&case);
    let forward = &counted.step("a").forward;
    assert_eq!((numbers(forward), forward.took.is_empty()), ([1, 0, 0, 1], true));
    assert_eq!(without_times(&counted.tally), orders(1, 1, 0, 1, 1));
}

#[test]
fn a_dead_letter_is_an_attempt_without_an_answer() {
    let mut case = Case::new(&[("a", &[], "")], false);
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    let step = "a".into();
    let dead_letter = DeadLetterSubject::Attempt { step, direction: Direction::Forward, attempt: 1 };
    case.apply(Event::DeadLetter { dead_letter: &dead_letter });
    counted.take(&case);
    assert_eq!(numbers(&counted.step("a").forward), [1, 0, 1, 0]);
}

#[test]
fn spans_add_up_and_are_stored_short() {
    let mut case = Case::chain();
    let mut counted = Counted::of(&case);
    case.wake();
    counted.take(&case);
    case.pass_ms(40);
    case.done("a");
    counted.take(&case);
    let text = serde_json::to_string(&counted.tally).unwrap();
    let a = r#""a":{"any":{"Forward":{"Begun":1,"Done":1,"Took":{"26":1}}}}"#;
    let b = r#""b":{"any":{"Forward":{"Begun":1}}}"#;
    assert_eq!(text, format!(r#"{{"w":{{"Orders":{{"Accepted":1}},"Steps":{{{a},{b}}}}}}}"#));
    assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), counted.tally);
    let mut twice = counted.tally.clone();
    twice.add(&counted.tally);
    assert_eq!((twice.orders().accepted, twice.workflows["w"].steps["a"]["any"].forward.begun), (2, 2));
}

#[test]
fn a_span_begins_at_a_whole_minute_or_hour() {
    let at = Timestamp::from_epoch_ms(1_764_000_754_321);
    assert_eq!(Grain::Minute.of(at).to_string(), "2025-11-24T16:12:00.000Z");
    assert_eq!(Grain::Hour.of(at).to_string(), "2025-11-24T16:00:00.000Z");
}

#[test]
fn rule_40_an_approval_is_asked_for_until_it_is_not_for_whatever_reason() {
    let asking = || {
        let mut case = Case::with(
            &[("c", &["b"], "")],
            "[[step]]\nname = \"b\"\nkind = \"approval\"\non_rejected = \"hold\"",
            false,
        );
        let mut counted = Counted::of(&case);
        case.wake();
        counted.take(&case);
        assert_eq!(counted.tally.orders().approvals(), 1);
        (case, counted)
    };
    let decide = |case: &mut Case, action| {
        case.apply_command(action, None);
    };
    for end in [Action::Approve, Action::Reject, Action::Cancel, Action::Close] {
        let (mut case, mut counted) = asking();
        if end == Action::Close {
            case.apply(Event::Wake { hops: 1_000, redelivered: false });
            counted.take(&case);
        }
        decide(&mut case, end);
        counted.take(&case);
        let orders = counted.tally.orders();
        assert_eq!((orders.asked, orders.answered, orders.approvals()), (1, 1, 0), "{end:?}");
    }
    let (mut case, mut counted) = asking();
    decide(&mut case, Action::Reject);
    counted.take(&case);
    case.resubmit();
    counted.take(&case);
    assert_eq!((counted.tally.orders().asked, counted.tally.orders().approvals()), (2, 1), "it is asked for again");
}
