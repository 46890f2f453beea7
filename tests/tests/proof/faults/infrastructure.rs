//! Infrastructure: F49 to F60, as far as they appear on one machine.

use agent::{Answer, OUTPUT_TOO_LARGE};
use domain::json::Json;
use domain::limits::{BATCH_MAX, OUTPUT_BYTES_MAX};
use domain::message::{Action, Delivery, Receipt, Request, Undecodable};
use domain::order::Order;
use domain::ports::{DeadLetter, DeadLetterOutcome, DeadLetterRecord, Environment, Records, Source, SourceQueue};
use domain::task::{Direction, ProcessState, reason};
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::faulty::Fault;
use memory::{RECEIVES_MAX, VISIBILITY_MS};
use tests::conformance::samples::{self, NOON};
use tests::world::{
    AGENTS, Act, BACKED_OFF_MS, EXPIRED_MS, End, ONE_DONE, ONE_FAILED, PATIENT, Ran, World, drive, now,
};

use super::scenes::{at_every_call, command, done};

const DAY_MS: u64 = 24 * 60 * 60_000;

/// The platform receives a message again and again without a start of the function, until the message is a dead letter.
fn throttled_to_death<M>(world: &World, source: &impl Source<M>) {
    for _ in 0..RECEIVES_MAX {
        assert!(source.receive(BATCH_MAX).now_or_never().is_some());
        world.until_redelivery();
    }
    assert!(source.receive(BATCH_MAX).now_or_never().is_none(), "it is a dead letter");
}

/// The outcomes of the dead letters, the last settled first.
fn outcomes(world: &World) -> Vec<DeadLetterOutcome> {
    now(Records::list::<DeadLetterRecord>(&world.memory, 100))
        .unwrap()
        .into_iter()
        .map(|record| record.outcome)
        .collect()
}

/// A world with few deliveries per message, also on the agents' queues.
fn impatient_queues() -> World {
    let world = World::new();
    world.memory.allow_request_receives(RECEIVES_MAX);
    world
}

#[test]
fn f49_whatever_is_throttled_at_any_call_is_made_again() {
    at_every_call(&[Fault::Fails], |call, fault| {
        let world = World::new();
        let order_id = world.post(1);
        world.ports.after_calls(call, fault);
        world.run();
        let was_met = world.ports.has_struck();
        world.ends(order_id, End::Processed);
        was_met
    });
}

#[test]
fn f50_a_request_that_is_throttled_until_it_is_a_dead_letter_is_sent_again_by_way_of_the_supervisor() {
    let world = impatient_queues();
    let order_id = world.claimed();
    throttled_to_death(&world, &world.memory.requests("inventory"));
    world.memory.advance(EXPIRED_MS);
    assert_eq!(world.supervise().taken, 1);
    assert_eq!(world.settle_dead_letters(), ONE_DONE);
    assert_eq!(outcomes(&world), [DeadLetterOutcome::Stale]);
    world.ends(order_id, End::Processed);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.attempt, step.failure_count), (2, 1));
}

#[test]
fn f50_a_request_that_dies_before_its_time_is_over_puts_the_order_in_error_and_a_resubmit_settles_both() {
    let world = World::with(&PATIENT.replace("10m", "20m"));
    world.memory.allow_request_receives(RECEIVES_MAX);
    let order_id = world.claimed();
    throttled_to_death(&world, &world.memory.requests("inventory"));
    assert!(world.memory.now() < world.step(order_id, "reserve").complete_by.unwrap());
    assert_eq!(world.settle_dead_letters(), ONE_DONE);
    assert_eq!(outcomes(&world), [DeadLetterOutcome::Held]);
    world.to_the_end();
    assert!(world.remote.called().is_empty());
    world.ends(order_id, End::Error(reason::DEAD_LETTER));
    world.tell_scheduler(command(&world, order_id, Action::Resubmit));
    world.ends(order_id, End::Processed);
}

#[test]
fn f50_a_wake_that_is_throttled_to_death_is_not_missed() {
    let world = World::new();
    let order_id = world.stored();
    throttled_to_death(&world, &world.memory.scheduler());
    // The supervisor has woken it already.
    assert_eq!(world.supervise().taken, 1);
    assert_eq!(world.schedule(), ONE_DONE);
    world.ends(order_id, End::Processed);
    assert_eq!(outcomes(&world), [DeadLetterOutcome::Stale]);
    assert_eq!(world.step(order_id, "reserve").failure_count, 0);
}

#[test]
fn f51_when_the_visibility_lapses_during_the_work_the_duplicate_is_harmless_in_every_function() {
    for function in ["submission", "scheduler", "agent"] {
        at_every_call(&[Fault::Waits], |call, wait| {
            let world = World::new();
            let order_id = world.post(1);
            let instance = world.instance("slow");
            let lapse = || world.memory.advance(VISIBILITY_MS);
            let was_met = match function {
                "submission" => {
                    let batch = now(world.memory.submissions().receive(BATCH_MAX));
                    world.ports.after_calls(call, wait);
                    let slow = submission::handle(&world.ports, &instance, batch);
                    world.meanwhile(slow, || {
                        lapse();
                        assert_eq!(world.submit(), ONE_DONE);
                    })
                }
                "scheduler" => {
                    assert_eq!((world.submit(), world.serve("inventory")), (ONE_DONE, ONE_DONE));
                    let batch = now(world.memory.scheduler().receive(BATCH_MAX));
                    world.ports.after_calls(call, wait);
                    let slow = scheduler::handle(&world.ports, &instance, batch);
                    world.meanwhile(slow, || {
                        lapse();
                        assert_eq!(world.schedule(), ONE_DONE);
                    })
                }
                _ => {
                    assert_eq!(world.submit(), ONE_DONE);
                    let batch = now(world.memory.requests("inventory").receive(BATCH_MAX));
                    world.ports.after_calls(call, wait);
                    let agent = world.agent("inventory");
                    let slow = agent::handle(&world.ports, &agent, batch);
                    world.meanwhile(slow, || {
                        lapse();
                        assert_eq!(world.serve("inventory"), ONE_DONE);
                    })
                }
            };
            world.ends(order_id, End::Processed);
            let step = world.step(order_id, "reserve");
            assert_eq!((step.attempt, step.failure_count), (1, 0), "{function}");
            was_met.is_some()
        });
    }
}

#[test]
fn f52_messages_that_come_hours_late_are_fenced() {
    let world = World::new();
    let order_id = world.stored();
    let wakes = world.lose_scheduler_messages();
    world.supervise();
    world.memory.advance(BACKED_OFF_MS);
    world.supervise();
    assert_eq!(world.schedule(), ONE_DONE);
    let requests = world.lose_requests("inventory");
    let late_refusal = super::scenes::failed(&requests[0]);
    world.to_the_end();
    assert_eq!(world.state(order_id), ProcessState::Processed);
    let (task, calls) = (world.task(order_id), world.remote.called());
    world.memory.advance(5 * 60 * 60_000);
    for message in wakes.into_iter().chain([late_refusal, done(&requests[0])]) {
        world.tell_scheduler(message);
    }
    requests.into_iter().for_each(|request| world.ask_agent("inventory", request));
    world.run();
    assert_eq!((world.task(order_id), world.remote.called()), (task, calls), "nobody was called");
    world.ends(order_id, End::Processed);
}

#[test]
fn f52_a_success_that_comes_hours_late_is_taken_while_the_step_is_open() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    let late = world.lose_scheduler_messages();
    // No function runs for hours. Then the supervisor counts the attempt.
    world.memory.advance(5 * 60 * 60_000);
    assert_eq!(world.supervise().taken, 1);
    let wakes = world.lose_scheduler_messages();
    late.into_iter().chain(wakes).for_each(|message| world.tell_scheduler(message));
    world.run();
    world.ends(order_id, End::Processed);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.attempt, step.failure_count), (1, 1));
}

#[test]
fn f53_week_old_dead_letters_are_discarded_with_a_record_and_redriven_ones_do_nothing() {
    let world = impatient_queues();
    let order_id = world.claimed();
    let requests = world.memory.requests("inventory");
    throttled_to_death(&world, &requests);
    // The order ends without any handling of dead letters.
    world.memory.advance(EXPIRED_MS);
    for _ in 0..10 {
        world.supervise();
        world.schedule();
        for agent in AGENTS {
            world.serve(agent);
        }
        world.memory.advance(10_000);
    }
    assert_eq!(world.state(order_id), ProcessState::Processed);
    let (task, effects) = (world.task(order_id), world.remote.effects_in_order());
    world.memory.advance(7 * DAY_MS);
    let [dead_letter] = now(world.memory.dead_letters().receive(BATCH_MAX)).try_into().unwrap();
    let dead_letter: Delivery<DeadLetter> = dead_letter;
    let request: Request = domain::message::decode(dead_letter.body.unwrap().body.as_bytes()).unwrap();
    // An operator moves it back to its queue, and the dead letter itself is delivered again.
    world.ask_agent("inventory", request);
    assert_eq!(world.serve("inventory"), ONE_DONE, "let go");
    world.until_redelivery();
    world.ports.next("letters.set_letter", Fault::Fails);
    assert_eq!(world.settle_dead_letters(), ONE_FAILED, "no letter is let go without a record");
    world.until_redelivery();
    assert_eq!(world.settle_dead_letters(), ONE_DONE);
    assert_eq!(outcomes(&world), [DeadLetterOutcome::Stale]);
    assert_eq!((world.task(order_id), world.remote.effects_in_order()), (task, effects));
    world.ends(order_id, End::Processed);
}

#[test]
fn f54_an_order_keeps_its_workflow_over_a_deployment_that_brings_a_new_version() {
    const NEXT: &str = "name = \"order\"\nversion = 2\n[[step]]\nname = \"pack\"\nagent = \"shipping\"\n";
    let mut world = World::new();
    let order_id = world.claimed();
    world.workflows = Workflows::parse(&[PATIENT, NEXT], "order", &AGENTS).unwrap();
    let next = world.post(2);
    world.end_all(&[(order_id, End::Processed), (next, End::Processed)]);
    let versions = [order_id, next].map(|id| (world.task(id).workflow_version, world.task(id).steps.len()));
    assert_eq!(versions, [(1, 3), (2, 1)]);
}

#[test]
fn f55_a_reply_channel_that_is_gone_holds_no_order_up_and_hears_of_everything_when_it_is_back() {
    let world = World::new();
    let order_id = world.post_order(Order { reply_channel: Some("shop-replies".into()), ..samples::order(1) });
    world.run();
    assert_eq!((world.state(order_id), world.memory.now()), (ProcessState::Processed, NOON), "at once");
    for _ in 0..5 {
        world.memory.advance(BACKED_OFF_MS);
        assert_eq!(world.supervise().failed, 0);
    }
    let tried = world.ports.done().into_iter().filter(|&what| what == "events.notify").count();
    assert_eq!((tried, world.memory.notified().len()), (0, 0));
    for _ in 0..5 {
        world.memory.advance(BACKED_OFF_MS * 8);
        assert_eq!(world.supervise().failed, 0);
    }
    let alerts: Vec<_> = world.memory.published().into_iter().map(|event| event.kind).collect();
    assert_eq!(alerts, ["ReplyChannelFailing".into()], "an operator hears of it, once");
    world.memory.register_channel("shop-replies");
    world.ends(order_id, End::Processed);
    let mut told: Vec<_> = world.memory.notified().into_iter().map(|(_, event)| event.kind).collect();
    told.dedup();
    assert_eq!(told, ["OrderReceived".into(), "OrderProcessed".into()]);
}

#[test]
fn f55_a_reply_channel_that_fails_at_any_call_holds_no_order_up() {
    let faults = [Fault::Fails, Fault::AnswerLost];
    for fault in faults {
        let world = World::new();
        world.memory.register_channel("shop-replies");
        let order_id = world.post_order(Order { reply_channel: Some("shop-replies".into()), ..samples::order(1) });
        for _ in 0..4 {
            world.ports.next("events.notify", fault);
        }
        world.run();
        assert_eq!((world.state(order_id), world.memory.now()), (ProcessState::Processed, NOON), "{fault:?}");
        world.ends(order_id, End::Processed);
        let told: std::collections::BTreeSet<_> =
            world.memory.notified().into_iter().map(|(_, event)| event.id).collect();
        assert_eq!(told.len(), 2, "{fault:?}: a repeat has the same id");
    }
}

#[test]
fn f56_an_output_over_the_limit_is_refused_with_a_clear_failure_and_the_order_undone() {
    for bytes in [OUTPUT_BYTES_MAX, 10 * OUTPUT_BYTES_MAX] {
        let world = World::new();
        let order_id = world.post(1);
        let output = Json::of(&"x".repeat(bytes));
        world.remote.next("charge", Direction::Forward, Act::Answers(Answer::Done(output)));
        world.to_the_end();
        let error = world.step(order_id, "charge").last_error.unwrap();
        assert_eq!(&*error.code, OUTPUT_TOO_LARGE);
        assert!(error.message.contains(&OUTPUT_BYTES_MAX.to_string()), "{}", error.message);
        let sent =
            world.ports.record().to_scheduler.into_iter().map(|message| serde_json::to_string(&message).unwrap());
        assert!(sent.into_iter().all(|body| body.len() < OUTPUT_BYTES_MAX), "it goes no further than its agent");
        world.ends(order_id, End::Compensated);
    }
}

/// A message of any queue with an invalid body, and then its dead letter.
fn corrupt<M>(id: &str) -> Delivery<M> {
    let receipt = Receipt { message_id: id.into(), handle: id.into() };
    Delivery { receipt, receive_count: 1, parent: None, body: Err(Undecodable { problem: "no JSON".into() }) }
}

#[test]
fn f57_a_corrupt_body_fails_alone_in_every_function_and_ends_as_a_dead_letter_that_is_kept() {
    let world = World::new();
    let orders = [1, 2].map(|n| world.post(n));
    let instance = world.instance("any");
    let failed = |failures: Option<domain::batch::Failures>| {
        let names: Vec<_> = failures.unwrap().0.into_iter().map(|failure| failure.receipt.message_id).collect();
        assert_eq!(names, ["corrupt".into()]);
    };
    let mut batch = now(world.memory.submissions().receive(BATCH_MAX));
    batch.insert(1, corrupt("corrupt"));
    failed(drive(&world.memory, &world.ports, submission::handle(&world.ports, &instance, batch)));
    let mut batch = now(world.memory.requests("inventory").receive(BATCH_MAX));
    batch.push(corrupt("corrupt"));
    failed(drive(&world.memory, &world.ports, agent::handle(&world.ports, &world.agent("inventory"), batch)));
    let mut batch = now(world.memory.scheduler().receive(BATCH_MAX));
    batch.insert(0, corrupt("corrupt"));
    failed(drive(&world.memory, &world.ports, scheduler::handle(&world.ports, &instance, batch)));
    assert_eq!(world.remote.calls("reserve").len(), 2, "its neighbours were called");

    let dead_letter = |queue| {
        let receipt = Receipt { message_id: "letter".into(), handle: "letter".into() };
        let (message_id, body) = ("corrupt".into(), "{\"Order".into());
        let dead_letter = DeadLetter { queue, message_id, body, receive_count: RECEIVES_MAX, at: world.memory.now() };
        Delivery { receipt, receive_count: 1, parent: None, body: Ok(dead_letter) }
    };
    let queues = [SourceQueue::Submission, SourceQueue::Scheduler, SourceQueue::Agent("inventory".into())];
    let dead_letters = queues.map(dead_letter).into();
    let settled = drive(&world.memory, &world.ports, supervisor::dead_letters(&world.ports, &instance, dead_letters));
    assert!(settled.unwrap().0.is_empty());
    let records: Vec<DeadLetterRecord> = now(Records::list(&world.memory, 10)).unwrap();
    assert_eq!((records[0].outcome, records[0].body.as_deref()), (DeadLetterOutcome::Unreadable, Some("{\"Order")));
    world.until_redelivery();
    world.end_all(&orders.map(|order_id| (order_id, End::Processed)));
}

#[test]
fn f59_a_scheduler_that_thaws_with_a_stale_clock_only_delays() {
    for ahead_ms in [-60_000, 60_000] {
        let world = World::new();
        let order_id = world.stored();
        let thawed = world.ports.with_clock_ahead_ms(ahead_ms);
        let batch = now(world.memory.scheduler().receive(BATCH_MAX));
        let instance = world.instance("thawed");
        drive(&world.memory, &thawed, scheduler::handle(&thawed, &instance, batch)).unwrap();
        world.until_redelivery();
        world.ends(order_id, End::Processed);
    }
}

#[test]
fn f60_nothing_is_lost_while_the_store_is_away_for_five_minutes() {
    let world = World::new();
    let orders = [1, 2, 3].map(|n| world.post(n));
    world.submit();
    world.schedule();
    world.serve("inventory");
    world.memory.is_down("store.");
    let accepted = world.post(4);
    for _ in 0..5 {
        assert!(matches!(world.submit(), Ran::Handled { done: 0, .. }));
        assert!(matches!(world.schedule(), Ran::Handled { done: 0, .. }));
        world.until_redelivery();
    }
    world.memory.is_up("store.");
    let ends: Vec<_> = orders.into_iter().chain([accepted]).map(|order_id| (order_id, End::Processed)).collect();
    world.end_all(&ends);
}
