//! Rules 8 and 9: a rejected order is compensated completely, in reverse order.

use domain::id::CommandId;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::message::{Action, Command, SchedulerMessage};
use domain::task::{Direction, ProcessState, reason};
use domain::time::Timestamp;

use tests::world::Act;
use tests::world::{EXPIRED_MS, ONE_DONE, Ran, World};

use Direction::{Forward, Undo};

fn story(steps: &[(&str, Direction)]) -> Vec<(String, Direction)> {
    steps.iter().map(|&(step, direction)| (step.to_owned(), direction)).collect()
}

#[test]
fn rules_8_and_9_a_refused_order_is_undone_backward_and_whole_the_refused_step_too() {
    let world = World::new();
    let order_id = world.post(1);
    world.remote.declines("ship", Forward);
    world.run();
    let task = world.task(order_id);
    assert_eq!(
        (task.process_state, &*task.reason.as_ref().unwrap().code),
        (ProcessState::Compensated, reason::REJECTED)
    );
    let expected = [
        ("reserve", Forward),
        ("charge", Forward),
        ("ship", Forward),
        ("ship", Undo),
        ("charge", Undo),
        ("reserve", Undo),
    ];
    assert_eq!(world.remote.story(), story(&expected));
    assert!(world.memory.published().is_empty(), "nobody has to be called for that");
}

#[test]
fn rule_8_a_refused_order_is_held_where_the_workflow_says_so() {
    let world = World::with(
        "name = \"order\"\nversion = 1\n[[step]]\nname = \"reserve\"\nagent = \"inventory\"\non_rejected = \"hold\"\n",
    );
    let order_id = world.post(1);
    world.remote.declines("reserve", Forward);
    world.run();
    let task = world.task(order_id);
    assert_eq!((task.process_state, &*task.reason.as_ref().unwrap().code), (ProcessState::Error, reason::REJECTED));
    assert_eq!((world.remote.called().len(), world.memory.published().len()), (1, 1));
}

#[test]
fn rule_9_steps_that_ran_side_by_side_are_undone_before_what_they_came_after() {
    let step = |name: &str, agent: &str, after: &str| {
        format!("[[step]]\nname = \"{name}\"\nagent = \"{agent}\"\nafter = [{after}]\non_rejected = \"compensate\"\n")
    };
    let steps = [
        step("first", "inventory", ""),
        step("left", "payment", "\"first\""),
        step("right", "shipping", "\"first\""),
        step("last", "inventory", "\"left\", \"right\""),
    ];
    let world = World::with(&format!("name = \"order\"\nversion = 1\n{}", steps.concat()));
    let order_id = world.post(1);
    world.remote.declines("last", Forward);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    let names: Vec<String> = world.remote.story()[4..].iter().map(|(name, _)| name.clone()).collect();
    assert_eq!((&*names[0], &*names[3], names.len()), ("last", "first", 4), "{names:?}");
    assert!(world.remote.story()[4..].iter().all(|(_, direction)| *direction == Undo));
}

#[test]
fn rule_16_the_undo_of_an_attempt_that_may_still_run_waits_until_its_calls_have_settled() {
    let world = World::new();
    let order_id = world.claimed();
    let settled_at = world.step(order_id, "reserve").complete_by.unwrap().plus_ms(SETTLES_WITHIN_MS_DEFAULT);
    let (action, by, reason) = (Action::Cancel, "ada".into(), "a test".into());
    world.tell_scheduler(SchedulerMessage::Command(Command {
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
    }));
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.state(order_id), ProcessState::Compensating);
    // Nobody learns how the attempt ended.
    assert_eq!(world.lose_requests("inventory").len(), 1);
    world.memory.advance(domain::ports::Environment::now(&world.memory).ms_until(settled_at) - 1);
    world.supervise();
    world.run();
    assert_eq!(world.remote.story(), []);
    world.memory.advance(1);
    world.run();
    assert_eq!(world.remote.story(), story(&[("reserve", Undo)]));
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    assert!(world.memory.published().is_empty());
}

#[test]
fn rule_9_an_undo_that_is_refused_leaves_the_order_to_an_operator_and_what_comes_before_it_untouched() {
    let world = World::new();
    let order_id = world.post(1);
    world.remote.declines("ship", Forward);
    world.remote.declines("charge", Undo);
    world.run();
    let task = world.task(order_id);
    let code = &*task.reason.as_ref().unwrap().code;
    assert_eq!((task.process_state, code), (ProcessState::Error, reason::COMPENSATION_FAILED));
    assert_eq!(world.remote.story().last(), story(&[("charge", Undo)]).last());
    assert_eq!(world.memory.published().len(), 1);
}

#[test]
fn rule_9_an_undo_that_is_never_answered_leaves_the_order_to_an_operator() {
    let world = World::new();
    let order_id = world.post(1);
    world.remote.declines("charge", Forward);
    for _ in 0..3 {
        world.remote.next("charge", Undo, Act::Late(EXPIRED_MS));
    }
    for _ in 0..4 {
        world.run();
        world.supervise();
        world.memory.advance(120_000);
    }
    let task = world.task(order_id);
    let code = &*task.reason.as_ref().unwrap().code;
    assert_eq!((task.process_state, code), (ProcessState::Error, reason::COMPENSATION_FAILED));
    assert_eq!(world.remote.story().iter().filter(|(_, direction)| *direction == Undo).count(), 3);
    assert_eq!(world.memory.published().len(), 1);
}

#[test]
fn rule_9_a_scheduler_killed_in_the_middle_of_undoing_goes_on_backward() {
    let world = World::new();
    let order_id = world.post(1);
    world.remote.declines("ship", Forward);
    assert_eq!((world.submit(), world.serve("inventory")), (ONE_DONE, ONE_DONE));
    for agent in ["payment", "shipping"] {
        assert_eq!((world.schedule(), world.serve(agent)), (ONE_DONE, ONE_DONE));
    }
    // It turns round and asks shipping; dies when it has claimed payment's undo, and dies again at inventory's.
    assert_eq!((world.schedule(), world.serve("shipping")), (ONE_DONE, ONE_DONE));
    for agent in ["payment", "inventory"] {
        world.ports.next("queues.to_agent", memory::faulty::Fault::DiesBefore);
        assert_eq!(world.schedule(), Ran::Died);
        assert_eq!(world.serve(agent), Ran::Idle);
        world.until_redelivery();
        assert_eq!((world.schedule(), world.serve(agent)), (ONE_DONE, ONE_DONE));
    }
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
    assert_eq!(world.remote.story()[3..], story(&[("ship", Undo), ("charge", Undo), ("reserve", Undo)]));
    assert!(world.remote.effects().values().all(|&effects| effects == 1));
}
