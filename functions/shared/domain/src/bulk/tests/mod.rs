//! Tests of bulk jobs: their plan, their pace, and their steps.

mod again;
mod orders;

use orders::{failed_case, resubmit};

use super::*;
use crate::id::OrderId;
use crate::machine::testing::Case;
use crate::order::AgainOf;
use crate::ports::Page;
use crate::task::{ProcessState, Task, reason};
use crate::time::Timestamp;
use std::sync::Arc;

const TICK_MS: u64 = 1_000;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_epoch_ms(1_000_000_000_000).plus_ms(ms)
}

fn spec() -> Spec {
    serde_json::from_str(r#"{"By":"ann","Reason":"mended","Canary":3,"RatePerSecond":100,"CanaryTimeoutMs":60000}"#)
        .unwrap()
}

/// A job in its canary state, with nothing seen yet.
fn started(spec: Spec) -> Job {
    Job::plan("j".into(), spec, DryRun::default(), at(0)).unwrap().start("ann", "go", at(0)).unwrap()
}

/// A task in `Error` since `ms`, because step `b` was rejected.
fn in_error(name: &str, ms: u64) -> Task {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "on_rejected = \"hold\"")], false);
    case.task.order_id = OrderId::from_idempotency_key("test", name);
    case.now = at(ms);
    case.wake();
    case.done("a");
    case.rejected("b");
    assert_eq!(case.state(), ProcessState::Error);
    case.task
}

/// The last page of a scan, with `count` orders.
fn page(count: usize) -> Page {
    Page { tasks: (0..count).map(|n| Arc::new(in_error(&n.to_string(), 0))).collect(), next: None, read: count }
}

fn step(job: &Job, entry_states: &[EntryState], pages: &[Page], ms: u64) -> (Job, usize) {
    let Next { job: after, send } = carry_on(job, entry_states, pages, at(ms), TICK_MS);
    (after.unwrap_or_else(|| job.clone()), send.len())
}

/// The same state for all orders in flight.
fn all(job: &Job, entry_state: EntryState) -> Vec<EntryState> {
    vec![entry_state; job.under_way.len()]
}

#[test]
fn a_selector_means_what_all_its_parts_mean() {
    let task = in_error("x", 5_000);
    let with = |change: &dyn Fn(&mut Selector)| {
        let mut spec = spec();
        change(&mut spec.selector);
        spec.selects(&task)
    };
    assert!(with(&|_| {}));
    assert!(with(&|it| it.state = Some("Error".into())));
    assert!(with(&|it| it.reason_code = Some(reason::REJECTED.into())));
    assert!(!with(&|it| it.reason_code = Some(reason::EXHAUSTED.into())));
    assert!(with(&|it| it.step = Some("b".into())));
    assert!(!with(&|it| it.step = Some("a".into())));
    assert!(with(&|it| (it.failed_since, it.failed_until) = (Some(at(5_000)), Some(at(5_000)))));
    assert!(!with(&|it| it.failed_since = Some(at(5_001))));
    assert!(!with(&|it| it.failed_until = Some(at(4_999))));
    let healthy = Case::chain().task;
    assert!(!spec().selects(&healthy), "only orders in Error are meant");
}

#[test]
fn a_job_that_could_not_be_carried_out_is_refused_by_the_name_of_the_field() {
    let refused = |change: &dyn Fn(&mut Spec)| {
        let mut spec = spec();
        change(&mut spec);
        Job::plan("j".into(), spec, DryRun::default(), at(0)).unwrap_err().field
    };
    assert_eq!(refused(&|spec| spec.by = "".into()), "By");
    assert_eq!(refused(&|spec| spec.reason = "x".repeat(257).into()), "Reason");
    assert_eq!(refused(&|spec| spec.selector.step = Some("x".repeat(65).into())), "Selector.Step");
    assert_eq!(refused(&|spec| spec.selector.state = Some("Processing".into())), "Selector.State");
    assert_eq!(refused(&|spec| spec.action = BulkAction::Settle), "Selector.Step");
    let again = |state: &str| (BulkAction::Again, Some(state.into()));
    assert_eq!(refused(&|spec| (spec.action, spec.selector.state) = again("Error")), "Selector.State");
    assert_eq!(refused(&|spec| spec.selector.state = Some("Compensated".into())), "Selector.State");
    assert_eq!(refused(&|spec| spec.canary = 501), "Canary");
    assert_eq!(refused(&|spec| spec.rate_per_second = 0), "RatePerSecond");
    assert_eq!(refused(&|spec| spec.stop_at_failed_percent = 101), "StopAtFailedPercent");
    assert_eq!(refused(&|spec| spec.canary_timeout_ms = 0), "CanaryTimeoutMs");
    assert!(serde_json::from_str::<Spec>(r#"{"By":"a","Reason":"b","Cannary":1}"#).is_err(), "a misspelt field");
    for action in ["Pause", "Erase", "again"] {
        let spec = format!(r#"{{"By":"a","Reason":"b","Action":"{action}"}}"#);
        assert!(serde_json::from_str::<Spec>(&spec).is_err(), "no job can {action}");
    }
}

#[test]
fn a_planned_job_does_nothing_until_it_is_started_and_is_started_once() {
    let planned = Job::plan("j".into(), spec(), DryRun { matching: 4, complete: true }, at(0)).unwrap();
    let nothing = Next { job: None, send: Vec::new() };
    assert_eq!(carry_on(&planned, &[], &[page(4)], at(1), TICK_MS), nothing);
    assert!(!planned.wants_more());
    let started = planned.start("ann", "go", at(1)).unwrap();
    assert_eq!((&started.state, started.version), (&JobState::Canary, 2));
    assert_eq!(started.start("ann", "go", at(2)), Err(NotNow::Started));
    let cancelled = started.cancel("ann", "no", at(2)).unwrap();
    assert_eq!(
        (cancelled.start("ann", "go", at(3)), cancelled.cancel("ann", "no", at(3))),
        (Err(NotNow::Ended), Err(NotNow::Ended))
    );
    assert_eq!(carry_on(&cancelled, &[], &[page(4)], at(4), TICK_MS), nothing);
}

#[test]
fn the_list_of_orders_under_way_is_written_with_the_commands_that_follow_from_it() {
    let job = started(spec());
    let Next { job: after, send } = carry_on(&job, &[], &[page(5)], at(0), TICK_MS);
    let after = after.unwrap();
    assert_eq!((after.version, after.under_way.len(), after.found.len(), after.tally.begun), (3, 3, 2, 3));
    assert_eq!(send.len(), 3, "the canaries");
    for (outgoing, entry) in send.iter().zip(&after.under_way) {
        let Errand::Command(command) = &outgoing.errand else {
            panic!("{outgoing:?}");
        };
        assert_eq!((command.order_id, command.version), (entry.order_id, Some(entry.version)));
        assert_eq!((&*command.by, &*command.reason), ("ann", "mended"));
        assert_eq!(at(outgoing.delay_ms), entry.at);
    }
    let stored = serde_json::to_string(&after).unwrap();
    assert_eq!(serde_json::from_str::<Job>(&stored).unwrap(), after);
}

#[test]
fn a_step_with_nothing_new_writes_nothing() {
    let (job, _) = step(&started(spec()), &[], &[page(5)], 0);
    let next = carry_on(&job, &all(&job, EntryState::OnItsWay), &[], at(1_000), TICK_MS);
    assert_eq!(next, Next { job: None, send: Vec::new() });
}

#[test]
fn the_others_wait_until_every_canary_is_settled() {
    use EntryState::{OnItsWay, Recovered};
    let (job, sent) = step(&started(spec()), &[], &[page(8)], 0);
    assert_eq!(sent, 3);
    let (job, sent) = step(&job, &[Recovered, OnItsWay, Recovered], &[], 1_000);
    assert_eq!((&job.state, sent, job.tally.recovered), (&JobState::Canary, 0, 2));
    let (job, sent) = step(&job, &[Recovered], &[], 2_000);
    assert_eq!((&job.state, sent), (&JobState::Running, 5));
    let (job, _) = step(&job, &all(&job, Recovered), &[], 3_000);
    assert_eq!((job.state, job.tally.recovered), (JobState::Done, 8));
}

#[test]
fn canaries_that_fail_or_stay_silent_stop_the_job() {
    use EntryState::{FailedAgain, OnItsWay, Recovered};
    let (canaries, _) = step(&started(spec()), &[], &[page(8)], 0);
    let (job, _) = step(&canaries, &[Recovered, Recovered, FailedAgain], &[], 1_000);
    assert_eq!(job.state, JobState::Stopped("1 of 3 canaries failed again, more than 20 %".into()));
    let silent = [Recovered, Recovered, OnItsWay];
    let (waiting, _) = step(&canaries, &silent, &[], 59_999);
    assert_eq!(waiting.state, JobState::Canary);
    // The time of an order starts when its own command is delivered.
    let (job, sent) = step(&waiting, &[OnItsWay], &[], 60_020);
    assert!(matches!(&job.state, JobState::Stopped(why) if why.contains("1 of them")), "{:?}", job.state);
    assert_eq!((sent, job.tally.failed_again, job.tally.late), (0, 1, 1));
}

#[test]
fn canaries_that_were_passed_over_prove_nothing_and_are_replaced() {
    use EntryState::{FailedAgain, PassedOver, Recovered};
    let (job, _) = step(&started(spec()), &[], &[page(8)], 0);
    let (job, sent) = step(&job, &[PassedOver; 3], &[], 1_000);
    assert_eq!((&job.state, sent, job.found.len()), (&JobState::Canary, 3, 2));
    let (job, sent) = step(&job, &[Recovered, PassedOver, Recovered], &[], 2_000);
    assert_eq!((&job.state, sent, job.found.len()), (&JobState::Canary, 1, 1), "one is missing");
    let (stopped, sent) = step(&job, &[FailedAgain], &[], 3_000);
    assert_eq!((sent, &stopped.state), (0, &JobState::Stopped("1 of 3 canaries failed again, more than 20 %".into())));
    let (running, sent) = step(&job, &[Recovered], &[], 3_000);
    assert_eq!((running.state, sent), (JobState::Running, 1));
}

#[test]
fn where_every_candidate_was_passed_over_the_job_is_done_without_ever_running() {
    let (mut job, _) = step(&started(spec()), &[], &[page(5)], 0);
    for (ms, state, left) in [(1_000, JobState::Canary, 2), (2_000, JobState::Done, 0)] {
        job = step(&job, &all(&job, EntryState::PassedOver), &[], ms).0;
        assert_eq!((&job.state, job.under_way.len()), (&state, left));
    }
    assert_eq!((job.tally.passed_over, job.tally.begun), (5, 5));
}

#[test]
fn no_order_keeps_a_job_for_ever() {
    for entry_state in [EntryState::OnItsWay, EntryState::Untouched] {
        let (job, _) = step(&started(Spec { canary: 0, ..spec() }), &[], &[page(3)], 0);
        // An order that is no canary has longer than a canary.
        let (job, _) = step(&job, &all(&job, entry_state), &[], SETTLE_TIMEOUT_MS - 1);
        assert_eq!((&job.state, job.under_way.len()), (&JobState::Running, 3), "{entry_state:?}");
        let (job, sent) = step(&job, &all(&job, entry_state), &[], SETTLE_TIMEOUT_MS + 20);
        assert_eq!((&job.state, sent), (&JobState::Done, 0), "{entry_state:?}");
        assert_eq!((job.tally.failed_again, job.tally.late), (3, 3), "{entry_state:?}");
        let patient = Spec { canary: 0, canary_timeout_ms: 2 * SETTLE_TIMEOUT_MS, ..spec() };
        let (job, _) = step(&started(patient), &[], &[page(3)], 0);
        let (job, _) = step(&job, &all(&job, entry_state), &[], 2 * SETTLE_TIMEOUT_MS - 1);
        assert_eq!(job.under_way.len(), 3, "a longer time-out holds for all, {entry_state:?}");
    }
}

#[test]
fn a_command_that_nothing_ever_comes_of_is_sent_again_a_few_times_ever_more_seldom() {
    let (mut job, _) = step(&started(Spec { canary: 0, ..spec() }), &[], &[page(1)], 0);
    let mut times = Vec::new();
    for ms in (0..SETTLE_TIMEOUT_MS).step_by(1_000) {
        let (after, sent) = step(&job, &all(&job, EntryState::Untouched), &[], ms);
        job = after;
        times.extend(vec![ms / RESEND_AFTER_MS; sent]);
    }
    assert_eq!(times, [1, 3, 7, 15, 31]);
    assert_eq!(times.len(), usize::from(RESENDS_MAX));
}

#[test]
fn a_share_is_made_only_of_enough_orders_and_may_be_as_large_as_was_said() {
    use EntryState::{FailedAgain, OnItsWay, Recovered};
    let run = |failed: usize, recovered: usize, percent: u8| {
        let spec = Spec { canary: 0, stop_at_failed_percent: percent, ..spec() };
        let (job, _) = step(&started(spec), &[], &[page(40)], 0);
        let mut entry_states = vec![FailedAgain; failed];
        entry_states.extend(vec![Recovered; recovered]);
        entry_states.resize(job.under_way.len(), OnItsWay);
        step(&job, &entry_states, &[], 500).0.state
    };
    assert_eq!(run(9, 0, 20), JobState::Running, "nine are no sample");
    assert_eq!(run(2, 8, 20), JobState::Running, "20 % are allowed");
    assert!(matches!(run(3, 7, 20), JobState::Stopped(_)));
    assert_eq!(run(30, 0, 100), JobState::Running, "100 % are allowed");
    assert!(matches!(run(1, 20, 0), JobState::Stopped(_)));
}

#[test]
fn the_rate_holds_over_any_ticks_and_is_spread_within_one() {
    let spec = Spec { canary: 0, rate_per_second: 3, ..spec() };
    let mut job = started(spec);
    let mut times = Vec::new();
    let mut pages = vec![page(20)];
    // Ticks that come late, early and twice.
    for ms in [0, 1_000, 1_000, 1_300, 2_900, 7_000, 8_000, 9_000, 10_000, 11_000, 12_000, 13_000] {
        let Next { job: after, send } = carry_on(&job, &all(&job, EntryState::Recovered), &pages, at(ms), TICK_MS);
        pages.clear();
        times.extend(send.iter().map(|outgoing| ms + outgoing.delay_ms));
        job = after.unwrap_or(job);
    }
    assert_eq!(times.len(), 20);
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|&gap_ms| gap_ms >= 334), "{gaps:?}");
}

#[test]
fn f71_a_job_goes_on_after_its_clock_was_set_back() {
    let late_ms = 3_600_000;
    let slow = Spec { canary: 0, rate_per_second: 3, ..spec() };
    let (job, sent) = step(&started(slow), &[], &[page(20)], late_ms);
    assert!(sent > 0 && !job.found.is_empty());
    let (after, sent) = step(&job, &all(&job, EntryState::OnItsWay), &[], 0);
    assert!(sent > 0, "the next orders begin");
    assert!(after.under_way.iter().all(|entry| entry.at <= at(TICK_MS)) && after.next_at <= at(2 * TICK_MS));
}

#[test]
fn orders_under_way_are_bounded() {
    let mut job = started(Spec { canary: 0, rate_per_second: 1_000, ..spec() });
    let (first, _) = step(&job, &[], &[page(150)], 0);
    let mut entry = first.under_way[0];
    for n in 0..UNDER_WAY_MAX + 50 {
        entry.order_id = OrderId::from_idempotency_key("many", &n.to_string());
        job.found.push(entry);
    }
    let (job, sent) = step(&job, &[], &[], 0);
    assert_eq!((job.under_way.len(), sent, job.found.len()), (UNDER_WAY_MAX, UNDER_WAY_MAX, 50));
    let (job, sent) = step(&job, &all(&job, EntryState::OnItsWay), &[], 5_000);
    assert_eq!((job.under_way.len(), sent), (UNDER_WAY_MAX, 0));
}

#[test]
fn a_command_that_nothing_came_of_is_sent_again_after_a_while_and_not_before() {
    let (job, _) = step(&started(spec()), &[], &[page(3)], 0);
    let untouched = all(&job, EntryState::Untouched);
    assert_eq!(step(&job, &untouched, &[], RESEND_AFTER_MS - 1).1, 0);
    let (again, sent) = step(&job, &untouched, &[], RESEND_AFTER_MS + 100);
    assert_eq!((sent, again.tally.begun, again.under_way.len()), (3, 3, 3));
    assert_eq!(step(&again, &untouched, &[], RESEND_AFTER_MS + 200).1, 0);
}

#[test]
fn the_scan_takes_no_order_twice_and_none_that_the_job_resubmitted_before() {
    let (job, _) =
        step(&Job { scanned: false, ..started(spec()) }, &[], &[Page { next: Some("c".into()), ..page(6) }], 0);
    assert_eq!((job.cursor.as_deref(), job.scanned, job.wants_more()), (Some("c"), false, true));
    let (job, _) = step(&job, &all(&job, EntryState::OnItsWay), &[page(6)], 100);
    assert_eq!((job.found.len() + job.under_way.len(), job.scanned, job.wants_more()), (6, true, false));
    let mut case = failed_case();
    resubmit(&mut case, &job);
    case.rejected("a");
    // The clock of the task's writer was behind, so its time selects it.
    let fresh = started(spec());
    let scan = Page { tasks: vec![Arc::new(case.task.clone())], ..Page::default() };
    assert!(fresh.spec.selects(&case.task));
    assert_eq!(step(&fresh, &[], &[scan], 0).0.tally.begun, 0);
}

#[test]
fn a_short_spec_gets_a_careful_job() {
    let spec: Spec = serde_json::from_str(r#"{"By":"ann","Reason":"mended"}"#).unwrap();
    assert_eq!((spec.canary, spec.canary_timeout_ms), (5, 300_000));
    assert_eq!((spec.rate_per_second, spec.stop_at_failed_percent), (10, 20));
    assert_eq!(spec.selector, Selector::default());
}

#[test]
fn texts_may_be_as_long_as_the_limit() {
    let long = Spec { by: "é".repeat(crate::author::CHARS_MAX).into(), ..spec() };
    assert_eq!(long.check(), Ok(()));
}

#[test]
fn a_job_is_in_its_state_since_it_came_there() {
    let planned = Job::plan("j".into(), spec(), DryRun::default(), at(0)).unwrap();
    let started = planned.start("ann", "go", at(7)).unwrap();
    assert_eq!((started.version, started.since), (2, at(7)));
    let cancelled = started.cancel("ann", "no", at(9)).unwrap();
    assert_eq!((cancelled.version, cancelled.since), (3, at(9)));
    assert_eq!(cancelled.state, JobState::Cancelled("by ann: no".into()));
}

#[test]
fn a_job_that_waits_for_canaries_says_since_when() {
    use EntryState::Recovered;
    let (job, sent) = step(&started(spec()), &[], &[page(30)], 500);
    assert_eq!((&job.state, sent, job.since), (&JobState::Canary, 3, at(500)));
    let (job, _) = step(&job, &[Recovered; 3], &[], 1_500);
    assert_eq!((&job.state, job.since), (&JobState::Running, at(1_500)));
    let begun = job.tally.begun;
    let (job, _) = step(&Job { found: first_found(), ..job }, &[], &[], 2_600);
    assert_eq!((job.tally.begun > begun, job.since), (true, at(1_500)), "only a canary begins a wait");
}

/// A few orders that were found and not begun.
fn first_found() -> Vec<Entry> {
    let mut job = started(spec());
    job.absorb(&page(3), at(0));
    job.found
}

#[test]
fn what_falls_due_with_the_next_tick_is_left_to_it() {
    let once_a_second = Spec { canary: 0, rate_per_second: 1, ..spec() };
    let (job, sent) = step(&started(once_a_second), &[], &[page(5)], 0);
    assert_eq!((sent, job.next_at), (1, at(TICK_MS)));
    assert_eq!(step(&job, &all(&job, EntryState::OnItsWay), &[], TICK_MS).1, 1);
}

#[test]
fn the_scan_goes_on_only_while_few_are_found() {
    let mut job = started(spec());
    let entry = first_found()[0];
    job.found = vec![entry; FOUND_MIN - 1];
    assert!(job.wants_more());
    job.found.push(entry);
    assert!(!job.wants_more());
}

#[test]
fn what_is_zero_takes_no_room_in_the_record_and_what_is_not_is_kept() {
    let entry = first_found()[0];
    for (resent, is_written) in [(0, false), (3, true)] {
        let entry = Entry { resent, ..entry };
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(text.contains("Resent"), is_written, "{text}");
        assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
    }
    for (late, is_written) in [(0, false), (3, true)] {
        let tally = Tally { late, ..Tally::default() };
        let text = serde_json::to_string(&tally).unwrap();
        assert_eq!(text.contains("Late"), is_written, "{text}");
        assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally);
    }
}
