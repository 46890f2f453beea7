//! Supervisor: F35 to F43.

use domain::id::OrderId;
use domain::limits::SHARDS;
use domain::task::{Direction, ProcessState, StepState, reason};
use memory::faulty::{Fault, Faulty};
use supervisor::{Report, Settings};
use tests::conformance::samples;
use tests::world::{AGENTS, BACKED_OFF_MS, EXPIRED_MS, End, ONE_DONE, ONE_FAILED, PATIENT, Ran, World, drive};

use super::scenes::at_every_call;

/// One run of a supervisor with this name, on these ports. `None`: it died.
fn sweep(world: &World, ports: &Faulty, name: &str) -> Option<Result<Report, domain::ports::PortError>> {
    let (instance, settings) = (world.instance(name), Settings::default());
    drive(&world.memory, ports, supervisor::handle(ports, &instance, &settings))
}

/// This number of orders, whose first attempt ended without a reply.
fn expired(world: &World, orders: impl Iterator<Item = u32>) -> Vec<OrderId> {
    let ids = orders.map(|n| world.post(n)).collect();
    while world.submit() != Ran::Idle {}
    while world.schedule() != Ran::Idle {}
    while !world.lose_requests("inventory").is_empty() {}
    world.memory.advance(EXPIRED_MS);
    ids
}

fn failures(world: &World, order_id: OrderId) -> u32 {
    world.step(order_id, "reserve").failure_count
}

fn all_processed(world: &World, orders: &[OrderId]) {
    world.end_all(&orders.iter().map(|&order_id| (order_id, End::Processed)).collect::<Vec<_>>());
    assert!(orders.iter().all(|&order_id| failures(world, order_id) == 1), "each attempt is counted once");
}

/// Sample orders with tasks in the same shard.
fn of_one_shard(orders: usize) -> Vec<u32> {
    let shard = samples::order(0).order_id.shard(SHARDS);
    (0..).filter(|&n| samples::order(n).order_id.shard(SHARDS) == shard).take(orders).collect()
}

#[test]
fn f35_two_leaders_at_once_count_each_attempt_once_wherever_they_meet() {
    at_every_call(&[Fault::Waits], |call, wait| {
        let world = World::new();
        world.memory.break_leases();
        let orders = expired(&world, 1..4);
        world.ports.after_calls(call, wait);
        let (one, settings) = (world.instance("one"), Settings::default());
        let run = supervisor::handle(&world.ports, &one, &settings);
        let was_met = world
            .meanwhile(run, || {
                world.supervise();
            })
            .is_some();
        all_processed(&world, &orders);
        was_met
    });
}

#[test]
fn f35_a_leader_paused_past_its_lease_counts_nothing_that_another_one_counted() {
    let world = World::new();
    let orders = expired(&world, 1..4);
    let (one, settings) = (world.instance("one"), Settings::default());
    let run = supervisor::handle(&world.ports, &one, &settings);
    world.ports.next("store.commit", Fault::Waits);
    let mut others = Report::default();
    let paused = world.meanwhile(run, || {
        world.memory.advance(settings.term_ms + 1);
        others = world.supervise();
    });
    let own = paused.unwrap().unwrap();
    assert_eq!((own.taken + others.taken, others.shards_swept), (3, u64::from(SHARDS)), "{own:?} {others:?}");
    all_processed(&world, &orders);
}

#[test]
fn f36_after_missed_ticks_a_run_catches_up_and_a_double_tick_does_nothing() {
    let world = World::new();
    let orders = expired(&world, 0..150);
    world.memory.advance(6 * 60 * 60_000);
    assert_eq!(world.supervise().taken, 150);
    let tasks = world.tasks();
    assert_eq!(world.supervise(), Report { shards_swept: u64::from(SHARDS), ..Report::default() });
    assert_eq!(world.tasks(), tasks);
    all_processed(&world, &orders);
}

#[test]
fn f37_an_index_that_shows_a_finished_order_changes_nothing() {
    let world = World::new();
    let order_id = world.post(1);
    world.submit();
    world.ports.index_stands_still();
    world.run();
    let task = world.task(order_id);
    assert_eq!(task.process_state, ProcessState::Processed);
    world.memory.advance(EXPIRED_MS);
    let report = world.supervise();
    assert_eq!((report.due, report.taken), (1, 0), "it is shown as due");
    assert_eq!(world.task(order_id), task);
    world.ports.index_follows();
    world.ends(order_id, End::Processed);
}

#[test]
fn f38_what_the_index_does_not_show_yet_is_found_by_the_next_run() {
    let world = World::new();
    world.ports.index_stands_still();
    let orders = expired(&world, 1..3);
    assert_eq!(world.supervise().due, 0);
    world.ports.index_follows();
    assert_eq!(world.supervise().taken, 2);
    all_processed(&world, &orders);
}

#[test]
fn f39_a_write_that_the_index_throttles_is_made_later_and_a_shard_that_it_throttles_holds_up_no_other() {
    let world = World::new();
    let orders: Vec<OrderId> = (0..60).map(|n| world.post(n)).collect();
    world.ports.next("store.insert", Fault::Fails);
    assert_eq!(world.submit(), Ran::Handled { done: 9, failed: 1 }, "a first claim is throttled");
    world.until_redelivery();
    while world.submit() != Ran::Idle {}
    while !world.lose_requests("inventory").is_empty() {}
    world.memory.advance(EXPIRED_MS);
    // Whichever shard asks first.
    world.ports.next("store.due", Fault::Fails);
    assert!(sweep(&world, &world.ports, "supervisor").unwrap().is_err());
    let left: Vec<u8> =
        orders.iter().filter(|&&order_id| failures(&world, order_id) == 0).map(|id| id.shard(SHARDS)).collect();
    assert!(!left.is_empty() && left.iter().all(|&shard| shard == left[0]), "one shard is left: {left:?}");
    // And a count that is throttled: the order is left to the next run.
    world.ports.next("store.commit", Fault::Fails);
    assert_eq!(world.supervise().failed, 1);
    world.supervise();
    all_processed(&world, &orders);
}

#[test]
fn f39_the_shards_spread_the_key_of_the_index() {
    let mut orders_of = [0; SHARDS as usize];
    for n in 0..1_600 {
        orders_of[usize::from(samples::order(n).order_id.shard(SHARDS))] += 1;
    }
    assert!(orders_of.iter().all(|orders| (50..200).contains(orders)), "{orders_of:?}");
}

#[test]
fn f40_killed_anywhere_in_a_page_the_next_run_goes_on_and_counts_nothing_twice() {
    let mut deepest = 0;
    // Of about a hundred calls, every seventh.
    for call in (0..).step_by(7) {
        let world = World::new();
        let orders = expired(&world, of_one_shard(30).into_iter());
        world.ports.after_calls(call, Fault::DiesAfter);
        let ended = sweep(&world, &world.ports, "killed");
        world.ports.has_struck();
        let counted = orders.iter().filter(|&&order_id| failures(&world, order_id) == 1).count();
        deepest = deepest.max(if ended.is_none() { counted } else { 0 });
        // The dead leader's leases must expire.
        world.memory.advance(Settings::default().term_ms);
        world.supervise();
        all_processed(&world, &orders);
        if ended.is_some() {
            break;
        }
    }
    assert!((20..=30).contains(&deepest), "it was killed in the middle of the page, too: {deepest}");
}

#[test]
fn f40_nobody_starves_although_every_run_is_killed() {
    let world = World::new();
    let orders = expired(&world, 0..60);
    for run in 0.. {
        assert!(run < 200, "some order is never looked after");
        world.ports.after_calls(40, Fault::DiesAfter);
        sweep(&world, &world.ports, "killed");
        world.ports.has_struck();
        world.memory.advance(Settings::default().term_ms);
        if orders.iter().all(|&order_id| failures(&world, order_id) == 1) {
            break;
        }
    }
    all_processed(&world, &orders);
}

#[test]
fn f41_supervisors_whose_clocks_are_six_minutes_off_only_delay_an_order() {
    const SIX_MINUTES_MS: i64 = 6 * 60_000;
    let workflow = PATIENT
        .replace("[[step]]\nname = \"reserve\"", "[supervision]\ndoubt_after = \"90s\"\n[[step]]\nname = \"reserve\"")
        .replace("10m", "2m");
    let world = World::with(&workflow);
    let order_id = world.claimed();
    let (ahead, behind) =
        (world.ports.with_clock_ahead_ms(SIX_MINUTES_MS), world.ports.with_clock_ahead_ms(-SIX_MINUTES_MS));
    for _ in 0..3 {
        sweep(&world, &ahead, "ahead").unwrap().unwrap();
        sweep(&world, &behind, "behind").unwrap().unwrap();
        world.memory.advance(10_000);
    }
    let step = world.step(order_id, "reserve");
    assert_eq!((step.process_state, step.failure_count), (StepState::Processing, 0), "it doubts its clock");
    // The attempt is really over: first the one looks that believes that it has hardly begun.
    world.lose_requests("inventory");
    world.memory.advance(5 * 60_000);
    sweep(&world, &behind, "behind").unwrap().unwrap();
    assert_eq!(failures(&world, order_id), 0);
    world.memory.advance(5 * 60_000);
    for supervisor in [&behind, &ahead, &behind, &ahead] {
        sweep(&world, supervisor, "either").unwrap().unwrap();
    }
    assert_eq!(failures(&world, order_id), 1);
    world.ends(order_id, End::Processed);
    assert_eq!(failures(&world, order_id), 1);
}

#[test]
fn f41_an_order_that_a_supervisor_with_a_wrong_clock_looks_at_after_every_turn_ends_as_any_other() {
    for ahead_ms in [6 * 60_000, -6 * 60_000] {
        // Shorter than the clock is wrong: every attempt looks as if it were over, or as if it had not begun.
        let world = World::with(&PATIENT.replace("10m", "1m"));
        let wrong = world.ports.with_clock_ahead_ms(ahead_ms);
        let order_id = world.post(1);
        for _ in 0..4 {
            for turn in [World::submit, World::schedule] {
                turn(&world);
                sweep(&world, &wrong, "wrong").unwrap().unwrap();
            }
            for agent in AGENTS {
                world.serve(agent);
                sweep(&world, &wrong, "wrong").unwrap().unwrap();
            }
        }
        world.ends(order_id, End::Processed);
        assert!(world.task(order_id).steps.iter().all(|step| step.failure_count <= 1), "{ahead_ms}");
    }
}

#[test]
fn f42_an_expiry_and_a_success_that_race_end_as_one_of_them_wherever_they_meet() {
    let mut ends = [0; 2];
    at_every_call(&[Fault::Waits], |call, wait| {
        let world = World::new();
        let order_id = world.claimed();
        assert_eq!(world.serve("inventory"), ONE_DONE);
        world.memory.advance(EXPIRED_MS);
        world.ports.after_calls(call, wait);
        let (one, settings) = (world.instance("one"), Settings::default());
        let run = supervisor::handle(&world.ports, &one, &settings);
        let was_met = world.meanwhile(run, || assert_eq!(world.schedule(), ONE_DONE)).is_some();
        world.ends(order_id, End::Processed);
        assert!(failures(&world, order_id) <= 1);
        assert_eq!(world.step(order_id, "charge").attempt, 1, "the next step is started once");
        was_met
    });
    // Both can win.
    for (place, first) in ["success", "expiry"].into_iter().enumerate() {
        let world = World::new();
        let order_id = world.claimed();
        assert_eq!(world.serve("inventory"), ONE_DONE);
        world.memory.advance(EXPIRED_MS);
        if first == "expiry" {
            assert_eq!(world.supervise().taken, 1);
        }
        assert_eq!(world.schedule(), ONE_DONE);
        world.supervise();
        ends[place] = failures(&world, order_id);
        world.ends(order_id, End::Processed);
    }
    assert_eq!(ends, [0, 1]);
}

#[test]
fn f43_an_alert_that_cannot_be_sent_is_sent_later_and_once() {
    let world = World::new();
    let order_id = world.post(1);
    world.memory.is_down("events.");
    world.remote.declines("reserve", Direction::Forward);
    world.remote.declines("reserve", Direction::Undo);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Error);
    for _ in 0..5 {
        world.memory.advance(BACKED_OFF_MS);
        assert_eq!(world.supervise().failed, 0, "an alert that cannot be sent holds nothing up");
    }
    assert!(world.memory.published().is_empty());
    world.memory.is_up("events.");
    world.ends(order_id, End::Error(reason::COMPENSATION_FAILED));
    assert_eq!(world.memory.published().len(), 1);
}

#[test]
fn f43_killed_anywhere_on_the_way_to_the_alert_it_is_sent() {
    at_every_call(&super::scenes::DEATHS, |call, death| {
        let world = World::new();
        let order_id = world.claimed();
        world.remote.declines("reserve", Direction::Forward);
        world.remote.declines("reserve", Direction::Undo);
        for ran in [world.serve("inventory"), world.schedule(), world.serve("inventory")] {
            assert!(![ONE_FAILED, Ran::Died, Ran::Idle].contains(&ran));
        }
        world.ports.after_calls(call, death);
        world.schedule();
        let was_met = world.ports.has_struck();
        world.ends(order_id, End::Error(reason::COMPENSATION_FAILED));
        assert_eq!(world.alerts(order_id).len(), 1, "a repeat has the same id");
        was_met
    });
}
