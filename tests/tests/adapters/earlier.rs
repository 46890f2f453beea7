//! Reads data of an earlier version and continues its open orders. `tests/fixtures` has one folder for each layout.
//!
//! An earlier version wrote the folder `0.1.0`; its history lines were free text. It has orders in every state, jobs,
//! memos, dead letters, and the health of a service. It also has an unhandled accepted order and an unhandled command.
//!
//! The folder `definitions` is of the first version with workflows as records: `shop/1`, and `shop/2` for 30 % of the new
//! orders.
//!
//! The folder `under-way` has a file for each schema of the database. The last program with this schema was killed
//! (`SIGKILL`) in the middle of 17 orders; `tests/fixtures/under_way.py` does it.

#![allow(clippy::disallowed_methods, reason = "a test reads files")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::bulk::Job;
use domain::ports::{DeadLetterOutcome, DeadLetterRecords, Leases, Records, ServiceHealth, Store};
use domain::time::Timestamp;
use embedded::Options;
use futures_util::future::{join, join_all};
use local::serve::RemoteSettings;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use standins::{Effects, Service};
use tests::machine::Machine;

use crate::dynamodb::local::Local;

/// The order in the fixture's submission queue.
const ACCEPTED: &str = "5e1f0c7e-1111-8222-8333-444455556666";
const COMMAND: &str = r#"{"By": "ada", "Reason": "after the upgrade"}"#;

fn fixture(file: &str) -> PathBuf {
    fixtures().join("0.1.0").join(file)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The earlier version's answers about its orders, by their names in the fixture.
fn answers() -> (BTreeMap<String, String>, BTreeMap<String, Value>) {
    let text = fs::read_to_string(fixture("answers.json")).unwrap();
    let mut all: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let mut take = |name| all.remove(name).unwrap();
    (serde_json::from_value(take("ids")).unwrap(), serde_json::from_value(take("views")).unwrap())
}

/// Whether `now` contains all of `before`: additions are allowed, changes are not.
fn says_at_least(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            let is_said = |name: &str, value: &Value, now: &Value| match (name, value, now) {
                // A later version may allow more.
                ("Actions", Value::Array(value), Value::Array(now)) => value.iter().all(|action| now.contains(action)),
                _ => says_at_least(value, now),
            };
            before.iter().all(|(name, value)| now.get(name).is_some_and(|now| is_said(name, value, now)))
        }
        (Value::Array(before), Value::Array(now)) => {
            before.len() == now.len() && before.iter().zip(now).all(|(before, now)| says_at_least(before, now))
        }
        _ => before == now,
    }
}

/// The texts of a history.
fn lines(order: &Value) -> Vec<String> {
    let lines = order["History"].as_array().unwrap().iter();
    lines.map(|line| format!("{} {} {} {}", line["At"], line["Who"], line["What"], line["Why"])).collect()
}

async fn machine() -> Machine {
    machine_on("0.1.0").await
}

async fn machine_on(layout: &str) -> Machine {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(fixtures().join(layout).join("stepwarden.db"), directory.path().join("stepwarden.db")).unwrap();
    Machine::start_on(directory, &RemoteSettings::default()).await
}

#[tokio::test]
async fn a_data_directory_of_an_earlier_version_reads_as_it_was() {
    let (ids, before) = answers();
    let machine = machine().await;
    for name in ["processed", "processed-high", "compensated", "cancelled", "error", "error-resubmitted"] {
        let now = machine.get(&format!("/orders/{}", ids[name])).await.json();
        assert!(says_at_least(&before[name], &now), "{name}: {:#}\n{now:#}", before[name]);
    }
    for (name, id) in &ids {
        let (before, now) = (lines(&before[name]), lines(&machine.get(&format!("/orders/{id}")).await.json()));
        assert!(now.starts_with(&before), "{name}: {before:#?}\n{now:#?}");
    }
    let jobs = machine.get("/bulk").await.json();
    let states: Vec<_> = jobs["Jobs"].as_array().unwrap().iter().map(|job| (&job["State"], &job["Reason"])).collect();
    assert_eq!(states, [(&json!("Planned"), &json!("planned only")), (&json!("Done"), &json!("mended"))]);
    let dead_letters = machine.get("/dead-letters").await.json();
    let oldest = dead_letters["DeadLetters"].as_array().unwrap().last().unwrap();
    assert_eq!((&oldest["MessageID"], &oldest["Fate"]), (&json!("m-1"), &json!("LostWish")));
    machine.stop().await;
}

#[tokio::test]
async fn the_open_orders_of_an_earlier_version_go_on() {
    let (ids, _) = answers();
    let machine = machine().await;
    // The accepted order and the command were on disk, and no handler had received them.
    machine.until(ACCEPTED, |order| order["ProcessState"] == "Processed").await;
    let undone = machine.until(&ids["deferred"], |order| order["ProcessState"] == "Compensated").await;
    assert_eq!(
        (&undone["Reason"]["Code"], &undone["Reason"]["Message"]),
        (&json!("cancelled"), &json!("cancelled by ann: customer called"))
    );
    // Their attempts are days old, past the horizon of a step: an operator decides.
    for (name, reason, end) in
        [("processing", "exhausted", "Processed"), ("compensating", "compensation-failed", "Compensated")]
    {
        let held = machine.until(&ids[name], |order| order["ProcessState"] == "Error").await;
        assert_eq!(held["Reason"]["Code"], reason, "{name}");
        let accepted = machine.ask("POST", &format!("/orders/{}/resubmit", ids[name]), &[], COMMAND).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        machine.until(&ids[name], |order| order["ProcessState"] == end).await;
    }
    let accepted = machine.ask("POST", &format!("/orders/{}/resume", ids["paused"]), &[], COMMAND).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    machine.until(&ids["paused"], |order| order["ProcessState"] == "Processed").await;
    // The unsettled dead letter is now settled.
    let settled = machine.get("/dead-letters").await.json();
    assert_eq!(settled["DeadLetters"][0]["Fate"], "Unreadable", "{settled:#}");
    machine.stop().await;
}

#[tokio::test]
async fn the_first_applied_workflows_are_used_on_and_orders_keep_their_versions() {
    const PAUSED: &str = "b40ad19f-b44b-899a-8885-57ba6bb2210d";
    let machine = machine_on("definitions").await;
    let versions = machine.get("/workflows").await.json();
    let words = |one: &Value| format!("{}/{} {} {}", one["Name"], one["Version"], one["Current"], one["SharePercent"]);
    let versions: Vec<_> = versions["Workflows"].as_array().unwrap().iter().map(words).collect();
    assert_eq!(versions, ["\"order\"/1 true null", "\"shop\"/1 true null", "\"shop\"/2 false 30"]);
    let settings = machine.get("/configuration").await.json()["Settings"].clone();
    let text = |name: &str, text: &Value| json!({"Name": name, "Text": text});
    let second = machine.get("/workflows/shop/2").await.json()["Text"].clone();
    let files = [text("stepwarden.toml", &settings), text("workflows/shop-2.toml", &second)];
    let again = json!({"By": "ada", "Reason": "the same again", "Files": files}).to_string();
    let again = machine.ask("POST", "/configuration", &[], &again).await.json();
    assert_eq!(again["Changes"], json!([]), "{again}");
    let resumed = machine.ask("POST", &format!("/orders/{PAUSED}/resume"), &[], COMMAND).await;
    assert_eq!(resumed.status, 202, "{resumed:?}");
    let done = machine.until(PAUSED, |order| order["ProcessState"] == "Processed").await;
    assert_eq!((&done["WorkflowVersion"], done["Steps"].as_array().unwrap().len()), (&json!(2), 3));
    machine.stop().await;
}

/// The time between the death of the earlier program and the start of this one: what was under way has expired.
const DOWN_MS: u64 = 60_000;

/// The tasks as the earlier program left them.
fn tasks_of(database: &Path) -> Vec<Value> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut tasks = connection.prepare("SELECT body FROM tasks").unwrap();
    let tasks = tasks.query_map([], |row| row.get::<_, String>(0)).unwrap();
    tasks.map(|task| serde_json::from_str(&task.unwrap()).unwrap()).collect()
}

/// A clock that starts some time after the last line of an order's history, and runs on.
fn clock_after(tasks: &[Value]) -> embedded::Now {
    let last_of = |task: &Value| {
        let last = task["History"].as_array().unwrap().last().unwrap();
        serde_json::from_value::<Timestamp>(last["At"].clone()).unwrap()
    };
    let (first, began) = (tasks.iter().map(last_of).max().unwrap().plus_ms(DOWN_MS), Instant::now());
    Arc::new(move || first.plus_ms(u64::try_from(began.elapsed().as_millis()).unwrap()))
}

/// What the services saw of an order since the upgrade: what was finished is not called again, and what was under way has
/// its effect once. Of a declined order nothing is left.
fn was_called_rightly(before: &Value, end: &str, effects: &Effects) {
    let (order_id, state) = (before["OrderID"].as_str().unwrap(), before["ProcessState"].as_str().unwrap());
    let steps = before["Steps"].as_array().unwrap();
    assert_eq!(steps.len(), Service::ALL.len(), "{before:#}");
    for (service, step) in Service::ALL.iter().zip(steps) {
        let key = format!("{order_id}/{}", step["Name"].as_str().unwrap());
        let [forward, undo] = ["", "/undo"].map(|undo| effects[service].of(&format!("{key}{undo}")));
        let is_settled = ["Processed", "Compensated"].contains(&state);
        let is_right = match (step["Direction"].as_str().unwrap(), step["ProcessState"].as_str().unwrap(), end) {
            _ if is_settled => forward.calls + undo.calls == 0,
            ("Undo", "Processed", _) | ("Forward", "Processed", "Processed") => forward.calls + undo.calls == 0,
            ("Undo", _, _) | ("Forward", "Processed", _) => forward.calls == 0 && undo.calls >= 1,
            (_, _, "Processed") => forward.effects == 1 && undo.calls == 0,
            (_, _, _) => forward.effects == undo.effects,
        };
        assert!(is_right, "{key}, which ended {end}: {forward:?} {undo:?} {before:#}");
    }
}

/// The end of an order, by what its stand-ins were told to do.
fn end_of(document: &Value) -> &'static str {
    let is_declined = document["StandIn"].as_object().unwrap().values().any(|step| step.get("Decline").is_some());
    if is_declined { "Compensated" } else { "Processed" }
}

/// Returns the newest schema.
async fn ends_under_load(schema: usize) -> usize {
    const LOAD: usize = 30;
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("stepwarden.db");
    fs::copy(fixtures().join(format!("under-way/schema-{schema}.db")), &database).unwrap();
    let left = tasks_of(&database);
    let options = Options { now: Some(clock_after(&left)), ..Options::default() };
    let machine = Machine::start_as(directory, &RemoteSettings::default(), options).await;
    let listed = machine.get("/orders?limit=100").await.json()["Orders"].clone();
    let before = listed.as_array().unwrap();
    assert_eq!(before.len(), 17, "schema {schema}");
    let open =
        before.iter().filter(|order| !["Processed", "Compensated"].contains(&order["ProcessState"].as_str().unwrap()));
    assert!(open.count() >= 5, "schema {schema}: {listed:#}");
    let load = join_all((0..LOAD).map(|_| machine.settled(r#"{"Item": "mug"}"#)));
    let ends = join_all(before.iter().map(|order| async {
        let id = order["OrderID"].as_str().unwrap();
        let document = machine.get(&format!("/orders/{id}/document")).await.json()["Document"].clone();
        let end = end_of(&document);
        machine.until(id, |order| order["ProcessState"] == end).await
    }));
    let (load, ends) = join(load, ends).await;
    assert!(load.iter().all(|(_, answer)| answer.json()["ProcessState"] == "Processed"));
    let effects = machine.effects();
    for task in &left {
        let end = ends.iter().find(|order| order["OrderID"] == task["OrderID"]).unwrap();
        was_called_rightly(task, end["ProcessState"].as_str().unwrap(), &effects);
    }
    assert!(effects.values().flat_map(|service| service.keys.values()).all(|key| key.effects <= 1), "{effects:?}");
    let newest = machine.database().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    machine.stop().await;
    newest
}

#[tokio::test]
async fn orders_under_way_of_each_schema_end_under_load() {
    let files = fs::read_dir(fixtures().join("under-way")).unwrap().count();
    // One after the other: an attempt has a time, and the host may be slow.
    for schema in 1..=files {
        assert_eq!(ends_under_load(schema).await, files, "one file for each schema");
    }
}

fn attribute(value: &Value) -> AttributeValue {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match (kind.as_str(), value) {
        ("S", Value::String(text)) => AttributeValue::S(text.clone()),
        ("N", Value::String(text)) => AttributeValue::N(text.clone()),
        ("BOOL", Value::Bool(flag)) => AttributeValue::Bool(*flag),
        ("B", Value::String(text)) => AttributeValue::B(Blob::new(hex::decode(text).unwrap())),
        ("NULL", Value::Bool(flag)) => AttributeValue::Null(*flag),
        ("L", Value::Array(items)) => AttributeValue::L(items.iter().map(attribute).collect()),
        ("M", Value::Object(members)) => {
            AttributeValue::M(members.iter().map(|(name, value)| (name.clone(), attribute(value))).collect())
        }
        _ => panic!("{kind} {value}"),
    }
}

#[tokio::test]
async fn items_of_an_earlier_version_are_read_by_the_functions() {
    let local = Local::start().await;
    let text = fs::read_to_string(fixture("dynamodb.json")).unwrap();
    let tables: BTreeMap<String, Vec<BTreeMap<String, Value>>> = serde_json::from_str(&text).unwrap();
    for (variable, items) in &tables {
        for item in items {
            let put = local.client().put_item().table_name(local.tables.name(variable).unwrap());
            let item = item.iter().map(|(name, value)| (name.clone(), attribute(value))).collect();
            put.set_item(Some(item)).send().await.unwrap();
        }
    }
    let (ids, before) = answers();
    let ports = local.ports(local.config());
    for (name, id) in &ids {
        let order_id = id.parse().unwrap();
        let order = ports.order(order_id).await.unwrap().unwrap();
        assert_eq!(order.order_id, order_id);
        let task = serde_json::to_value(&*ports.task(order_id).await.unwrap().unwrap()).unwrap();
        assert_eq!(
            (&task["ProcessState"], &task["Version"]),
            (&before[name]["ProcessState"], &before[name]["Version"])
        );
        let words = |order: &Value| {
            let lines = order["History"].as_array().unwrap().iter();
            lines.map(|line| (line["Who"].clone(), line["What"].clone(), line["Why"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(words(&task), words(&before[name]), "{name}");
    }
    let jobs = Records::list::<Job>(&ports, 10).await.unwrap();
    assert_eq!(jobs.iter().map(|job| &*job.spec.reason).collect::<Vec<_>>(), ["planned only", "mended"]);
    assert_eq!(ports.get::<ServiceHealth>("inventory").await.unwrap().unwrap().failures_in_a_row, 13);
    let dead_letters = ports.newest(10).await.unwrap();
    assert_eq!(dead_letters.iter().map(|record| record.outcome).collect::<Vec<_>>(), [DeadLetterOutcome::LostCommand]);
    let leases = ports.all_leases().await.unwrap();
    assert_eq!(leases.iter().map(|lease| (&*lease.name, lease.epoch)).collect::<Vec<_>>(), [("shard-00", 1)]);
}
