//! Rule 15: chains are cut, outputs bounded, and a bad record of a batch fails alone.

use agent::Answer;
use domain::batch::Failures;
use domain::json::Json;
use domain::limits::{BATCH_MAX, OUTPUT_BYTES_MAX};
use domain::message::{Delivery, Receipt, SchedulerMessage, Undecodable, Wake};
use domain::ports::Source;
use domain::task::{Direction, ProcessState, StepState, reason};

use tests::world::Act;
use tests::world::{ONE_DONE, Ran, World, now};

#[test]
fn rule_15_a_chain_that_is_too_long_is_cut_with_an_alert() {
    let world = World::new();
    let order_id = world.stored();
    world.lose_scheduler_messages();
    let hops = world.workflows.current().hops_max() + 1;
    world.tell_scheduler(SchedulerMessage::Wake(Wake { order_id, hops }));
    assert_eq!(world.schedule(), ONE_DONE);
    let task = world.task(order_id);
    assert_eq!((task.process_state, &*task.reason.as_ref().unwrap().code), (ProcessState::Error, reason::HOP_LIMIT));
    assert_eq!(world.memory.published().len(), 1);
    assert!(world.lose_requests("inventory").is_empty());
}

#[test]
fn rule_15_a_chain_that_is_cut_at_a_reply_keeps_the_result_of_the_reply() {
    let world = World::new();
    let order_id = world.claimed();
    let [mut request] = world.lose_requests("inventory").try_into().unwrap();
    request.hops = world.workflows.current().hops_max();
    world.ask_agent("inventory", request);
    assert_eq!((world.serve("inventory"), world.schedule()), (ONE_DONE, ONE_DONE));
    let task = world.task(order_id);
    assert_eq!((task.process_state, &*task.reason.as_ref().unwrap().code), (ProcessState::Error, reason::HOP_LIMIT));
    let step = &task.steps[0];
    assert_eq!((step.process_state, step.output.is_some()), (StepState::Processed, true), "it is done and known to be");
    assert!(world.lose_requests("payment").is_empty(), "and nothing starts after it");
    assert_eq!(world.memory.published().len(), 1);
}

#[test]
fn rule_15_a_whole_order_there_and_back_stays_within_its_hops() {
    let world = World::new();
    let order_id = world.post(1);
    world.remote.declines("ship", Direction::Forward);
    world.run();
    assert_eq!(world.state(order_id), ProcessState::Compensated);
}

#[test]
fn rule_15_hops_are_counted_along_the_chain() {
    let world = World::new();
    world.claimed();
    let mut hops = Vec::new();
    for agent in ["inventory", "payment"] {
        let [request] = world.lose_requests(agent).try_into().unwrap();
        hops.push(request.hops);
        now(domain::ports::Queues::to_agent(&world.memory, agent, request)).unwrap();
        assert_eq!((world.serve(agent), world.schedule()), (ONE_DONE, ONE_DONE));
    }
    assert_eq!(hops, [1, 3]);
}

#[test]
fn rule_15_an_output_over_the_limit_is_refused_and_the_order_undone() {
    let world = World::new();
    let order_id = world.post(1);
    let large = Json::of(&"x".repeat(OUTPUT_BYTES_MAX));
    world.remote.next("reserve", Direction::Forward, Act::Answers(Answer::Done(large)));
    world.run();
    let task = world.task(order_id);
    assert_eq!(task.process_state, ProcessState::Compensated);
    assert_eq!(&*task.steps[0].last_error.as_ref().unwrap().code, agent::OUTPUT_TOO_LARGE);
}

#[test]
fn rule_15_a_handler_is_given_ten_messages_at_most() {
    let world = World::new();
    for n in 0..25 {
        world.post(n);
    }
    let batches: Vec<Ran> = std::iter::repeat_with(|| world.submit()).take_while(|ran| *ran != Ran::Idle).collect();
    let of = |done| Ran::Handled { done, failed: 0 };
    assert_eq!(batches, [of(BATCH_MAX), of(BATCH_MAX), of(5)]);
}

/// A body that is no message.
fn poison<M>(id: &str) -> Delivery<M> {
    let receipt = Receipt { message_id: id.into(), handle: id.into() };
    Delivery { receipt, receive_count: 1, parent: None, body: Err(Undecodable { problem: "poison".into() }) }
}

/// The batch with poison before, between and after its messages.
fn poisoned<M>(good: Vec<Delivery<M>>) -> Vec<Delivery<M>> {
    let mut batch = vec![poison("before")];
    for (place, delivery) in good.into_iter().enumerate() {
        batch.extend([delivery, poison(&format!("after {place}"))]);
    }
    batch
}

fn names(Failures(failed): Failures) -> Vec<String> {
    failed.iter().map(|failure| failure.receipt.message_id.to_string()).collect()
}

#[test]
fn rule_15_poison_in_a_batch_fails_alone_in_every_handler() {
    let world = World::new();
    let ids = [1, 2, 3].map(|n| world.post(n));
    let poison = ["before", "after 0", "after 1", "after 2"];

    let batch = poisoned(now(world.memory.submissions().receive(BATCH_MAX)));
    assert_eq!(names(now(submission::handle(&world.ports, &world.instance("s"), batch))), poison);
    let batch = poisoned(now(world.memory.requests("inventory").receive(BATCH_MAX)));
    assert_eq!(names(now(agent::handle(&world.ports, &world.agent("inventory"), batch))), poison);
    let batch = poisoned(now(world.memory.scheduler().receive(BATCH_MAX)));
    assert_eq!(names(now(scheduler::handle(&world.ports, &world.instance("s"), batch))), poison);

    assert_eq!(world.remote.called().len(), ids.len());
    assert!(ids.iter().all(|&order_id| world.state(order_id) == ProcessState::Processing));
}

#[test]
fn rule_15_a_record_that_fails_leaves_its_neighbours_done() {
    let world = World::new();
    let ids = [1, 2, 3].map(|n| world.post(n));
    let all_done = Ran::Handled { done: 3, failed: 0 };
    assert_eq!((world.submit(), world.serve("inventory")), (all_done, all_done));
    world.ports.next("store.commit", memory::faulty::Fault::Fails);
    assert_eq!(world.schedule(), Ran::Handled { done: 2, failed: 1 });
    let states = ids.map(|order_id| world.step(order_id, "reserve").process_state);
    assert_eq!(states, [StepState::Processing, StepState::Processed, StepState::Processed]);
    world.until_redelivery();
    world.run();
    assert!(ids.iter().all(|&order_id| world.state(order_id) == ProcessState::Processed));
}
