//! What applying a folder changes, and why it is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::definition::{Catalogue, Choice, Definition, Deployment, Pin, Share};
use domain::time::Timestamp;
use domain::workflow::{Workflow, Workflows, agent_names};

use super::{Application, Applied, difference};
use crate::folder::{Checked, CheckedWorkflow};

/// Lines of a difference that are told.
const DIFFERENCE_LINES_MAX: usize = 20;

/// The changes of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The new versions.
    pub definitions: Vec<Definition>,
    /// The next deployment. `None`: it stays as it is.
    pub deployment: Option<Deployment>,
    /// The same in words, a line each. Empty: nothing changes.
    pub changes: Vec<String>,
}

/// Why a folder is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another content was applied under the same version.
    #[error("{file}: workflow {pin} was applied with other content, and a version never changes: give this one the next version\n{}", .difference.join("\n"))]
    Changed {
        /// The file.
        file: Arc<str>,
        /// The workflow.
        pin: Pin,
        /// The lines that differ.
        difference: Vec<String>,
    },
    /// New orders would begin with a version that was retired.
    #[error("{file}: workflow {pin} was retired: give it a later version")]
    Retired {
        /// The file.
        file: Arc<str>,
        /// The workflow.
        pin: Pin,
    },
    /// An agent is left out that applied workflows name.
    #[error(
        "stepwarden.toml has no table [agents.{agent}], which {pin} names: keep it until the last order of this version is finished, and retire the version first"
    )]
    AgentInUse {
        /// The agent.
        agent: Arc<str>,
        /// A version that names it.
        pin: Pin,
    },
}

impl Refusal {
    /// All of them, a line or more each.
    pub(super) fn lines(refusals: &[Self]) -> String {
        refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl Plan {
    /// The changes from `applied` to this folder.
    ///
    /// # Errors
    /// All refusals.
    pub fn of(
        checked: &Checked,
        applied: &Applied,
        catalogue: &Catalogue,
        application: &Application,
        now: Timestamp,
    ) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Vec::new();
        let definitions = new_definitions(checked, applied, application, now, &mut refusals);
        agents_in_use(checked, applied, &mut refusals);
        let before = applied.deployment.as_ref();
        let mut workflows = before.map(|before| before.workflows.clone()).unwrap_or_default();
        for (name, newest) in newest(checked) {
            let choice = next_choice(catalogue.choice(before, name), newest.workflow.version, application);
            if choice.versions().any(|version| version == newest.workflow.version) && is_retired(applied, newest) {
                refusals.push(Refusal::Retired { file: newest.file.clone(), pin: newest.workflow.pin() });
            }
            workflows.insert(name.clone(), choice);
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let default = checked.default.clone().unwrap_or_else(|| catalogue.default_name(before));
        let settings = checked.deployment_text.clone();
        let mut changes: Vec<String> = definitions.iter().map(|new| format!("workflow {}: new", new.key)).collect();
        changes.extend(changed_choices(before, catalogue, &workflows));
        if default != catalogue.default_name(before) {
            changes.push(format!("default workflow: {default} (was {})", catalogue.default_name(before)));
        }
        changes.extend(changed_agents(before.map_or("", |before| &before.settings), &settings));
        let is_same = before.is_some_and(|before| {
            (&before.default, &before.workflows, &before.settings) == (&default, &workflows, &settings)
        });
        let deployment = (!is_same).then(|| Deployment {
            version: before.map_or(0, |before| before.version) + 1,
            default,
            workflows,
            settings,
            applied_at: now,
            applied_by: application.by.clone(),
        });
        if deployment.is_some() && changes.is_empty() {
            changes.push("stepwarden.toml: new text".to_owned());
        }
        Ok(Self { definitions, deployment, changes })
    }
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

/// Orders of an applied version may be under way, so its agents must keep their settings.
fn agents_in_use(checked: &Checked, applied: &Applied, refusals: &mut Vec<Refusal>) {
    let known: BTreeSet<&str> = checked.settings.names().chain(Workflows::SHIPPED_AGENTS).collect();
    let mut missing = BTreeMap::new();
    for (pin, definition) in applied.definitions.iter().filter(|(_, definition)| definition.retired_at.is_none()) {
        let steps = Workflow::read(&definition.text).map(|workflow| workflow.steps).unwrap_or_default();
        for rule in steps.into_iter().filter(|rule| !known.contains(&*rule.agent)) {
            missing.entry(rule.agent).or_insert_with(|| pin.clone());
        }
    }
    refusals.extend(missing.into_iter().map(|(agent, pin)| Refusal::AgentInUse { agent, pin }));
}

/// The newest version of each workflow in the folder.
fn newest(checked: &Checked) -> BTreeMap<&Arc<str>, &CheckedWorkflow> {
    // They are sorted by version, so the last one stays.
    checked.workflows.iter().map(|checked| (&checked.workflow.name, checked)).collect()
}

fn is_retired(applied: &Applied, checked: &CheckedWorkflow) -> bool {
    applied.definitions.get(&checked.workflow.pin()).is_some_and(|definition| definition.retired_at.is_some())
}

/// A later version is for all new orders, or for a share of them. A folder that is older changes nothing.
fn next_choice(before: Option<Choice>, newest: u32, application: &Application) -> Choice {
    match (before, application.share_percent) {
        (Some(before), Some(percent)) if before.version < newest => {
            Choice { share: Some(Share { version: newest, percent }), ..before }
        }
        (Some(before), None) if before.version < newest && before.share.is_none_or(|share| share.version < newest) => {
            Choice::all(newest)
        }
        (Some(before), _) => before,
        (None, _) => Choice::all(newest),
    }
}

/// What new orders begin with, in words, where it changes.
fn changed_choices(
    before: Option<&Deployment>,
    catalogue: &Catalogue,
    workflows: &BTreeMap<Arc<str>, Choice>,
) -> Vec<String> {
    let words = |Choice { version, share }: Choice| match share {
        None => format!("version {version}"),
        Some(share) => format!("version {} for {} %, version {version} for the others", share.version, share.percent),
    };
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

/// The agents whose settings change, in words.
fn changed_agents(before: &str, after: &str) -> Vec<String> {
    let tables = |text: &str| -> BTreeMap<String, toml::Value> {
        let file: toml::Table = text.parse().unwrap_or_default();
        let agents = file.get("agents").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        agents.into_iter().collect()
    };
    let (old, new) = (tables(before), tables(after));
    let names: BTreeSet<Arc<str>> = agent_names(before).into_iter().chain(agent_names(after)).collect();
    let word = |name: &str| match (old.get(name), new.get(name)) {
        (None, Some(_)) => Some("new"),
        (Some(_), None) => Some("no settings any more"),
        (Some(old), Some(new)) if old != new => Some("changed"),
        (Some(_), Some(_)) | (None, None) => None,
    };
    names.iter().filter_map(|name| Some(format!("agent {name}: {}", word(name)?))).collect()
}
