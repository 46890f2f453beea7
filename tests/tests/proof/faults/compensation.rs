//! Compensation: F44 to F48.

use agent::MemoPolicy;
use domain::id::OrderId;
use domain::message::Action;
use domain::task::{Direction, ProcessState, reason};
use memory::faulty::Fault;
use tests::world::{Act, BACKED_OFF_MS, EXPIRED_MS, End, ONE_DONE, Ran, World};

use super::scenes::{DEATHS, at_every_call, command, two_steps_done};

use Direction::{Forward, Undo};

/// The compensated steps, in order.
fn undone(world: &World) -> Vec<String> {
    let undos = world.remote.story().into_iter().filter(|(_, direction)| *direction == Undo);
    undos.map(|(step, _)| step).collect()
}

/// The operator cancels the order.
fn cancel(world: &World, order_id: OrderId) {
    world.tell_scheduler(command(world, order_id, Action::Cancel));
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.state(order_id), ProcessState::Compensating);
}

/// Services that ignore keys, and agents with memos.
fn with_memos() -> World {
    let mut world = World::new();
    world.policy.memo = Some(MemoPolicy::default());
    world.remote.ignore_keys();
    world
}

#[test]
fn f44_the_undo_of_what_was_never_done_succeeds_and_the_forward_call_that_comes_then_is_refused() {
    for with_memo in [false, true] {
        let world = if with_memo { with_memos() } else { World::new() };
        let order_id = world.claimed();
        let [mut request] = world.lose_requests("inventory").try_into().unwrap();
        cancel(&world, order_id);
        world.memory.advance(EXPIRED_MS);
        world.to_the_end();
        assert_eq!(world.state(order_id), ProcessState::Compensated);
        // With a memo, the agent knows by itself that the step had no effect.
        assert_eq!(world.remote.called().len(), usize::from(!with_memo));
        // The message comes late, but in time by its agent's clock.
        request.complete_by = request.complete_by.plus_ms(2 * EXPIRED_MS);
        world.ask_agent("inventory", request);
        assert_eq!((world.serve("inventory"), world.schedule()), (ONE_DONE, ONE_DONE));
        let effects = world.remote.effects();
        assert!(!effects.contains_key(&format!("{order_id}/reserve")), "refused: {effects:?}");
        assert_eq!(world.state(order_id), ProcessState::Compensated);
    }
}

#[test]
fn f45_a_forward_call_that_comes_after_its_undo_is_refused_at_every_step() {
    for with_memo in [false, true] {
        let world = if with_memo { with_memos() } else { World::new() };
        let order_id = world.post(1);
        world.remote.declines("ship", Forward);
        world.to_the_end();
        assert_eq!(world.state(order_id), ProcessState::Compensated);
        let (task, effects) = (world.task(order_id), world.remote.effects_in_order());
        let forward = world.ports.record().to_agents.into_iter().filter(|(_, request)| request.direction == Forward);
        for (agent, request) in forward {
            world.ask_agent(&agent, request);
            assert_eq!((world.serve(&agent), world.schedule()), (ONE_DONE, ONE_DONE));
        }
        assert_eq!(world.remote.effects_in_order(), effects);
        assert_eq!(world.task(order_id), task);
        world.ends(order_id, End::Compensated);
    }
}

#[test]
fn f46_an_undo_that_keeps_failing_leaves_the_order_in_error_with_an_alert_until_an_operator_helps() {
    let world = World::new();
    let order_id = world.post(1);
    world.remote.declines("ship", Forward);
    for _ in 0..3 {
        world.remote.next("charge", Undo, Act::Late(EXPIRED_MS));
    }
    world.to_the_end();
    assert_eq!((world.state(order_id), world.alerts(order_id).len()), (ProcessState::Error, 1));
    assert_eq!(undone(&world), ["ship", "charge", "charge", "charge"], "what comes before it is left alone");
    assert_eq!(world.step(order_id, "charge").failure_count, 3);
    world.tell_scheduler(command(&world, order_id, Action::Resubmit));
    world.ends(order_id, End::Compensated);
}

#[test]
fn f46_an_undo_that_is_refused_is_never_taken_for_done() {
    let world = World::new();
    let order_id = world.post(1);
    world.remote.declines("ship", Forward);
    world.remote.declines("charge", Undo);
    world.ends(order_id, End::Error(reason::COMPENSATION_FAILED));
    assert!(world.ports.record().tasks.iter().all(|task| task.process_state != ProcessState::Compensated));
    assert_eq!(world.alerts(order_id).len(), 1);
    // An operator's repeated commands do no harm.
    world.tell_scheduler(command(&world, order_id, Action::Resubmit));
    world.tell_scheduler(command(&world, order_id, Action::Resubmit));
    world.ends(order_id, End::Compensated);
}

#[test]
fn f46_a_resubmit_that_is_killed_anywhere_is_carried_out_once_and_costs_no_failure() {
    at_every_call(&DEATHS, |call, death| {
        let world = World::new();
        let order_id = world.post(1);
        world.remote.declines("ship", Forward);
        world.remote.declines("charge", Undo);
        world.to_the_end();
        world.tell_scheduler(command(&world, order_id, Action::Resubmit));
        world.ports.after_calls(call, death);
        world.schedule();
        let was_met = world.ports.has_struck();
        world.ends(order_id, End::Compensated);
        let charge = world.step(order_id, "charge");
        assert_eq!((charge.attempt, charge.failure_count), (3, 0));
        was_met
    });
}

#[test]
fn f47_killed_anywhere_while_it_is_undone_it_goes_on_in_reverse_order() {
    // The n-th run of the scheduler after the rejection, and its n-th call.
    for run in 0..4 {
        at_every_call(&DEATHS, |call, death| {
            let world = World::new();
            let order_id = two_steps_done(&world);
            world.remote.declines("ship", Forward);
            assert_eq!(world.serve("shipping"), ONE_DONE);
            for agent in ["shipping", "payment", "inventory"].into_iter().take(run) {
                assert_eq!((world.schedule(), world.serve(agent)), (ONE_DONE, ONE_DONE));
            }
            world.ports.after_calls(call, death);
            world.schedule();
            let was_met = world.ports.has_struck();
            world.to_the_end();
            let mut undone = undone(&world);
            undone.dedup();
            assert_eq!(undone, ["ship", "charge", "reserve"]);
            assert!(world.task(order_id).steps.iter().all(|step| (step.attempt, step.failure_count) == (2, 0)));
            world.ends(order_id, End::Compensated);
            was_met
        });
    }
}

#[test]
fn f47_an_agent_killed_anywhere_in_an_undo_undoes_once() {
    at_every_call(&DEATHS, |call, death| {
        let world = World::new();
        let order_id = two_steps_done(&world);
        world.remote.declines("ship", Forward);
        assert_eq!((world.serve("shipping"), world.schedule()), (ONE_DONE, ONE_DONE));
        world.ports.after_calls(call, death);
        world.serve("shipping");
        let was_met = world.ports.has_struck();
        world.ends(order_id, End::Compensated);
        was_met
    });
}

#[test]
fn f48_a_step_whose_outcome_nobody_knows_is_undone_all_the_same() {
    // The call took effect and the answer was lost, or the call never took effect.
    for outcome in [Act::Late(EXPIRED_MS), Act::Answers(agent::Answer::retry("no connection"))] {
        let world = World::new();
        let order_id = two_steps_done(&world);
        world.remote.always("ship", outcome.clone());
        // Each attempt ends without a reply. After the last attempt the order is compensated.
        for _ in 0..3 {
            world.serve("shipping");
            world.lose_requests("shipping");
            world.lose_scheduler_messages();
            world.memory.advance(EXPIRED_MS);
            world.supervise();
            world.remote.recovers("ship");
            world.memory.advance(BACKED_OFF_MS);
            if world.state(order_id) == ProcessState::Processing {
                world.remote.always("ship", outcome.clone());
                assert!(matches!(world.schedule(), Ran::Handled { .. }));
            }
        }
        world.to_the_end();
        assert_eq!(undone(&world), ["ship", "charge", "reserve"], "{outcome:?}");
        let task = world.task(order_id);
        assert_eq!(&*task.reason.as_ref().unwrap().code, reason::EXHAUSTED);
        world.ends(order_id, End::Compensated);
    }
}

#[test]
fn f48_a_step_that_may_still_run_when_the_order_is_cancelled_is_undone_after_its_time() {
    let world = World::new();
    let order_id = world.claimed();
    let complete_by = world.step(order_id, "reserve").complete_by.unwrap();
    cancel(&world, order_id);
    // The request was in flight and is carried out. Its answer is lost.
    assert_eq!(world.serve("inventory"), ONE_DONE);
    world.lose_scheduler_messages();
    world.to_the_end();
    let [forward, undo] = world.remote.called().try_into().unwrap();
    assert_eq!((forward.direction, undo.direction), (Forward, Undo));
    assert!(undo.at >= complete_by);
    world.ends(order_id, End::Compensated);
}

#[test]
fn f48_a_scheduler_that_lost_the_answer_to_its_cancel_undoes_once() {
    let faults = [Fault::Fails, Fault::AnswerLost, Fault::DiesBefore, Fault::DiesAfter];
    at_every_call(&faults, |call, fault| {
        let world = World::new();
        let order_id = two_steps_done(&world);
        // No agent carries it out before the operator's command is delivered again.
        world.lose_requests("shipping");
        world.tell_scheduler(command(&world, order_id, Action::Cancel));
        world.ports.after_calls(call, fault);
        world.schedule();
        let was_met = world.ports.has_struck();
        world.ends(order_id, End::Compensated);
        was_met
    });
}
