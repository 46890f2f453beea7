//! The operator's views, on orders that really ran.

use serde_json::{Value, json};
use tests::machine::Machine;

const HELD: &str = r#"{"Item": "mug", "Card": {"CardNumber": "4111"},
    "StandIn": {"payment": {"Decline": "no", "Undo": {"Decline": "never"}}}}"#;

async fn ids_of(machine: &Machine, query: &str) -> Vec<String> {
    let answer = machine.get(&format!("/orders?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let orders = answer.json()["Orders"].as_array().unwrap().clone();
    orders.iter().map(|order| order["OrderID"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_overview_tells_what_waits_and_why_and_who_looks_after_it() {
    let machine = Machine::start().await;
    let (processed, _) = machine.settled(r#"{"Item": "mug"}"#).await;
    let (first, _) = machine.settled(HELD).await;
    let (second, _) = machine.settled(HELD).await;
    let overview = machine.get("/overview").await;
    assert_eq!((overview.status, overview.header("cache-control")), (200, Some("no-store")));
    let overview = overview.json();
    let counts: Vec<&Value> = overview["Counts"].as_array().unwrap().iter().map(|count| &count["Count"]).collect();
    assert_eq!(counts, [0, 0, 1, 2, 0, 0, 0], "{overview:#}");
    let accepted = |minutes: &Value| -> u64 {
        minutes.as_array().unwrap().iter().map(|minute| minute["Accepted"].as_u64().unwrap()).sum()
    };
    assert_eq!((accepted(&overview["Minutes"]), &overview["MinutesComplete"]), (3, &json!(true)));
    let [failure] = overview["Failures"].as_array().unwrap().as_slice() else { panic!("{overview:#}") };
    assert_eq!((&failure["Code"], &failure["Step"]), (&json!("compensation-failed"), &json!("charge-payment")));
    assert_eq!((&failure["Count"], &failure["OrderIDs"]), (&json!(2), &json!([second, first])));
    assert_eq!(failure["LastError"]["Code"], "never");
    assert_eq!(overview["Services"], machine.get("/services").await.json()["Services"]);
    // A run of the supervisor reports at its end. The first run may not be over yet.
    let mut leases = overview["Leases"].clone();
    for _ in 0..1_000 {
        if leases != json!([]) {
            break;
        }
        leases = machine.get("/leases").await.json()["Leases"].clone();
    }
    let lease = leases.as_array().unwrap().iter().find(|lease| lease["Name"] == "supervisor/run").unwrap();
    assert_eq!((&lease["Name"], lease["RenewedAt"].is_string()), (&json!("supervisor/run"), true), "{lease}");
    assert!(lease["Owner"].as_str().unwrap().starts_with("supervisor-"), "{lease}");
    assert_ne!(processed, first);
}

#[tokio::test]
async fn orders_are_found_by_cause_time_and_content_and_what_is_redacted_is_not() {
    let machine = Machine::start().await;
    let (mug, _) = machine.settled(r#"{"Item": "mug", "CorrelationID": "cart-7", "Total": 12.50}"#).await;
    let (held, _) = machine.settled(HELD).await;
    let submitted_at = machine.get(&format!("/orders/{held}/document")).await.text_of("SubmittedAt");
    for (query, expected) in [
        ("correlation=cart-7", vec![&mug]),
        ("field=/Total&value=12.50", vec![&mug]),
        ("value=mug", vec![&held, &mug]),
        ("reason=compensation-failed&step=charge-payment", vec![&held]),
        (&format!("since={submitted_at}"), vec![&held]),
        (&format!("until={submitted_at}&state=Processed"), vec![&mug]),
        ("value=4111", vec![]),
    ] {
        assert_eq!(ids_of(&machine, query).await.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let refused = machine.get("/orders?field=/Card/CardNumber&value=4111").await;
    assert_eq!((refused.status, refused.text_of("field").as_str()), (400, "field"));
    let document = machine.get(&format!("/orders/{held}/document")).await.json();
    assert_eq!(document["Document"]["Card"]["CardNumber"], "[redacted]");
    assert_eq!(document["Document"]["Item"], "mug");
}

#[tokio::test]
async fn the_contract_the_workflows_and_the_pages_on_problems_are_served() {
    let machine = Machine::start().await;
    let contract = machine.get("/openapi.json").await.json();
    assert_eq!(contract["openapi"], "3.1.0");
    let workflows = machine.get("/workflows").await.json();
    assert_eq!(workflows["Workflows"][0]["Steps"][1]["After"], json!(["reserve-inventory"]));
    let problem = machine.get("/orders/x").await.text_of("type");
    let page = machine.get(&problem).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(page.text.contains("What to do"), "{page:?}");
}
