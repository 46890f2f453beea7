//! Services that are at work after the caller left, answer later, or do not know the caller.

#![expect(clippy::disallowed_methods, reason = "a test waits for a service")]

use std::time::Duration;

use futures_util::future::join_all;
use local::serve::RemoteSettings;
use serde_json::json;
use standins::{Effects, Service};
use tests::machine::Machine;

const CALL_TIMEOUT_MS: u64 = 100;
/// Above each time at work, and below the patience of a test.
const SETTLES_WITHIN_MS: u64 = 1_500;
const COMMAND: &str = r#"{"By": "ada", "Reason": "changed their mind"}"#;
const STEPS: [(Service, &str); 3] = [
    (Service::Inventory, "reserve-inventory"),
    (Service::Payment, "charge-payment"),
    (Service::Shipping, "ship-order"),
];

/// A machine whose payment agent soon gives a call up.
async fn impatient() -> Machine {
    let times = format!("call_timeout = \"{CALL_TIMEOUT_MS}ms\"\nsettles_within = \"{SETTLES_WITHIN_MS}ms\"\n");
    let file = ("stepwarden.toml".to_owned(), format!("[agents.payment]\n{times}").into());
    Machine::start_with(&RemoteSettings { file: Some(file), ..RemoteSettings::default() }).await
}

/// The effects that remain of an order at each service: those carried out and not taken back.
fn books(effects: &Effects, order: &serde_json::Value) -> [u64; 3] {
    let order_id = order["OrderID"].as_str().unwrap();
    STEPS.map(|(service, step)| {
        let of = |undo| effects[&service].of(&format!("{order_id}/{step}{undo}")).effects;
        of("") - of("/undo")
    })
}

#[tokio::test]
async fn f62_f63_a_charge_after_the_caller_left_is_the_orders_or_taken_back() {
    let machine = impatient().await;
    let payments = [r#"{"BusyMs": 150}"#, r#"{"BusyMs": 300}"#, r#"{"BusyMs": 900}"#, r#"{"PendingMs": 300}"#];
    let ends = [("{}", "Processed", [1, 1, 1]), (r#"{"Decline": "no_such_street"}"#, "Compensated", [0, 0, 0])];
    let mut orders = Vec::new();
    // Few at once, so that their time-outs do not open the breaker.
    for payment in payments {
        orders.extend(
            join_all(ends.map(async |(shipping, end, expected)| {
                let document = format!(r#"{{"StandIn": {{"payment": {payment}, "shipping": {shipping}}}}}"#);
                let order = machine.settled(&document).await.1.json();
                assert_eq!(order["ProcessState"], end, "{order:#}");
                assert!(order["Steps"].as_array().unwrap().iter().all(|step| step["FailureCount"] == 0), "{order:#}");
                (order, expected)
            }))
            .await,
        );
    }
    tokio::time::sleep(Duration::from_millis(SETTLES_WITHIN_MS)).await;
    let effects = machine.effects();
    for (order, expected) in &orders {
        assert_eq!(books(&effects, order), *expected, "{order:#}");
    }
    let charges = effects[&Service::Payment].keys.iter().filter(|(key, _)| !key.ends_with("/undo"));
    assert!(charges.clone().all(|(_, charge)| charge.effects == 1) && charges.count() == orders.len());
}

#[tokio::test]
async fn f61_a_cancelled_order_is_not_undone_while_a_service_may_be_at_work_on_it() {
    let machine = impatient().await;
    let order_id = machine.post(&[], r#"{"StandIn": {"payment": {"BusyMs": 400}}}"#).await.text_of("OrderID");
    let payment = |undo| machine.effects()[&Service::Payment].of(&format!("{order_id}/charge-payment{undo}"));
    while payment("").calls == 0 {
        tokio::task::yield_now().await;
    }
    machine.ask("POST", &format!("/orders/{order_id}/cancel"), &[], COMMAND).await;
    let is_charged = |order: &serde_json::Value| order["ProcessState"] != "Processing" && payment("").effects == 1;
    let order = machine.until(&order_id, is_charged).await;
    assert_eq!((&order["ProcessState"], payment("/undo").calls), (&json!("Compensating"), 0), "{order:#}");
    assert!(order["Steps"][1]["MayRunUntil"].is_string(), "{order:#}");
}

#[tokio::test]
async fn f63_an_order_goes_on_when_the_result_of_a_202_is_there() {
    let machine = impatient().await;
    let answer = machine.post(&[], r#"{"StandIn": {"payment": {"PendingMs": 500}}}"#).await;
    let order_id = answer.text_of("OrderID");
    let order = machine.until(&order_id, |order| {
        let effects = machine.effects();
        assert!(effects[&Service::Payment].effects == 1 || effects[&Service::Shipping].calls == 0, "{order:#}");
        order["ProcessState"] == "Processed"
    });
    let order = order.await;
    assert_eq!(order["Steps"][1]["Output"]["Status"], "captured", "{order:#}");
    assert_eq!((&order["Steps"][1]["Attempt"], books(&machine.effects(), &order)), (&json!(1), [1, 1, 1]));
}

#[tokio::test]
async fn f64_a_service_that_does_not_know_the_caller_compensates_no_order() {
    let machine = impatient().await;
    machine.stand_ins().services().set_unauthorised(Service::Payment, true);
    let posts = (0..10).map(|_| machine.post(&[("prefer", "wait=1")], r#"{"Item": "mug"}"#));
    let accepted = join_all(posts).await;
    assert!(accepted.iter().all(|answer| answer.text_of("ProcessState") == "Processing"), "{accepted:?}");
    machine.stand_ins().services().set_unauthorised(Service::Payment, false);
    for answer in accepted {
        let order = machine.until(&answer.text_of("OrderID"), |order| order["ProcessState"] == "Processed").await;
        assert_eq!(books(&machine.effects(), &order), [1, 1, 1]);
        assert!(order["Steps"].as_array().unwrap().iter().all(|step| step["FailureCount"] == 0), "{order:#}");
    }
    assert_eq!(machine.effects()[&Service::Payment].effects, 10);
}
