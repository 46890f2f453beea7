//! Tests of applying a configuration over HTTP.

use domain::definition::{Catalogue, Definition};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use serde_json::{Value, json};

use crate::config::ApiConfig;
use crate::testing::{Answer, Fake, ORDER, task_in};

const SETTINGS: &str = "default = \"shop\"\n[agents.bank]\nurl = \"http://localhost:1\"\n";
const AUTHOR: &str = r#"{"By":"ada","Reason":"new shop"}"#;

fn fake() -> Fake {
    let fake = Fake::default();
    fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(Workflows::shipped().unwrap())));
    fake
}

fn workflow(version: u32, step: &str) -> String {
    format!("name = \"shop\"\nversion = {version}\n[[step]]\nname = \"{step}\"\nagent = \"bank\"\n")
}

fn body(settings: &str, workflows: &[String], more: &Value) -> String {
    let file = |name: String, text: &str| json!({"Name": name, "Text": text});
    let mut files = vec![file("stepwarden.toml".to_owned(), settings)];
    files.extend(workflows.iter().enumerate().map(|(n, text)| file(format!("workflows/{n}.toml"), text)));
    let mut body = json!({"By": "ada", "Reason": "new shop", "Files": files});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

fn apply(fake: &Fake, version: u32, more: &Value) -> Answer {
    fake.post("/configuration", &[], &body(SETTINGS, &[workflow(version, "charge")], more))
}

#[test]
fn rule_42_what_may_be_a_secret_is_shown_to_administrators_alone() {
    use crate::caller::{Caller, Role};
    let fake = fake();
    let headers = "headers = { \"x-key\" = 'é \"1\"', x-ref = { secret = \"env:KEY\" } }";
    let sinks = "[alerts.b]\nslack = \"https://chat.example/T0/B1\"\n[alerts.a]\nwebhook = \"env:PAGER\"\n";
    let settings = format!("{SETTINGS}{headers}\n{sinks}");
    assert_eq!(fake.post("/configuration", &[], &body(&settings, &[workflow(1, "charge")], &json!({}))).status, 200);
    let shown = |role: Role| {
        let caller = Caller::with("ada", &[role], None);
        let answer = fake.call_by(&caller, "GET", "/configuration", &[], bytes::Bytes::new());
        answer.body["Settings"].as_str().unwrap().to_owned()
    };
    assert_eq!(shown(Role::Administrator), settings);
    for role in [Role::Viewer, Role::Operator, Role::Approver] {
        let hidden = ["'é \"1\"'", "\"https://chat.example/T0/B1\"", "\"env:PAGER\""];
        let shows = hidden.iter().fold(settings.clone(), |text, secret| text.replace(secret, "\"[redacted]\""));
        assert_eq!(shown(role), shows);
    }
}

#[test]
fn a_folder_is_shown_applied_and_then_used_by_new_orders() {
    let fake = fake();
    assert_eq!(fake.get("/configuration").body, json!({"Version": 0, "Default": "order", "Settings": ""}));
    let dry = apply(&fake, 1, &json!({"DryRun": true}));
    let changes = json!([
        "workflow shop/1: new",
        "new orders of shop: version 1",
        "default workflow: shop (was order)",
        "agent bank: new, http://localhost:1",
    ]);
    let notes = json!(["agents: from now on this folder counts, and not the settings of the start"]);
    assert_eq!(apply(&fake, 1, &json!({"DryRun": true, "SharePercent": 20.0})).status, 200);
    apply(&fake, 1, &json!({"Version": 7})).is_problem(409, "configuration-refused");
    assert_eq!(
        (dry.status, &dry.body),
        (200, &json!({"Applied": false, "Changes": changes, "Notes": notes, "Version": 0}))
    );
    assert_eq!(fake.get("/configuration").body["Version"], 0, "a dry run writes nothing");
    let applied = apply(&fake, 1, &json!({}));
    assert_eq!(applied.body, json!({"Applied": true, "Changes": changes, "Notes": notes, "Version": 1}));
    let shown = fake.get("/configuration").body;
    assert_eq!(
        (&shown["Version"], &shown["Default"], &shown["Settings"]),
        (&json!(1), &json!("shop"), &json!(SETTINGS))
    );
    assert_eq!(shown["AppliedBy"], "ada [shop]");
    assert_eq!(fake.post("/orders", &[], ORDER).status, 202);
    assert_eq!(fake.submitted()[0].workflow.as_ref().map(ToString::to_string).as_deref(), Some("shop/1"));
    let one = fake.get("/workflows/shop/1");
    assert_eq!((one.status, &one.body["Text"]), (200, &json!(workflow(1, "charge"))));
    assert_eq!(fake.get("/workflows/order/1").body.get("AppliedAt"), None, "it is compiled in");
    for path in ["/workflows/shop/2", "/workflows/shop/x", "/workflows/none/1"] {
        fake.get(path).is_problem(404, "workflow-not-found");
    }
    let services = fake.get("/services").body;
    assert!(services["Services"].as_array().unwrap().iter().any(|service| service["Service"] == "bank"));
}

#[test]
fn every_fault_of_a_folder_is_told_and_nothing_is_applied() {
    let fake = fake();
    let answer = fake.post("/configuration", &[], &body("colour = 1\n", &[workflow(1, "charge")], &json!({})));
    answer.is_problem(422, "faulty-configuration");
    let faults = answer.body["faults"].as_array().unwrap();
    assert!(faults[0].as_str().unwrap().starts_with("stepwarden.toml:1:1: "), "{faults:?}");
    assert!(faults[1].as_str().unwrap().starts_with("workflows/0.toml:5:"), "{faults:?}");
    for (wrong, field) in [
        (r#"{"By":"ada","Files":[]}"#, "Reason"),
        (r#"{"By":"ada","Reason":"x"}"#, "Files"),
        (r#"{"By":"ada","Reason":"x","Files":[{"Name":"a"}]}"#, "Files"),
        (r#"{"By":"ada","Reason":"x","Files":[],"SharePercent":100}"#, "SharePercent"),
        (r#"{"By":"ada","Reason":"x","Files":[],"Colour":1}"#, "Colour"),
    ] {
        fake.post("/configuration", &[], wrong).names(400, "invalid-field", field);
    }
    assert_eq!(fake.get("/configuration").body["Version"], 0);
}

#[test]
fn a_changed_version_is_refused_with_the_difference() {
    let fake = fake();
    apply(&fake, 1, &json!({}));
    let changed = fake.post("/configuration", &[], &body(SETTINGS, &[workflow(1, "pay")], &json!({})));
    changed.is_problem(409, "configuration-refused");
    let reason = changed.body["faults"][0].as_str().unwrap();
    assert!(reason.ends_with("- name = \"charge\"\n+ name = \"pay\""), "{reason}");
}

#[test]
fn a_share_is_chosen_and_ended_and_the_default_switched() {
    let fake = fake();
    apply(&fake, 1, &json!({}));
    apply(&fake, 2, &json!({"SharePercent": 20}));
    let list = |fake: &Fake| fake.get("/workflows").body["Workflows"].as_array().unwrap().clone();
    let words = |list: &[Value]| -> Vec<String> {
        list.iter()
            .map(|one| {
                format!(
                    "{}/{} {} {} {}",
                    one["Name"], one["Version"], one["Current"], one["Default"], one["SharePercent"]
                )
            })
            .collect()
    };
    let expected = ["\"order\"/1 true null null", "\"shop\"/1 true true null", "\"shop\"/2 false true 20"];
    assert_eq!(words(&list(&fake)), expected);
    let choose = |name: &str, more: &str| {
        fake.post(&format!("/workflows/{name}/choose"), &[], &format!(r#"{{"By":"ada","Reason":"x",{more}}}"#))
    };
    assert_eq!(choose("shop", r#""Version":2"#).status, 200);
    assert_eq!(words(&list(&fake))[1..], ["\"shop\"/1 false null null", "\"shop\"/2 true true null"]);
    assert_eq!(choose("shop", r#""Version":1,"SharePercent":5"#).status, 200);
    assert_eq!(words(&list(&fake))[1..], ["\"shop\"/1 false true 5", "\"shop\"/2 true true null"]);
    assert_eq!(choose("order", r#""Version":1,"Default":true"#).status, 200);
    assert_eq!(fake.get("/configuration").body["Default"], "order");
    choose("shop", r#""Version":9"#).is_problem(404, "workflow-not-found");
    choose("shop", r#""Version":2,"SharePercent":5"#).is_problem(409, "configuration-refused");
    choose("shop", r#""Default":true"#).names(400, "invalid-field", "Version");
}

#[test]
fn a_version_is_retired_once_no_order_is_open_and_no_new_one_begins_with_it() {
    let fake = fake();
    apply(&fake, 1, &json!({}));
    let retire = || fake.post("/workflows/shop/1/retire", &[], AUTHOR);
    retire().is_problem(409, "configuration-refused");
    apply(&fake, 2, &json!({}));
    let task = |state| Task { workflow: "shop".into(), workflow_version: 1, ..task_in("a", state) };
    fake.stores(task(ProcessState::Processing));
    let refused = retire();
    refused.is_problem(409, "configuration-refused");
    assert!(refused.body["detail"].as_str().unwrap().contains("workflow shop/1 has open orders (1)"));
    fake.stores(task(ProcessState::Processed));
    assert!(retire().body["RetiredAt"].is_string());
    assert!(retire().body["RetiredAt"].is_string(), "twice is once");
    fake.post("/workflows/shop/choose", &[], r#"{"By":"ada","Reason":"x","Version":1}"#)
        .is_problem(409, "configuration-refused");
    fake.post("/workflows/order/1/retire", &[], AUTHOR).is_problem(409, "configuration-refused");
    fake.post("/workflows/none/1/retire", &[], AUTHOR).is_problem(404, "workflow-not-found");
}

#[test]
fn the_last_version_of_a_workflow_is_retired_with_its_name() {
    let fake = fake();
    apply(&fake, 1, &json!({}));
    let retire = || fake.post("/workflows/shop/1/retire", &[], AUTHOR);
    let refused = retire();
    refused.is_problem(409, "configuration-refused");
    assert!(refused.body["detail"].as_str().unwrap().contains("shop is the default workflow"), "{}", refused.text);
    fake.post("/workflows/order/choose", &[], r#"{"By":"ada","Reason":"x","Version":1,"Default":true}"#);
    assert!(retire().body["RetiredAt"].is_string());
    let order = r#"{"Item":"mug","Workflow":"shop"}"#;
    let unknown = fake.post("/orders", &[], order);
    assert_eq!(unknown.status, 400, "{}", unknown.text);
    // Its agent can go, and its name comes back with a later version.
    let empty = body("default = \"order\"\n", &[], &json!({}));
    assert_eq!(fake.post("/configuration", &[], &empty).status, 200);
    apply(&fake, 1, &json!({})).is_problem(409, "configuration-refused");
    assert_eq!(apply(&fake, 2, &json!({})).status, 200);
    assert_eq!(fake.post("/orders", &[], order).status, 202);
}

#[test]
fn a_version_whose_agents_have_no_settings_is_not_chosen() {
    let fake = fake();
    let written = |version: u32| {
        let text = workflow(version, "charge");
        let at = Timestamp::from_epoch_ms(1_795_195_603_007);
        let definition = Definition {
            key: format!("shop/{version}").into(),
            version: 1,
            text: text.as_str().into(),
            hash: Definition::hash_of(&text).into(),
            applied_at: at,
            applied_by: "ada".into(),
            retired_at: None,
        };
        fake.stores_record(&definition);
    };
    written(1);
    let choose = fake.post("/workflows/shop/choose", &[], r#"{"By":"ada","Reason":"x","Version":1}"#);
    choose.is_problem(409, "configuration-refused");
    assert!(choose.body["detail"].as_str().unwrap().contains("no table [agents.bank]"), "{}", choose.text);
}
