//! What applying a folder changes, and why it is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::callback::CallbackKey;
use domain::definition::{Catalogue, Choice, Definition, Deployment, Share};
use domain::time::Timestamp;
use domain::workflow::Workflows;

use super::agents::{agents_in_use, changed_agents, changed_meanings};
use super::schedules::schedules;
use super::{Application, Applied, Refusal, difference};
use crate::folder::{Checked, CheckedWorkflow};

/// Lines of a difference that are told.
const DIFFERENCE_LINES_MAX: usize = 20;

/// The changes of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The version of the deployment before; 0: there was none.
    pub seen: u64,
    /// The new versions.
    pub definitions: Vec<Definition>,
    /// The next deployment. `None`: it stays as it is.
    pub deployment: Option<Deployment>,
    /// The same in words, a line each. Empty: nothing changes.
    pub changes: Vec<String>,
    /// What the folder has and this does not change, in words.
    pub notes: Vec<String>,
}

impl Plan {
    /// The changes from `applied` to this folder. A new key is made of `random`.
    ///
    /// # Errors
    /// All refusals.
    pub fn of(
        checked: &Checked,
        applied: &Applied,
        catalogue: &Catalogue,
        application: &Application,
        now: Timestamp,
        random: [u64; 4],
    ) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Vec::new();
        let definitions = new_definitions(checked, applied, application, now, &mut refusals);
        refusals.extend(changed_meanings(checked, applied).into_iter().map(Refusal::Demand));
        refusals.extend(agents_in_use(checked, applied, catalogue));
        let before = applied.deployment.as_ref();
        let mut workflows = before.map(|before| before.workflows.clone()).unwrap_or_default();
        let mut highest = before.map(|before| before.highest.clone()).unwrap_or_default();
        let (mut notes, mut is_shared) = (Vec::new(), false);
        for (name, newest) in newest(checked) {
            let (was, version) = (catalogue.taken(before, name), newest.workflow.version);
            let known = highest.get(name).copied().max(was.and_then(|was| was.versions().max()));
            let is_new = known.is_none_or(|known| known < version);
            let choice = match was {
                Some(was) if !is_new => was,
                _ => chosen(was, version, application.share_percent),
            };
            // A repeat finds its own share.
            is_shared |= is_new || choice.share == application.share_percent.map(|percent| Share { version, percent });
            if was != Some(choice) && is_retired(applied, newest) {
                // Without the newest file, the one before it would be the newest.
                let files = checked.workflows.iter().filter(|other| other.workflow.name == *name);
                let retired = files.filter(|other| is_retired(applied, other));
                refusals.extend(retired.map(|CheckedWorkflow { file, workflow, .. }| Refusal::Retired {
                    file: file.clone(),
                    pin: workflow.pin(),
                }));
            }
            if !is_new && choice != Choice::all(version) {
                notes.push(format!("new orders of {name}: {} stays", words(choice)));
            }
            highest.insert(name.clone(), known.map_or(version, |known| known.max(version)));
            workflows.insert(name.clone(), choice);
        }
        if application.share_percent.is_some() && !is_shared {
            refusals.push(Refusal::NothingToShare);
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let seen = before.map_or(0, |before| before.version);
        let settings = checked.deployment_text.clone();
        let default = default(checked, before, catalogue);
        if checked.default.as_ref().is_some_and(|asked| *asked != default) {
            notes.push(format!("default workflow: {default} stays"));
        }
        let mut changes: Vec<String> = definitions.iter().map(|new| format!("workflow {}: new", new.key)).collect();
        changes.extend(changed_choices(before, catalogue, &workflows));
        if default != catalogue.default_name(before) {
            changes.push(format!("default workflow: {default} (was {})", catalogue.default_name(before)));
        }
        changes.extend(changed_agents(before.map_or("", |before| &before.settings), &settings));
        let (schedules, changed) = schedules(before, &checked.schedules, now);
        changes.extend(changed);
        if before.is_none_or(|before| before.agents().is_none()) && checked.settings.names().next().is_some() {
            notes.push("agents: from now on this folder counts, and not the settings of the start".to_owned());
        }
        for key in ["reply_channels", "alerts"] {
            if of_file(&settings, key) != before.and_then(|before| of_file(&before.settings, key)) {
                notes.push(format!("{key}: `serve` reads them at its start; restart it after a change. A stack has those of its parameters"));
            }
        }
        let mut callback_keys = before.map(|before| before.callback_keys.clone()).unwrap_or_default();
        let is_wanted =
            callback_keys.is_empty() && checked.workflows.iter().any(|has| has.workflow.has_later_results());
        if let Some(ms) = application.earlier_key_ms.or(is_wanted.then_some(0)) {
            let earlier = if callback_keys.is_empty() {
                String::new()
            } else {
                format!("; those that are out count until {}", now.plus_ms(ms))
            };
            changes.push(format!("callback addresses: a new key{earlier}"));
            callback_keys = CallbackKey::renewed(&callback_keys, random, now, ms);
        }
        let of_start = &*application.by == Deployment::BY_START;
        let is_same = before.is_some_and(|before| {
            (&before.default, &before.workflows, &before.settings) == (&default, &workflows, &settings)
                && before.highest == highest
                && before.callback_keys == callback_keys
                && (before.of_start || !of_start)
        });
        let deployment = (!is_same).then(|| Deployment {
            version: seen + 1,
            default,
            workflows,
            highest,
            settings: settings.clone(),
            schedules,
            callback_keys,
            applied_at: now,
            applied_by: application.by.clone(),
            of_start,
        });
        if let Some(next) = &deployment
            && let Some(Choice { version, share: None }) = catalogue.choice(Some(next), &next.default)
            && let Some(agent) = catalogue.unserved(Some(next), &next.default, version)
        {
            notes.push(format!("default workflow: {}, but agent {agent} has no service, so an order that names no workflow is refused: set `default`", next.default));
        }
        let is_new_text = before.is_none_or(|before| before.settings != settings);
        if deployment.is_some() && is_new_text && changes.is_empty() {
            changes.push("stepwarden.toml: new text".to_owned());
        }
        Ok(Self { seen, definitions, deployment, changes, notes })
    }
}

/// The workflow of orders that name none. The same file again takes no choice of an operator back.
fn default(checked: &Checked, before: Option<&Deployment>, catalogue: &Catalogue) -> Arc<str> {
    let asked_before = before.and_then(|before| of_file(&before.settings, "default"));
    let is_new = |asked: &Arc<str>| asked_before.as_ref().and_then(toml::Value::as_str) != Some(&**asked);
    let asked = checked.default.clone().filter(is_new);
    asked.unwrap_or_else(|| catalogue.default_name(before))
}

/// A setting of `stepwarden.toml`.
fn of_file(text: &str, key: &str) -> Option<toml::Value> {
    text.parse::<toml::Table>().ok()?.remove(key)
}

/// The versions that are not there yet. One that is there with other content is refused.
fn new_definitions(
    checked: &Checked,
    applied: &Applied,
    application: &Application,
    now: Timestamp,
    refusals: &mut Vec<Refusal>,
) -> Vec<Definition> {
    let mut definitions = Vec::new();
    for CheckedWorkflow { file, text, workflow } in &checked.workflows {
        let pin = workflow.pin();
        let hash = Definition::hash_of(text);
        let stored = applied.definitions.get(&pin).map(|definition| &*definition.text);
        match stored.or_else(|| Workflows::shipped_text(&pin)) {
            Some(stored) if Definition::hash_of(stored) == hash => {}
            Some(stored) => {
                let mut difference = difference(stored, text);
                if difference.len() > DIFFERENCE_LINES_MAX {
                    difference.truncate(DIFFERENCE_LINES_MAX);
                    difference.push("…".to_owned());
                }
                refusals.push(Refusal::Changed { file: file.clone(), pin, difference });
            }
            None => definitions.push(Definition {
                key: pin.to_string().into(),
                version: 1,
                text: text.clone(),
                hash: hash.into(),
                applied_at: now,
                applied_by: application.by.clone(),
                retired_at: None,
            }),
        }
    }
    definitions
}

/// The newest version of each workflow in the folder.
fn newest(checked: &Checked) -> BTreeMap<&Arc<str>, &CheckedWorkflow> {
    // They are sorted by version, so the last one stays.
    checked.workflows.iter().map(|checked| (&checked.workflow.name, checked)).collect()
}

fn is_retired(applied: &Applied, checked: &CheckedWorkflow) -> bool {
    applied.definitions.get(&checked.workflow.pin()).is_some_and(|definition| definition.retired_at.is_some())
}

/// A new version is for all new orders, or for a share of them.
fn chosen(before: Option<Choice>, version: u32, share_percent: Option<u8>) -> Choice {
    match (before, share_percent) {
        (Some(before), Some(percent)) => Choice { share: Some(Share { version, percent }), ..before },
        (Some(_), None) | (None, _) => Choice::all(version),
    }
}

fn words(Choice { version, share }: Choice) -> String {
    match share {
        None => format!("version {version}"),
        Some(share) => format!("version {} for {} %, version {version} for the others", share.version, share.percent),
    }
}

/// What new orders begin with, in words, where it changes.
fn changed_choices(
    before: Option<&Deployment>,
    catalogue: &Catalogue,
    workflows: &BTreeMap<Arc<str>, Choice>,
) -> Vec<String> {
    let changed = workflows.iter().filter_map(|(name, choice)| {
        let was = catalogue.choice(before, name);
        match was {
            Some(was) if was == *choice => None,
            Some(was) => Some(format!("new orders of {name}: {} (was {})", words(*choice), words(was))),
            None => Some(format!("new orders of {name}: {}", words(*choice))),
        }
    });
    changed.collect()
}
