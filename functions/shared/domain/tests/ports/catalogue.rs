//! Tests of the catalogue.

use std::collections::BTreeMap;

use domain::definition::{Catalogue, Choice, DEPLOYMENT_FRESH_MS, Definition, Deployment, Pin, Share};
use domain::id::OrderId;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::ports::{Commit, Environment, Record, Records, Seen};
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::faulty::Faulty;

use crate::ports;

fn text(name: &str, version: u32, more: &str) -> String {
    format!("name = {name:?}\nversion = {version}\n[[step]]\nname = \"a\"\nagent = \"x\"\n{more}")
}

fn compiled() -> Workflows {
    Workflows::parse(&[&text("w", 1, "")], "w", &["x"]).unwrap()
}

fn pin(name: &str, version: u32) -> Pin {
    Pin { name: name.into(), version }
}

fn order_id() -> OrderId {
    OrderId::from_idempotency_key("shop", "1")
}

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

fn apply(ports: &Faulty, name: &str, version: u32, text: &str) {
    let at = ports.now();
    let definition = Definition {
        key: pin(name, version).to_string().into(),
        version: 1,
        text: text.into(),
        hash: Definition::hash_of(text).into(),
        applied_at: at,
        applied_by: "ada".into(),
        retired_at: None,
    };
    put(ports, &definition);
}

fn deploy(ports: &Faulty, version: u64, default: &str, workflows: &[(&str, Choice)], settings: &str) {
    let deployment = Deployment {
        version,
        default: default.into(),
        workflows: workflows.iter().map(|(name, choice)| ((*name).into(), *choice)).collect(),
        highest: BTreeMap::new(),
        settings: settings.into(),
        schedules: [].into(),
        callback_keys: Vec::new(),
        applied_at: ports.now(),
        applied_by: "ada".into(),
        of_start: false,
    };
    put(ports, &deployment);
}

/// Puts the next version of a record.
fn put<R: Record>(ports: &Faulty, record: &R) {
    let seen = Seen::version(record.version() - 1, ports.now());
    assert_eq!(now(ports.put(seen, record)).unwrap(), Commit::Committed);
}

fn chosen(catalogue: &Catalogue, ports: &Faulty, name: Option<&str>) -> Result<Pin, Vec<String>> {
    let chosen = now(catalogue.choose(ports, name, order_id())).unwrap();
    chosen.map(|workflow| workflow.pin()).map_err(|unknown| unknown.known.iter().map(ToString::to_string).collect())
}

#[test]
fn without_records_orders_begin_with_the_compiled_workflow() {
    let (catalogue, ports) = (Catalogue::new(compiled()), ports());
    assert_eq!(chosen(&catalogue, &ports, None), Ok(pin("w", 1)));
    assert_eq!(chosen(&catalogue, &ports, Some("w")), Ok(pin("w", 1)));
    assert_eq!(chosen(&catalogue, &ports, Some("v")), Err(vec!["w".to_owned()]));
    assert!(now(catalogue.workflow(&ports, &pin("w", 2))).unwrap().is_none());
}

#[test]
fn rule_22_a_compiled_workflow_takes_no_order_once_its_agent_has_no_service() {
    let served = |agents: &[&str]| agents.iter().map(|&agent| agent.into()).collect();
    let host = |agents| Catalogue::serving(compiled(), None, BTreeMap::new(), Some(served(agents)));
    let ports = ports();
    assert_eq!(chosen(&host(&[]), &ports, Some("w")), Ok(pin("w", 1)), "nothing was applied");
    assert!(host(&[]).has_played() && !host(&["x"]).has_played());
    apply(&ports, "v", 1, &text("v", 1, ""));
    deploy(&ports, 1, "v", &[("v", Choice::all(1))], "");
    assert_eq!(chosen(&host(&[]), &ports, Some("w")), Ok(pin("w", 1)), "its settings name no agent");
    deploy(&ports, 2, "v", &[("v", Choice::all(1))], "[agents.y]\nurl = \"http://y\"");
    let unserved = host(&[]);
    assert_eq!(chosen(&unserved, &ports, Some("w")), Err(vec!["v".to_owned()]));
    assert!(!unserved.has_played() && Catalogue::new(compiled()).has_played());
    assert_eq!(chosen(&host(&["x"]), &ports, Some("w")), Ok(pin("w", 1)), "the host has its service");
    assert_eq!(chosen(&Catalogue::new(compiled()), &ports, Some("w")), Ok(pin("w", 1)), "nobody knows");
    deploy(&ports, 3, "w", &[("v", Choice::all(1)), ("w", Choice::all(1))], "[agents.y]\nurl = \"http://y\"");
    assert_eq!(chosen(&host(&[]), &ports, None), Err(vec!["v".to_owned()]), "an operator chose it before");
    let (shared, all) = (Choice { version: 1, share: Some(Share { version: 2, percent: 100 }) }, Choice::all(1));
    apply(&ports, "w", 2, &text("w", 2, ""));
    deploy(&ports, 4, "w", &[("v", all), ("w", shared)], "[agents.y]\nurl = \"http://y\"");
    assert_eq!(chosen(&host(&[]), &ports, None), Ok(pin("w", 2)), "of a share, the applied version takes orders");
    deploy(&ports, 5, "v", &[("v", Choice::all(1))], "[agents.x]");
    let played = host(&[]);
    assert_eq!(chosen(&played, &ports, Some("w")), Ok(pin("w", 1)), "a stand-in plays it");
    assert!(played.has_played());
    let mut planned = Deployment::clone(&now(played.deployment(&ports)).unwrap().unwrap());
    planned.settings = "[agents.y]".into();
    assert!(played.unserved(Some(&planned), "w", 1).is_some());
    assert_eq!(chosen(&played, &ports, Some("w")), Ok(pin("w", 1)), "a plan of the next version changes nothing");
}

#[test]
fn an_order_begins_with_the_applied_workflow_that_it_names_or_with_the_default() {
    let (catalogue, ports) = (Catalogue::new(compiled()), ports());
    apply(&ports, "v", 3, &text("v", 3, ""));
    apply(&ports, "w", 2, &text("w", 2, ""));
    let both = [("v", Choice::all(3)), ("w", Choice { version: 1, share: Some(Share { version: 2, percent: 99 }) })];
    deploy(&ports, 1, "v", &both, "");
    assert_eq!(chosen(&catalogue, &ports, None), Ok(pin("v", 3)));
    assert_eq!(chosen(&catalogue, &ports, Some("w")), Ok(pin("w", 2)));
    assert_eq!(chosen(&catalogue, &ports, Some("u")), Err(vec!["v".to_owned(), "w".to_owned()]));
    assert!(now(catalogue.workflow(&ports, &pin("w", 1))).unwrap().is_some(), "a compiled version stays");
}

#[test]
fn a_change_is_seen_within_five_seconds_and_at_once_by_an_order_that_needs_it() {
    let (catalogue, ports) = (Catalogue::new(compiled()), ports());
    assert_eq!(chosen(&catalogue, &ports, None), Ok(pin("w", 1)));
    apply(&ports, "v", 1, &text("v", 1, ""));
    deploy(&ports, 1, "v", &[("v", Choice::all(1))], "");
    ports.advance(DEPLOYMENT_FRESH_MS - 1);
    assert_eq!(chosen(&catalogue, &ports, None), Ok(pin("w", 1)));
    ports.advance(1);
    assert_eq!(chosen(&catalogue, &ports, None), Ok(pin("v", 1)));
    apply(&ports, "u", 1, &text("u", 1, ""));
    deploy(&ports, 2, "u", &[("u", Choice::all(1))], "");
    assert_eq!(chosen(&catalogue, &ports, Some("u")), Ok(pin("u", 1)));
    // A clock that is set back does not keep an old deployment.
    deploy(&ports, 3, "v", &[("v", Choice::all(1))], "");
    ports.set_back(3_600_000);
    assert_eq!(chosen(&catalogue, &ports, None), Ok(pin("v", 1)));
}

#[test]
fn a_version_is_read_once_and_the_deployment_every_five_seconds() {
    let (catalogue, ports) = (Catalogue::new(compiled()), ports());
    apply(&ports, "v", 1, &text("v", 1, ""));
    for _ in 0..12 {
        now(catalogue.workflow(&ports, &pin("v", 1))).unwrap().unwrap();
        ports.advance(1_000);
    }
    let reads = ["definitions.definition", "definitions.deployment"].map(|read| ports.calls_of(read).len());
    assert_eq!(reads, [1, 3]);
}

#[test]
fn while_the_records_are_down_the_last_deployment_is_used_and_without_one_there_is_an_error() {
    let ports = ports();
    apply(&ports, "v", 1, &text("v", 1, ""));
    deploy(&ports, 1, "v", &[("v", Choice::all(1))], "");
    let (warm, cold) = (Catalogue::new(compiled()), Catalogue::new(compiled()));
    assert_eq!(chosen(&warm, &ports, None), Ok(pin("v", 1)));
    ports.is_down("definitions.");
    ports.advance(DEPLOYMENT_FRESH_MS);
    assert_eq!(chosen(&warm, &ports, None), Ok(pin("v", 1)));
    assert!(now(cold.choose(&ports, None, order_id())).is_err());
}

#[test]
fn steps_have_the_settings_of_the_deployment_else_of_the_host_else_the_default() {
    let ports = ports();
    let host = BTreeMap::from([("x".into(), 90_000)]);
    let settles = |catalogue: &Catalogue| {
        now(catalogue.workflow(&ports, &pin("w", 1))).unwrap().unwrap().steps[0].settles_within_ms
    };
    assert_eq!(settles(&Catalogue::new(compiled())), SETTLES_WITHIN_MS_DEFAULT);
    let catalogue = Catalogue::with(compiled(), None, host);
    assert_eq!(settles(&catalogue), 90_000);
    deploy(&ports, 1, "w", &[], "[agents.x]\nsettles_within = \"2m\"");
    ports.advance(DEPLOYMENT_FRESH_MS);
    assert_eq!(settles(&catalogue), 120_000);
    deploy(&ports, 2, "w", &[], "[agents.x]\nurl = \"http://localhost:1\"");
    ports.advance(DEPLOYMENT_FRESH_MS);
    assert_eq!(settles(&catalogue), SETTLES_WITHIN_MS_DEFAULT, "the host's do not count any more");
    deploy(&ports, 3, "w", &[], "");
    ports.advance(DEPLOYMENT_FRESH_MS);
    assert_eq!(settles(&catalogue), 90_000, "no agent has settings");
}

#[test]
fn a_workflow_doubts_clocks_when_it_says_and_else_when_the_host_does() {
    let ports = ports();
    apply(&ports, "v", 1, &text("v", 1, "[supervision]\ndoubt_after = \"5m\"\n"));
    let doubts = |catalogue: &Catalogue, pin: &Pin| {
        now(catalogue.workflow(&ports, pin)).unwrap().unwrap().supervision.doubt_after_ms
    };
    let (one, many) = (Catalogue::new(compiled()), Catalogue::with(compiled(), Some(90_000), BTreeMap::new()));
    let (w, v) = (pin("w", 1), pin("v", 1));
    assert_eq!((doubts(&one, &w), doubts(&one, &v)), (None, Some(300_000)));
    assert_eq!((doubts(&many, &w), doubts(&many, &v)), (Some(90_000), Some(300_000)));
}
