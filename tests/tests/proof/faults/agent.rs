//! Agent: F24 to F34.

use agent::{Answer, MemoPolicy};
use domain::limits::BATCH_MAX;
use domain::ports::{Breaker, Environment, Memo, Records, ServiceHealth, Source};
use domain::task::{Direction, ProcessState, reason};
use memory::faulty::Fault;
use tests::world::{Act, EXPIRED_MS, End, ONE_DONE, ONE_FAILED, Ran, World, drive, now};

use super::scenes::{DEATHS, at_every_call};

use Direction::Forward;

/// Agents with memos, since the services do not recognise a repeated key.
fn with_memos() -> World {
    let mut world = World::new();
    world.policy.memo = Some(MemoPolicy::default());
    world.remote.ignore_keys();
    world
}

/// A service that asks for a pause of its calls.
fn busy() -> Act {
    Act::Answers(Answer::retry("429 Too Many Requests"))
}

/// This number of orders, with their first requests on the queue.
fn many_claimed(world: &World, orders: u32) -> Vec<domain::id::OrderId> {
    let ids = (1..=orders).map(|n| world.post(n)).collect();
    while world.submit() != Ran::Idle {}
    while world.schedule() != Ran::Idle {}
    ids
}

/// Attempts and failures of the first step.
fn counts(world: &World, order_id: domain::id::OrderId) -> (u32, u32) {
    let step = world.step(order_id, "reserve");
    (step.attempt, step.failure_count)
}

#[test]
fn f24_killed_anywhere_in_a_call_the_service_is_asked_again_with_the_same_key_and_has_one_effect() {
    at_every_call(&DEATHS, |call, death| {
        let world = World::new();
        let order_id = world.claimed();
        world.ports.after_calls(call, death);
        world.serve("inventory");
        let was_met = world.ports.has_struck();
        world.ends(order_id, End::Processed);
        assert_eq!(counts(&world, order_id), (1, 0));
        was_met
    });
}

#[test]
fn f24_a_reply_that_cannot_be_sent_is_learnt_again_from_the_service() {
    let world = World::new();
    let order_id = world.claimed();
    world.ports.next("queues.to_scheduler", Fault::Fails);
    assert_eq!(world.serve("inventory"), ONE_FAILED);
    assert_eq!(world.remote.effects().len(), 1);
    world.until_redelivery();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    assert_eq!(world.remote.calls("reserve").len(), 2);
    world.ends(order_id, End::Processed);
}

#[test]
fn f24_a_reply_that_died_with_its_agent_is_learnt_again_from_the_memo_where_the_service_knows_no_keys() {
    let world = with_memos();
    let order_id = world.claimed();
    world.ports.next("queues.to_scheduler", Fault::DiesBefore);
    assert_eq!(world.serve("inventory"), Ran::Died);
    world.until_redelivery();
    assert_eq!(world.serve("inventory"), ONE_DONE);
    assert_eq!(world.remote.calls("reserve").len(), 1, "the service was not asked again");
    world.ends(order_id, End::Processed);
}

#[test]
fn f25_a_call_whose_answer_is_lost_is_made_again_with_the_same_key() {
    for lost in [Act::LosesAnswer, Act::Hangs, Act::Panics] {
        let world = World::new();
        let order_id = world.claimed();
        world.remote.next("reserve", Forward, lost.clone());
        assert_eq!(world.serve("inventory"), ONE_FAILED, "{lost:?}");
        world.to_the_end();
        let calls = world.remote.calls("reserve");
        assert_eq!((calls.len(), &calls[0].key), (2, &calls[1].key), "{lost:?}");
        assert_eq!(counts(&world, order_id), (1, 0), "{lost:?}: there was time for another call");
        world.ends(order_id, End::Processed);
    }
}

#[test]
fn f26_a_burst_of_busy_answers_is_outlasted_within_the_budget_with_growing_waits_and_costs_no_failure() {
    const BUSY: usize = 12;
    let world = World::new();
    let order_id = world.claimed();
    for _ in 0..BUSY {
        world.remote.next("reserve", Forward, busy());
    }
    let complete_by = world.step(order_id, "reserve").complete_by.unwrap();
    world.to_the_end();
    let calls = world.remote.calls("reserve");
    assert_eq!(calls.len(), BUSY + 1);
    assert_eq!(counts(&world, order_id), (1, 0));
    assert!(calls[BUSY].at < complete_by);
    let waits: Vec<u64> = calls.windows(2).map(|pair| pair[0].at.ms_until(pair[1].at)).collect();
    let most = world.policy.backoff.wait_ms_max() + world.policy.health.backoff.wait_ms_max() + 10_000;
    assert!(waits.iter().all(|&wait| wait <= most), "truncated: {waits:?}");
    let different: std::collections::BTreeSet<_> = waits.iter().collect();
    assert!(different.len() > BUSY / 3, "with jitter: {waits:?}");
    world.ends(order_id, End::Processed);
}

#[test]
fn f26_a_wait_that_the_service_asks_for_is_kept() {
    let world = World::new();
    let order_id = world.claimed();
    let busy = Answer::Retry { after_ms: Some(45_000), problem: "503, Retry-After: 45".to_owned() };
    world.remote.next("reserve", Forward, Act::Answers(busy));
    world.to_the_end();
    let calls = world.remote.calls("reserve");
    assert!(calls[0].at.ms_until(calls[1].at) >= 45_000);
    assert_eq!(counts(&world, order_id), (1, 0));
    world.ends(order_id, End::Processed);
}

#[test]
fn f26_a_wait_beyond_the_attempt_gives_it_back_without_a_failure() {
    const TIMES: u32 = 4;
    let world = World::new();
    let order_id = world.claimed();
    for _ in 0..TIMES {
        let busy = Answer::Retry { after_ms: Some(EXPIRED_MS), problem: "429, Retry-After".to_owned() };
        world.remote.next("reserve", Forward, Act::Answers(busy));
    }
    world.to_the_end();
    let calls = world.remote.calls("reserve");
    let waits: Vec<u64> = calls.windows(2).map(|pair| pair[0].at.ms_until(pair[1].at)).collect();
    assert!(waits.len() == TIMES as usize && waits.iter().all(|&wait| wait >= EXPIRED_MS), "{waits:?}");
    assert_eq!(counts(&world, order_id), (TIMES + 1, 0));
    world.ends(order_id, End::Processed);
}

#[test]
fn f27_a_permanent_refusal_is_not_tried_again_and_the_order_is_undone() {
    let world = World::new();
    let order_id = world.claimed();
    world.remote.declines("reserve", Forward);
    assert_eq!(world.serve("inventory"), ONE_DONE);
    assert_eq!(world.remote.calls("reserve").len(), 1);
    world.to_the_end();
    let forward = world.remote.calls("reserve").into_iter().filter(|called| called.direction == Forward).count();
    assert_eq!(forward, 1);
    let task = world.task(order_id);
    assert_eq!(&*task.reason.as_ref().unwrap().code, reason::REJECTED);
    world.ends(order_id, End::Compensated);
}

#[test]
fn f28_when_complete_by_passes_during_the_call_there_is_silence() {
    for answer in [Act::Late(EXPIRED_MS), Act::Hangs] {
        let mut world = World::new();
        world.policy.call_timeout_ms = 2 * EXPIRED_MS;
        let order_id = world.claimed();
        world.remote.next("reserve", Forward, answer.clone());
        assert_eq!(world.serve("inventory"), ONE_DONE, "{answer:?}: let go");
        assert!(world.lose_scheduler_messages().is_empty(), "{answer:?}: without a word");
        assert_eq!(counts(&world, order_id), (1, 0), "{answer:?}: the agent counts nothing");
        world.ends(order_id, End::Processed);
        assert_eq!(counts(&world, order_id), (2, 1), "{answer:?}");
    }
}

#[test]
fn f29_a_request_that_is_delivered_after_complete_by_is_dropped_without_a_call() {
    let world = World::new();
    let order_id = world.claimed();
    world.memory.advance(EXPIRED_MS);
    assert_eq!(world.serve("inventory"), ONE_DONE, "let go");
    assert!(world.remote.called().is_empty());
    assert!(world.lose_scheduler_messages().is_empty());
    world.ends(order_id, End::Processed);
    assert_eq!(counts(&world, order_id), (2, 1));
}

#[test]
fn f30_an_instance_that_has_just_started_finds_the_breaker_open_and_at_half_open_one_call_is_made() {
    let world = World::new();
    let orders = many_claimed(&world, 20);
    world.remote.always("reserve", busy());
    world.serve("inventory");
    let health = now(world.memory.get::<ServiceHealth>("inventory")).unwrap().unwrap();
    assert_eq!(health.state, Breaker::Open);
    let calls_before = world.remote.called().len();
    // Another instance, and requests without an attempt so far.
    assert_eq!(world.serve("inventory"), Ran::Handled { done: 0, failed: BATCH_MAX });
    assert_eq!(world.remote.called().len(), calls_before, "parked without a call");
    // All requests are visible when the probe is due. The probing request must wait for its answer.
    world.memory.advance(world.memory.now().ms_until(health.until) + 5_000);
    world.remote.always("reserve", Act::Hangs);
    world.serve("inventory");
    world.serve("inventory");
    let probes: Vec<_> = world.remote.called()[calls_before..].to_vec();
    assert!((1..=2).contains(&probes.len()), "one probe in each half-open time: {probes:#?}");
    world.remote.recovers("reserve");
    world.to_the_end();
    assert!(orders.iter().all(|&order_id| counts(&world, order_id).1 == 0), "the outage cost no failure");
    world.end_all(&orders.iter().map(|&order_id| (order_id, End::Processed)).collect::<Vec<_>>());
}

#[test]
fn f31_a_service_that_hangs_leaves_the_steps_of_other_services_alone() {
    let step = |name: &str, agent: &str| format!("[[step]]\nname = \"{name}\"\nagent = \"{agent}\"\n");
    let steps = [step("slow", "inventory"), step("quick", "payment")].concat();
    let world = World::with(&format!("name = \"order\"\nversion = 1\n{steps}"));
    world.remote.always("slow", Act::Hangs);
    let orders = many_claimed(&world, 20);
    let asked_at = world.memory.now();
    // The two agents have queues and instances of their own.
    while world.serve("payment") != Ran::Idle {}
    for _ in 0..2 {
        world.serve("inventory");
    }
    let quick = world.remote.calls("quick");
    assert!(quick.len() == 20 && quick.iter().all(|called| called.at == asked_at), "{quick:#?}");
    assert!(
        now(world.memory.get::<ServiceHealth>("payment")).unwrap().is_none_or(|health| health.state == Breaker::Closed)
    );
    assert_eq!(now(world.memory.get::<ServiceHealth>("inventory")).unwrap().unwrap().state, Breaker::Open);
    world.remote.recovers("slow");
    world.to_the_end();
    for &order_id in &orders {
        let quick = world.step(order_id, "quick");
        assert_eq!((quick.attempt, quick.failure_count), (1, 0));
    }
    world.end_all(&orders.iter().map(|&order_id| (order_id, End::Processed)).collect::<Vec<_>>());
}

/// One instance takes a request and waits at some call. Meanwhile, another instance takes the same request.
fn twins(world: World, call: usize) -> (World, bool) {
    let order_id = world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    world.ask_agent("inventory", request.clone());
    let batch = now(world.memory.requests("inventory").receive(BATCH_MAX));
    world.ports.after_calls(call, Fault::Waits);
    let one = world.agent("inventory");
    let was_met = world
        .meanwhile(agent::handle(&world.ports, &one, batch), || {
            world.ask_agent("inventory", request);
            world.serve("inventory");
        })
        .is_some();
    world.ends(order_id, End::Processed);
    assert_eq!(counts(&world, order_id), (1, 0));
    (world, was_met)
}

#[test]
fn f32_the_same_request_in_two_instances_at_once_has_one_effect() {
    at_every_call(&[Fault::Waits], |call, _| twins(World::new(), call).1);
}

#[test]
fn f32_the_same_request_in_two_instances_at_once_is_one_call_where_the_service_knows_no_keys() {
    at_every_call(&[Fault::Waits], |call, _| {
        let (world, was_met) = twins(with_memos(), call);
        assert_eq!(world.remote.calls("reserve").len(), 1);
        was_met
    });
}

#[test]
fn f33_a_claim_whose_instance_died_expires_and_the_call_is_made() {
    let world = with_memos();
    let order_id = world.claimed();
    world.ports.next("memos.set_memo", Fault::DiesAfter);
    assert_eq!(world.serve("inventory"), Ran::Died);
    let key = format!("{order_id}/reserve");
    let orphan = now(world.memory.get::<Memo>(&key)).unwrap().unwrap();
    let domain::ports::MemoState::InProgress(until) = orphan.state else { unreachable!("it is in progress") };
    assert!(world.remote.called().is_empty());
    world.to_the_end();
    let calls = world.remote.calls("reserve");
    assert!(calls.len() == 1 && calls[0].at >= until, "{calls:#?}");
    assert_eq!(counts(&world, order_id), (1, 0));
    world.ends(order_id, End::Processed);
}

#[test]
fn f34_a_service_that_forgets_keys_sees_no_repeat_beyond_the_steps_horizon_and_then_the_order_is_an_operators() {
    let world = World::new();
    let rule = &world.workflows.current().steps[0];
    let supervision = world.workflows.current().supervision;
    let each_ms = rule.complete_within_ms + supervision.grace_ms + supervision.backoff.wait_ms_max();
    // In this test, a supervisor run may be late by this time.
    let horizon_ms = u64::from(rule.max_failures) * (each_ms + 60_000);
    world.remote.forget_keys_after(horizon_ms);
    world.remote.always("reserve", Act::Late(EXPIRED_MS));
    let order_id = world.post(1);
    world.to_the_end();
    let calls = world.remote.calls("reserve");
    assert_eq!(calls.len(), 3, "one for each attempt");
    assert!(calls[0].at.ms_until(calls[2].at) < horizon_ms);
    assert_eq!((world.state(order_id), counts(&world, order_id)), (ProcessState::Error, (3, 3)));
    world.memory.advance(2 * horizon_ms);
    world.ends(order_id, End::Error(reason::EXHAUSTED));
    assert_eq!(world.remote.calls("reserve").len(), 3, "nobody asks a service that has forgotten");
}

#[test]
fn f24_to_f33_one_instance_takes_what_another_one_left_at_any_call_where_the_service_knows_no_keys() {
    // After a kill between the effect and its memo, the outcome is unknown. That call alone is left out.
    let calls = |world: &World| world.remote.called().len();
    at_every_call(&DEATHS, |call, death| {
        let world = with_memos();
        let order_id = world.claimed();
        let batch = now(world.memory.requests("inventory").receive(BATCH_MAX));
        world.ports.after_calls(call, death);
        let ended = drive(&world.memory, &world.ports, agent::handle(&world.ports, &world.agent("inventory"), batch));
        let was_met = world.ports.has_struck();
        assert_eq!(ended.is_none(), was_met);
        let completed = now(world.memory.get::<Memo>(&format!("{order_id}/reserve"))).unwrap();
        let is_unknowable = calls(&world) == 1
            && completed.is_some_and(|memo| matches!(memo.state, domain::ports::MemoState::InProgress(_)));
        if !is_unknowable {
            world.ends(order_id, End::Processed);
        }
        was_met
    });
}

#[test]
fn f30_an_outage_of_an_hour_costs_no_failure_cuts_no_chain_and_orders_go_on_by_themselves() {
    const HOUR_MS: u64 = 60 * 60 * 1_000;
    let world = World::new();
    world.memory.allow_request_receives(1_000);
    world.remote.always("charge", busy());
    let orders: Vec<_> = (1..=20).map(|n| world.post(n)).collect();
    // One instance for each service during the outage, so that its own counts are not lost.
    let agents = ["inventory", "payment", "shipping"].map(|name| world.agent(name));
    let until = world.memory.now().plus_ms(HOUR_MS);
    while world.memory.now() < until {
        let mut busy = true;
        while busy {
            let mut ran = vec![world.submit(), world.schedule()];
            ran.extend(agents.iter().map(|agent| world.serve_by(agent)));
            busy = ran.iter().any(|ran| *ran != Ran::Idle);
        }
        world.supervise();
        world.memory.advance(1_000);
    }
    let calls = world.remote.calls("charge").len();
    assert!(calls < 1_000, "{calls} calls in an hour for {} orders", orders.len());
    for order_id in &orders {
        let step = world.step(*order_id, "charge");
        assert_eq!(step.failure_count, 0, "{step:?}: {:#?}", world.task(*order_id).history);
    }
    world.remote.recovers("charge");
    for order_id in orders {
        world.ends(order_id, End::Processed);
    }
}
