//! Each metric of ours that an alarm watches, made by the condition that the alarm is about, and quiet without it. The
//! tests of the repository hold that every such metric is here.

use std::collections::BTreeMap;

use agent::Answer;
use domain::batch;
use domain::id::CommandId;
use domain::message::{Action, Command, Deferral, Delivery, Outcome, Receipt, SchedulerMessage};
use domain::ports::PortError;
use domain::task::{Direction, ProcessState};
use futures_util::FutureExt;
use memory::faulty::Fault;
use serde_json::Value;
use supervisor::Settings;
use tests::conformance::samples;
use tests::world::{Act, EXPIRED_MS, ONE_DONE, ONE_FAILED, PATIENT, World, drive};
use tracing::Span;

use crate::telemetry::lines_of;

/// The time between two looks at the queues, in milliseconds.
const LOOK_MS: u64 = 7_000;
const MINUTE_MS: u64 = 60_000;

/// The values of each metric of a function during some work, as the function writes them.
struct Written(BTreeMap<String, Vec<f64>>);

fn written(happen: impl FnOnce()) -> Written {
    let mut written = BTreeMap::<String, Vec<f64>>::new();
    for line in lines_of("off", happen) {
        for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
            let of_function = |set: &Value| set.as_array().is_some_and(|names| names.len() == 1);
            assert!(
                directive["Dimensions"].as_array().unwrap().iter().any(of_function),
                "an alarm has no other: {line}"
            );
            for metric in directive["Metrics"].as_array().unwrap() {
                let name = metric["Name"].as_str().unwrap();
                let values = match line[name].as_array() {
                    Some(values) => values.iter().filter_map(Value::as_f64).collect(),
                    None => vec![line[name].as_f64().unwrap()],
                };
                written.entry(name.to_owned()).or_default().extend(values);
            }
        }
    }
    Written(written)
}

impl Written {
    /// The largest value. `None`: the metric is not written, so its alarm has no data.
    fn largest(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.iter().copied().reduce(f64::max)
    }

    fn is_over(&self, name: &str, threshold: f64) -> bool {
        self.largest(name).is_some_and(|largest| largest > threshold)
    }

    fn is_zero(&self, name: &str) -> bool {
        self.largest(name).is_none_or(|largest| largest.abs() < f64::EPSILON)
    }
}

/// Everything goes on for some minutes.
fn pass(world: &World, minutes: u64) {
    for _ in 0..minutes * MINUTE_MS / LOOK_MS {
        world.run();
        world.supervise();
        world.alert();
        world.memory.advance(LOOK_MS);
    }
}

/// An order whose payment is rejected, which its workflow holds.
fn held() -> World {
    let world = World::with(&PATIENT.replace("on_rejected = \"compensate\"", "on_rejected = \"hold\""));
    world.remote.declines("charge", Direction::Forward);
    let order_id = world.post(1);
    pass(&world, 1);
    assert_eq!(world.state(order_id), ProcessState::Error);
    world
}

#[test]
fn a_service_that_is_down_rings_with_the_time_of_its_outage_and_is_quiet_when_it_is_back() {
    let world = World::new();
    world.remote.always("charge", Act::Answers(Answer::retry("down")));
    let down = written(|| {
        for n in 0..6 {
            world.post(n);
        }
        pass(&world, 40);
    });
    assert!(down.is_over("services_down_ms", 900_000.0), "{:?}", down.largest("services_down_ms"));
    world.remote.recovers("charge");
    pass(&world, 20);
    let back = written(|| pass(&world, 1));
    assert_eq!(back.largest("services_down_ms"), Some(0.0));
}

#[test]
fn an_attempt_that_its_agent_gives_back_is_counted_and_no_attempt_that_is_done() {
    let world = World::new();
    world.claimed();
    let [request] = world.lose_requests("inventory").try_into().unwrap();
    let reply = |outcome| SchedulerMessage::Reply(request.reply(outcome));
    let put_off = written(|| {
        world.tell_scheduler(reply(Outcome::Deferred(Deferral::after(MINUTE_MS))));
        world.run();
    });
    assert!(put_off.is_over("attempts_put_off", 0.0));
    world.memory.advance(MINUTE_MS);
    assert!(written(|| pass(&world, 1)).is_zero("attempts_put_off"));
}

#[test]
fn an_order_in_error_rings_with_its_wait_until_somebody_takes_it_on() {
    let world = held();
    world.memory.advance(4 * 60 * MINUTE_MS);
    assert!(written(|| world.alert()).is_over("orders_untaken_ms", 14_400_000.0));
    let order_id = world.tasks()[0].order_id;
    let (by, reason, take) = ("ann".into(), "I look at it".into(), Some(true));
    let action = Action::Note;
    let (version, bulk, settle, step) = (None, None, None, None);
    let command_id = CommandId::of_job("a-note".into());
    let note = Command { order_id, action, by, reason, command_id, take, version, bulk, settle, step };
    world.tell_scheduler(SchedulerMessage::Command(note));
    world.run();
    assert_eq!(written(|| world.alert()).largest("orders_untaken_ms"), Some(0.0));
}

#[test]
fn a_run_of_the_supervisor_is_counted_with_how_late_it_is_and_what_it_could_not_do() {
    let world = World::new();
    world.claimed();
    world.lose_requests("inventory");
    let well = written(|| assert_eq!(world.supervise().failed, 0));
    assert!(well.is_over("supervisor_runs", 0.0) && well.is_zero("supervisor_failed"));
    assert!(well.is_zero("supervisor_shards_unreached") && well.is_zero("supervisor_lag_ms"));
    world.memory.advance(2 * EXPIRED_MS);
    world.memory.is_down("store.commit");
    let failing = written(|| assert_eq!(world.supervise().failed, 1));
    assert!(failing.is_over("supervisor_failed", 0.0) && failing.is_over("supervisor_lag_ms", 300_000.0));
    world.memory.is_down("store.due");
    let (instance, settings) = (world.instance("supervisor"), Settings::default());
    let unreached = written(|| {
        let run = supervisor::handle(&world.ports, &instance, &settings);
        assert!(drive(&world.memory, &world.ports, run).unwrap().is_err());
    });
    assert!(unreached.is_over("supervisor_shards_unreached", 0.0));
}

#[test]
fn a_message_whose_handling_fails_is_counted_and_one_that_is_done_is_not() {
    let world = World::new();
    world.post(1);
    let well = written(|| assert_eq!(world.submit(), ONE_DONE));
    assert!(well.is_zero("records_failed"));
    world.post(2);
    world.ports.next("store.insert", Fault::Fails);
    assert!(written(|| assert_eq!(world.submit(), ONE_FAILED)).is_over("records_failed", 0.0));
}

#[test]
fn a_handler_that_panics_is_counted_for_itself() {
    let receipt = Receipt { message_id: "m-1".into(), handle: "m-1".into() };
    let delivery = || Delivery { receipt: receipt.clone(), receive_count: 1, parent: None, body: Ok(()) };
    let handle = async |_| -> Result<batch::Handled, PortError> { panic!("as the test says") };
    let panicked = written(|| {
        let failed = batch::each(vec![delivery()], |_| Span::none(), handle).now_or_never();
        assert_eq!(failed, Some(batch::Failures(vec![batch::Failure::lasting(receipt.clone())])));
    });
    assert!(panicked.is_over("records_panicked", 0.0) && panicked.is_zero("records_failed"));
}

#[test]
fn an_alert_that_the_bus_does_not_take_is_counted_each_time() {
    let world = World::with(&PATIENT.replace("on_rejected = \"compensate\"", "on_rejected = \"hold\""));
    world.remote.declines("charge", Direction::Forward);
    world.memory.is_down("events.publish");
    world.post_order(samples::order(1));
    assert!(written(|| world.run()).is_over("notices_unsent", 0.0));
    world.memory.is_up("events.publish");
    world.memory.advance(10 * MINUTE_MS);
    assert!(written(|| pass(&world, 1)).is_zero("notices_unsent"));
}
