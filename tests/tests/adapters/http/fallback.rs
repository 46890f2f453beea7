//! A step goes to another agent while its service is failing.

use local::serve::RemoteSettings;
use serde_json::{Value, json};
use standins::Service;
use tests::machine::Machine;

/// Payment has a fallback, and no probe in the time of a test.
const AGENTS: &str = r#"
[agents.payment]
memo = true
fallback = ["inventory"]
breaker = { failures = 2, first_wait = "1m", longest_wait = "1m" }
"#;

/// Forward effects and undos for the payment of an order, at the two services.
fn payments(machine: &Machine, order: &Value) -> [(u64, u64); 2] {
    let key = format!("{}/charge-payment", order["OrderID"].as_str().unwrap());
    let effects = machine.effects();
    [Service::Payment, Service::Inventory].map(|service| {
        let of = |undo| effects[&service].of(&format!("{key}{undo}")).effects;
        (of(""), of("/undo"))
    })
}

async fn is_open(machine: &Machine) -> bool {
    let services = machine.get("/services").await.json();
    let mut services = services["Services"].as_array().unwrap().iter();
    services.any(|service| service["Service"] == "payment" && service["State"] == "Open")
}

#[tokio::test]
async fn f30_orders_go_on_at_another_service_and_one_that_was_called_for_waits() {
    let file = ("stepwarden.toml".to_owned(), AGENTS.into());
    let machine = Machine::start_with(&RemoteSettings { file: Some(file), ..RemoteSettings::default() }).await;
    machine.stand_ins().services().set_unauthorised(Service::Payment, true);
    // The first one that fails could be the only one. Two show that it is the service.
    let called = machine.post(&[], "{}").await.text_of("OrderID");
    while !is_open(&machine).await {
        tokio::task::yield_now().await;
    }
    let second = machine.post(&[], "{}").await.text_of("OrderID");
    machine.until(&second, |order| order["Steps"][1]["NotBefore"].is_string()).await;
    for (document, end, expected) in [
        ("{}", "Processed", [(0, 0), (1, 0)]),
        (r#"{"StandIn": {"shipping": {"Decline": "no_such_street"}}}"#, "Compensated", [(0, 0), (1, 1)]),
    ] {
        let order = machine.settled(document).await.1.json();
        assert_eq!(order["ProcessState"], end, "{order:#}");
        assert_eq!((&order["Steps"][1]["Agent"], &order["Steps"][1]["FailureCount"]), (&json!("inventory"), &json!(0)));
        let why = "payment is failing, inventory is asked instead";
        assert!(order["History"].as_array().unwrap().iter().any(|line| line["Why"] == why), "{order:#}");
        assert_eq!(payments(&machine, &order), expected, "{order:#}");
    }
    let waits = machine.until(&called, |order| order["Steps"][1]["Attempt"] == 1).await;
    assert_eq!((&waits["ProcessState"], &waits["Steps"][1]["Agent"]), (&json!("Processing"), &json!("payment")));
    assert_eq!(payments(&machine, &waits), [(0, 0), (0, 0)]);
}
