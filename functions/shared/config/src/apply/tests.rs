//! Tests of applying folders to records in memory.

use domain::definition::{Choice, Share};
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
        let application = Application { by: "ada".into(), share_percent };
        let applied = apply(&self.memory, &self.catalogue, checked, &application).now_or_never().unwrap();
        applied.map(|plan| plan.changes).map_err(|error| error.to_string())
    }

    fn applied(&self) -> Applied {
        Applied::read(&self.memory).now_or_never().unwrap().unwrap()
    }

    fn choice(&self, name: &str) -> Choice {
        self.applied().deployment.unwrap().workflows[name]
    }
}

#[test]
fn a_folder_is_applied_once_and_the_same_again_changes_nothing() {
    let world = World::new();
    let checked = folder(&format!("default = \"shop\"\n{AGENTS}"), &[workflow("shop", 1, "charge")]);
    let expected = [
        "workflow shop/1: new",
        "new orders of shop: version 1",
        "default workflow: shop (was order)",
        "agent bank: new",
    ];
    assert_eq!(world.apply(&checked, None).unwrap(), expected);
    assert_eq!(world.apply(&checked, None).unwrap(), [""; 0]);
    let Applied { definitions, deployment } = world.applied();
    assert_eq!(definitions.keys().map(ToString::to_string).collect::<Vec<_>>(), ["shop/1"]);
    let deployment = deployment.unwrap();
    assert_eq!((deployment.version, &*deployment.default, &*deployment.applied_by), (1, "shop", "ada"));
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
    assert_eq!(world.apply(&folder(&changed, &[]), None).unwrap(), ["agent bank: changed"]);
}

#[test]
fn a_version_that_was_retired_gets_no_orders_again() {
    let world = World::new();
    let checked = folder(AGENTS, &[workflow("shop", 1, "charge")]);
    world.apply(&checked, None).unwrap();
    let now = world.memory.now();
    let definition = world.applied().definitions.into_values().next().unwrap();
    let retired = Definition { version: 2, retired_at: Some(now), ..definition };
    world.memory.put(Seen { version: 1, at: now }, &retired).now_or_never().unwrap().unwrap();
    let refusal = world.apply(&checked, None).unwrap_err();
    assert_eq!(refusal, "workflows/shop-1.toml: workflow shop/1 was retired: give it a later version");
}

#[test]
fn of_two_that_apply_at_once_one_is_overtaken() {
    let world = World::new();
    let application = Application { by: "ada".into(), share_percent: None };
    let checked = folder(AGENTS, &[workflow("shop", 1, "charge")]);
    let plan = plan(&world.memory, &world.catalogue, &checked, &application).now_or_never().unwrap().unwrap();
    world.apply(&folder(AGENTS, &[workflow("shop", 1, "pay")]), None).unwrap();
    let written = write(&world.memory, &plan).now_or_never().unwrap();
    assert!(matches!(written, Err(ApplyError::Overtaken)));
    assert!(world.applied().definitions.values().all(|definition| definition.text.contains("pay")));
}

#[test]
fn a_difference_has_the_lines_that_one_side_lacks_in_order() {
    let found = difference("a\nb\n\nc", "a\n  c\nd");
    assert_eq!(found, ["- b", "+ d"]);
    assert_eq!(difference("a", "a\n"), [""; 0]);
}
