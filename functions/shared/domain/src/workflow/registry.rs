//! All versions of all workflows that ship together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{StepRule, Workflow, WorkflowError};
use crate::pin::Pin;

/// The workflows of a deployment. Cloning copies a pointer.
#[derive(Debug, Clone)]
pub struct Workflows(Arc<Registry>);

#[derive(Debug)]
struct Registry {
    by_name: BTreeMap<Arc<str>, BTreeMap<u32, Arc<Workflow>>>,
    current: Arc<Workflow>,
}

/// The texts of the shipped workflow, one for each version.
const SHIPPED: [&str; 1] = [include_str!("../../../../../infra/examples/shop/workflows/order-1.toml")];

impl Workflows {
    /// The agents of the shipped workflow.
    pub const SHIPPED_AGENTS: [&str; 3] = ["inventory", "payment", "shipping"];

    /// The shipped workflow `order` in all its versions.
    ///
    /// # Errors
    /// [`WorkflowError`]; a test of this crate ensures that there is none.
    pub fn shipped() -> Result<Self, WorkflowError> {
        Self::parse(&SHIPPED, "order", &Self::SHIPPED_AGENTS)
    }

    /// The text of a shipped version.
    #[must_use]
    pub fn shipped_text(pin: &Pin) -> Option<&'static str> {
        let is_it = |text: &&str| Workflow::read(text).is_ok_and(|workflow| workflow.pin() == *pin);
        SHIPPED.into_iter().find(is_it)
    }

    /// Reads workflows from TOML; new orders go to the highest version of the one named `current`.
    ///
    /// # Errors
    /// [`WorkflowError`] if one is invalid or given twice, or `current` is missing.
    pub fn parse(texts: &[&str], current: &str, agents: &[&str]) -> Result<Self, WorkflowError> {
        let workflows = texts.iter().map(|text| Workflow::parse(text, agents)).collect::<Result<Vec<_>, _>>()?;
        let mut by_name: BTreeMap<Arc<str>, BTreeMap<u32, Arc<Workflow>>> = BTreeMap::new();
        for workflow in workflows.into_iter().map(Arc::new) {
            let versions = by_name.entry(workflow.name.clone()).or_default();
            let (name, version) = (workflow.name.clone(), workflow.version);
            if versions.insert(version, workflow).is_some() {
                return Err(WorkflowError::DuplicateVersion { workflow: name.to_string(), version });
            }
        }
        let newest = by_name.get(current).and_then(|versions| versions.last_key_value());
        let current =
            newest.map(|(_, workflow)| workflow.clone()).ok_or_else(|| WorkflowError::Missing(current.to_owned()))?;
        Ok(Self(Arc::new(Registry { by_name, current })))
    }

    /// The workflow that new orders are pinned to.
    #[must_use]
    pub fn current(&self) -> &Arc<Workflow> {
        &self.0.current
    }

    /// The workflow that a task is pinned to.
    #[must_use]
    pub fn get(&self, name: &str, version: u32) -> Option<&Arc<Workflow>> {
        self.0.by_name.get(name)?.get(&version)
    }

    /// The newest version of a workflow.
    #[must_use]
    pub fn newest(&self, name: &str) -> Option<&Arc<Workflow>> {
        Some(self.0.by_name.get(name)?.last_key_value()?.1)
    }

    /// All versions of all workflows, by name and version.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Workflow>> {
        self.0.by_name.values().flat_map(BTreeMap::values)
    }

    /// The agents that any version of any workflow names, each once, sorted.
    #[must_use]
    pub fn agents(&self) -> Vec<Arc<str>> {
        let steps = self.all().flat_map(|workflow| &workflow.steps);
        let mut agents: Vec<Arc<str>> = steps.filter_map(StepRule::service).cloned().collect();
        agents.sort();
        agents.dedup();
        agents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\n";
    const V2: &str = "name = \"w\"\nversion = 2\n[[step]]\nname = \"b\"\nagent = \"x\"\n";

    #[test]
    fn the_shipped_workflow_is_valid_and_has_the_three_steps() {
        let workflows = Workflows::shipped().unwrap();
        let names: Vec<&str> = workflows.current().steps.iter().map(|rule| &*rule.name).collect();
        assert_eq!(names, ["reserve-inventory", "charge-payment", "ship-order"]);
        assert_eq!(workflows.agents().iter().map(|agent| &**agent).collect::<Vec<_>>(), Workflows::SHIPPED_AGENTS);
    }

    #[test]
    fn new_orders_go_to_the_newest_version_and_old_ones_stay() {
        let workflows = Workflows::parse(&[V2, V1], "w", &["x"]).unwrap();
        assert_eq!(workflows.current().version, 2);
        assert_eq!(&*workflows.get("w", 1).unwrap().steps[0].name, "a");
        assert!(workflows.get("w", 3).is_none());
        assert_eq!(workflows.all().map(|workflow| workflow.version).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn a_version_given_twice_or_a_missing_workflow_is_refused() {
        let twice = Workflows::parse(&[V1, V1], "w", &["x"]).unwrap_err();
        assert_eq!(twice, WorkflowError::DuplicateVersion { workflow: "w".to_owned(), version: 1 });
        assert_eq!(Workflows::parse(&[V1], "order", &["x"]).unwrap_err(), WorkflowError::Missing("order".to_owned()));
    }
}
