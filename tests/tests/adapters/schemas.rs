//! Each schema of the database: its orders under way are continued.
//!
//! The folder `under-way` has a file for each. The last program with this schema was killed (`SIGKILL`) in the middle of
//! 17 orders; `tests/fixtures/under_way.py` does it.

#![allow(clippy::disallowed_methods, reason = "a test reads files")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use domain::task::Task;
use embedded::Options;
use futures_util::future::{join, join_all};
use local::serve::RemoteSettings;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use standins::{Effects, Service};
use tests::machine::Machine;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/under-way")
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
    let last_of = |task: &Value| serde_json::from_value::<Task>(task.clone()).unwrap().history.last().unwrap().at;
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
    fs::copy(fixtures().join(format!("schema-{schema}.db")), &database).unwrap();
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
    let files = fs::read_dir(fixtures()).unwrap().count();
    // One after the other: an attempt has a time, and the host may be slow.
    for schema in 1..=files {
        assert_eq!(ends_under_load(schema).await, files, "one file for each schema");
    }
}
