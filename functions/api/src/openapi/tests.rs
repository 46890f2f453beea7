use std::collections::BTreeSet;

use domain::message::Action;
use serde_json::Value;

use super::*;
use crate::problem_kind::Kind;
use crate::route::JobAction;
use crate::route::Route;
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

/// The contract's path of a route. The console is a page for people, and not part of the contract.
fn pattern(route: Route<'_>) -> Option<&'static str> {
    Some(match route {
        Route::Orders => "/orders",
        Route::Order(_) => "/orders/{id}",
        Route::Document(_) => "/orders/{id}/document",
        Route::Command(_, Action::Resubmit) => "/orders/{id}/resubmit",
        Route::Command(_, Action::Cancel) => "/orders/{id}/cancel",
        Route::Command(_, Action::Pause) => "/orders/{id}/pause",
        Route::Command(_, Action::Resume) => "/orders/{id}/resume",
        Route::Command(_, Action::Settle) => "/orders/{id}/settle",
        Route::Command(_, Action::Close) => "/orders/{id}/close",
        Route::Command(_, Action::Approve) => "/orders/{id}/approve",
        Route::Command(_, Action::Reject) => "/orders/{id}/reject",
        Route::Command(_, Action::Note) => "/orders/{id}/note",
        Route::Command(_, Action::Erase) => "/orders/{id}/erase",
        Route::Again(_) => "/orders/{id}/again",
        Route::Callback(_) => "/callbacks/{token}",
        Route::Heartbeat(_) => "/callbacks/{token}/heartbeat",
        Route::Jobs => "/bulk",
        Route::Job(_) => "/bulk/{id}",
        Route::JobCommand(_, JobAction::Start) => "/bulk/{id}/start",
        Route::JobCommand(_, JobAction::Cancel) => "/bulk/{id}/cancel",
        Route::DeadLetters => "/dead-letters",
        Route::Alerts => "/alerts",
        Route::Services => "/services",
        Route::AcceptRejections(_) => "/services/{name}/accept-rejections",
        Route::Overview => "/overview",
        Route::Numbers => "/numbers",
        Route::Metrics => "/metrics",
        Route::Leases => "/leases",
        Route::Workflows => "/workflows",
        Route::Workflow(..) => "/workflows/{name}/{version}",
        Route::Retire(..) => "/workflows/{name}/{version}/retire",
        Route::Choose(_) => "/workflows/{name}/choose",
        Route::Configuration => "/configuration",
        Route::Contract => "/openapi.json",
        Route::Problem(_) => "/problems/{name}",
        Route::Health => "/health",
        Route::Ready => "/ready",
        Route::Console(_) => return None,
    })
}

/// One of each route that [`pattern`] has a path for.
const ROUTES: [Route<'static>; 37] = [
    Route::Orders,
    Route::Order("x"),
    Route::Document("x"),
    Route::Command("x", Action::Resubmit),
    Route::Command("x", Action::Cancel),
    Route::Command("x", Action::Pause),
    Route::Command("x", Action::Resume),
    Route::Command("x", Action::Settle),
    Route::Command("x", Action::Note),
    Route::Command("x", Action::Close),
    Route::Command("x", Action::Approve),
    Route::Command("x", Action::Reject),
    Route::Command("x", Action::Erase),
    Route::Again("x"),
    Route::Callback("x"),
    Route::Heartbeat("x"),
    Route::Jobs,
    Route::Job("x"),
    Route::JobCommand("x", JobAction::Start),
    Route::JobCommand("x", JobAction::Cancel),
    Route::DeadLetters,
    Route::Alerts,
    Route::Services,
    Route::AcceptRejections("x"),
    Route::Overview,
    Route::Numbers,
    Route::Metrics,
    Route::Leases,
    Route::Workflows,
    Route::Workflow("x", "1"),
    Route::Retire("x", "1"),
    Route::Choose("x"),
    Route::Configuration,
    Route::Contract,
    Route::Problem(Kind::NoOrder),
    Route::Health,
    Route::Ready,
];

#[test]
fn every_call_of_the_contract_is_a_route_with_these_methods() {
    let contract = contract();
    for (path, item) in paths(&contract) {
        let asked = filled_in(path);
        let route = Route::of(&asked).unwrap_or_else(|| panic!("{path} is no route"));
        assert_eq!(pattern(route), Some(path));
        let documented: BTreeSet<String> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        let taken = route.allow().split(", ").filter(|method| *method != "HEAD").map(str::to_owned);
        assert_eq!(documented, taken.collect(), "{path}");
    }
}

#[test]
fn every_route_is_in_the_contract() {
    let contract = contract();
    let documented: BTreeSet<&str> = paths(&contract).map(|(path, _)| path).collect();
    let routes: BTreeSet<&str> = ROUTES.into_iter().filter_map(pattern).collect();
    assert_eq!((routes.len(), routes), (ROUTES.len(), documented));
}

#[test]
fn every_problem_is_in_the_contract_under_its_status_and_title() {
    let contract = contract();
    let kinds = &contract["components"]["schemas"]["Problem"]["properties"]["type"]["examples"];
    let documented: BTreeSet<&str> = kinds.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let uris: Vec<String> = Kind::ALL.iter().map(|kind| kind.uri()).collect();
    assert_eq!(documented, uris.iter().map(String::as_str).collect());
    let responses = contract["components"]["responses"].as_object().unwrap();
    for kind in Kind::ALL {
        let shown = responses.values().filter_map(|response| {
            let examples = &response["content"]["application/problem+json"]["examples"];
            examples.get(kind.name()).map(|example| &example["value"])
        });
        let shown: Vec<&Value> = shown.collect();
        assert!(!shown.is_empty(), "{} has no example", kind.name());
        for example in shown {
            assert_eq!(example["type"], kind.uri());
            assert_eq!((&example["status"], &example["title"]), (&kind.status().as_u16().into(), &kind.title().into()));
        }
    }
    let named = &contract["paths"]["/problems/{name}"]["get"]["parameters"][0]["schema"]["enum"];
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(named, &Value::from(names));
}

#[test]
fn an_operation_documents_each_status_under_which_its_problems_come() {
    let contract = contract();
    for (path, item) in paths(&contract) {
        for (method, operation) in item.as_object().unwrap() {
            for (status, response) in operation["responses"].as_object().unwrap() {
                let Some(name) = response["$ref"].as_str().and_then(|name| name.rsplit('/').next()) else { continue };
                let examples = &contract["components"]["responses"][name]["content"]["application/problem+json"];
                for example in examples["examples"].as_object().into_iter().flat_map(|examples| examples.values()) {
                    assert_eq!(example["value"]["status"].to_string(), *status, "{method} {path}");
                }
            }
        }
    }
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
    // There are two directions. An order names its priority, and the others are of requests.
    closed.retain(|name| !name.ends_with(".Direction"));
    let expected = ["Callback.Outcome", "JobPlan.Action", "Priority", "Selector.State", "Settle.Outcome"];
    assert_eq!(closed.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(contract["components"]["schemas"]["Problem"].get("required"), None);
    for name in ["Unauthenticated", "CrossSite", "Unavailable"] {
        let body = &contract["components"]["responses"][name]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(body, "#/components/schemas/GatewayError", "{name}");
    }
    for (path, item) in paths(&contract) {
        assert!(item.as_object().unwrap().values().all(|operation| operation["security"].is_array()), "{path}");
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
