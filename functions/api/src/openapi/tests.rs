use std::collections::BTreeSet;

use domain::workflow::Workflows;
use serde_json::{Value, json};

use super::*;
use crate::caller::{Caller, Role};
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
fn without_workflows_the_contract_is_served_as_it_is_and_tells_the_version_of_the_program() {
    let answer = Fake::default().get("/openapi.json");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.text, CONTRACT);
    assert_eq!(answer.body["openapi"], "3.1.0");
    assert_eq!(answer.body["info"]["version"], env!("CARGO_PKG_VERSION"));
}

/// The schema at a reference of the contract.
fn at<'a>(contract: &'a Value, reference: &str) -> &'a Value {
    contract.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"))
}

/// The schema of an order that is posted.
fn body_of_post(contract: &Value) -> &Value {
    &contract["paths"]["/orders"]["post"]["requestBody"]["content"]["application/json"]["schema"]
}

const SCHEMA: &str = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://shop.example/order","required":["Lines"],
    "properties":{"Lines":{"items":{"$ref":"#/$defs/Line"}},"Same":{"$ref":"#"}},
    "$defs":{"Line":{"properties":{"Price":{"maximum":9007199254740993}}}}}"##;

fn step(name: &str, version: u32, schema: &str) -> String {
    format!("name = \"{name}\"\nversion = {version}\n{schema}\n[[step]]\nname = \"a\"\nagent = \"bank\"\n")
}

/// An API to which a folder with these files is applied.
fn applied(files: &[(&str, &str)], more: &Value) -> Fake {
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(Workflows::shipped().unwrap())));
    apply(&fake, files, more);
    fake
}

fn apply(fake: &Fake, files: &[(&str, &str)], more: &Value) {
    let settings = ("stepwarden.toml", "default = \"shop\"\n[agents.bank]\nurl = \"http://localhost:1\"\n");
    let files: Vec<Value> =
        [settings].iter().chain(files).map(|(name, text)| json!({"Name": name, "Text": text})).collect();
    let mut body = json!({"By": "ada", "Reason": "new shop", "Files": files});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = fake.post("/configuration", &[], &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[test]
fn the_schema_of_a_workflow_is_in_the_served_contract_and_an_order_refers_to_it() {
    for place in [SCHEMAS, &*BODY.concat()] {
        assert_eq!(CONTRACT.matches(place).count(), 1, "{place}");
    }
    let with = "schema = \"order.json\"";
    let (first, other) = (step("shop", 1, with), step("plain", 1, ""));
    let files =
        [("workflows/order.json", SCHEMA), ("workflows/shop-1.toml", &*first), ("workflows/plain.toml", &*other)];
    let fake = applied(&files, &json!({}));
    let answer = fake.get("/openapi.json");
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let own = "#/components/schemas/Order.shop.1";
    let schema = at(&answer.body, own);
    assert_eq!((schema.get("$id"), schema.get("$schema")), (None, None), "references are of the contract");
    let line = schema["properties"]["Lines"]["items"]["$ref"].as_str().unwrap();
    assert_eq!(at(&answer.body, line)["properties"]["Price"]["maximum"].to_string(), "9007199254740993");
    assert_eq!(schema["properties"]["Same"]["$ref"], own);
    let fits = json!({"$ref": own});
    let named = json!({"properties": {"Workflow": {"const": "shop"}}, "required": ["Workflow"]});
    let rules = json!([
        {"$ref": "#/components/schemas/Document"},
        {"if": named, "then": fits},
        {"if": {"properties": {"Workflow": {"type": "null"}}}, "then": fits},
    ]);
    assert_eq!(body_of_post(&answer.body), &json!({"allOf": rules}));
    let of_try = |contract: &Value| ["Document", "Try"].map(|name| contract["components"]["schemas"][name].clone());
    assert_eq!(of_try(&answer.body), of_try(&contract()), "a try may be of another workflow");
    assert_eq!(answer.body["components"]["schemas"].get("Order.plain.1"), None);

    // Some orders begin with the one version, some with the other.
    let second = step("shop", 2, with);
    let files = [files[0], files[1], files[2], ("workflows/shop-2.toml", &*second)];
    apply(&fake, &files, &json!({"SharePercent": 20}));
    let shared = fake.get("/openapi.json").body;
    let both = json!({"anyOf": [fits, {"$ref": "#/components/schemas/Order.shop.2"}]});
    assert_eq!(body_of_post(&shared)["allOf"][1]["then"], both);
    let third = step("shop", 3, "");
    apply(
        &fake,
        &[files[0], files[2], files[1], files[3], ("workflows/shop-3.toml", &*third)],
        &json!({"SharePercent": 20}),
    );
    let served = fake.get("/openapi.json").body;
    assert_eq!(body_of_post(&served).get("allOf"), None, "an order may begin with the version that has no schema");
}

#[test]
fn references_are_of_the_contract_wherever_a_schema_stands_and_data_stays_as_it_is() {
    let [line, data, there] = [
        json!({"$ref": "#/$defs/Line"}),
        json!({"$ref": "#/$defs/Line"}),
        json!({"$ref": "#/components/schemas/Order.shop.1/$defs/Line"}),
    ];
    let of = |line: &Value| {
        json!({
            "$defs": {"Line": {"type": "object"}, "Other": line},
            "properties": {"items": line, "const": {"items": line, "default": data}, "$ref": true},
            "patternProperties": {"^x": line},
            "additionalProperties": line, "propertyNames": {"not": line}, "contains": line, "prefixItems": [line, false],
            "items": {"if": line, "then": line, "else": line},
            "allOf": [line], "anyOf": [{"oneOf": [line]}],
            "const": data, "enum": [data, {"items": data}], "default": {"properties": data}, "examples": [data],
        })
    };
    // A name may be written with an escape.
    let schema = of(&line).to_string().replacen(r#""$ref":"#, r#""\u0024ref":"#, 1);
    let files =
        [("workflows/order.json", &*schema), ("workflows/shop.toml", &step("shop", 1, "schema = \"order.json\""))];
    let served = applied(&files, &json!({})).get("/openapi.json").body;
    assert_eq!(served["components"]["schemas"]["Order.shop.1"], of(&there));
}

#[test]
fn rule_42_strangers_see_no_schema_and_those_who_post_do() {
    let fake = applied(
        &[("workflows/order.json", SCHEMA), ("workflows/shop.toml", &step("shop", 1, "schema = \"order.json\""))],
        &json!({}),
    );
    let get = |caller: &Caller| fake.call_by(caller, "GET", "/openapi.json", &[], Bytes::new());
    get(&Caller::unknown()).is_problem(401, "unauthenticated");
    get(&Caller::with("ada", &[], None)).is_problem(403, "forbidden");
    for role in Role::ALL {
        assert!(get(&Caller::with("ada", &[role], None)).text.contains("Order.shop.1"), "{role:?}");
    }
}
