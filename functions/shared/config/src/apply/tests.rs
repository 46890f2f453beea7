//! Tests of applying folders to records in memory.

use std::collections::BTreeSet;

use domain::definition::{Choice, Share, installation};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::FutureExt;
use memory::Memory;

use super::*;
use crate::Folder;

const AGENTS: &str = "[agents.bank]\nurl = \"http://localhost:1\"\n";

fn workflow(name: &str, version: u32, step: &str) -> (String, String) {
    let text = format!("name = \"{name}\"\nversion = {version}\n\n[[step]]\nname = \"{step}\"\nagent = \"bank\"\n");
    (format!("workflows/{name}-{version}.toml"), text)
}

fn folder(deployment: &str, workflows: &[(String, String)]) -> Checked {
    let mut files = vec![("stepwarden.toml".to_owned(), deployment.to_owned())];
    files.extend_from_slice(workflows);
    Folder::check(&files).unwrap()
}

struct World {
    memory: Memory,
    catalogue: Catalogue,
}

impl World {
    fn new() -> Self {
        let memory = Memory::new(Timestamp::from_epoch_ms(1_795_195_603_007), 7);
        Self { memory, catalogue: Catalogue::new(Workflows::shipped().unwrap()) }
    }

    fn apply(&self, checked: &Checked, share_percent: Option<u8>) -> Result<Vec<String>, String> {
        let application = Application { by: "ada".into(), share_percent, seen: None, earlier_key_ms: None };
        let applied = apply(&self.memory, &self.catalogue, checked, &application).now_or_never().unwrap();
        applied.map(|plan| plan.changes).map_err(|error| error.to_string())
    }

    fn applied(&self) -> Applied {
        Applied::read(&self.memory).now_or_never().unwrap().unwrap()
    }

    fn plan(&self, checked: &Checked) -> Plan {
        let application = Application { by: "ada".into(), share_percent: None, seen: None, earlier_key_ms: None };
        plan(&self.memory, &self.catalogue, checked, &application).now_or_never().unwrap().unwrap()
    }

    fn choose(&self, name: &str, choice: Choice) {
        self.change(|deployment| _ = deployment.workflows.insert(name.into(), choice));
    }

    fn change(&self, change: impl FnOnce(&mut Deployment)) {
        let mut deployment = self.applied().deployment.unwrap();
        let seen = Seen { version: deployment.version, at: self.memory.now() };
        deployment.version += 1;
        change(&mut deployment);
        self.memory.put(seen, &deployment).now_or_never().unwrap().unwrap();
    }

    fn retire(&self, pin: &str) {
        let definition = self.applied().definitions.remove(&pin.parse().unwrap()).unwrap();
        let now = self.memory.now();
        let retired = Definition { version: 2, retired_at: Some(now), ..definition };
        self.memory.put(Seen { version: 1, at: now }, &retired).now_or_never().unwrap().unwrap();
    }

    fn choice(&self, name: &str) -> Choice {
        self.applied().deployment.unwrap().workflows[name]
    }
}

#[test]
fn rule_41_new_settings_do_not_make_a_plain_200_the_result_of_an_applied_version() {
    let world = World::new();
    let waits = |version| {
        let (file, text) = workflow("pay", version, "charge");
        (file, format!("{text}wait_within = \"1h\"\n"))
    };
    let hook = "[agents.bank.webhook]\nsecret = \"env:A\"\nscheme = \"github\"\nkey = \"/k\"\nevent = \"/e\"\ndone = [\"d\"]\n";
    let said = format!("{AGENTS}forward.status = {{ 200 = \"under-way\" }}\n{hook}");
    world.apply(&folder(&said, &[waits(1)]), None).unwrap();
    let refusal = world.apply(&folder(&format!("{AGENTS}{hook}"), &[]), None).unwrap_err();
    assert!(refusal.starts_with("workflow pay/1:") && refusal.contains("200 = \"under-way\""), "{refusal}");
    let elsewhere = said.replace("localhost:1", "localhost:2");
    world.apply(&folder(&elsewhere, &[waits(1)]), None).unwrap();
    world.retire("pay/1");
    world.apply(&folder(&format!("{AGENTS}{hook}"), &[]), None).unwrap();
}

#[test]
fn a_folder_is_applied_once_and_the_same_again_changes_nothing() {
    let world = World::new();
    let checked = folder(&format!("default = \"shop\"\n{AGENTS}"), &[workflow("shop", 1, "charge")]);
    let expected = [
        "workflow shop/1: new",
        "new orders of shop: version 1",
        "default workflow: shop (was order)",
        "agent bank: new, http://localhost:1",
    ];
    assert_eq!(world.apply(&checked, None).unwrap(), expected);
    assert_eq!(world.apply(&checked, None).unwrap(), [""; 0]);
    let Applied { definitions, deployment } = world.applied();
    assert_eq!(definitions.keys().map(ToString::to_string).collect::<Vec<_>>(), ["shop/1"]);
    let deployment = deployment.unwrap();
    assert_eq!((deployment.version, &*deployment.default, &*deployment.applied_by), (1, "shop", "ada"));
}

#[test]
fn rule_22_a_default_without_services_is_told_and_its_workflow_is_shared_with_none() {
    let mut world = World::new();
    world.catalogue = Catalogue::serving(Workflows::shipped().unwrap(), None, BTreeMap::new(), Some(BTreeSet::new()));
    let checked = folder(AGENTS, &[workflow("shop", 1, "charge")]);
    let expected = "default workflow: order, but agent inventory has no service, so an order that names no workflow is refused: set `default`";
    assert_eq!(world.plan(&checked).notes.last().unwrap(), expected);
    world.apply(&checked, None).unwrap();
    world.apply(&folder(AGENTS, &[workflow("order", 2, "charge")]), Some(10)).unwrap();
    assert_eq!(world.choice("order"), Choice::all(2), "version 1 takes no orders");
}

#[test]
fn a_later_version_is_for_all_new_orders_or_for_a_share() {
    let world = World::new();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "charge")]), None).unwrap();
    let second = folder(AGENTS, &[workflow("shop", 2, "pay")]);
    let changes = world.apply(&second, Some(20)).unwrap();
    let words = "new orders of shop: version 2 for 20 %, version 1 for the others (was version 1)";
    assert_eq!(changes, ["workflow shop/2: new", words]);
    assert_eq!(world.choice("shop"), Choice { version: 1, share: Some(Share { version: 2, percent: 20 }) });
    assert_eq!(world.apply(&second, None).unwrap(), [""; 0], "the share stays");
    world.apply(&folder(AGENTS, &[workflow("shop", 3, "pay-now")]), None).unwrap();
    assert_eq!(world.choice("shop"), Choice::all(3));
    assert_eq!(world.apply(&second, None).unwrap(), [""; 0], "an older folder takes nothing back");
    let refusal = world.apply(&second, Some(20)).unwrap_err();
    assert!(refusal.starts_with("no version of this folder is new"), "{refusal}");
}

#[test]
fn the_same_folder_takes_no_choice_of_an_operator_back() {
    let world = World::new();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "charge")]), None).unwrap();
    let second = folder(AGENTS, &[workflow("shop", 2, "pay")]);
    world.apply(&second, None).unwrap();
    world.choose("shop", Choice::all(1));
    let plan = world.plan(&second);
    assert_eq!((plan.changes, plan.notes), (vec![], vec!["new orders of shop: version 1 stays".to_owned()]));
    let with_default = folder(&format!("default = \"shop\"\n{AGENTS}"), &[workflow("shop", 2, "pay")]);
    assert_eq!(world.apply(&with_default, None).unwrap(), ["default workflow: shop (was order)"]);
    world.change(|deployment| deployment.default = "order".into());
    let plan = world.plan(&with_default);
    assert_eq!((plan.changes, plan.notes.last().unwrap().as_str()), (vec![], "default workflow: order stays"));
    // A retired version of the folder is no fault, since no order begins with it.
    world.retire("shop/2");
    assert_eq!(world.apply(&with_default, None).unwrap(), [""; 0]);
    assert_eq!(world.choice("shop"), Choice::all(1));
}

#[test]
fn versions_that_were_written_without_a_deployment_are_new() {
    let world = World::new();
    let application = Application { by: "ada".into(), share_percent: None, seen: None, earlier_key_ms: None };
    let checked = folder(AGENTS, &[workflow("shop", 1, "charge")]);
    let whole = plan(&world.memory, &world.catalogue, &checked, &application).now_or_never().unwrap().unwrap();
    write(&world.memory, &Plan { deployment: None, ..whole }).now_or_never().unwrap().unwrap();
    assert_eq!(world.apply(&checked, None).unwrap()[0], "new orders of shop: version 1");
}

#[test]
fn what_changed_since_the_operator_looked_is_not_overwritten() {
    let world = World::new();
    let apply = |version, share_percent, seen| {
        let checked = folder(AGENTS, &[workflow("shop", version, "charge")]);
        let application = Application { by: "ada".into(), share_percent, seen: Some(seen), earlier_key_ms: None };
        apply(&world.memory, &world.catalogue, &checked, &application).now_or_never().unwrap()
    };
    assert!(matches!(apply(1, None, 1), Err(ApplyError::Overtaken)));
    assert!(apply(1, None, 0).is_ok());
    assert!(matches!(apply(2, Some(20), 0), Err(ApplyError::Overtaken)));
    assert!(apply(2, Some(20), 1).is_ok());
    assert_eq!(apply(2, Some(20), 1).unwrap().changes, [""; 0], "a repeat after a lost answer");
}

#[test]
fn a_version_that_was_changed_is_refused_with_the_difference_and_nothing_is_written() {
    let world = World::new();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "charge")]), None).unwrap();
    let before = world.applied().deployment;
    let changed = folder(
        &format!("default = \"other\"\n{AGENTS}"),
        &[workflow("other", 1, "charge"), workflow("shop", 1, "pay")],
    );
    let refusal = world.apply(&changed, None).unwrap_err();
    let expected = "workflows/shop-1.toml: workflow shop/1 was applied with other content, and a version never changes: \
                    give this one the next version\n- name = \"charge\"\n+ name = \"pay\"";
    assert_eq!(refusal, expected);
    assert_eq!((world.applied().deployment, world.applied().definitions.len()), (before, 1));
    let mut commented = workflow("shop", 1, "charge");
    commented.1.push_str("# a comment\n");
    assert_eq!(world.apply(&folder(AGENTS, &[commented]), None).unwrap(), [""; 0]);
}

#[test]
fn the_compiled_version_is_as_fixed_as_an_applied_one() {
    let world = World::new();
    let refusal = world.apply(&folder(AGENTS, &[workflow("order", 1, "charge")]), None).unwrap_err();
    assert!(
        refusal.starts_with("workflows/order-1.toml: workflow order/1 was applied with other content"),
        "{refusal}"
    );
    world.apply(&folder(AGENTS, &[workflow("order", 2, "charge")]), Some(10)).unwrap();
    assert_eq!(world.choice("order"), Choice { version: 1, share: Some(Share { version: 2, percent: 10 }) });
}

#[test]
fn an_agent_that_an_applied_version_names_keeps_its_settings() {
    let world = World::new();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "charge")]), None).unwrap();
    let refusal = world.apply(&folder("", &[]), None).unwrap_err();
    assert!(refusal.contains("no table [agents.bank], which shop/1 names"), "{refusal}");
    let changed = AGENTS.replace(":1", ":2");
    assert_eq!(
        world.apply(&folder(&changed, &[]), None).unwrap(),
        ["agent bank: changed: url http://localhost:2 (was http://localhost:1)"]
    );
}

#[test]
fn an_agent_in_use_keeps_its_fallback_its_service_and_its_memo() {
    let world = World::new();
    let two = "[agents.bank]\nurl = \"http://localhost:1\"\nmemo = true\nfallback = [\"second\"]\n\
               [agents.second]\nurl = \"http://localhost:2\"\n";
    world.apply(&folder(two, &[workflow("shop", 1, "charge")]), None).unwrap();
    let refused = |settings: &str| world.apply(&folder(settings, &[]), None).unwrap_err();
    let first = "[agents.bank]\nurl = \"http://localhost:1\"\nmemo = true\n";
    assert!(refused(first).contains("no table [agents.second], which shop/1 names"));
    let gone = two.replace("url = \"http://localhost:2\"\n", "");
    assert!(refused(&gone).starts_with("agents.second has no url any more, and shop/1 uses it"));
    let off = two.replace("memo = true\nfallback = [\"second\"]\n", "");
    assert!(refused(&off).starts_with("agents.bank switches its memo off, and shop/1 uses it"));
    let on = format!("{two}memo = true\n");
    assert!(refused(&on).starts_with("agents.second switches its memo on"));
    // A shipped agent may lose its table: its requests wait, if its host has no service for it.
    let payment = format!("{two}[agents.payment]\nurl = \"http://localhost:3\"\n");
    assert_eq!(world.apply(&folder(&payment, &[]), None).unwrap(), ["agent payment: new, http://localhost:3"]);
    assert!(
        refused(&format!("{two}[agents.payment]\n")).starts_with("agents.payment has no url any more, and order/1")
    );
    assert_eq!(world.apply(&folder(two, &[]), None).unwrap(), ["agent payment: no settings any more"]);
}

#[test]
fn a_version_that_was_retired_gets_no_orders_again() {
    let world = World::new();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "charge")]), None).unwrap();
    let application = Application { by: "ada".into(), share_percent: None, seen: None, earlier_key_ms: None };
    let second = folder(AGENTS, &[workflow("shop", 2, "charge")]);
    let whole = plan(&world.memory, &world.catalogue, &second, &application).now_or_never().unwrap().unwrap();
    write(&world.memory, &Plan { deployment: None, ..whole }).now_or_never().unwrap().unwrap();
    world.retire("shop/2");
    let refusal = world.apply(&second, None).unwrap_err();
    let expected = "workflows/shop-2.toml: workflow shop/2 was retired: take the file out, or give it a later version";
    assert_eq!(refusal, expected);
    world.retire("shop/1");
    world.change(|deployment| _ = deployment.workflows.remove("shop"));
    let both = |more| [workflow("shop", 1, "charge"), workflow("shop", 2, "charge")].into_iter().chain(more).collect();
    let of = |workflows: Vec<_>| world.apply(&folder(AGENTS, &workflows), None);
    let refusal = of(both(None)).unwrap_err();
    assert_eq!(refusal.lines().collect::<Vec<_>>(), [&expected.replace('2', "1"), expected], "each file is named");
    of(both(Some(workflow("shop", 3, "charge")))).unwrap();
    assert_eq!(world.choice("shop"), Choice::all(3));
}

#[test]
fn of_two_that_apply_at_once_one_is_overtaken() {
    let world = World::new();
    let application = Application { by: "ada".into(), share_percent: None, seen: None, earlier_key_ms: None };
    let checked = folder(AGENTS, &[workflow("shop", 1, "charge")]);
    let plan = plan(&world.memory, &world.catalogue, &checked, &application).now_or_never().unwrap().unwrap();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "pay")]), None).unwrap();
    let written = write(&world.memory, &plan).now_or_never().unwrap();
    assert!(matches!(written, Err(ApplyError::Overtaken)));
    assert!(world.applied().definitions.values().all(|definition| definition.text.contains("pay")));
}

#[test]
fn rule_38_the_first_result_that_may_come_later_makes_a_key_which_stays() {
    let world = World::new();
    let keys = || world.applied().deployment.unwrap().callback_keys;
    world.apply(&folder(AGENTS, &[workflow("a", 1, "pay")]), None).unwrap();
    assert_eq!(keys(), []);
    let (name, text) = workflow("a", 2, "pay");
    let patient = folder(AGENTS, &[workflow("a", 1, "pay"), (name, format!("{text}wait_within = \"2d\"\n"))]);
    let changes = world.apply(&patient, None).unwrap();
    assert!(changes.contains(&"callback addresses: a new key".to_owned()), "{changes:?}");
    let made = keys();
    assert_eq!(made.len(), 1);
    assert_eq!(world.apply(&patient, None).unwrap(), Vec::<String>::new());
    world.apply(&folder(AGENTS, &[workflow("a", 3, "pay")]), None).unwrap();
    assert_eq!(keys(), made, "calls under way have its addresses");
    let renewal = Application { by: "ada".into(), share_percent: None, seen: None, earlier_key_ms: Some(60_000) };
    let renewed = apply(&world.memory, &world.catalogue, &patient, &renewal).now_or_never().unwrap().unwrap();
    assert_eq!(
        renewed.changes,
        ["callback addresses: a new key; those that are out count until 2026-11-20T17:27:43.007Z"]
    );
    assert_eq!(keys().iter().map(|key| key.id).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn rule_4_the_record_of_the_installation_is_no_version() {
    let world = World::new();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "charge")]), None).unwrap();
    assert!(!installation(&world.memory).now_or_never().unwrap().unwrap().is_empty());
    assert_eq!(world.applied().definitions.keys().map(ToString::to_string).collect::<Vec<_>>(), ["shop/1"]);
}

#[test]
fn rule_48_a_schedule_counts_from_its_application_until_its_times_change_and_ends_with_its_removal() {
    let world = World::new();
    let plan = |schedules: &str| {
        world.apply(&folder(&format!("{AGENTS}{schedules}"), &[workflow("shop", 1, "charge")]), None).unwrap()
    };
    let one = |cron: &str, total: u32| {
        format!("[[schedule]]\nname = \"s\"\nworkflow = \"shop\"\ncron = {cron:?}\norder = {{ Total = {total} }}\n")
    };
    let since = || world.applied().deployment.unwrap().schedules.get("s").copied();
    plan("");
    assert!(since().is_none() && world.applied().deployment.unwrap().schedules.is_empty());
    let first = world.memory.now();
    assert_eq!(plan(&one("0 3 1 * *", 1)), ["schedule s: new, next due 2026-12-01T03:00:00.000Z"]);
    assert!(world.memory.get::<Definition>(Definition::INSTALLATION).now_or_never().unwrap().unwrap().is_some());
    world.memory.advance(86_400_000);
    assert_eq!(plan(&one("0 3 1 * *", 2)), ["schedule s: changed"]);
    assert_eq!(plan(&format!("# moved\n\n{}", one("0 3 1 * *", 2))), ["stepwarden.toml: new text"]);
    assert_eq!(since(), Some(first), "its times are the same");
    let second = world.memory.now();
    assert_eq!(plan(&one("0 4 1 * *", 2)), ["schedule s: other times, next due 2026-12-01T04:00:00.000Z"]);
    assert_eq!(since(), Some(second));
    assert_eq!((plan(""), since()), (vec!["schedule s: removed".to_owned()], None));
    world.memory.advance(86_400_000);
    plan(&one("0 4 1 * *", 2));
    assert_eq!(since(), Some(world.memory.now()), "what was due while it was gone is of the past");
}
