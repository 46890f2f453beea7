//! An operator's commands over HTTP, and their outcomes.

use serde_json::{Value, json};
use standins::Service;
use tests::machine::Machine;

use super::repairable::Repairable;

const COMMAND: &str = r#"{"By": "ada", "Reason": "the bank is back"}"#;

fn history(task: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let lines = task["History"].as_array().unwrap().iter();
    lines.map(|line| (line["Who"].as_str().unwrap(), line["What"].as_str().unwrap(), line["Why"].as_str())).collect()
}

#[tokio::test]
async fn an_order_whose_undo_fails_is_held_with_an_alert_and_goes_on_when_it_is_resubmitted() {
    let payment = Repairable::start().await;
    let machine = Machine::start_with(&payment.as_payment()).await;
    let (order_id, answer) = machine.settled(r#"{"Item": "mug"}"#).await;
    let held = answer.json();
    assert_eq!((&held["ProcessState"], &held["Reason"]["Code"]), (&json!("Error"), &json!("compensation-failed")));
    assert_eq!(held["Reason"]["Earlier"]["Code"], "rejected");
    let listed = machine.get("/orders?state=Error").await.json();
    assert_eq!(listed["Orders"][0]["OrderID"], order_id);
    // The alert follows the committed state, so it may come shortly after the answer.
    machine.trace().await;
    let alert: String = machine
        .database()
        .query_row("SELECT body FROM events WHERE body LIKE '%OrderNeedsOperator%'", [], |row| row.get(0))
        .unwrap();
    assert!(alert.contains(&order_id), "{alert}");

    payment.mend();
    let accepted = machine.ask("POST", &format!("/orders/{order_id}/resubmit"), &[], COMMAND).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let task = machine.until(&order_id, |order| order["ProcessState"] == "Compensated").await;
    assert_eq!(task["Reason"]["Code"], "rejected", "it was undone for what went wrong first");
    assert!(history(&task).contains(&("ada", "resubmitted", Some("the bank is back"))), "{task:#}");
    let paths: Vec<String> = payment.calls().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/charge", "/refund", "/refund"]);
    assert_eq!(machine.effects()[&Service::Inventory].of(&format!("{order_id}/reserve-inventory/undo")).effects, 1);
    assert_eq!(machine.effects()[&Service::Shipping].calls, 0);
}

#[tokio::test]
async fn an_order_that_cannot_be_mended_comes_back_to_the_operator_and_can_be_cancelled() {
    let machine = Machine::start().await;
    let declined = r#"{"StandIn": {"payment": {"Decline": "no", "Undo": {"Decline": "never"}}}}"#;
    let (order_id, first) = machine.settled(declined).await;
    for (action, what) in [("resubmit", "resubmitted"), ("cancel", "cancelled")] {
        let accepted = machine.ask("POST", &format!("/orders/{order_id}/{action}"), &[], COMMAND).await;
        assert_eq!((accepted.status, accepted.text_of("ProcessState").as_str()), (202, "Error"), "{accepted:?}");
        // Its version alone is not enough: a sent alert also makes a new version.
        let is_told = |order: &Value| history(order).iter().any(|&(who, did, _)| (who, did) == ("ada", what));
        let is_back = |order: &Value| order["ProcessState"] == "Error" && is_told(order);
        let after = machine.until(&order_id, is_back).await;
        assert_eq!(after["Reason"]["Code"], "compensation-failed");
    }
    assert_eq!(first.text_of("ProcessState"), "Error");
    let undone = machine.effects()[&Service::Payment].of(&format!("{order_id}/charge-payment/undo"));
    assert_eq!((undone.effects, undone.calls), (0, 3));
}

#[tokio::test]
async fn an_order_under_way_that_is_cancelled_starts_nothing_more_and_turns_round() {
    let machine = Machine::start().await;
    let slow = r#"{"StandIn": {"payment": {"SlowMs": 60000}}}"#;
    let order_id = machine.post(&[], slow).await.text_of("OrderID");
    machine.until(&order_id, |order| order["Steps"][1]["ProcessState"] == "Processing").await;
    let path = format!("/orders/{order_id}/cancel");
    let accepted = machine.ask("POST", &path, &[], COMMAND).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let task = machine.until(&order_id, |order| order["ProcessState"] == "Compensating").await;
    assert_eq!(task["Reason"]["Code"], "cancelled");
    assert!(history(&task).contains(&("ada", "cancelled", Some("the bank is back"))), "{task:#}");
    // The undo waits until an attempt that may still run is certainly over. A step that never began needs no undo.
    let steps = &task["Steps"];
    assert_eq!((&steps[1]["Direction"], &steps[1]["ProcessState"]), (&json!("Undo"), &json!("Pending")));
    assert!(steps[1]["NotBefore"].is_string(), "{task:#}");
    assert_eq!((&steps[2]["Direction"], &steps[2]["Attempt"]), (&json!("Forward"), &json!(0)));
    for action in ["cancel", "resubmit"] {
        let refused = machine.ask("POST", &format!("/orders/{order_id}/{action}"), &[], COMMAND).await;
        assert_eq!((refused.status, refused.text_of("ProcessState").as_str()), (409, "Compensating"));
    }
    assert_eq!(machine.effects()[&Service::Shipping].calls, 0);
}
