//! What `stepwarden serve` writes on stderr.

#![allow(clippy::disallowed_methods, reason = "a test")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use local::client::Client;
use serde_json::Value;

/// A served instance, killed at the end of the test if it still runs.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines of the log while an order is settled.
async fn logged(data: &Path, levels: Option<&str>, options: &[&str], order: &str) -> Vec<String> {
    let log = data.join("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepwarden"));
    command.args(["serve", "--port", "0", "--data", data.join("data").to_str().unwrap()]).env_remove("RUST_LOG");
    command.args(options).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
    command.envs(levels.map(|levels| ("RUST_LOG", levels)));
    let mut served = Served(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(served.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.strip_prefix("stepwarden: listening on ").unwrap().split(',').next().unwrap().to_owned();
    let answer =
        Client::new().post(&format!("{url}/orders"), &[("prefer", "wait=20")], order.to_owned()).await.unwrap();
    assert_eq!(answer.status, 200);
    let id = served.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(served.0.wait().unwrap().success());
    std::fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_of_an_order_is_told_to_whoever_asks_for_it_and_to_nobody_else() {
    let data = tempfile::tempdir().unwrap();
    let usual = logged(data.path(), None, &[], "{}").await;
    assert!(!usual.iter().any(|line| line.contains("order_id")), "{usual:#?}");
    let asked = logged(data.path(), Some("warn,orders=info"), &[], "{}").await;
    for words in ["order accepted", "step claimed", "step done", "order processed"] {
        let count = asked.iter().filter(|line| line.contains(words) && line.contains("order_id")).count();
        assert_eq!(count, if words.starts_with("step") { 3 } else { 1 }, "{words}: {asked:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_of_a_log_as_json_is_an_object_and_so_is_an_alert() {
    const HELD: &str = r#"{"StandIn": {"payment": {"Decline": "declined"}, "inventory": {"Undo": {"Decline": "no"}}}}"#;
    let data = tempfile::tempdir().unwrap();
    let lines = logged(data.path(), Some("warn,orders=info"), &["--log-format", "json"], HELD).await;
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect(line)).collect();
    for line in &lines {
        assert!(["timestamp", "level", "target", "fields"].iter().all(|name| line.get(name).is_some()), "{line}");
    }
    let of = |target: &str| lines.iter().filter(|line| line["target"] == *target).collect::<Vec<_>>();
    assert!(of("orders").iter().any(|line| line["fields"]["message"] == "order accepted"), "{lines:#?}");
    let [alert] = of("alerts")[..] else { panic!("{lines:#?}") };
    assert!(alert["fields"]["message"].as_str().unwrap().starts_with("ALERT order "), "{alert}");
    assert_eq!(alert["fields"]["event"]["type"], "OrderNeedsOperator");
}
