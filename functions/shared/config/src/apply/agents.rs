//! The agents of an application: those that orders under way may need, and those that change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::definition::{Catalogue, Definition, Pin};
use domain::workflow::{StepRule, Workflow, Workflows, agent_names};

use super::{Applied, Refusal};
use crate::folder::{Checked, CheckedWorkflow, Fault};
use crate::settings::Settings;

/// Orders of each version that is not retired may be under way. So the agents that it uses keep a table, a service and
/// their memo.
pub(super) fn agents_in_use(checked: &Checked, applied: &Applied, catalogue: &Catalogue) -> Vec<Refusal> {
    let before = applied.deployment.as_ref().map(|before| Settings::parse("", &before.settings));
    let before = before.and_then(Result::ok).unwrap_or_default();
    let (mut refusals, after) = (Vec::new(), &checked.settings);
    for (agent, pin) in used(&before, applied, catalogue) {
        let is_shipped = Workflows::SHIPPED_AGENTS.contains(&&*agent);
        match (before.of(&agent), after.of(&agent)) {
            // Without a table, a shipped agent has the service of its host, or its requests wait.
            (_, None) if is_shipped => {}
            (_, None) => refusals.push(Refusal::AgentInUse { agent, pin }),
            (Some(was), Some(is)) if was.url().is_some() && is.url().is_none() => {
                refusals.push(Refusal::ServiceGone { agent, pin });
            }
            (Some(was), Some(is)) if was.policy.memo.is_some() != is.policy.memo.is_some() => {
                refusals.push(Refusal::MemoSwitched { agent, pin, is_on: is.policy.memo.is_some() });
            }
            (Some(_) | None, Some(_)) => {}
        }
    }
    refusals
}

/// What the versions that are not retired demand of the agents whose answers get another meaning.
pub(super) fn changed_meanings(checked: &Checked, applied: &Applied) -> Vec<Fault> {
    let before = applied.deployment.as_ref().map_or("", |before| &before.settings);
    let (before, after) = (tables(before), tables(&checked.deployment_text));
    let of = |tables: &BTreeMap<String, toml::Table>, agent: &str| {
        ["webhook", "forward"].map(|key| tables.get(agent).and_then(|table| table.get(key)).cloned())
    };
    let in_use = applied.definitions.values().filter(|definition| definition.retired_at.is_none());
    let faults = in_use.filter_map(|Definition { key, text, .. }| {
        let workflow = Workflow::read(text).ok()?;
        let applied = CheckedWorkflow { file: format!("workflow {key}").into(), text: text.clone(), workflow };
        Some(checked.demands_of(&applied, |agent| of(&before, agent) != of(&after, agent)))
    });
    faults.flatten().collect()
}

/// The agents of these versions, and their fallbacks, each with one version that uses it.
fn used(before: &Settings, applied: &Applied, catalogue: &Catalogue) -> BTreeMap<Arc<str>, Pin> {
    let mut used = BTreeMap::new();
    let stored = applied.definitions.values().filter(|definition| definition.retired_at.is_none());
    let stored = stored.filter_map(|definition| Workflow::read(&definition.text).ok());
    for workflow in stored.chain(catalogue.compiled().all().map(|workflow| (**workflow).clone())) {
        let pin = workflow.pin();
        for agent in workflow.steps.iter().filter_map(StepRule::service) {
            let fallbacks = before.of(agent).map(|own| own.policy.fallback.clone()).unwrap_or_default();
            for agent in std::iter::once(agent.clone()).chain(fallbacks) {
                used.entry(agent).or_insert_with(|| pin.clone());
            }
        }
    }
    used
}

/// The agents whose settings change, in words.
pub(super) fn changed_agents(before: &str, after: &str) -> Vec<String> {
    let (old, new) = (tables(before), tables(after));
    let names: BTreeSet<Arc<str>> = agent_names(before).into_iter().chain(agent_names(after)).collect();
    let words = |name: &str| match (old.get(name), new.get(name)) {
        (None, Some(new)) => Some(format!("new, {}", url(new))),
        (Some(_), None) => Some("no settings any more".to_owned()),
        (Some(old), Some(new)) if old != new => Some(changed(old, new)),
        (Some(_), Some(_)) | (None, None) => None,
    };
    names.iter().filter_map(|name| Some(format!("agent {name}: {}", words(name)?))).collect()
}

fn tables(text: &str) -> BTreeMap<String, toml::Table> {
    let file: toml::Table = text.parse().unwrap_or_default();
    let agents = file.get("agents").and_then(toml::Value::as_table).cloned().unwrap_or_default();
    agents.into_iter().filter_map(|(name, table)| Some((name, table.as_table()?.clone()))).collect()
}

fn url(table: &toml::Table) -> String {
    table
        .get("url")
        .and_then(toml::Value::as_str)
        .unwrap_or("without a url, so a stand-in plays it where there is one")
        .to_owned()
}

/// The settings that differ; of the URL both.
fn changed(old: &toml::Table, new: &toml::Table) -> String {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differing = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    let words = differing.map(|key| match &**key {
        "url" => format!("url {} (was {})", url(new), url(old)),
        key => key.to_owned(),
    });
    format!("changed: {}", words.collect::<Vec<_>>().join(", "))
}
