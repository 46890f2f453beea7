//! Rules 1 to 3: one claimant; commit, then send, then acknowledge; a lost answer.

use std::pin::pin;

use domain::message::{Delivery, Outcome, Receipt, Request, SchedulerMessage};
use domain::ports::Store;
use domain::task::{ProcessState, StepState};
use futures_util::{FutureExt, poll};
use memory::faulty::Fault;
use tests::conformance::samples::wake;

use tests::world::{ONE_DONE, ONE_FAILED, Ran, World, now};

/// The request on the agent's queue belongs to the first attempt, and no failure was counted.
fn has_sent_the_first_attempt(world: &World, order_id: domain::id::OrderId) {
    let requests = world.lose_requests("inventory");
    assert_eq!(requests.iter().map(|request| request.attempt).collect::<Vec<_>>(), [1]);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.attempt, step.failure_count, step.process_state), (1, 0, StepState::Processing));
}

#[test]
fn rule_1_of_two_schedulers_that_claim_at_once_one_wins() {
    let world = World::new();
    let order_id = world.stored();
    world.tell_scheduler(wake(1));
    let [first, second] = world.lose_scheduler_messages().try_into().unwrap();
    let record = |message| domain::batch::Record {
        message,
        receipt: domain::message::Receipt { message_id: "m".into(), handle: "h".into() },
        redelivered: false,
        receive_count: 1,
        parent: None,
    };
    let (one, other) = (world.instance("one"), world.instance("other"));
    now(async {
        let (first, second) = (record(first), record(second));
        world.ports.next("store.commit", Fault::Waits);
        let mut paused = pin!(scheduler::schedule(&world.ports, &one, &first));
        assert!(poll!(&mut paused).is_pending(), "it has read the task and not yet written");
        scheduler::schedule(&world.ports, &other, &second).await.unwrap();
        world.ports.release();
        paused.await.unwrap();
    });
    assert_eq!(world.step(order_id, "reserve").locked_by.as_deref(), Some("other"));
    has_sent_the_first_attempt(&world, order_id);
}

#[test]
fn rule_1_completing_a_step_and_claiming_the_next_is_one_write() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    let before = world.task(order_id).version;
    assert_eq!(world.schedule(), ONE_DONE);
    let task = world.task(order_id);
    assert_eq!(task.version, before + 1);
    let states: Vec<StepState> = task.steps.iter().map(|step| step.process_state).collect();
    assert_eq!(states, [StepState::Processed, StepState::Processing, StepState::Pending]);
}

#[test]
fn rule_2_every_handler_commits_before_it_sends() {
    let world = World::new();
    world.post(1);
    world.run();
    let sends = ["queues.to_agent", "queues.to_scheduler"];
    let expected = [
        &["store.insert", sends[0], sends[1]][..],
        &["store.commit", sends[0], sends[1]],
        &["store.commit", sends[0], sends[1]],
        &["store.commit"],
    ];
    assert_eq!(world.ports.done(), expected.concat());
}

#[test]
fn rule_2_killed_between_commit_and_send_the_same_attempt_is_sent_when_the_wake_comes_again() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("queues.to_agent", Fault::DiesBefore);
    assert_eq!(world.schedule(), Ran::Died);
    assert_eq!(world.step(order_id, "reserve").attempt, 1, "the claim is committed");
    assert!(world.lose_requests("inventory").is_empty(), "and nobody was asked");
    assert_eq!(world.schedule(), Ran::Idle, "the wake is hidden, not gone");
    world.until_redelivery();
    assert_eq!(world.schedule(), ONE_DONE);
    has_sent_the_first_attempt(&world, order_id);
}

#[test]
fn rule_2_killed_before_the_commit_nothing_has_happened() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("store.commit", Fault::DiesBefore);
    assert_eq!(world.schedule(), Ran::Died);
    assert_eq!((world.state(order_id), world.task(order_id).version), (ProcessState::Pending, 1));
    assert!(world.lose_requests("inventory").is_empty());
    world.until_redelivery();
    assert_eq!(world.schedule(), ONE_DONE);
    has_sent_the_first_attempt(&world, order_id);
}

#[test]
fn rule_2_killed_between_the_send_and_the_acknowledgement_a_step_still_has_one_effect() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("queues.to_agent", Fault::DiesAfter);
    assert_eq!(world.schedule(), Ran::Died);
    world.until_redelivery();
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Processed);
    let calls = world.remote.called().into_iter().filter(|called| called.step == "reserve").count();
    assert_eq!(calls, 2, "it was asked twice");
    let effects = world.remote.effects();
    assert_eq!((effects.len(), effects.values().all(|&effects| effects == 1)), (3, true), "{effects:?}");
    assert_eq!(world.step(order_id, "charge").attempt, 1, "the second reply has started nothing");
}

#[test]
fn rule_2_killed_between_a_result_and_the_next_request_the_order_goes_on_when_the_reply_comes_again() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    world.ports.next("queues.to_agent", Fault::DiesBefore);
    assert_eq!(world.schedule(), Ran::Died);
    assert_eq!(world.step(order_id, "reserve").process_state, StepState::Processed);
    assert_eq!(world.serve("payment"), Ran::Idle);
    world.until_redelivery();
    world.run();
    let charge = world.step(order_id, "charge");
    assert_eq!((world.state(order_id), charge.attempt, charge.failure_count), (ProcessState::Processed, 1, 0));
}

#[test]
fn rule_2_a_send_that_fails_leaves_its_message_and_is_made_again() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("queues.to_agent", Fault::Fails);
    assert_eq!(world.schedule(), ONE_FAILED);
    world.until_redelivery();
    assert_eq!(world.schedule(), ONE_DONE);
    has_sent_the_first_attempt(&world, order_id);
}

#[test]
fn rule_2_a_submission_killed_between_insert_and_send_sends_the_same_attempt_when_its_message_comes_again() {
    let world = World::new();
    let order_id = world.post(1);
    world.ports.next("queues.to_agent", Fault::DiesBefore);
    assert_eq!(world.submit(), Ran::Died);
    let stored = world.task(order_id);
    assert!(world.lose_requests("inventory").is_empty());
    world.until_redelivery();
    assert_eq!(world.submit(), ONE_DONE);
    assert_eq!(world.task(order_id).history, stored.history, "it was stored once");
    has_sent_the_first_attempt(&world, order_id);
}

#[test]
fn rule_2_an_agent_killed_between_the_effect_and_the_reply_asks_again_with_the_same_key() {
    let world = World::new();
    let order_id = world.claimed();
    world.ports.next("queues.to_scheduler", Fault::DiesBefore);
    assert_eq!(world.serve("inventory"), Ran::Died);
    world.until_redelivery();
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Processed);
    let called = world.remote.called();
    assert_eq!((&called[0].key, called[0].attempt), (&called[1].key, called[1].attempt));
    assert!(world.remote.effects().values().all(|&effects| effects == 1));
}

#[test]
fn rule_3_a_commit_whose_answer_was_lost_has_happened_and_its_request_is_sent() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("store.commit", Fault::AnswerLost);
    assert_eq!(world.schedule(), ONE_FAILED);
    assert!(world.lose_requests("inventory").is_empty(), "nothing is sent for what may not be committed");
    world.until_redelivery();
    assert_eq!(world.schedule(), ONE_DONE);
    has_sent_the_first_attempt(&world, order_id);
}

#[test]
fn rule_3_an_order_whose_insert_was_not_answered_is_stored_once_even_ten_minutes_later() {
    let world = World::new();
    let order_id = world.post(1);
    world.ports.next("store.insert", Fault::AnswerLost);
    assert_eq!(world.submit(), ONE_FAILED);
    let stored = world.task(order_id);
    world.memory.advance(10 * 60_000);
    assert_eq!(world.submit(), ONE_DONE);
    assert_eq!(world.task(order_id), stored);
    assert_eq!(now(world.memory.list(None, None, 10)).unwrap().tasks.len(), 1);
    assert!(world.lose_requests("inventory").is_empty(), "the time of the attempt is over");
    assert!(world.memory.order(order_id).now_or_never().unwrap().unwrap().is_some());
}

#[test]
fn rule_2_replies_that_a_killed_scheduler_had_come_together_again_and_one_that_failed_twice_is_alone() {
    let both = "[[step]]\nname = \"other\"\nagent = \"inventory\"\ncomplete_within = \"10m\"\n";
    let one = both.replace("other", "one");
    for (counts, versions) in [([1, 1], 1), ([1, 2], 1), ([2, 2], 1), ([1, 3], 2), ([3, 3], 2)] {
        let world = World::with(&format!("name = \"order\"\nversion = 1\n{one}{both}"));
        let order_id = world.claimed();
        let requests = world.lose_requests("inventory");
        let delivery = |(request, receive_count): (&Request, u32)| Delivery {
            receipt: Receipt { message_id: request.step.clone(), handle: "h".into() },
            receive_count,
            parent: None,
            body: Ok(SchedulerMessage::Reply(request.reply(Outcome::Done(request.order.clone())))),
        };
        let batch = requests.iter().zip(counts).map(delivery).collect();
        let before = world.task(order_id).version;
        assert_eq!(now(scheduler::handle(&world.ports, &world.instance("scheduler"), batch)).0, []);
        let task = world.task(order_id);
        assert_eq!((task.process_state, task.version), (ProcessState::Processed, before + versions), "{counts:?}");
    }
}
