//! Scheduler: F09 to F23.

use domain::batch::{Failures, Record};
use domain::limits::{BATCH_MAX, SETTLES_WITHIN_MS_DEFAULT};
use domain::machine::{Dropped, Verdict};
use domain::message::{Outcome, Receipt, Reply, SchedulerMessage, Wake};
use domain::ports::{Source, Store};
use domain::task::{Direction, ProcessState, Step, StepState, reason};
use memory::faulty::Fault;
use tests::conformance::samples::{self, wake};
use tests::world::{BACKED_OFF_MS, EXPIRED_MS, End, ONE_DONE, Ran, World, drive, now};

use super::scenes::{DEATHS, at_every_call, done, failed, two_attempts};

/// Takes a batch off the scheduler queue, gives it to an instance that waits somewhere, and does something else there.
/// Whether it came so far as to wait.
fn paused(world: &World, happen: impl FnOnce()) -> bool {
    let batch = now(world.memory.scheduler().receive(BATCH_MAX));
    let instance = world.instance("paused");
    world.meanwhile(scheduler::handle(&world.ports, &instance, batch), happen).is_some()
}

#[test]
fn f09_killed_between_claim_and_send_the_same_attempt_is_sent_again() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("queues.to_agent", Fault::DiesBefore);
    assert_eq!(world.schedule(), Ran::Died);
    let claimed = world.step(order_id, "reserve");
    assert_eq!((claimed.attempt, claimed.process_state), (1, StepState::Processing));
    assert_eq!(world.serve("inventory"), Ran::Idle, "nobody was asked");
    world.until_redelivery();
    assert_eq!(world.schedule(), ONE_DONE);
    // It may not be the only one.
    let may_run_until = claimed.complete_by.map(|at| at.plus_ms(SETTLES_WITHIN_MS_DEFAULT));
    assert_eq!(world.step(order_id, "reserve"), Step { may_run_until, ..claimed });
    world.ends(order_id, End::Processed);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.attempt, step.failure_count), (1, 0));
}

#[test]
fn f09_killed_at_any_call_of_a_claim_the_step_has_one_attempt_and_no_failure() {
    at_every_call(&DEATHS, |call, death| {
        let world = World::new();
        let order_id = world.stored();
        world.ports.after_calls(call, death);
        world.schedule();
        let was_met = world.ports.has_struck();
        world.ends(order_id, End::Processed);
        let step = world.step(order_id, "reserve");
        assert_eq!((step.attempt, step.failure_count), (1, 0));
        was_met
    });
}

#[test]
fn f10_a_request_whose_sending_was_not_answered_is_sent_twice_and_called_once() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("queues.to_agent", Fault::AnswerLost);
    world.schedule();
    world.ends(order_id, End::Processed);
    let asked: Vec<u32> = world.remote.calls("reserve").into_iter().map(|called| called.attempt).collect();
    assert_eq!(asked, [1], "the attempt was over when the second request came");
    assert_eq!(world.step(order_id, "reserve").failure_count, 0);
}

#[test]
fn f11_of_a_batch_of_sends_only_those_that_failed_are_made_again() {
    let world = World::new();
    let orders = [1, 2, 3].map(|n| world.post(n));
    world.ports.next("queues.to_agent", Fault::Fails);
    assert_eq!(world.submit(), Ran::Handled { done: 2, failed: 1 });
    world.until_redelivery();
    assert_eq!(world.submit(), ONE_DONE, "one message comes again");
    let mut asked: Vec<_> = world.lose_requests("inventory").into_iter().map(|request| request.order_id).collect();
    asked.sort();
    let mut expected = orders;
    expected.sort();
    assert_eq!(asked, expected, "each once");
    world.end_all(&orders.map(|order_id| (order_id, End::Processed)));
}

#[test]
fn f12_of_two_claimants_at_any_point_one_wins() {
    at_every_call(&[Fault::Waits], |call, wait| {
        let world = World::new();
        let order_id = world.stored();
        world.ports.after_calls(call, wait);
        let was_met = paused(&world, || {
            world.tell_scheduler(wake(1));
            assert_eq!(world.schedule_as("other"), ONE_DONE);
        });
        let attempts = world.lose_requests("inventory").into_iter().map(|request| request.attempt);
        assert!(attempts.eq([1]), "one of them claimed, and it alone sent");
        world.ends(order_id, End::Processed);
        was_met
    });
}

#[test]
fn f13_a_write_that_its_client_tried_twice_meets_its_own_nonce_and_counts_as_success() {
    let world = World::new();
    let order_id = world.post(1);
    world.ports.next("store.insert", Fault::TriedTwice);
    assert_eq!((world.submit(), world.serve("inventory")), (ONE_DONE, ONE_DONE));
    let before = world.task(order_id).version;
    world.ports.next("store.commit", Fault::TriedTwice);
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.task(order_id).version, before + 1, "it was written once, and not decided again");
    world.to_the_end();
    assert_eq!(world.remote.called().len(), 3);
    world.ends(order_id, End::Processed);
}

#[test]
fn f14_an_instance_paused_before_its_write_until_after_a_re_pend_writes_nothing_of_what_it_decided() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("store.commit", Fault::Waits);
    let waited = paused(&world, || {
        world.tell_scheduler(wake(1));
        assert_eq!(world.schedule_as("other"), ONE_DONE);
        world.lose_requests("inventory");
        world.memory.advance(EXPIRED_MS);
        assert_eq!(world.supervise().taken, 1);
        assert_eq!(world.step(order_id, "reserve").process_state, StepState::Pending);
    });
    assert!(waited && world.step(order_id, "reserve").failure_count == 1);
    // If it claims at all, then anew: two claims of one attempt would be seen at the end.
    world.ends(order_id, End::Processed);
    assert_eq!(world.step(order_id, "reserve").failure_count, 1);
}

#[test]
fn f14_an_instance_paused_before_its_send_until_after_a_re_pend_asks_in_vain() {
    let world = World::new();
    let order_id = world.stored();
    world.ports.next("queues.to_agent", Fault::Waits);
    let waited = paused(&world, || {
        world.memory.advance(EXPIRED_MS);
        assert_eq!(world.supervise().taken, 1);
        world.memory.advance(BACKED_OFF_MS);
        world.schedule_as("other");
        assert_eq!(world.step(order_id, "reserve").attempt, 2);
    });
    assert!(waited);
    world.ends(order_id, End::Processed);
    let asked: Vec<u32> = world.remote.calls("reserve").into_iter().map(|called| called.attempt).collect();
    assert_eq!(asked[0], 2, "the request of the first attempt is past its time");
    assert_eq!(world.step(order_id, "reserve").failure_count, 1);
}

#[test]
fn f15_a_duplicate_reply_changes_nothing() {
    let world = World::new();
    let order_id = world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    world.tell_scheduler(done(&request));
    world.tell_scheduler(done(&request));
    assert_eq!(world.schedule(), Ran::Handled { done: 2, failed: 0 });
    let after = world.task(order_id);
    world.tell_scheduler(done(&request));
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.task(order_id), after);
    assert_eq!(world.lose_requests("payment").len(), 1, "the next step was started once");
}

#[test]
fn f15_an_order_whose_every_message_comes_twice_ends_as_any_other() {
    let world = World::new();
    let order_id = world.post(1);
    for _ in 0..20 {
        let (scheduler, mut agents) = (world.lose_scheduler_messages(), Vec::new());
        for agent in tests::world::AGENTS {
            agents.extend(world.lose_requests(agent).into_iter().map(|request| (agent, request)));
        }
        for _ in 0..2 {
            scheduler.iter().for_each(|message| world.tell_scheduler(message.clone()));
            agents.iter().for_each(|(agent, request)| world.ask_agent(agent, request.clone()));
        }
        world.submit();
        world.schedule();
        for agent in tests::world::AGENTS {
            world.serve(agent);
        }
    }
    world.ends(order_id, End::Processed);
    assert!(world.task(order_id).steps.iter().all(|step| (step.attempt, step.failure_count) == (1, 0)));
}

#[test]
fn f16_a_failure_of_an_attempt_after_the_success_of_the_next_one_is_dropped() {
    let world = World::new();
    let (order_id, first, second) = two_attempts(&world);
    world.ask_agent("inventory", second);
    assert_eq!((world.serve("inventory"), world.schedule()), (ONE_DONE, ONE_DONE));
    let after = world.task(order_id);
    world.tell_scheduler(failed(&first));
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.task(order_id), after);
    world.ends(order_id, End::Processed);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.attempt, step.failure_count), (2, 1), "the expiry, and nothing else");
}

#[test]
fn f16_a_failure_of_an_attempt_while_the_next_one_runs_is_dropped() {
    let world = World::new();
    let (order_id, first, second) = two_attempts(&world);
    let before = world.task(order_id);
    world.tell_scheduler(failed(&first));
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.task(order_id), before);
    world.ask_agent("inventory", second);
    world.ends(order_id, End::Processed);
    assert_eq!(world.step(order_id, "reserve").failure_count, 1, "the expiry, and nothing else");
}

#[test]
fn f17_a_late_success_of_an_attempt_while_the_next_one_runs_advances_the_step_once() {
    let world = World::new();
    let (order_id, first, second) = two_attempts(&world);
    world.tell_scheduler(done(&first));
    assert_eq!(world.schedule(), ONE_DONE);
    assert_eq!(world.step(order_id, "reserve").process_state, StepState::Processed);
    let after = world.task(order_id);
    // The second attempt continues and has the effect under the same key. Its answer is not needed.
    world.ask_agent("inventory", second);
    assert_eq!((world.serve("inventory"), world.schedule()), (ONE_DONE, ONE_DONE));
    assert_eq!(world.task(order_id), after);
    world.ends(order_id, End::Processed);
    assert_eq!(world.step(order_id, "charge").attempt, 1);
    assert_eq!(world.step(order_id, "reserve").failure_count, 1);
}

#[test]
fn f18_unknown_and_forged_replies_are_dropped_each_for_its_reason() {
    let world = World::new();
    let order_id = world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    let SchedulerMessage::Reply(good) = done(&request) else { unreachable!("it is a reply") };
    let before = world.task(order_id);
    let dropped = |why| Some(Verdict::Dropped(why));
    let forged = [
        (Reply { step: "ship".into(), ..good.clone() }, dropped(Dropped::UnknownAttempt)),
        (Reply { step: "nowhere".into(), ..good.clone() }, dropped(Dropped::UnknownStep)),
        (Reply { attempt: 2, ..good.clone() }, dropped(Dropped::UnknownAttempt)),
        (Reply { attempt: 0, ..good.clone() }, dropped(Dropped::UnknownAttempt)),
        (Reply { direction: Direction::Undo, ..good.clone() }, dropped(Dropped::OtherDirection)),
        (Reply { order_id: samples::order(99).order_id, ..good }, None),
    ];
    let instance = world.instance("scheduler");
    for (reply, verdict) in forged {
        let receipt = Receipt { message_id: "forged".into(), handle: "forged".into() };
        let message = SchedulerMessage::Reply(reply);
        let record = Record { message, receipt, redelivered: false, receive_count: 1, parent: None };
        assert_eq!(now(scheduler::schedule(&world.ports, &instance, &record)).unwrap(), verdict, "{record:?}");
    }
    assert_eq!(world.task(order_id), before);
    world.ask_agent("inventory", request);
    world.ends(order_id, End::Processed);
}

#[test]
fn f19_when_a_reply_is_lost_the_request_is_sent_again_and_the_service_answers_the_same() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    let [lost]: [SchedulerMessage; 1] = world.lose_scheduler_messages().try_into().unwrap();
    let SchedulerMessage::Reply(Reply { outcome: Outcome::Done(output), .. }) = lost else {
        unreachable!("it is a success");
    };
    world.ends(order_id, End::Processed);
    let step = world.step(order_id, "reserve");
    assert_eq!((step.attempt, step.failure_count), (2, 1));
    assert_eq!(step.output, Some(output));
    let keys: Vec<String> = world.remote.calls("reserve").into_iter().map(|called| called.key).collect();
    assert!(keys.iter().all(|key| *key == keys[0]) && keys.len() >= 2);
}

#[test]
fn f20_killed_between_a_replys_write_and_the_next_send_the_order_goes_on() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    world.ports.next("queues.to_agent", Fault::DiesBefore);
    assert_eq!(world.schedule(), Ran::Died);
    assert_eq!(world.step(order_id, "reserve").process_state, StepState::Processed);
    assert_eq!(world.serve("payment"), Ran::Idle, "nobody was asked");
    world.ends(order_id, End::Processed);
    let charge = world.step(order_id, "charge");
    assert_eq!((charge.attempt, charge.failure_count), (1, 0));
}

#[test]
fn f20_killed_there_and_the_reply_gone_as_well_the_supervisor_lets_it_go_on() {
    let world = World::new();
    let order_id = world.claimed();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    world.ports.next("queues.to_agent", Fault::DiesBefore);
    assert_eq!(world.schedule(), Ran::Died);
    world.until_redelivery();
    assert_eq!(world.lose_scheduler_messages().len(), 1);
    world.ends(order_id, End::Processed);
    let charge = world.step(order_id, "charge");
    assert_eq!((charge.attempt, charge.failure_count), (2, 1));
}

#[test]
fn f21_a_chain_that_goes_round_in_circles_is_cut_with_an_alert() {
    let world = World::new();
    let order_id = world.stored();
    world.lose_scheduler_messages();
    let hops = world.workflows.current().hops_max() + 1;
    world.tell_scheduler(SchedulerMessage::Wake(Wake { order_id, hops }));
    world.ends(order_id, End::Error(reason::HOP_LIMIT));
    assert!(world.remote.called().is_empty());
}

#[test]
fn f22_a_handler_that_dies_after_part_of_a_batch_does_no_harm_in_any_function() {
    for function in ["submission", "scheduler", "agent"] {
        at_every_call(&DEATHS, |call, death| {
            let world = World::new();
            let orders = [1, 2, 3].map(|n| world.post(n));
            let strike = || world.ports.after_calls(call, death);
            match function {
                "submission" => {
                    strike();
                    world.submit();
                }
                "scheduler" => {
                    world.submit();
                    world.serve("inventory");
                    strike();
                    world.schedule();
                }
                _ => {
                    world.submit();
                    strike();
                    world.serve("inventory");
                }
            }
            let was_met = world.ports.has_struck();
            world.end_all(&orders.map(|order_id| (order_id, End::Processed)));
            let steps = orders.map(|order_id| world.step(order_id, "reserve"));
            assert!(steps.iter().all(|step| (step.attempt, step.failure_count) == (1, 0)), "{steps:#?}");
            was_met
        });
    }
}

#[test]
fn f23_a_batch_whose_answer_is_lost_comes_again_whole_and_does_no_harm_in_any_function() {
    let world = World::new();
    let orders = [1, 2, 3].map(|n| world.post(n));
    let instance = world.instance("any");
    let run = |handled: Option<Failures>| assert_eq!(handled, Some(Failures::default()));

    let batch = now(world.memory.submissions().receive(BATCH_MAX));
    run(drive(&world.memory, &world.ports, submission::handle(&world.ports, &instance, batch)));
    let batch = now(world.memory.requests("inventory").receive(BATCH_MAX));
    run(drive(&world.memory, &world.ports, agent::handle(&world.ports, &world.agent("inventory"), batch)));
    let batch = now(world.memory.scheduler().receive(BATCH_MAX));
    run(drive(&world.memory, &world.ports, scheduler::handle(&world.ports, &instance, batch)));
    assert!(orders.iter().all(|&order_id| world.state(order_id) == ProcessState::Processing));

    // Nothing was deleted, so all of it is still there.
    world.until_redelivery();
    world.end_all(&orders.map(|order_id| (order_id, End::Processed)));
    let tasks = orders.map(|order_id| world.task(order_id));
    assert!(tasks.iter().flat_map(|task| &task.steps).all(|step| (step.attempt, step.failure_count) == (1, 0)));
    assert!(now(world.memory.order(orders[0])).unwrap().is_some());
}
