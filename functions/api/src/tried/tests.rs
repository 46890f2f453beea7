//! Tests of trying an order over HTTP. What a call has in it is tested with `stepwarden try`, which has the same code.

use domain::definition::Catalogue;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use serde_json::{Value, json};

use super::*;
use crate::caller::Role;
use crate::testing::{Answer, Fake};

const SETTINGS: &str = r#"
default = "shop"
[agents.stock]
url = "https://stock.example/v1"
headers = { X-Tenant = "word-5520", X-Key = { secret = "env:KEY" } }
[agents.bank]
auth.bearer = "env:BEARER"
"#;
const WORKFLOW: &str = r#"
name = "shop"
version = 1
refuse = ["Cvc"]
[[step]]
name = "reserve"
agent = "stock"
send = { item = "/Order/Item" }
keep = { ID = "/id" }
undo = { send = { hold = "/Outputs/reserve/ID?", item = "/Order/Item" } }
[[step]]
name = "charge"
agent = "bank"
after = ["reserve"]
when = ["/Outputs/reserve/ID != 'free'"]
path = "{/Order/Region}"
[[step]]
name = "ship"
agent = "bank"
after = ["charge"]
send = {}
undo = "none"
"#;
const PATH: &str = "/workflows/shop/1/try";

fn fake() -> Fake {
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(Workflows::shipped().unwrap())));
    let files = json!([
        {"Name": "stepwarden.toml", "Text": SETTINGS},
        {"Name": "workflows/shop.toml", "Text": WORKFLOW},
    ]);
    let folder = json!({"By": "ada", "Reason": "new shop", "Files": files}).to_string();
    let applied = fake.post("/configuration", &[], &folder);
    assert_eq!(applied.status, 200, "{}", applied.text);
    fake
}

fn tried(fake: &Fake, role: Role, outputs: &Value) -> Value {
    let body = json!({"Order": {"Item": "mug", "Region": "a/b"}, "Outputs": outputs}).to_string();
    let answer = fake.call_by(&Caller::with("ada", &[role], None), "POST", PATH, &[], body.into());
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.body["Steps"].clone()
}

fn header(call: &Value, name: &str) -> Value {
    let headers = call["Headers"].as_array().unwrap().iter();
    headers.filter(|header| header["Name"] == name).map(|header| header["Value"].clone()).collect()
}

#[test]
fn each_call_is_shown_as_far_as_it_is_known_and_nothing_is_stored_or_queued() {
    let fake = fake();
    let steps = tried(&fake, Role::Viewer, &json!({}));
    let [reserve, charge] = [&steps[0], &steps[1]];
    let call = &reserve["Forward"];
    assert_eq!((&call["Method"], &call["URL"]), (&json!("POST"), &json!("https://stock.example/v1/do")));
    assert_eq!(call["Body"], r#"{"item":"mug"}"#);
    assert_eq!(header(call, "x-key"), json!(["[secret env:KEY]"]));
    let key = header(call, "idempotency-key");
    assert!(key[0].as_str().unwrap().ends_with("/reserve"), "{key}");
    assert_eq!(reserve["Undo"], json!({"Needs": ["/Outputs/reserve/ID"]}));
    assert_eq!(charge["RunsIf"], json!(["/Outputs/reserve/ID"]));
    assert_eq!(charge["Forward"], json!({"Needs": ["/Outputs/reserve"]}), "it gets all outputs");

    let steps = tried(&fake, Role::Viewer, &json!({"reserve": {"ID": "h-1"}}));
    assert_eq!(steps[0]["Undo"]["Body"], r#"{"hold":"h-1","item":"mug"}"#);
    let call = &steps[1]["Forward"];
    assert_eq!((steps[1].get("RunsIf"), &call["URL"]), (None, &json!("http://bank.invalid/do/a%2Fb")));
    assert_eq!(header(call, "authorization"), json!(["[bearer, secret env:BEARER]"]));
    let steps = tried(&fake, Role::Viewer, &json!({"reserve": {"ID": "free"}}));
    assert!(steps[1]["NeverRuns"].as_str().unwrap().starts_with("it does not apply"), "{steps}");
    assert_eq!((steps[1].get("Forward"), steps[1].get("Undo")), (None, None));
    fake.queued_nothing();
}

#[test]
fn a_try_that_takes_long_pauses_so_that_it_ends_when_its_caller_is_gone() {
    let fake = fake();
    let began = fake.ports.now();
    let is_over = |since: &mut Timestamp| pause(&fake.ports, since).now_or_never().is_some();
    fake.ports.advance(BUSY_MS_MAX - 1);
    assert!(is_over(&mut { began }));
    fake.ports.advance(1);
    assert!(!is_over(&mut { began }));
}

#[test]
fn rule_42_the_values_of_headers_are_shown_to_administrators_alone() {
    let fake = fake();
    let tenant = |role| header(&tried(&fake, role, &json!({}))[0]["Forward"], "x-tenant");
    assert_eq!(tenant(Role::Administrator), json!(["word-5520"]));
    for role in [Role::Viewer, Role::Operator, Role::Approver] {
        assert_eq!(tenant(role), json!(["[redacted]"]));
    }
}

#[test]
fn what_a_post_is_refused_for_is_refused_likewise_and_so_is_a_wrong_request() {
    let fake = fake();
    let post = |path: &str, body: &str| -> Answer { fake.post(path, &[], body) };
    post(PATH, r#"{"Order":{"Item":"mug","Region":"a","Cvc":1}}"#).is_problem(422, "member-refused");
    post(PATH, r#"{"Order":{"Region":"a"}}"#).is_problem(422, "member-missing");
    post(PATH, r#"{"Order":{"correlationID":"a"}}"#).names(400, "invalid-field", "correlationID");
    post(PATH, r#"{"Order":[]}"#).is_problem(400, "not-an-object");
    post(PATH, "{}").names(400, "invalid-field", "Order");
    post(PATH, r#"{"Order":{},"Answers":{}}"#).names(400, "invalid-field", "Answers");
    post(PATH, r#"{"Order":{},"Outputs":[]}"#).names(400, "invalid-field", "Outputs");
    let [with, without] = [r#","Outputs":{"none":1}"#, ""]
        .map(|more| post(PATH, &format!(r#"{{"Order":{{"Item":"mug","Region":"a"}}{more}}}"#)).body["Steps"].clone());
    assert_eq!(with, without, "there is no such step");
    let large = json!({"Order": {}, "Outputs": {"reserve": "x".repeat(20_000)}}).to_string();
    post(PATH, &large).names(400, "invalid-field", "Outputs.reserve");
    for path in ["/workflows/shop/2/try", "/workflows/shop/x/try"] {
        post(path, r#"{"Order":{}}"#).is_problem(404, "workflow-not-found");
    }
    post(PATH, &format!("{{\"Order\":{{}}{}}}", " ".repeat(140_000))).is_problem(413, "body-too-large");
}

#[test]
fn a_long_body_is_shown_in_part_and_a_step_that_cannot_be_sent_says_why() {
    let fake = fake();
    let order = json!({"Item": "é".repeat(10_000), "Region": ".."});
    let body = json!({"Order": order, "Outputs": {"reserve": {"ID": "h-1"}, "charge": {}}}).to_string();
    let answer = fake.post(PATH, &[], &body);
    let [reserve, charge] = [&answer.body["Steps"][0]["Forward"], &answer.body["Steps"][1]["Forward"]];
    let shown = reserve["Body"].as_str().unwrap();
    assert!(shown.len() <= 16_384 && shown.starts_with("{\"item\":\"éé"), "{}", shown.len());
    assert_eq!(reserve["WholeBytes"], 20_011);
    let why = charge["Unsendable"].as_str().unwrap();
    assert!(why.starts_with("`path` has a segment that is empty or dots"), "{why}");
    assert_eq!(answer.body["Steps"][2]["NeverRuns"], "step charge, which comes before it, is rejected");
}

#[test]
fn the_bodies_of_all_steps_fit_into_the_answer_of_a_function() {
    let fake = fake();
    let step = |n: usize| {
        format!(
            "[[step]]\nname = \"s{n}\"\nagent = \"bank\"\nsend = {{ t = \"/Order/T\" }}\nundo = {{ send = {{ t = \"/Order/T\" }} }}\n"
        )
    };
    let steps: String = (0..50).map(step).collect();
    let files = json!([
        {"Name": "stepwarden.toml", "Text": SETTINGS},
        {"Name": "workflows/shop.toml", "Text": WORKFLOW},
        {"Name": "workflows/long.toml", "Text": format!("name = \"long\"\nversion = 1\n{steps}")},
    ]);
    let folder = json!({"By": "ada", "Reason": "long", "Files": files}).to_string();
    assert_eq!(fake.post("/configuration", &[], &folder).status, 200);
    // Each of these has two characters in the body, four in the answer, and eight in that of a function.
    let body = json!({"Order": {"T": "\"".repeat(20_000)}}).to_string();
    let answer = fake.post("/workflows/long/1/try", &[], &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(json!(answer.text).to_string().len() < 6_291_556);
    let [first, last] = [&answer.body["Steps"][0]["Forward"], &answer.body["Steps"][49]["Undo"]];
    assert_eq!(first["Body"].as_str().unwrap().len(), 16_384);
    assert_eq!((&last["Body"], &last["WholeBytes"]), (&json!(""), &first["WholeBytes"]));
}
