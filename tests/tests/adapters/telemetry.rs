//! The functions' logs and metrics on Lambda, by the real handlers. Counts are correct, and no content of an order is
//! logged.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};

use agent::Answer;
use aws::telemetry::{Settings, Telemetry};
use domain::id::{CommandId, OrderId};
use domain::json::Json;
use domain::message::{Action, Delivery, Failure, Outcome, Receipt, Reply, SchedulerMessage, decode};
use domain::order::Order;
use domain::ports::{DeadLetter, SourceQueue};
use domain::task::{Direction, ProcessState};
use domain::time::Timestamp;
use memory::faulty::Fault;
use serde_json::Value;
use tests::conformance::samples::{self, NOON};
use tests::world::{Act, BACKED_OFF_MS, EXPIRED_MS, End, ONE_DONE, ONE_FAILED, World, drive};

/// A text in documents and outputs only.
const SECRET: &str = "4111-1111-1111-1111";

/// The written lines.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All lines of a function's log during some work.
pub(crate) fn lines_of(levels: &str, happen: impl FnOnce()) -> Vec<Value> {
    let paper = Paper::default();
    let settings = Settings { levels: levels.to_owned(), ..Settings::default() };
    let telemetry = Telemetry::new("tests", settings, || NOON, paper.clone());
    let listening = trace::listen(telemetry.subscriber());
    happen();
    drop(listening);
    telemetry.flush();
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// All metrics of some work, by name. For a histogram, the number of its values.
fn metrics_of(happen: impl FnOnce()) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for line in lines_of("off", happen) {
        for directive in line["_aws"]["CloudWatchMetrics"].as_array().unwrap() {
            assert!(line["_aws"]["Timestamp"].is_u64());
            assert_eq!(directive["Namespace"], "Stepwarden");
            for name in directive["Dimensions"].as_array().unwrap().iter().flat_map(|set| set.as_array().unwrap()) {
                assert!(line[name.as_str().unwrap()].is_string(), "dimension {name} in {line}");
            }
            for metric in directive["Metrics"].as_array().unwrap() {
                let (name, unit) = (metric["Name"].as_str().unwrap(), metric["Unit"].as_str().unwrap());
                let value = match line[name].as_array() {
                    Some(values) => f64::from(u32::try_from(values.len()).unwrap()),
                    None => line[name].as_f64().unwrap(),
                };
                let is_time = name.ends_with("_ms");
                assert!(
                    if is_time { unit == "Milliseconds" } else { ["Count", "None"].contains(&unit) },
                    "{name} {unit}"
                );
                *sums.entry(name.to_owned()).or_default() += value;
            }
        }
    }
    sums
}

fn assert_counted(metrics: &BTreeMap<String, f64>, expected: &[(&str, u32)]) {
    for (name, count) in expected {
        let counted = metrics.get(*name).copied().unwrap_or(0.0);
        assert!((counted - f64::from(*count)).abs() < 0.1, "{name}: {counted}, not {count}, of {metrics:#?}");
    }
}

/// An order whose document and correlation id must not appear in a log.
fn secret_order(n: u32) -> Order {
    Order {
        correlation_id: Some(SECRET.into()),
        reply_channel: Some("shop-replies".into()),
        ..samples::order_with(n, &format!(r#"{{"Card": "{SECRET}", "CorrelationID": "{SECRET}"}}"#))
    }
}

/// The service's output, with a secret of its own.
fn secret_output() -> Answer {
    Answer::Done(Json::document(format!(r#"{{"Card": "{SECRET}"}}"#).as_bytes()).unwrap())
}

fn receipt() -> Receipt {
    Receipt { message_id: "m-1".into(), handle: "m-1".into() }
}

/// The reply that the first attempt of the first step sends.
fn reply(order_id: OrderId, outcome: Outcome) -> SchedulerMessage {
    let step = "reserve".into();
    let direction = Direction::Forward;
    let (may_run_until, call_ms) = (None, None);
    SchedulerMessage::Reply(Reply { order_id, step, direction, attempt: 1, outcome, hops: 1, may_run_until, call_ms })
}

fn command(world: &World, order_id: OrderId, action: Action) {
    let (by, reason) = ("ann".into(), "mended".into());
    let command = domain::message::Command {
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
    };
    world.tell_scheduler(SchedulerMessage::Command(command));
}

/// An invalid body, for each function that takes messages.
fn feed_nonsense(world: &World, body: &str) {
    let instance = world.instance("any");
    let submissions =
        vec![Delivery { receipt: receipt(), receive_count: 1, parent: None, body: decode(body.as_bytes()) }];
    drive(&world.memory, &world.ports, submission::handle(&world.ports, &instance, submissions)).unwrap();
    let messages = vec![Delivery { receipt: receipt(), receive_count: 1, parent: None, body: decode(body.as_bytes()) }];
    drive(&world.memory, &world.ports, scheduler::handle(&world.ports, &instance, messages)).unwrap();
    let agent = world.agent("inventory");
    let requests = vec![Delivery { receipt: receipt(), receive_count: 1, parent: None, body: decode(body.as_bytes()) }];
    drive(&world.memory, &world.ports, agent::handle(&world.ports, &agent, requests)).unwrap();
    for queue in [SourceQueue::Submission, SourceQueue::Scheduler, SourceQueue::Agent("inventory".into())] {
        let dead_letter = DeadLetter {
            queue,
            message_id: "m-1".into(),
            body: body.into(),
            receive_count: 5,
            at: Timestamp::default(),
        };
        let dead_letters = vec![Delivery { receipt: receipt(), receive_count: 1, parent: None, body: Ok(dead_letter) }];
        drive(&world.memory, &world.ports, supervisor::dead_letters(&world.ports, &instance, dead_letters)).unwrap();
    }
}

#[test]
fn nothing_of_a_document_or_an_output_is_in_any_line_at_any_level() {
    let lines = lines_of("trace", || {
        let world = World::new();
        world.memory.register_channel("shop-replies");
        for step in ["reserve", "charge", "ship"] {
            world.remote.always(step, Act::Answers(secret_output()));
        }
        let done = world.post_order(secret_order(1));
        world.run();
        assert_eq!(world.state(done), ProcessState::Processed);
        world.tell_scheduler(reply(done, Outcome::Done(Json::of(&SECRET))));

        // The second order is retried, panics, is rejected, and is compensated.
        world.remote.next("reserve", Direction::Forward, Act::Answers(Answer::retry("busy")));
        world.remote.next("reserve", Direction::Forward, Act::Panics);
        world.remote.next("charge", Direction::Forward, Act::Answers(Answer::fail("declined", SECRET)));
        let undone = world.post_order(secret_order(2));
        for _ in 0..20 {
            world.run();
            world.until_redelivery();
        }
        assert_eq!(world.state(undone), ProcessState::Compensated);

        // The third order is held, and an operator acts. Its alert fails at first.
        world.remote.next("reserve", Direction::Undo, Act::Answers(Answer::fail("never", SECRET)));
        world.remote.next("ship", Direction::Forward, Act::Answers(Answer::fail(SECRET, SECRET)));
        world.ports.next("events.publish", Fault::Fails);
        let held = world.post_order(secret_order(3));
        world.run();
        assert_eq!(world.state(held), ProcessState::Error);
        world.memory.advance(EXPIRED_MS);
        world.supervise();
        command(&world, held, Action::Resubmit);
        command(&world, held, Action::Resume);
        world.run();

        // The fourth order comes in by the API, is lost on its way, and becomes a dead letter.
        let document = format!(r#"{{"Card": "{SECRET}", "ReplyChannel": "shop-replies"}}"#);
        assert_eq!(world.post_to_api("4", &document).unwrap().status, 202);
        assert_eq!(world.post_to_api("4", &document.replace("Card", "Other")).unwrap().status, 202);
        world.submit();
        world.submit();
        world.lose_scheduler_messages();
        world.memory.advance(EXPIRED_MS);
        world.supervise();
        world.ports.next("queues.submit", Fault::Fails);
        assert_eq!(world.post_to_api("5", &document).unwrap().status, 503);
        for wrong in [&format!(r#"["{SECRET}"]"#), &format!(r#"{{"Priority": "{SECRET}"}}"#), SECRET] {
            assert_eq!(world.post_to_api("6", wrong).unwrap().status, 400);
        }

        for nonsense in [
            SECRET.to_owned(),
            format!(r#""{SECRET}""#),
            format!(r#"{{"{SECRET}": 1}}"#),
            format!(r#"{{"Wake": "{SECRET}"}}"#),
            format!(r#"{{"OrderID": "{SECRET}"}}"#),
            format!(r#"{{"OrderID": "{done}", "Step": "reserve", "Direction": "{SECRET}"}}"#),
            serde_json::to_string(&secret_order(7)).unwrap().replace("SubmittedAt", "Submitted"),
        ] {
            feed_nonsense(&world, &nonsense);
        }
        world.tell_scheduler(reply(done, Outcome::Failed(Failure { code: SECRET.into(), message: SECRET.into() })));
        world.run();
    });
    let logged = lines.iter().filter(|line| line.get("level").is_some()).count();
    assert!(logged > 100, "only {logged} lines");
    for name in ["order_id", "step", "attempt", "message_id", "function"] {
        assert!(lines.iter().any(|line| line.get(name).is_some()), "nobody tells {name}");
    }
    for line in &lines {
        assert!(!line.to_string().contains(SECRET), "{line}");
        assert!(!line.to_string().contains("Card"), "{line}");
    }
}

#[test]
fn a_healthy_order_is_counted_once_at_each_place() {
    let metrics = metrics_of(|| {
        let world = World::new();
        world.memory.register_channel("shop-replies");
        world.post_order(secret_order(1));
        world.run();
    });
    assert_counted(
        &metrics,
        &[
            ("orders_submitted", 1),
            ("attempts_claimed", 3),
            ("agent_calls", 3),
            ("agent_call_ms", 3),
            ("agent_done", 3),
            ("step_latency_ms", 3),
            ("orders_processed", 1),
            ("order_latency_ms", 1),
            ("notices_sent", 2),
            ("alerts_sent", 0),
            ("replies_dropped", 0),
            ("commit_conflicts", 0),
            ("records_failed", 0),
        ],
    );
    assert!(metrics.contains_key("breaker_state"));
}

/// The lines of a successful order that is posted at the API. As in a function, each line is in the spans of its
/// invocation and its message.
fn lines_of_a_healthy_order(levels: &str) -> Vec<Value> {
    let id = "0af76519-16cd-43dd-8448-eb211c80319c";
    let lines = lines_of(levels, || {
        let _invocation = tracing::info_span!("invocation", request_id = id).entered();
        let _record = tracing::info_span!("record", message_id = id).entered();
        let world = World::new();
        assert_eq!(world.post_to_api("1", r#"{"Item": "mug"}"#).unwrap().status, 202);
        world.run();
    });
    lines.into_iter().filter(|line| line.get("level").is_some()).collect()
}

#[test]
fn at_info_the_way_of_a_healthy_order_is_eight_lines_and_two_and_a_half_kilobytes() {
    let lines = lines_of_a_healthy_order("info");
    let said: Vec<String> = lines
        .iter()
        .map(|line| match (line["step"].as_str(), line["attempt"].as_u64()) {
            (Some(step), Some(attempt)) => format!("{} {step} {attempt}", line["message"].as_str().unwrap()),
            _ => line["message"].as_str().unwrap().to_owned(),
        })
        .collect();
    let mut expected = vec!["order accepted".to_owned()];
    for step in ["reserve", "charge", "ship"] {
        // One write completes a step and claims the next step.
        expected.extend([format!("step claimed {step} 1"), format!("step done {step} 1")]);
    }
    expected.push("order processed".to_owned());
    assert_eq!(said, expected);
    assert!(lines.iter().all(|line| line["level"] == "INFO" && line["target"] == "orders"), "{lines:#?}");
    let order_ids: std::collections::BTreeSet<_> =
        lines.iter().map(|line| line["order_id"].as_str().unwrap()).collect();
    assert_eq!(order_ids.len(), 1);
    let bytes: usize = lines.iter().map(|line| line.to_string().len() + 1).sum();
    println!("{bytes} bytes for a healthy order");
    assert!((2_200..2_600).contains(&bytes), "the documentation says 2.4 KB: {bytes}");
}

#[test]
fn the_way_of_orders_can_be_left_out_of_the_log() {
    for levels in ["info,orders=warn", "warn"] {
        assert_eq!(lines_of_a_healthy_order(levels), [] as [Value; 0], "{levels}");
    }
}

#[test]
fn what_is_repeated_is_counted_as_that_and_not_as_progress() {
    let metrics = metrics_of(|| {
        let world = World::new();
        let order_id = world.post(1);
        world.post(1);
        world.run();
        world.tell_scheduler(reply(order_id, Outcome::Done(Json::of(&7))));
        command(&world, order_id, Action::Cancel);
        world.tell_scheduler(reply(OrderId::from_idempotency_key("no", "order"), Outcome::Done(Json::of(&7))));
        world.run();
    });
    assert_counted(
        &metrics,
        &[
            ("orders_submitted", 1),
            ("submissions_repeated", 1),
            ("attempts_claimed", 3),
            ("step_latency_ms", 3),
            ("orders_processed", 1),
            ("replies_dropped", 1),
            ("commands_refused", 1),
            ("messages_without_order", 1),
        ],
    );
}

#[test]
fn a_commit_that_is_made_again_after_a_lost_answer_is_not_counted_twice() {
    let metrics = metrics_of(|| {
        let world = World::new();
        world.stored();
        world.ports.next("store.commit", Fault::AnswerLost);
        assert_eq!(world.schedule(), ONE_FAILED);
        world.until_redelivery();
        assert_eq!(world.schedule(), ONE_DONE);
        world.run();
    });
    // The first claim happened, but its answer is lost. No instance counts it.
    assert_counted(&metrics, &[("attempts_claimed", 2), ("orders_processed", 1), ("records_failed", 1)]);
}

#[test]
fn what_expires_is_counted_by_the_supervisor_and_the_order_once_when_it_is_held() {
    let metrics = metrics_of(|| {
        let world = World::new();
        let order_id = world.claimed();
        for _ in 0..3 {
            world.lose_requests("inventory");
            world.memory.advance(EXPIRED_MS);
            assert_eq!((world.supervise().taken, world.supervise().taken), (1, 0));
            world.memory.advance(BACKED_OFF_MS);
            world.schedule();
        }
        assert_eq!(world.state(order_id), ProcessState::Error);
    });
    assert_counted(
        &metrics,
        &[
            ("attempts_claimed", 3),
            ("attempts_expired", 3),
            ("attempts_repended", 2),
            ("steps_exhausted", 1),
            ("orders_held", 1),
            ("alerts_sent", 1),
            ("supervisor_runs", 6),
            ("supervisor_due", 3),
            ("supervisor_taken", 3),
            ("supervisor_failed", 0),
        ],
    );
}

#[test]
fn an_accepted_order_that_could_not_be_stored_is_counted_as_submitted_held_and_a_dead_letter() {
    let metrics = metrics_of(|| {
        let world = World::new();
        world.memory.is_down("store.insert");
        let order_id = world.post(1);
        while world.submit() == ONE_FAILED {
            world.until_redelivery();
        }
        world.memory.is_up("store.insert");
        assert_eq!(world.settle_dead_letters(), ONE_DONE);
        assert_eq!(world.state(order_id), ProcessState::Error);
    });
    let expected = [("orders_submitted", 1), ("orders_held", 1), ("dead_letters", 1), ("alerts_sent", 1)];
    assert_counted(&metrics, &expected);
}

#[test]
fn f58_an_order_is_carried_through_whatever_becomes_of_what_is_told() {
    /// Fails after this number of bytes.
    struct Breaks(usize);
    impl Write for Breaks {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(taken) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    for bytes in [0, 1, 1_000] {
        let settings = Settings { levels: "trace".to_owned(), ..Settings::default() };
        let telemetry = Telemetry::new("tests", settings, || NOON, Breaks(bytes));
        let _listening = trace::listen(telemetry.subscriber());
        let world = World::new();
        world.memory.register_channel("shop-replies");
        world.remote.declines("charge", Direction::Forward);
        let (undone, done) = (world.post_order(secret_order(1)), world.post(2));
        world.run();
        telemetry.flush();
        world.ends(undone, End::Compensated);
        world.ends(done, End::Processed);
    }
}

#[test]
fn a_function_tells_on_stdout_also_that_it_panicked_but_not_with_what() {
    let output = Command::new(env!("CARGO_BIN_EXE_function"))
        .args(["panics", SECRET])
        .env("RUST_LOG", "debug")
        .env("METRICS_NAMESPACE", "Stepwarden/test")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert_eq!(told, ["begun", "panicked: this text is in the source", "panicked: the text is not shown"]);
    assert!(lines.iter().all(|line| line["function"] == "scheduler" || line["Function"] == "scheduler"));
    assert!(lines[1]["location"].as_str().unwrap().contains("bin/function.rs"));
    assert_eq!((&lines[1]["message_id"], &lines[1]["level"]), (&"m-1".into(), &"ERROR".into()));
    let metrics = lines.last().unwrap();
    assert_eq!(metrics["begun"], 1.0);
    assert_eq!(metrics["_aws"]["CloudWatchMetrics"][0]["Namespace"], "Stepwarden/test");
    assert!(!text.contains(SECRET) && !String::from_utf8_lossy(&output.stderr).contains(SECRET));
}
