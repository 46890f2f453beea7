//! A single run.

use domain::advance::advance;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::lease::Lease;
use domain::limits::SHARDS;
use domain::machine::Event;
use domain::order::Order;
use domain::ports::{Environment, PortErrorKind, Records};
use domain::task::{ProcessState, StepState, Task, Watch};
use memory::Memory;
use memory::faulty::Faulty;

use super::{EXPIRED_MS, claimed, failed, lines, reply_of, settings, submit, wake, work, yes};
use crate::testing::{instance, ports, ports_with_a_small_index, run, run_for};
use crate::{Report, Settings, handle};

fn sweep(ports: &Faulty) -> Report {
    run(handle(ports, &instance("s"), &settings())).unwrap()
}

#[test]
fn an_expired_attempt_is_counted_and_the_order_goes_on() {
    let ports = ports();
    let ids = claimed(&ports, 0..20);
    assert_eq!(sweep(&ports), Report { shards_swept: 16, ..Report::default() });
    ports.advance(EXPIRED_MS);
    let report = sweep(&ports);
    assert_eq!((report.due, report.taken, report.shards_swept), (20, 20, 16));
    ports.advance(60_000);
    work(&ports, |_| Some(yes()));
    for order_id in ids {
        let task = ports.stored(order_id);
        assert_eq!((task.process_state, task.steps[0].failure_count), (ProcessState::Processed, 1));
    }
}

/// Ports whose index is read as a whole, and those where each shard is asked.
fn both_kinds() -> [Faulty; 2] {
    [ports_with_a_small_index(), ports()]
}

/// Name, epoch and health of each lease.
fn leases(ports: &Faulty) -> Vec<(String, u64, String)> {
    let all: Vec<Lease> = run(Records::list(ports, usize::MAX)).unwrap();
    assert!(all.iter().all(|lease| &*lease.owner == "s" && lease.held_until.is_none()));
    all.iter().map(|lease| (lease.name.to_string(), lease.epoch, lease.health.clone().unwrap().to_string())).collect()
}

#[test]
fn a_run_takes_the_leases_of_the_shards_where_something_is_due_and_is_written_down() {
    for ports in both_kinds() {
        let ids = claimed(&ports, 0..1);
        sweep(&ports);
        let of_run = |epoch: u64, health: &str| ("supervisor/run".to_owned(), epoch, health.to_owned());
        assert_eq!(leases(&ports), [of_run(1, "swept 0, took 0")]);
        ports.advance(EXPIRED_MS);
        sweep(&ports);
        let shard = format!("supervisor/{:02}", ids[0].shard(SHARDS));
        assert_eq!(leases(&ports), [(shard, 1, "swept 1, took 1".to_owned()), of_run(2, "swept 1, took 1")]);
    }
}

#[test]
fn a_look_at_the_whole_index_finds_long_waits_and_what_a_fast_clock_wrote() {
    for ports in both_kinds() {
        let ids = claimed(&ports.with_clock_ahead_ms(3 * 3_600_000), 0..3);
        for (id, watch) in ids.iter().zip([Watch::Due as fn(u8) -> Watch, Watch::Wait, Watch::Error]) {
            let watch = Some(watch(id.shard(SHARDS)));
            let task = Task { watch, ..Task::clone(&ports.stored(*id)) };
            ports.store_order(Order::clone(&ports.stored_order(*id)), task);
        }
        let mut due = 0;
        for _ in 0..SHARDS {
            due += sweep(&ports).due;
            ports.advance(settings().tick_ms);
        }
        assert_eq!(due, 1, "a long wait may end in three hours, and the third waits for an operator");
        ports.advance(4 * 3_600_000);
        assert_eq!(sweep(&ports).due, 2, "the long wait is over, too");
    }
}

#[test]
fn a_run_is_written_down_with_the_shards_that_it_could_not_reach() {
    let ports = ports();
    ports.is_down("store.due Due(3)");
    ports.is_down("store.due Due(4)");
    run(handle(&ports, &instance("s"), &settings())).unwrap_err();
    assert_eq!(leases(&ports)[0].2, "swept 0, took 0, shards not reached 2");
}

#[test]
fn after_the_deployment_was_given_more_shards_older_orders_are_found_where_they_began() {
    let ports = ports();
    let ids = claimed(&ports, 0..40);
    ports.advance(EXPIRED_MS);
    let more = Instance { shards: 40, ..instance("s") };
    assert!(ids.iter().any(|id| id.shard(more.shards) != id.shard(SHARDS)));
    let report = run(handle(&ports, &more, &settings())).unwrap();
    assert_eq!((report.taken, report.shards_swept), (40, 40));
    let stay = |id: &OrderId| ports.stored(*id).watch == Some(Watch::Due(id.shard(SHARDS)));
    assert!(ids.iter().all(stay));
}

#[test]
fn f36_after_missed_ticks_a_run_catches_up_and_a_double_tick_does_nothing() {
    let ports = ports();
    claimed(&ports, 0..250);
    ports.advance(3_600_000);
    let report = sweep(&ports);
    assert_eq!((report.due, report.taken, report.failed), (250, 250, 0));
    assert!(report.lag_ms_max > 3_500_000, "{report:?}");
    let again = sweep(&ports);
    assert_eq!((again.due, again.taken), (0, 0));
    assert!(ports.tasks().iter().all(|task| task.steps[0].failure_count == 1));
}

#[test]
fn f37_an_index_that_shows_a_finished_task_changes_nothing() {
    let ports = ports();
    let ids = submit(&ports, 0..1);
    wake(&ports, ids[0]);
    ports.index_stands_still();
    work(&ports, |_| Some(yes()));
    let before = ports.stored(ids[0]);
    assert_eq!(before.process_state, ProcessState::Processed);
    ports.advance(EXPIRED_MS);
    let report = sweep(&ports);
    assert_eq!((report.due, report.taken), (1, 0));
    assert_eq!(ports.stored(ids[0]), before);
}

#[test]
fn f38_what_a_lagging_index_does_not_show_is_found_by_the_next_run() {
    let ports = ports();
    let mut ids = claimed(&ports, 0..1);
    ports.index_stands_still();
    ids.extend(claimed(&ports, 1..2));
    ports.advance(EXPIRED_MS);
    assert_eq!(sweep(&ports).taken, 1);
    ports.index_follows();
    assert_eq!(sweep(&ports).taken, 1);
    assert!(ids.iter().all(|&id| ports.stored(id).steps[0].failure_count == 1));
}

#[test]
fn f39_a_shard_whose_index_is_throttled_does_not_hold_up_the_others() {
    let ports = ports();
    let ids = claimed(&ports, 0..60);
    ports.advance(EXPIRED_MS);
    let throttled = ids[0].shard(SHARDS);
    ports.is_down(format!("store.due Due({throttled})"));
    let error = run(handle(&ports, &instance("s"), &settings())).unwrap_err();
    assert_eq!(error.kind, PortErrorKind::Unavailable);
    for &id in &ids {
        assert_eq!(ports.stored(id).steps[0].failure_count, u32::from(id.shard(SHARDS) != throttled));
    }
    ports.is_up(&format!("store.due Due({throttled})"));
    sweep(&ports);
    assert!(ids.iter().all(|&id| ports.stored(id).steps[0].failure_count == 1));
}

#[test]
fn f41_supervisors_whose_clocks_are_off_by_six_minutes_only_delay_an_order() {
    const SIX_MINUTES_MS: i64 = 360_000;
    let ports = ports();
    let ids = claimed(&ports, 0..10);
    // One clock says that the attempts are over, the other that they have just begun.
    let (ahead, behind) = (ports.with_clock_ahead_ms(SIX_MINUTES_MS), ports.with_clock_ahead_ms(-SIX_MINUTES_MS));
    for _ in 0..3 {
        run(handle(&ahead, &instance("ahead"), &settings())).unwrap();
        run(handle(&behind, &instance("behind"), &settings())).unwrap();
    }
    for &id in &ids {
        let task = ports.stored(id);
        assert_eq!((task.steps[0].failure_count, task.steps[0].attempt), (1, 1), "one attempt is counted once");
        // The answer that was in flight all the time is taken.
        let reply = reply_of(&task, &task.steps[0], yes());
        run(advance(&ports, &instance("scheduler"), id, Event::Reply { reply: &reply, redelivered: false })).unwrap();
    }
    ports.advance(600_000);
    work(&ports, |_| Some(yes()));
    assert!(ids.iter().all(|&id| ports.stored(id).process_state == ProcessState::Processed));
}

#[test]
fn f42_of_an_expiry_and_a_success_at_the_same_time_each_is_taken_at_most_once() {
    let mut counted = [0; 2];
    for polls in 0..60 {
        let ports = ports();
        let id = claimed(&ports, 0..1)[0];
        ports.advance(EXPIRED_MS);
        let task = ports.stored(id);
        let reply = reply_of(&task, &task.steps[0], yes());
        let (supervisor, settings) = (instance("s"), settings());
        let mut sweeping = Box::pin(handle(&ports, &supervisor, &settings));
        let swept = run_for(&mut sweeping, polls);
        run(advance(&ports, &instance("scheduler"), id, Event::Reply { reply: &reply, redelivered: false })).unwrap();
        if swept.is_none() {
            run(sweeping).unwrap();
        }
        let task = ports.stored(id);
        assert_eq!((task.steps[0].process_state, lines(&task, "first processed")), (StepState::Processed, 1));
        assert_eq!((task.steps[1].attempt, lines(&task, "second claimed")), (1, 1));
        counted[task.steps[0].failure_count as usize] += 1;
    }
    assert!(counted.iter().all(|&count| count > 0), "either one came first at some point: {counted:?}");
}

#[test]
fn f43_an_alert_that_could_not_be_sent_is_sent_later_and_once() {
    let ports = ports();
    ports.is_down("events.publish");
    let id = failed(&ports, 0..1)[0];
    assert_eq!((ports.stored(id).process_state, ports.stored(id).unsent.len()), (ProcessState::Error, 1));
    ports.advance(31_000);
    sweep(&ports);
    assert!(ports.published().is_empty());
    ports.is_up("events.publish");
    ports.advance(31_000);
    sweep(&ports);
    ports.advance(31_000);
    sweep(&ports);
    assert_eq!(ports.published().len(), 1);
    assert_eq!(&*ports.published()[0].kind, "OrderNeedsOperator");
    assert!(ports.stored(id).unsent.is_empty());
}

#[test]
fn a_run_ends_when_its_time_is_up_and_the_next_ones_finish_its_work() {
    let ports = ports();
    let ids = claimed(&ports, 0..600);
    ports.advance(EXPIRED_MS);
    let memory = Memory::clone(&ports);
    ports.at_each("", move |_| {
        memory.advance(10);
        None
    });
    let settings = Settings { run_ms_max: 1_000, ..settings() };
    let (mut runs, mut taken) = (0, 0);
    while taken < 600 {
        let began = ports.now();
        let report = run(handle(&ports, &instance("s"), &settings)).unwrap();
        let took_ms = began.ms_until(ports.now());
        assert!(took_ms < 2_500, "a run took {took_ms} ms");
        assert!(report.taken > 0, "a run did nothing");
        assert!(report.shards_swept == 16 || report.shards_cut_short > 0);
        taken += report.taken;
        runs += 1;
    }
    assert!(runs > 3);
    assert!(ids.iter().all(|&id| ports.stored(id).steps[0].failure_count == 1));
}

#[test]
fn f71_an_order_that_a_fast_clock_wrote_is_found_within_as_many_runs_as_there_are_shards() {
    let ports = ports();
    let ids = claimed(&ports.with_clock_ahead_ms(3 * 3_600_000), 0..20);
    for _ in 0..SHARDS {
        sweep(&ports);
        ports.advance(settings().tick_ms);
    }
    let now = ports.now();
    assert!(ids.into_iter().all(|order_id| ports.stored(order_id).watch_at.unwrap() <= now.plus_ms(60_000)));
}
