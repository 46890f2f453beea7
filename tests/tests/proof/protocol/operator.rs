//! Rule 12: resubmit and cancel.

use domain::id::{CommandId, OrderId};
use domain::message::{Action, Command, SchedulerMessage};
use domain::task::{Direction, ProcessState, StepState, What};
use domain::time::Timestamp;

use tests::world::{ONE_DONE, World};

fn command(order_id: OrderId, action: Action) -> SchedulerMessage {
    let (by, reason) = ("ada".into(), "the bank is back".into());
    SchedulerMessage::Command(Command {
        order_id,
        action,
        by,
        reason,
        command_id: CommandId::generate(Timestamp::default(), [0; 2]),
        version: None,
        bulk: None,
        settle: None,
        take: None,
        step: None,
    })
}

/// Whether the history has a line by the operator, with the reason.
fn is_told_of(world: &World, order_id: OrderId, what: &str) -> bool {
    let task = world.task(order_id);
    task.lines().any(|line| (line.who, &*line.what, line.why) == ("ada", what, Some("the bank is back")))
}

/// A held order: the undo of its payment was rejected.
fn held(world: &World) -> OrderId {
    let order_id = world.post(1);
    world.remote.declines("charge", Direction::Forward);
    world.remote.declines("charge", Direction::Undo);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Error);
    order_id
}

#[test]
fn rule_12_a_resubmitted_order_goes_on_with_nothing_counted_and_the_operator_in_its_history() {
    let world = World::new();
    let order_id = held(&world);
    let attempts = world.step(order_id, "charge").attempt;
    world.tell_scheduler(command(order_id, Action::Resubmit));
    assert_eq!(world.schedule(), ONE_DONE);
    let step = world.step(order_id, "charge");
    assert_eq!((step.process_state, step.failure_count, step.attempt), (StepState::Processing, 0, attempts + 1));
    assert!(is_told_of(&world, order_id, "resubmitted"));
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
}

#[test]
fn rule_12_a_resubmit_that_comes_twice_is_done_once() {
    let world = World::new();
    let order_id = held(&world);
    world.tell_scheduler(command(order_id, Action::Resubmit));
    world.tell_scheduler(command(order_id, Action::Resubmit));
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    let lines = world.task(order_id).history.iter().filter(|line| matches!(line.what, What::Resubmitted)).count();
    assert_eq!(lines, 1);
    assert_eq!(world.step(order_id, "charge").attempt, 3);
}

#[test]
fn rule_12_a_cancelled_order_is_undone_with_the_operator_in_its_history() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!((world.serve("inventory"), world.schedule()), (ONE_DONE, ONE_DONE));
    world.tell_scheduler(command(order_id, Action::Cancel));
    assert_eq!(world.schedule(), ONE_DONE);
    assert!(is_told_of(&world, order_id, "cancelled"));
    world.memory.advance(11 * 60_000);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    let undone = ["charge", "reserve"].map(|step| (step.to_owned(), Direction::Undo));
    assert_eq!(world.remote.story()[1..], undone, "the request that was under way came too late to be carried out");
}

#[test]
fn rule_12_an_order_that_never_began_is_cancelled_without_a_call() {
    let world = World::new();
    let order_id = world.stored();
    world.lose_scheduler_messages();
    world.tell_scheduler(command(order_id, Action::Cancel));
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    assert!(world.remote.called().is_empty());
}

#[test]
fn rule_12_a_command_for_a_finished_order_changes_nothing() {
    let world = World::new();
    let order_id = world.post(1);
    world.run();
    let before = world.task(order_id);
    for action in [Action::Cancel, Action::Resubmit] {
        world.tell_scheduler(command(order_id, action));
        assert_eq!(world.schedule(), ONE_DONE, "it is let go, not tried for ever");
    }
    assert_eq!(world.task(order_id), before);
}
