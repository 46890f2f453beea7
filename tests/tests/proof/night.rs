//! A night with little to do: an order a minute for two hours, with three bad ones among them. Time is virtual.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::{Answer, Call};
use domain::message::CloudEvent;
use domain::order::Order;
use domain::ports::Environment;
use domain::task::{ProcessState, Task, What};
use domain::time::Timestamp;
use tests::conformance::samples;
use tests::simulation::engine;
use tests::simulation::outside::{Found, Scene, Seen};
use tests::world::{AGENTS, Act, Ran, World};

const MINUTE_MS: i64 = 60_000;
const MINUTES: i64 = 120;
/// A step of the clock in memory, in milliseconds.
const TICK_MS: i64 = 100;
/// Good orders, and what is told of them, take no longer, in milliseconds.
const SOON_MS: u64 = 2_000;
/// A bad order ends within this time, in milliseconds. It fails three times, in attempts of 30 s. One without an answer to
/// another order, in it or shortly before, is not counted: the service may be down for all.
const BAD_MS_MAX: u64 = 5 * 60_000;
/// In which minutes the bad ones come.
const BAD: [(i64, &str); 3] = [(20, "poison"), (50, "stranger"), (80, "unheard")];

const WORKFLOW: &str = r#"
name = "order"
version = 1
[[step]]
name = "reserve"
agent = "stock"
[[step]]
name = "charge"
agent = "money"
after = ["reserve"]
"#;

/// What a service says of the bad ones.
fn answer(document: &str) -> Option<Answer> {
    if document.contains("poison") {
        Some(Answer::retry("answered 500"))
    } else if document.contains("stranger") {
        Some(Answer::Misconfigured { after_ms: None, problem: "answered 404".into() })
    } else {
        None
    }
}

fn document(minute: i64, channel: &str) -> String {
    let kind = BAD.iter().find(|(at, _)| *at == minute).map_or("good", |(_, kind)| kind);
    format!(r#"{{"Item":"{kind}","CorrelationID":"KEY","ReplyChannel":"{channel}"}}"#)
}

fn scene() -> Scene {
    let answers = |call: &Call<'_>, _: i64| answer(call.order.text()).filter(|_| call.step == "charge");
    // Its receiver takes it in the morning.
    let refuses =
        |event: &CloudEvent, at_ms: i64| at_ms < MINUTES * MINUTE_MS && event.data.text().contains("\"key-80\"");
    let posts = (0..MINUTES).map(|minute| (minute * MINUTE_MS, document(minute, "shop"))).collect();
    Scene { workflow: WORKFLOW, posts, answer: answers, refuses, acts: Vec::new() }
}

/// When the order came into this state.
fn entered_at(task: &Task, state: ProcessState) -> Timestamp {
    let line = task.history.iter().find(|line| line.what == What::Entered(state));
    line.unwrap_or_else(|| panic!("it is not {state:?}: {task:#?}")).at
}

/// Good orders are quick, and bad ones end by their own limits and are named to a person.
fn check(tasks: &[Arc<Task>], told: &[(Timestamp, CloudEvent)], bad_ms_max: u64) {
    assert_eq!(tasks.len(), usize::try_from(MINUTES).unwrap());
    let mut good_ms = Vec::new();
    for (minute, task) in (0..MINUTES).zip(tasks) {
        let (order, came) = (task.order_id.to_string(), task.history[0].at);
        let told_at = |kind: &str| {
            let mut of = told.iter().filter(|(_, event)| *event.kind == *kind && *event.subject == *order);
            of.next().map(|(at, _)| *at)
        };
        let kind = BAD.iter().find(|(at, _)| *at == minute).map(|(_, kind)| *kind);
        if matches!(kind, Some("poison" | "stranger")) {
            let took_ms = came.ms_until(entered_at(task, ProcessState::Error));
            assert!(took_ms <= bad_ms_max, "{kind:?} ended after {took_ms} ms");
            assert!(told_at("OrderNeedsOperator").is_some(), "{kind:?} is named to nobody");
            continue;
        }
        let ended = entered_at(task, ProcessState::Processed);
        good_ms.push(came.ms_until(ended));
        match (kind, told_at("OrderProcessed")) {
            (Some(_), _) => assert!(told_at("ReplyChannelFailing").is_some(), "{kind:?} is named to nobody"),
            (None, Some(at)) if ended.ms_until(at) <= SOON_MS => {}
            (None, told) => panic!("minute {minute} ended at {ended} and is told at {told:?}"),
        }
    }
    // All of them, where the 99th percentile is asked for.
    assert!(good_ms.iter().all(|ms| *ms <= SOON_MS), "{good_ms:?}");
}

fn check_scene((seen, violations): (Seen, Vec<Found>), bad_ms_max: u64) {
    assert_eq!(violations, Vec::new());
    check(&seen.tasks, &seen.told, bad_ms_max);
}

#[test]
fn at_low_traffic_bad_orders_hold_up_no_other_in_memory() {
    let world = World::with(&WORKFLOW.replace("stock", AGENTS[0]).replace("money", AGENTS[1]));
    world.memory.register_channel("shop");
    let agents = [world.agent(AGENTS[0]), world.agent(AGENTS[1])];
    let (mut orders, mut told) = (Vec::new(), Vec::new());
    // An hour more, for what the last ones need.
    for tick in 0..(MINUTES + 60) * MINUTE_MS / TICK_MS {
        let at_ms = tick * TICK_MS;
        let minute = at_ms / MINUTE_MS;
        if at_ms % MINUTE_MS == 0 && minute < MINUTES {
            let channel = if minute == BAD[2].0 { "unknown" } else { "shop" };
            let order = samples::order_with(u32::try_from(minute).unwrap(), &document(minute, channel));
            let order = Order { submitted_at: world.memory.now(), reply_channel: Some(channel.into()), ..order };
            if let Some(answer) = answer(order.document.text()) {
                world.remote.always_of(order.order_id, "charge", Act::Answers(answer));
            }
            orders.push(world.post_order(order));
        }
        if at_ms % 10_000 == 0 {
            world.supervise();
            world.alert();
        }
        let ran = || [world.submit(), world.schedule(), world.serve_by(&agents[0]), world.serve_by(&agents[1])];
        while ran().iter().any(|ran| *ran != Ran::Idle) {}
        if at_ms % 1_000 == 0 {
            let events = world.memory.notified().into_iter().map(|(_, event)| event).chain(world.memory.published());
            let known: BTreeSet<Arc<str>> = told.iter().map(|(_, event): &(_, CloudEvent)| event.id.clone()).collect();
            told.extend(events.filter(|event| !known.contains(&event.id)).map(|event| (world.memory.now(), event)));
        }
        world.memory.advance(TICK_MS.unsigned_abs());
    }
    let tasks: Vec<Arc<Task>> = orders.iter().map(|order_id| world.task(*order_id)).collect();
    check(&tasks, &told, BAD_MS_MAX);
}

#[test]
fn at_low_traffic_bad_orders_hold_up_no_other_on_the_engine() {
    check_scene(engine::follow(scene()), BAD_MS_MAX);
}
