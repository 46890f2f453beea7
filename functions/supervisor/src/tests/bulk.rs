//! Bulk resubmits end to end, with crashes.

use domain::bulk::{
    BulkAction, DryRun, Job, JobState, RESEND_AFTER_MS, RESENDS_MAX, SETTLE_TIMEOUT_MS, Selector, Spec, Tally, dry_run,
};
use domain::id::OrderId;
use domain::message::{Outcome, Request, SchedulerMessage};
use domain::ports::{Environment, Records, Seen};
use domain::redaction::Redaction;
use domain::task::{ProcessState, What, reason};
use futures_util::future::join;
use memory::faulty::Faulty;

use super::{TERM_OVER_MS, failed, lines, no, settings, wake, work, yes};
use crate::bulk;
use crate::testing::{instance, ports, run, run_for};

fn spec() -> Spec {
    Spec {
        by: "ann".into(),
        reason: "stock counted".into(),
        action: BulkAction::Resubmit,
        selector: Selector { reason_code: Some(reason::REJECTED.into()), ..Selector::default() },
        canary: 2,
        canary_timeout_ms: 60_000,
        rate_per_second: 1_000,
        stop_at_failed_percent: 20,
    }
}

/// Plans a job on the counts of a dry run, and starts it.
pub(super) fn start(ports: &Faulty, spec: Spec) -> DryRun {
    let counted = run(dry_run(ports, &spec)).unwrap();
    let planned = Job::plan("j1".into(), spec, counted, ports.now()).unwrap();
    run(ports.put(Seen::version(0, ports.now()), &planned)).unwrap();
    run(ports.put(Seen::version(1, ports.now()), &planned.start("ann", "go", ports.now()).unwrap())).unwrap();
    counted
}

pub(super) fn job(ports: &Faulty) -> Job {
    run(Records::list(ports, usize::MAX)).unwrap().remove(0)
}

/// Runs a supervisor once. Gives the number of messages that it sent.
pub(super) fn tick(ports: &Faulty) -> u64 {
    run(bulk(ports, &instance("s"), &settings(), &Redaction::default())).unwrap().sent
}

pub(super) fn all_well(_: &Request) -> Option<Outcome> {
    Some(yes())
}

/// Ticks, with scheduler and agents at work in between, until the job has ended.
pub(super) fn to_the_end(ports: &Faulty, agent: impl Fn(&Request) -> Option<Outcome>) {
    for _ in 0..100 {
        if job(ports).state.is_final() {
            return;
        }
        tick(ports);
        ports.advance(1_000);
        work(ports, &agent);
    }
    panic!("the job does not end: {:?}", job(ports));
}

/// The same with a supervisor that is killed once, at this await. Returns whether it came so far.
pub(super) fn to_the_end_killed_at(ports: &Faulty, kill_at: usize) -> bool {
    let (mut left, mut was_killed) = (kill_at, false);
    for _ in 0..100 {
        if job(ports).state.is_final() {
            break;
        }
        let mut polls = 0;
        let (supervisor, settings, redaction) = (instance("s"), settings(), Redaction::default());
        let mut ticking = Box::pin(bulk(ports, &supervisor, &settings, &redaction));
        while run_for(&mut ticking, 1).is_none() {
            polls += 1;
            if !was_killed && polls > left {
                was_killed = true;
                break;
            }
        }
        drop(ticking);
        left -= left.min(polls);
        // After the lease term of the killed supervisor, and after the time for sending a lost command again.
        ports.advance(if was_killed { TERM_OVER_MS } else { 1_000 });
        work(ports, all_well);
    }
    was_killed
}

fn resubmitted(ports: &Faulty, ids: &[OrderId]) -> Vec<usize> {
    ids.iter().map(|&id| lines(&ports.stored(id), "resubmitted")).collect()
}

#[test]
fn every_order_that_is_meant_is_resubmitted_once_with_name_and_reason() {
    let ports = ports();
    let ids = failed(&ports, 0..20);
    let counted = start(&ports, spec());
    assert_eq!(counted, DryRun { matching: 20, complete: true });
    assert_eq!(resubmitted(&ports, &ids), [0; 20], "a dry run changes nothing");
    to_the_end(&ports, all_well);
    assert_eq!(resubmitted(&ports, &ids), [1; 20]);
    let job = job(&ports);
    assert_eq!(job.state, JobState::Done);
    assert_eq!(job.tally, Tally { begun: 20, recovered: 20, ..Tally::default() });
    let task = ports.stored(ids[7]);
    assert_eq!(task.process_state, ProcessState::Processed);
    let line = task.history.iter().find(|line| matches!(line.what, What::Resubmitted)).unwrap();
    let of = (&*line.who, line.why.as_deref(), line.bulk.as_deref());
    assert_eq!(of, ("ann", Some("stock counted"), Some("j1")));
}

#[test]
fn killed_at_any_await_a_job_resubmits_each_order_exactly_once() {
    let mut kills = 0;
    for kill_at in 0.. {
        let ports = ports();
        let ids = failed(&ports, 0..8);
        start(&ports, Spec { canary: 2, ..spec() });
        let was_killed = to_the_end_killed_at(&ports, kill_at);
        assert_eq!(job(&ports).state, JobState::Done, "killed at {kill_at}");
        assert_eq!(resubmitted(&ports, &ids), [1; 8], "killed at {kill_at}");
        assert_eq!(job(&ports).tally, Tally { begun: 8, recovered: 8, ..Tally::default() }, "killed at {kill_at}");
        if !was_killed {
            break;
        }
        kills += 1;
    }
    assert!(kills > 50, "the job was killed at {kills} places only");
}

#[test]
fn two_supervisors_with_broken_leases_resubmit_each_order_once() {
    let ports = ports();
    let ids = failed(&ports, 0..15);
    start(&ports, spec());
    ports.break_leases();
    let (one, other, settings) = (instance("one"), instance("other"), settings());
    let redaction = Redaction::default();
    while !job(&ports).state.is_final() {
        let (one, other) =
            run(join(bulk(&ports, &one, &settings, &redaction), bulk(&ports, &other, &settings, &redaction)));
        assert_eq!((one.unwrap().held_by_others, other.unwrap().held_by_others), (0, 0));
        ports.advance(1_000);
        work(&ports, all_well);
    }
    assert_eq!(resubmitted(&ports, &ids), [1; 15]);
    assert_eq!(job(&ports).tally, Tally { begun: 15, recovered: 15, ..Tally::default() });
}

#[test]
fn one_supervisor_at_a_time_carries_a_job_on() {
    let ports = ports();
    failed(&ports, 0..3);
    start(&ports, spec());
    assert!(run_for(bulk(&ports, &instance("dies"), &settings(), &Redaction::default()), 8).is_none());
    let report = run(bulk(&ports, &instance("other"), &settings(), &Redaction::default())).unwrap();
    assert_eq!((report.active, report.held_by_others, report.sent), (1, 1, 0));
    ports.advance(TERM_OVER_MS);
    let report = run(bulk(&ports, &instance("other"), &settings(), &Redaction::default())).unwrap();
    assert_eq!((report.carried_on, report.sent), (1, 2));
}

#[test]
fn where_the_canaries_fail_again_the_others_are_left_alone() {
    let ports = ports();
    let ids = failed(&ports, 0..10);
    start(&ports, spec());
    to_the_end(&ports, |_| Some(no()));
    let JobState::Stopped(why) = job(&ports).state else {
        panic!("{:?}", job(&ports).state);
    };
    assert_eq!(&*why, "2 of 2 canaries failed again, more than 20 %");
    assert_eq!(resubmitted(&ports, &ids).iter().sum::<usize>(), 2);
    ports.advance(600_000);
    tick(&ports);
    assert_eq!(resubmitted(&ports, &ids).iter().sum::<usize>(), 2, "stopped is stopped");
}

#[test]
fn a_canary_that_is_not_settled_in_time_counts_as_failed() {
    let ports = ports();
    let ids = failed(&ports, 0..10);
    start(&ports, Spec { canary_timeout_ms: 5_000, ..spec() });
    to_the_end(&ports, |_| None);
    let state = job(&ports).state;
    assert!(matches!(&state, JobState::Stopped(why) if why.contains("not settled in time")), "{state:?}");
    assert_eq!(resubmitted(&ports, &ids).iter().sum::<usize>(), 2);
}

#[test]
fn a_job_stops_when_too_many_fail_again_after_the_canaries() {
    let ports = ports();
    let ids = failed(&ports, 0..60);
    start(&ports, Spec { rate_per_second: 10, ..spec() });
    // The list shows the newest orders first, so these are the canaries.
    let canaries = ids[58..].to_vec();
    to_the_end(&ports, |request| Some(if canaries.contains(&request.order_id) { yes() } else { no() }));
    let state = job(&ports).state;
    assert!(matches!(&state, JobState::Stopped(why) if why.contains("settled orders failed again")), "{state:?}");
    let touched = resubmitted(&ports, &ids).iter().sum::<usize>();
    assert!((10..40).contains(&touched), "{touched} orders were tried in vain");
    assert!(resubmitted(&ports, &ids).iter().all(|&count| count <= 1), "none is tried twice");
}

#[test]
fn orders_go_at_the_rate_and_not_faster() {
    let ports = ports();
    let ids = failed(&ports, 0..40);
    start(&ports, Spec { canary: 0, rate_per_second: 5, ..spec() });
    let began = ports.now();
    to_the_end(&ports, all_well);
    let mut times: Vec<_> = ids.iter().map(|&id| ports.stored(id)).collect();
    times.sort_by_key(|task| task.history.iter().find(|line| matches!(line.what, What::Resubmitted)).unwrap().at);
    assert!(began.ms_until(ports.now()) >= 8_000, "40 orders at 5 in a second");
    assert_eq!(job(&ports).tally.recovered, 40);
}

#[test]
fn a_command_that_was_lost_on_the_way_is_sent_again() {
    let ports = ports();
    let ids = failed(&ports, 0..2);
    start(&ports, spec());
    tick(&ports);
    tick(&ports);
    assert_eq!(ports.scheduled().len(), 2);
    ports.retain_scheduled(|_| false);
    ports.advance(RESEND_AFTER_MS + 1_000);
    to_the_end(&ports, all_well);
    assert_eq!(resubmitted(&ports, &ids), [1; 2]);
}

#[test]
fn a_job_ends_although_an_order_never_answers_and_another_never_gets_its_command() {
    let ports = ports();
    let ids = failed(&ports, 0..4);
    start(&ports, Spec { canary: 0, ..spec() });
    let (mut deaf, mut sent_to_deaf, mut minutes) = (None, 0, 0);
    while !job(&ports).state.is_final() {
        assert!(minutes <= 2 + SETTLE_TIMEOUT_MS / 60_000, "the job does not end: {:?}", job(&ports));
        minutes += 1;
        tick(&ports);
        let deaf = *deaf.get_or_insert_with(|| job(&ports).under_way.first().map_or(ids[0], |entry| entry.order_id));
        let is_for_deaf = |message: &SchedulerMessage| matches!(message, SchedulerMessage::Command(command) if command.order_id == deaf);
        sent_to_deaf += ports.scheduled().iter().filter(|message| is_for_deaf(message)).count();
        ports.retain_scheduled(|message| !is_for_deaf(message));
        ports.advance(60_000);
        let silent = *ids.iter().find(|&&id| id != deaf).unwrap();
        work(&ports, |request| (request.order_id != silent).then(yes));
    }
    assert_eq!(job(&ports).state, JobState::Done);
    assert_eq!(job(&ports).tally, Tally { begun: 4, recovered: 2, failed_again: 2, late: 2, ..Tally::default() });
    assert!((2..=1 + usize::from(RESENDS_MAX)).contains(&sent_to_deaf), "{sent_to_deaf} commands");
}

#[test]
fn canaries_handled_by_another_operator_are_replaced_before_the_others_go() {
    let ports = ports();
    let ids = failed(&ports, 0..10);
    start(&ports, spec());
    tick(&ports);
    let canaries: Vec<_> = job(&ports).under_way.iter().map(|entry| entry.order_id).collect();
    assert_eq!(canaries.len(), 2);
    for id in canaries {
        super::resubmit(&ports, id, "bob", None);
    }
    to_the_end(&ports, |_| Some(no()));
    let state = job(&ports).state;
    assert_eq!(state, JobState::Stopped("2 of 2 canaries failed again, more than 20 %".into()));
    assert_eq!(job(&ports).tally, Tally { begun: 4, passed_over: 2, failed_again: 2, ..Tally::default() });
    assert_eq!(resubmitted(&ports, &ids).iter().sum::<usize>(), 4, "two by bob, two by the job");
}

#[test]
fn an_order_handled_by_another_operator_is_passed_over() {
    let ports = ports();
    let ids = failed(&ports, 0..6);
    start(&ports, Spec { canary: 0, rate_per_second: 1, ..spec() });
    tick(&ports);
    // While the job has found it and not begun it, another operator resubmits one, and it fails again.
    let waiting = job(&ports).found[2].order_id;
    super::resubmit(&ports, waiting, "bob", None);
    let agent = |request: &Request| Some(if request.order_id == waiting { no() } else { yes() });
    to_the_end(&ports, agent);
    let task = ports.stored(waiting);
    assert_eq!((task.process_state, lines(&task, "resubmitted")), (ProcessState::Error, 1), "only by bob");
    assert_eq!(job(&ports).tally, Tally { begun: 6, recovered: 5, passed_over: 1, ..Tally::default() });
    assert_eq!(ids.len(), 6);
}

#[test]
fn what_the_selector_does_not_mean_and_what_failed_after_the_plan_is_left_alone() {
    let ports = ports();
    let meant = failed(&ports, 0..3);
    let planned = spec();
    start(&ports, planned);
    ports.advance(1_000);
    let later = failed(&ports, 3..6);
    let healthy = super::submit(&ports, 6..7)[0];
    wake(&ports, healthy);
    work(&ports, all_well);
    to_the_end(&ports, all_well);
    assert_eq!((resubmitted(&ports, &meant), resubmitted(&ports, &later)), (vec![1; 3], vec![0; 3]));
    assert_eq!(lines(&ports.stored(healthy), "resubmitted"), 0);
}

#[test]
fn a_cancelled_job_sends_nothing_more() {
    let ports = ports();
    let ids = failed(&ports, 0..10);
    start(&ports, spec());
    tick(&ports);
    let before = job(&ports);
    let cancelled = before.cancel("ann", "wrong selector", ports.now()).unwrap();
    run(ports.put(Seen::version(before.version, ports.now()), &cancelled)).unwrap();
    for _ in 0..5 {
        tick(&ports);
        ports.advance(1_000);
        work(&ports, all_well);
    }
    assert_eq!(resubmitted(&ports, &ids).iter().sum::<usize>(), 2, "only the canaries, which were sent before");
    assert_eq!(job(&ports).state, JobState::Cancelled("by ann: wrong selector".into()));
}

#[test]
fn a_cancel_in_the_middle_of_a_step_wins_or_comes_after_it() {
    let mut sent_after = [0; 2];
    for polls in 0..40 {
        let ports = ports();
        failed(&ports, 0..6);
        start(&ports, spec());
        let (supervisor, settings, redaction) = (instance("s"), settings(), Redaction::default());
        let mut ticking = Box::pin(bulk(&ports, &supervisor, &settings, &redaction));
        let ended = run_for(&mut ticking, polls);
        let seen = job(&ports);
        let cancelled = seen.cancel("ann", "wrong selector", ports.now()).unwrap();
        // The queue refuses a command that the stored job does not list.
        run(ports.put(Seen::version(seen.version, ports.now()), &cancelled)).unwrap();
        if ended.is_none() {
            run(ticking).unwrap();
        }
        let sent = ports.scheduled().len();
        assert_eq!(sent, seen.under_way.len(), "cancelled after {polls} polls");
        sent_after[usize::from(sent > 0)] += 1;
    }
    assert!(sent_after.iter().all(|&count| count > 0), "either came first at some point: {sent_after:?}");
}
