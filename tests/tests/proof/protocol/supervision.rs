//! Rule 7: what is overdue is found, counted once, and set right by others.

use domain::ports::Environment;
use domain::task::{Direction, ProcessState, StepState, reason};
use memory::faulty::Fault;
use supervisor::{Report, Settings};
use tests::world::{BACKED_OFF_MS, EXPIRED_MS, ONE_DONE, Ran, World, drive};

#[test]
fn rule_7_an_expired_attempt_is_counted_and_claimed_again_after_a_wait() {
    let world = World::new();
    let order_id = world.claimed();
    world.lose_requests("inventory");
    world.memory.advance(EXPIRED_MS - 1);
    world.supervise();
    assert_eq!(world.step(order_id, "reserve").failure_count, 0, "it is not overdue before the grace is over");
    world.memory.advance(1);
    assert_eq!(world.supervise().taken, 1);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.process_state, step.failure_count, step.attempt), (StepState::Pending, 1, 1));
    assert_eq!((step.locked_by, step.not_before.is_some()), (None, true));
    world.memory.advance(BACKED_OFF_MS);
    world.run();
    assert_eq!((world.state(order_id), world.step(order_id, "reserve").attempt), (ProcessState::Processed, 2));
}

#[test]
fn rule_14_a_healthy_order_writes_its_watch_at_the_start_and_at_the_end_and_early_looks_move_it() {
    let world = World::new();
    let order_id = world.stored();
    let first_look = world.task(order_id).watch_at;
    for agent in ["inventory", "payment"] {
        assert_eq!((world.schedule(), world.serve(agent)), (ONE_DONE, ONE_DONE));
        assert_eq!(world.task(order_id).watch_at, first_look);
    }
    world.memory.advance(60_000);
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.task(order_id).watch_at, first_look, "earlier than need be, never later");
    assert_eq!(world.supervise().taken, 1);
    let real = world.step(order_id, "ship").complete_by.unwrap().plus_ms(2_000);
    assert_eq!(world.task(order_id).watch_at, Some(real));
    assert_eq!(world.supervise().due, 0);
    world.run();
    let task = world.task(order_id);
    assert_eq!((task.process_state, task.watch, task.watch_at), (ProcessState::Processed, None, None));
}

#[test]
fn rule_7_two_supervisors_at_once_count_an_attempt_once() {
    let world = World::new();
    world.memory.break_leases();
    let order_id = world.claimed();
    world.lose_requests("inventory");
    world.memory.advance(EXPIRED_MS);
    let (one, settings) = (world.instance("one"), Settings::default());
    let mut first = Report::default();
    let late = supervisor::handle(&world.ports, &one, &settings);
    // It has found the step and not yet written.
    world.ports.next("store.commit", Fault::Waits);
    let late = world.meanwhile(late, || first = world.supervise()).unwrap().unwrap();
    assert_eq!((first.taken, late.taken, late.failed), (1, 0, 0));
    let step = world.step(order_id, "reserve");
    assert_eq!((step.failure_count, step.attempt), (1, 1));
    assert_eq!(world.supervise().taken, 0, "nor does a third one find it");
}

#[test]
fn rule_7_a_supervisor_and_a_success_race_and_exactly_one_of_them_wins() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    world.memory.advance(EXPIRED_MS);
    let (one, settings) = (world.instance("one"), Settings::default());
    let run = supervisor::handle(&world.ports, &one, &settings);
    world.ports.next("store.commit", Fault::Waits);
    world.meanwhile(run, || assert_eq!(world.schedule(), ONE_DONE)).unwrap().unwrap();
    let step = world.step(order_id, "reserve");
    assert_eq!((step.process_state, step.failure_count), (StepState::Processed, 0));
}

#[test]
fn rule_7_a_supervisor_killed_before_its_wake_is_sent_leaves_nothing_behind_that_a_later_run_does_not_find() {
    let world = World::new();
    let order_id = world.claimed();
    world.lose_requests("inventory");
    world.memory.advance(EXPIRED_MS);
    world.ports.next("queues.to_scheduler", Fault::DiesBefore);
    let (supervisor, settings) = (world.instance("killed"), Settings::default());
    let run = supervisor::handle(&world.ports, &supervisor, &settings);
    assert!(drive(&world.memory, &world.ports, run).is_none(), "it dies");
    assert_eq!(world.step(order_id, "reserve").failure_count, 1);
    world.memory.advance(BACKED_OFF_MS);
    assert_eq!(world.schedule(), Ran::Idle, "the wake was never sent");
    assert_eq!(world.supervise().taken, 1);
    world.run();
    let step = world.step(order_id, "reserve");
    assert_eq!((world.state(order_id), step.attempt), (ProcessState::Processed, 2));
}

#[test]
fn rule_7_an_order_whose_wake_was_lost_is_woken_again_and_nothing_is_counted() {
    let world = World::new();
    let order_id = world.stored();
    assert_eq!(world.lose_scheduler_messages().len(), 1);
    let first_look = world.task(order_id).watch_at.unwrap();
    world.memory.advance(Environment::now(&world.memory).ms_until(first_look) - 1);
    assert_eq!(world.supervise().due, 0);
    world.memory.advance(1);
    assert_eq!(world.supervise().taken, 1);
    assert_eq!(world.step(order_id, "reserve").failure_count, 0);
    world.run();
    assert_eq!((world.state(order_id), world.step(order_id, "reserve").attempt), (ProcessState::Processed, 1));
}

/// Lets the attempts of the step expire until there is no further one.
fn exhaust(world: &World, agent: &str) {
    for _ in 0..3 {
        assert_eq!(world.lose_requests(agent).len(), 1);
        world.memory.advance(EXPIRED_MS);
        world.supervise();
        world.memory.advance(BACKED_OFF_MS);
        world.schedule();
    }
}

#[test]
fn rule_7_at_the_threshold_the_order_is_held_with_an_alert() {
    let world = World::new();
    let order_id = world.claimed();
    exhaust(&world, "inventory");
    let task = world.task(order_id);
    assert_eq!((task.process_state, &*task.reason.as_ref().unwrap().code), (ProcessState::Error, reason::EXHAUSTED));
    assert_eq!((task.steps[0].failure_count, task.steps[0].attempt), (3, 3));
    let kinds: Vec<_> = world.memory.published().into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["OrderNeedsOperator".into()]);
    assert!(world.remote.called().is_empty());
}

#[test]
fn rule_7_at_the_threshold_the_order_is_undone_where_the_workflow_says_so() {
    let world = World::new();
    let order_id = world.claimed();
    for agent in ["inventory", "payment"] {
        assert_eq!((world.serve(agent), world.schedule()), (ONE_DONE, ONE_DONE));
    }
    exhaust(&world, "shipping");
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    let undone = ["ship", "charge", "reserve"].map(|step| (step.to_owned(), Direction::Undo));
    assert_eq!(world.remote.story()[2..], undone, "also the step that nobody has answered for");
}
