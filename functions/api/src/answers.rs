//! Every answer, byte for byte, so that no change of a shape goes unnoticed.

use std::fmt::Write as _;

use domain::bulk::JobState;
use domain::definition::Catalogue;
use domain::json::Json;
use domain::lease::Lease;
use domain::message::Priority;
use domain::ports::{DeadLetterOutcome, DeadLetterRecord, Environment, SourceQueue};
use domain::task::{Direction, ProcessState, Reason, StepError, StepState, Taken, Task};
use domain::time::Timestamp;
use domain::workflow::Workflows;

use crate::ApiConfig;
use crate::testing::{CHANNEL, Fake, ORDER, pause, task_in};

/// The expected answers. An addition to a shape is added here, too; no other change is allowed.
const ANSWERS: &str = include_str!("answers.txt");
const OPERATOR: &str = r#"{"By":"ada","Reason":"payment is back"}"#;

/// A task with every attribute.
fn full() -> Task {
    let mut task = task_in("full", ProcessState::Error);
    let at = Timestamp::from_epoch_ms(1_795_195_603_007);
    let reason = |code: &str, step: Option<&str>, earlier| Reason {
        code: code.into(),
        message: "in \"words\"".into(),
        step: step.map(Into::into),
        since_version: 5,
        earlier,
    };
    let rejected = reason("rejected", Some("ship-order"), None);
    task.reason = Some(reason("compensation-failed", Some("charge-payment"), Some(Box::new(rejected))));
    (task.priority, task.paused) = (Priority::High, Some(pause()));
    task.taken = Some(Taken { by: "ada".into(), since: at });
    task.history[0].why = Some("a reason".into());
    let step = &mut task.steps[0];
    (step.process_state, step.direction) = (StepState::Error, Direction::Undo);
    (step.locked_by, step.complete_by) = (Some("scheduler-1".into()), Some(at));
    (step.attempt, step.failure_count) = (4, 3);
    (step.not_before, step.started_at, step.finished_at) = (Some(at), Some(at), Some(at));
    step.doubted_at = Some(at);
    step.output = Some(Json::parse(b"{\"Total\": 1.10, \"Iban\": \"DE02\"}", 99).unwrap());
    step.last_error = Some(StepError { code: "expired".into(), message: "late".into(), attempt: 4, at });
    task.steps[1].output = Some(Json::parse(b"null", 99).unwrap());
    task
}

fn dead_letter(message_id: &str) -> DeadLetterRecord {
    DeadLetterRecord {
        message_id: message_id.into(),
        queue: Some(SourceQueue::Scheduler),
        order_id: Some(full().order_id),
        receive_count: 5,
        at: Timestamp::from_epoch_ms(1_000),
        settled_at: Timestamp::from_epoch_ms(2_000),
        outcome: DeadLetterOutcome::Stale,
        message: "in words".into(),
        body: None,
    }
}

/// Two orders, a failing service, leases, and dead letters.
fn system() -> Fake {
    let fake = Fake::default();
    let config = ApiConfig::new([CHANNEL]).with_services(["inventory", "payment"]).redacting(["iban"]);
    fake.config(config.with_catalogue(&Catalogue::new(Workflows::shipped().unwrap())));
    fake.stores(task_in("well", ProcessState::Processed));
    fake.stores_with(full(), |order| {
        order.correlation_id = Some("cart-7".into());
        order.reply_channel = Some(CHANNEL.into());
        order.priority = Some(Priority::High);
    });
    let now = fake.ports.now();
    let held = Lease {
        name: "supervisor/00".into(),
        owner: "supervisor-1".into(),
        epoch: 7,
        version: 9,
        held_until: Some(now.plus_ms(1)),
        renewed_at: now,
        health: Some("swept 3, took 1".into()),
    };
    let free = Lease { name: "bulk".into(), held_until: None, health: None, ..held.clone() };
    [free, held].iter().for_each(|lease| fake.stores_record(lease));
    let (queue, body) = (Some(SourceQueue::Agent("payment".into())), Some("{\"Card\":\"4111\"".into()));
    fake.stores_record(&DeadLetterRecord {
        queue,
        body,
        order_id: None,
        outcome: DeadLetterOutcome::Unreadable,
        ..dead_letter("m-1")
    });
    fake.stores_record(&dead_letter("m-2"));
    fake
}

fn all() -> String {
    let (fake, mut text) = (system(), String::new());
    let mut ask = |fake: &Fake, method: &str, path: &str, headers: &[(&str, &str)], body: &str| {
        let answer = fake.call(method, path, headers, body);
        writeln!(text, "{method} {path} {}\n{}\n", answer.status, answer.text).unwrap();
    };
    let id = full().order_id;
    let other = task_in("well", ProcessState::Processed).order_id;
    for path in [
        "/health",
        "/services",
        "/leases",
        "/workflows",
        "/dead-letters",
        "/dead-letters?limit=1",
        "/overview",
        "/orders",
        "/orders?limit=1",
        "/orders?reason=rejected",
        "/orders?state=none",
        "/bulk",
        "/bulk/none",
        "/nowhere",
        &format!("/orders/{id}"),
        &format!("/orders/{other}"),
        &format!("/orders/{id}/document"),
        &format!("/orders/{other}/document"),
    ] {
        ask(&fake, "GET", path, &[], "");
    }
    let key = [("Idempotency-Key", "k1")];
    ask(&fake, "POST", "/orders", &key, ORDER);
    ask(&fake, "POST", "/orders", &[("Idempotency-Key", "well"), ("Prefer", "wait=1")], ORDER);
    ask(&fake, "POST", "/orders", &key, "[]");
    for action in ["resubmit", "cancel", "pause", "resume", "close"] {
        ask(&fake, "POST", &format!("/orders/{id}/{action}"), &[], OPERATOR);
        ask(&fake, "POST", &format!("/orders/{other}/{action}"), &[], OPERATOR);
    }
    ask(&fake, "POST", &format!("/orders/{id}/cancel"), &[], r#"{"By":"ada","Why":"x"}"#);
    let settle = r#"{"Step":"reserve-inventory","Outcome":"Undone","By":"ada","Reason":"at the bank"}"#;
    ask(&fake, "POST", &format!("/orders/{id}/settle"), &[], settle);
    ask(&fake, "POST", &format!("/orders/{other}/settle"), &[], settle);
    ask(&fake, "POST", &format!("/orders/{id}/note"), &[], r#"{"By":"ada","Reason":"asked the bank","Take":true}"#);
    ask(&fake, "POST", &format!("/orders/{other}/note"), &[], OPERATOR);
    let plan = r#"{"By":"ada","Reason":"back","Selector":{"ReasonCode":"rejected","Step":"a"},"Canary":3}"#;
    ask(&fake, "POST", "/bulk", &[], plan);
    let path = format!("/bulk/{}", fake.the_job().id);
    ask(&fake, "POST", &format!("{path}/start"), &[], OPERATOR);
    let mut job = fake.the_job();
    (job.tally.begun, job.tally.late, job.version) = (2, 1, 9);
    job.state = JobState::Stopped("2 of 2 failed again".into());
    fake.stores_job(&job);
    ask(&fake, "GET", &path, &[], "");
    ask(&fake, "GET", "/bulk", &[], "");
    ask(&fake, "POST", &format!("{path}/start"), &[], OPERATOR);
    text
}

#[test]
fn every_answer_is_byte_for_byte_as_it_was() {
    let answers = all();
    for (answered, expected) in answers.lines().zip(ANSWERS.lines()) {
        assert_eq!(answered, expected);
    }
    assert_eq!(answers.lines().count(), ANSWERS.lines().count());
}
