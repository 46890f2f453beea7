//! Attempts that are over while their request waits or is asked again (rule 6).

use domain::limits::LOOKED_MS_MAX;
use domain::message::{Deferral, Delivery, Outcome, Request};
use domain::order::Order;
use domain::task::{Direction, Pause, ProcessState, Step, StepState, Task};
use domain::workflow::Workflows;
use memory::sample;

use crate::testing::{Act, START, World, delivery, done, request, retry};
use crate::{Answer, MemoPolicy};

/// The number of the step of [`request`] in the shipped workflow.
const STEP: usize = 1;

/// The world has the task of [`request`], whose attempt is in flight.
pub(super) fn with_task(world: World) -> World {
    let workflows = Workflows::shipped().unwrap();
    let workflow = workflows.current();
    let order = Order { order_id: request().order_id, ..sample::order("shop", "", "{\"Total\":1}", START) };
    let mut task = Task::new(&order, workflow, 16, 0);
    task.process_state = ProcessState::Processing;
    let step = &mut task.steps[STEP];
    assert_eq!(step.name, request().step);
    step.process_state = StepState::Processing;
    step.attempt = request().attempt;
    (step.locked_by, step.complete_by) = (Some("s".into()), Some(request().complete_by));
    world.ports.store_order(order, task);
    world
}

/// Another instance changes the task.
fn change(world: &World, change: impl Fn(&mut Task)) {
    world.ports.change_tasks(|task| {
        change(task);
        (task.version, task.nonce) = (task.version + 1, task.nonce + 1);
    });
}

pub(super) fn change_step(world: &World, of: impl Fn(&mut Step)) {
    change(world, |task| of(&mut task.steps[STEP]));
}

pub(super) fn turn_round(world: &World) {
    change(world, |task| {
        task.process_state = ProcessState::Compensating;
        let step = &mut task.steps[STEP];
        (step.direction, step.process_state) = (Direction::Undo, StepState::Pending);
        (step.locked_by, step.complete_by) = (None, None);
    });
}

fn finish(world: &World) {
    change_step(world, |step| {
        step.process_state = StepState::Processed;
        (step.locked_by, step.complete_by) = (None, None);
    });
}

fn given_back() -> Outcome {
    Outcome::Deferred(Deferral::after(0))
}

#[test]
fn rule_6_a_request_that_is_called_at_once_costs_no_look() {
    let world = with_task(World::new([Act::Answer(done())]));
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.looks(), world.seen().len()), (0, 1));
}

#[test]
fn rule_6_each_repeat_costs_one_look() {
    let acts = [Act::Answer(retry()), Act::Within(1_500, retry()), Act::Within(1_500, retry()), Act::Answer(done())];
    let world = with_task(World::new(acts));
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.call_times_ms(), world.looks()), (vec![0, 0, 1_500, 3_000], 3));
}

#[test]
fn rule_6_no_call_is_repeated_once_the_order_has_turned_round_and_the_scheduler_learns_that() {
    let world = with_task(World::new([Act::after(turn_round, Act::Within(1_500, retry()))]));
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.seen().len(), world.outcomes()), (1, vec![given_back()]));
}

/// The scheduler decides before it writes. A call may begin between the two.
#[test]
fn rule_16_a_request_given_back_after_the_turn_says_how_long_its_own_call_may_have_an_effect() {
    let sent_again = Request { may_run_until: Some(START.plus_ms(3_600_000)), ..request() };
    for request in [request(), sent_again] {
        let world = with_task(World::new([Act::after(turn_round, Act::Hang)]));
        world.instance().handle_one(request.clone());
        assert_eq!((world.seen().len(), world.outcomes()), (1, vec![given_back()]));
        assert_eq!(world.replies()[0].may_run_until, Some(START.plus_ms(request.settles_within_ms)));
    }
}

#[test]
fn rule_6_no_call_is_made_for_a_request_that_comes_back_after_its_order_turned_round() {
    let world = with_task(World::new([]));
    turn_round(&world);
    let sent_again = Request { may_run_until: Some(request().complete_by), ..request() };
    assert!(world.handle(vec![Delivery { receive_count: 2, ..delivery("m", sent_again) }]).is_empty());
    assert_eq!((world.seen().len(), world.outcomes()), (0, vec![given_back()]));
    assert_eq!(
        world.replies()[0].may_run_until,
        None,
        "all calls began before the turn, and no wait grows by this one"
    );
}

#[test]
fn rule_6_no_call_is_made_for_a_request_that_waited_on_its_queue_for_more_than_a_second() {
    for (waited_ms, calls) in [(LOOKED_MS_MAX, 1), (LOOKED_MS_MAX + 1, 0)] {
        let world = with_task(World::new([Act::Answer(done())]));
        finish(&world);
        world.pass_ms(waited_ms);
        assert!(!world.instance().handle_one(request()));
        assert_eq!(world.seen().len(), calls, "after {waited_ms} ms");
    }
}

#[test]
fn rule_6_a_request_that_is_sent_again_is_not_called_without_a_look_and_one_that_is_sent_once_is() {
    let sent_again = Request { may_run_until: Some(request().complete_by), ..request() };
    let of_an_earlier_attempt = Request { may_run_until: Some(request().complete_by.minus_ms(1)), ..request() };
    for (request, looks) in [(sent_again, 1), (of_an_earlier_attempt, 0)] {
        let world = with_task(World::new([Act::Answer(done())]));
        assert!(!world.instance().handle_one(request));
        assert_eq!((world.seen().len(), world.looks()), (1, looks));
    }
}

#[test]
fn rule_6_by_a_clock_behind_that_of_the_sender_a_request_is_no_newer_than_its_receipt() {
    let world = with_task(World::new([Act::after(finish, Act::Within(LOOKED_MS_MAX + 1, retry()))]));
    world.set_back_ms(60_000);
    assert!(!world.instance().handle_one(request()));
    assert_eq!(world.seen().len(), 1);
}

#[test]
fn rule_6_nobody_is_answered_for_an_attempt_that_is_over() {
    let ends: [fn(&World); 3] = [
        finish,
        |world| change(world, |task| task.process_state = ProcessState::Closed),
        |world| change_step(world, |step| step.attempt += 1),
    ];
    for end in ends {
        let world = with_task(World::new([Act::after(end, Act::Within(1_500, retry()))]));
        assert!(!world.instance().handle_one(request()));
        assert_eq!((world.seen().len(), world.outcomes().len(), world.troubles().len()), (1, 0, 0));
    }
}

#[test]
fn rule_6_an_attempt_of_a_paused_order_is_given_back() {
    let pause = |world: &World| {
        change(world, |task| {
            task.paused = Some(Pause { by: "ada".into(), reason: "a storm".into(), since: START, version: 2 });
        });
    };
    let world = with_task(World::new([Act::after(pause, Act::Within(1_500, retry()))]));
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.seen().len(), world.outcomes()), (1, vec![given_back()]));
}

#[test]
fn rule_6_no_call_is_repeated_while_the_task_cannot_be_read() {
    let world = with_task(World::new([Act::Within(1_500, retry())]));
    world.ports.is_down("store.task");
    assert!(world.instance().handle_one(request()), "it comes again");
    assert_eq!(world.seen().len(), 1);
}

#[test]
fn rule_6_a_look_that_took_more_than_a_second_is_made_again() {
    let memo = |world: World| world.with_policy(|policy| policy.memo = Some(MemoPolicy::default()));
    let world = memo(with_task(World::new([])));
    world.at_next("memos.set_memo", |world| {
        world.pass_ms(LOOKED_MS_MAX + 1);
        finish(world);
    });
    assert!(!world.instance().handle_one(request()));
    assert!(world.seen().is_empty(), "the attempt ended while the memo was written");
}

#[test]
fn rule_6_a_call_that_is_prepared_for_more_than_a_second_is_not_made_once_its_attempt_is_over() {
    for (ms, is_called) in [(LOOKED_MS_MAX, true), (LOOKED_MS_MAX + 1, false)] {
        let world = with_task(World::new([Act::after(turn_round, Act::Prepared(ms, done()))]));
        assert!(!world.instance().handle_one(request()));
        let is_done = matches!(world.outcomes()[..], [Outcome::Done(_)]);
        assert_eq!((is_done, world.outcomes() == [given_back()]), (is_called, !is_called), "{ms} ms");
    }
    let world = with_task(World::new([Act::Prepared(LOOKED_MS_MAX + 1, done()), Act::Answer(done())]));
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.seen().len(), world.looks()), (2, 1), "an attempt that goes on is called again");
    assert!(world.health_record().is_none_or(|record| record.failures_in_a_row == 0), "no failure of the service");
}

#[test]
fn f62_a_conflict_is_no_rejection_if_the_task_says_that_the_request_was_sent_again() {
    let no = || domain::message::Failure { code: "in-use".into(), message: "no".into() };
    let conflict = || Act::Answer(Answer::UnderWay { after_ms: None, unless_alone: Some(no()), poll: None });
    let world = with_task(World::new([conflict(), Act::Answer(done())]));
    change_step(&world, |step| step.may_run_until = Some(START.plus_ms(40_000)));
    assert!(!world.instance().handle_one(request()));
    assert!(matches!(world.outcomes()[..], [Outcome::Done(_)]), "{:?}", world.outcomes());

    let world = with_task(World::new([conflict()]));
    assert!(!world.instance().handle_one(request()));
    assert_eq!((world.outcomes(), world.looks()), (vec![Outcome::Failed(no())], 1), "it is alone");

    let world = with_task(World::new([conflict()]));
    world.ports.is_down("store.task");
    assert!(world.instance().handle_one(request()), "nobody knows, so it comes again");
    assert!(world.outcomes().is_empty(), "{:?}", world.outcomes());
}
