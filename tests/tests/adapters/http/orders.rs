//! Posting, reading and listing orders.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};
use standins::Service;
use tests::machine::Machine;

use super::repairable::{RECEIPT, Repairable};

const ORDER: &str = r#"{"Item": "mug", "Total": 12.50}"#;
const STEPS: [(Service, &str); 3] = [
    (Service::Inventory, "reserve-inventory"),
    (Service::Payment, "charge-payment"),
    (Service::Shipping, "ship-order"),
];

fn ids_of(page: &Value) -> Vec<String> {
    page["Orders"].as_array().unwrap().iter().map(|order| order["OrderID"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_order_is_accepted_with_its_place_and_never_not_found_afterwards() {
    let machine = Machine::start().await;
    // Sequential posts meet an idle machine, concurrent posts a busy one.
    for _ in 0..20 {
        is_accepted_and_found(&machine).await;
    }
    join_all((0..50).map(|_| is_accepted_and_found(&machine))).await;
}

async fn is_accepted_and_found(machine: &Machine) {
    let accepted = machine.post(&[], ORDER).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let order_id = accepted.text_of("OrderID");
    assert_eq!(accepted.json(), json!({"OrderID": order_id, "ProcessState": "Pending"}));
    assert_eq!(accepted.header("location"), Some(format!("/orders/{order_id}").as_str()));
    let read = machine.get(accepted.header("location").unwrap()).await;
    assert_eq!((read.status, read.text_of("OrderID")), (200, order_id), "{read:?}");
}

#[tokio::test]
async fn who_waits_gets_the_processed_task_with_its_steps() {
    let machine = Machine::start().await;
    let answer = machine.post(&[("Prefer", "wait=10")], ORDER).await;
    assert_eq!((answer.status, answer.header("preference-applied")), (200, Some("wait=10")), "{answer:?}");
    let (order_id, task) = (answer.text_of("OrderID"), answer.json());
    assert_eq!(task["ProcessState"], "Processed");
    for ((service, name), step) in STEPS.into_iter().zip(task["Steps"].as_array().unwrap()) {
        assert_eq!((&step["Name"], &step["Agent"]), (&json!(name), &json!(service.name())));
        assert_eq!((&step["ProcessState"], &step["Attempt"]), (&json!("Processed"), &json!(1)));
        assert_eq!(
            (&step["LockedBy"], &step["CompleteBy"], &step["FailureCount"]),
            (&Value::Null, &Value::Null, &json!(0))
        );
        assert_eq!(machine.effects()[&service].of(&format!("{order_id}/{name}")).effects, 1);
    }
    assert_eq!(machine.get(&format!("/orders/{order_id}")).await.json(), task, "what is finished stays as it is");
}

#[tokio::test]
async fn who_waits_in_vain_gets_202_and_a_reader_may_wait_on() {
    let machine = Machine::start().await;
    let slow = r#"{"StandIn": {"shipping": {"SlowMs": 1500}}}"#;
    let answer = machine.post(&[("Prefer", "wait=1")], slow).await;
    assert_eq!((answer.status, answer.text_of("ProcessState").as_str()), (202, "Processing"), "{answer:?}");
    let read = machine.ask("GET", answer.header("location").unwrap(), &[("Prefer", "wait=20")], "").await;
    assert_eq!((read.status, read.text_of("ProcessState").as_str()), (200, "Processed"));
}

#[tokio::test]
async fn a_declined_order_is_undone_whole() {
    let machine = Machine::start().await;
    let declined = r#"{"StandIn": {"shipping": {"Decline": "no_such_street"}}}"#;
    let (order_id, answer) = machine.settled(declined).await;
    let task = answer.json();
    assert_eq!((&task["ProcessState"], &task["Reason"]["Code"]), (&json!("Compensated"), &json!("rejected")));
    assert_eq!(task["Reason"]["Step"], "ship-order");
    let effects = machine.effects();
    let of = |service, step, undo| effects[&service].of(&format!("{order_id}/{step}{undo}")).effects;
    let told = STEPS.map(|(service, step)| (of(service, step, ""), of(service, step, "/undo")));
    assert_eq!(told, [(1, 1), (1, 1), (0, 0)]);
}

#[tokio::test]
async fn the_same_key_is_the_same_order_and_one_effect_however_often_it_is_posted() {
    let machine = Machine::start().await;
    let headers = [("Idempotency-Key", "order-7")];
    let answers = join_all((0..20).map(|_| machine.post(&headers, ORDER))).await;
    let ids: BTreeSet<String> = answers.iter().map(|answer| answer.text_of("OrderID")).collect();
    assert_eq!((ids.len(), answers.iter().all(|answer| answer.status == 202)), (1, true), "{answers:?}");
    let order_id = ids.first().unwrap();
    machine.until(order_id, |order| order["ProcessState"] == "Processed").await;
    // Another spelling is the same document. A quoted key is the same key.
    let again = machine.post(&[("Idempotency-Key", "\"order-7\"")], "{\"Total\":12.50,\n \"Item\":\"mug\"}").await;
    assert_eq!(
        (again.status, again.text_of("OrderID"), again.text_of("ProcessState").as_str()),
        (202, order_id.clone(), "Processed")
    );
    assert_eq!(ids_of(&machine.get("/orders").await.json()), ids.into_iter().collect::<Vec<_>>());
    machine.trace().await;
    assert!(machine.effects().values().all(|service| service.effects == 1), "{:?}", machine.effects());
}

#[tokio::test]
async fn a_list_goes_page_by_page_newest_first_through_every_order_once() {
    let machine = Machine::start().await;
    let mut posted = Vec::new();
    for n in 0..25 {
        let declined = if n % 5 == 0 { r#"{"StandIn": {"inventory": {"Decline": "sold_out"}}}"# } else { ORDER };
        posted.push(machine.settled(declined).await.0);
    }
    posted.reverse();
    for (state, expected) in [
        ("", posted.clone()),
        ("&state=Compensated", posted.iter().rev().step_by(5).rev().cloned().collect()),
        ("&state=Error", Vec::new()),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = machine.get(&format!("/orders?limit=4{state}{cursor}")).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let page = answer.json();
            assert!(ids_of(&page).len() <= 4);
            seen.extend(ids_of(&page));
            match page["NextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, expected, "{state}");
    }
}

#[tokio::test]
async fn a_document_goes_to_the_service_and_the_file_digit_for_digit_and_so_does_an_output() {
    let payment = Repairable::mended().await;
    let machine = Machine::start_with(&payment.as_payment()).await;
    let document = "{ \"Total\": 10000000000000000000000.10,\n\t\"e\": 1E400, \"n\": -0, \"s\": \"\\u00e9\\ud800 \u{1F4E6}\", \"a\": 1, \"A\": 2.0 }";
    let (order_id, answer) = machine.settled(document).await;
    assert_eq!(answer.text_of("ProcessState"), "Processed");
    assert!(answer.text.contains(&format!("\"Output\":{RECEIPT}")), "{}", answer.text);
    let [(path, call)] = payment.calls().try_into().unwrap();
    assert_eq!(path, "/charge");
    assert!(call.contains(&format!("\"Order\":{document}")), "{call}");
    let stored = "SELECT document FROM orders JOIN tasks USING (seq) WHERE order_id = ?1";
    let stored: String = machine.database().query_row(stored, [&order_id], |row| row.get(0)).unwrap();
    assert_eq!(stored, document);
}

#[tokio::test]
async fn health_and_services_answer_and_head_is_get_without_the_body() {
    let machine = Machine::start().await;
    assert_eq!(
        machine.get("/health").await.json(),
        json!({"Status": "ok", "Version": env!("CARGO_PKG_VERSION"), "StandIns": true})
    );
    let closed = |name: &str| json!({"Service": name, "State": "Closed"});
    let services = ["inventory", "payment", "shipping"].map(closed);
    assert_eq!(machine.get("/services").await.json(), json!({"Services": services}));
    let (get, head) = (machine.get("/health").await, machine.ask("HEAD", "/health", &[], "").await);
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    assert_eq!(head.header("content-length"), Some(get.text.len().to_string().as_str()));
}
