use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::testing::Fake;

fn contract() -> Value {
    serde_json::from_str(CONTRACT).unwrap()
}

/// The paths of the contract.
fn paths(contract: &Value) -> impl Iterator<Item = (&str, &Value)> {
    contract["paths"].as_object().unwrap().iter().map(|(path, item)| (path.as_str(), item))
}

/// A path with values that a caller could send.
fn filled_in(path: &str) -> String {
    path.replace("{id}", "0193-x")
        .replace("{token}", "x")
        .replace("{name}", "order-not-found")
        .replace("{version}", "1")
}

/// A client that was made from the contract must read what a later version, or a gateway, answers.
#[test]
fn lists_are_closed_in_requests_alone_and_a_gateway_may_answer_with_a_body_of_its_own() {
    let contract = contract();
    let mut closed = BTreeSet::new();
    for (name, schema) in contract["components"]["schemas"].as_object().unwrap() {
        if schema["enum"].is_array() {
            closed.insert(name.clone());
        }
        let members = schema["properties"].as_object().into_iter().flatten();
        closed.extend(members.filter(|(_, of)| of["enum"].is_array()).map(|(member, _)| format!("{name}.{member}")));
    }
    // There are two directions. The others are of requests.
    closed.retain(|name| name != "Direction");
    let expected = ["Callback.Outcome", "Document.Priority", "JobPlan.Action", "Selector.State", "Settle.Outcome"];
    assert_eq!(closed.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(contract["components"]["schemas"]["Problem"].get("required"), None);
    for name in ["Unauthenticated", "CrossSite", "Unavailable"] {
        let body = &contract["components"]["responses"][name]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(body, "#/components/schemas/GatewayError", "{name}");
    }
}

#[test]
fn every_parameter_of_the_contract_is_one_of_its_path() {
    let (contract, fake) = (contract(), Fake::default());
    let mut asked = 0;
    for (path, item) in paths(&contract) {
        for parameter in item["get"]["parameters"].as_array().into_iter().flatten() {
            let parameter = match parameter["$ref"].as_str() {
                Some(pointer) => contract.pointer(pointer.trim_start_matches('#')).unwrap(),
                None => parameter,
            };
            if parameter["in"] == "query" {
                let name = parameter["name"].as_str().unwrap();
                // This value is too long for every parameter.
                let answer = fake.get(&format!("{}?{name}={}", filled_in(path), "x".repeat(9_000)));
                answer.names(400, "invalid-parameter", name);
                assert!(!answer.text.contains("is not a parameter"), "{}", answer.text);
                asked += 1;
            }
        }
    }
    assert_eq!(asked, 24);
}

#[test]
fn the_contract_is_served_as_it_is_and_tells_the_version_of_the_program() {
    let answer = Fake::default().get("/openapi.json");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.text, CONTRACT);
    assert_eq!(answer.body["openapi"], "3.1.0");
    assert_eq!(answer.body["info"]["version"], env!("CARGO_PKG_VERSION"));
}
