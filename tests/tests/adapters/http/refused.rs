//! A service that refuses or rejects everything for a while, and the orders that wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use domain::time::Timestamp;
use embedded::{Options, system_time};
use futures_util::future::join_all;
use local::serve::RemoteSettings;
use serde_json::{Value, json};
use tests::machine::Machine;

use super::repairable::Repairable;

const COMMAND: &str = r#"{"By": "ada", "Reason": "the shop is closed"}"#;
const ORDERS: usize = 40;

/// Posts orders, and does not wait for them.
async fn posted(machine: &Machine) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..ORDERS {
        let answer = machine.post(&[], r#"{"Item": "mug"}"#).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        ids.push(answer.text_of("OrderID"));
    }
    ids
}

async fn payment(machine: &Machine) -> Value {
    let services = machine.get("/services").await.json();
    let services = services["Services"].as_array().unwrap().clone();
    services.into_iter().find(|service| service["Service"] == "payment").unwrap()
}

/// Waits until requests of payment wait for this reason.
async fn until_it_waits(machine: &Machine, order_id: &str, reason: &str) -> Value {
    for _ in 0..1_000 {
        let service = payment(machine).await;
        if service["Reason"] == reason {
            return service;
        }
        machine.until(order_id, |order| order["Version"].is_u64()).await;
    }
    panic!("it does not wait: {:#}", payment(machine).await);
}

fn alerts(machine: &Machine, kind: &str) -> Vec<String> {
    let database = machine.database();
    let mut events = database.prepare("SELECT body FROM events WHERE body LIKE ?1").unwrap();
    let bodies = events.query_map([format!("%\"type\":\"{kind}\"%")], |row| row.get(0)).unwrap();
    bodies.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn f64_no_order_is_undone_for_a_service_that_refuses_every_call_and_one_alert_says_so() {
    let remote = Repairable::answering(401).await;
    let machine = Machine::start_with(&remote.as_payment()).await;
    let ids = posted(&machine).await;
    let service = until_it_waits(&machine, &ids[0], "misconfigured").await;
    assert_eq!(service["Problem"], "HTTP 401 Unauthorized", "{service:#}");
    assert!(service["ToDo"].as_str().unwrap().starts_with("Mend "), "{service:#}");
    remote.mend();
    for id in &ids {
        let order = machine.until(id, |order| order["ProcessState"] == "Processed").await;
        assert!(!order["History"].to_string().contains("Undo"), "{order:#}");
    }
    assert!(remote.calls().iter().all(|(path, _)| path == "/charge"));
    let alerts = alerts(&machine, "ServiceMisconfigured");
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(alerts[0].contains("\"subject\":\"payment\""), "{alerts:?}");
    assert_eq!(payment(&machine).await.get("Reason"), None);
}

#[tokio::test]
async fn f65_orders_wait_for_a_service_that_rejects_everything_until_an_operator_says_that_it_is_right() {
    let remote = Repairable::answering(422).await;
    remote.refunds();
    let machine = Machine::start_with(&remote.as_payment()).await;
    let ids = posted(&machine).await;
    until_it_waits(&machine, &ids[0], "rejections").await;
    let compensating = |order: &Value| order["Reason"]["Code"] == "rejected";
    let mut undone = 0;
    for id in &ids {
        undone += usize::from(compensating(&machine.get(&format!("/orders/{id}")).await.json()));
    }
    // A few rejections arrive while the twentieth is being written.
    assert!(undone <= 25, "{undone} orders were turned round");
    let accept = async || machine.ask("POST", "/services/payment/accept-rejections", &[], COMMAND).await;
    assert_eq!(accept().await.json()["RejectionsAccepted"]["By"], json!("ada"));
    assert_eq!(accept().await.status, 200, "twice is once");
    for id in &ids {
        // The undo of a step that was asked for twice waits for its calls under way.
        machine.until(id, compensating).await;
    }
    assert_eq!(alerts(&machine, "ServiceRejecting").len(), 1);
}

/// A breaker that opens soon, and is probed each second.
const SENSITIVE: &str = r#"
[agents.payment]
breaker = { failures = 2, first_wait = "1s", longest_wait = "1s" }

[agents.inventory]

[agents.shipping]
"#;

/// The clock of the machine jumps while the breaker is open. All orders end within the patience of `until`.
async fn all_end_after_a_jump_of(jump_ms: i64) {
    let jumped_ms = Arc::new(AtomicI64::new(0));
    let clock = jumped_ms.clone();
    let now = move || Timestamp::from_epoch_ms(system_time().epoch_ms() + clock.load(Ordering::Relaxed));
    let options = Options { now: Some(Arc::new(now)), ..Options::default() };
    let remote = Repairable::answering(401).await;
    let file = ("stepwarden.toml".to_owned(), SENSITIVE.into());
    let services = RemoteSettings { file: Some(file), ..remote.as_payment() };
    let machine = Machine::start_as(tempfile::tempdir().unwrap(), &services, options).await;
    let ids = posted(&machine).await;
    until_it_waits(&machine, &ids[0], "misconfigured").await;
    jumped_ms.store(jump_ms, Ordering::Relaxed);
    remote.mend();
    join_all(ids.iter().map(|id| machine.until(id, |order| order["ProcessState"] == "Processed"))).await;
    machine.stop().await;
}

#[tokio::test]
async fn f69_all_orders_end_within_20_s_when_the_clock_is_set_back_by_an_hour_while_a_breaker_is_open() {
    all_end_after_a_jump_of(-3_600_000).await;
}

#[tokio::test]
async fn f71_all_orders_end_within_20_s_when_the_clock_jumps_ahead_by_an_hour_while_a_breaker_is_open() {
    all_end_after_a_jump_of(3_600_000).await;
}
