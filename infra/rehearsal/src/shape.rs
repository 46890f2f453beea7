//! The agents and workflows of a world.

use std::sync::Arc;

use domain::task::Task;
use domain::workflow::{Workflow, Workflows};

/// The queues by index: submission, scheduler, one for each agent, and one for all dead letters ([`Shape::dead_letters`]).
pub const SUBMISSION: usize = 0;
/// Wakes, replies and commands.
pub const SCHEDULER: usize = 1;
/// Requests of the first agent.
pub const FIRST_AGENT: usize = 2;

/// The workflows of a world. One is compiled in, in two versions; the second is deployed later or never.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Its agents.
    pub agents: Vec<Arc<str>>,
    /// The names of the steps of all its workflows. In the worlds of the tests a step's index among them is its index in its
    /// workflow. In the record of an order it may be another: a user's workflows have different steps, and lines.
    pub steps: Vec<Arc<str>>,
    /// Before the deployment.
    pub first: Workflows,
    /// After it.
    pub both: Workflows,
    /// Version 1.
    pub one: Arc<Workflow>,
    /// Version 2.
    pub two: Arc<Workflow>,
    /// Versions that are not compiled in. A version number is unique over all workflows.
    pub applied: Vec<Version>,
    /// Whether the horizons are short.
    pub short_horizon: bool,
}

/// A version that may be applied.
#[derive(Debug, Clone)]
pub struct Version {
    /// In TOML.
    pub text: Arc<str>,
    /// The same.
    pub workflow: Arc<Workflow>,
}

impl Shape {
    /// Its versions.
    pub fn versions(&self) -> impl Iterator<Item = &Arc<Workflow>> {
        [&self.one, &self.two].into_iter().chain(self.applied.iter().map(|version| &version.workflow))
    }

    /// The workflow of an order. Its steps with lines stand there once.
    #[must_use]
    pub fn workflow_of(&self, task: &Task) -> Option<&Arc<Workflow>> {
        let own = (&task.workflow, task.workflow_version);
        self.versions().find(|workflow| (&workflow.name, workflow.version) == own)
    }

    /// Whether some step goes through an array of the order (rule 50).
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.versions().flat_map(|workflow| &workflow.steps).any(|rule| rule.for_each.is_some())
    }

    /// The name of the workflow that is compiled in.
    #[must_use]
    pub fn compiled(&self) -> &Arc<str> {
        &self.one.name
    }

    /// The index of the queue of the dead letters.
    #[must_use]
    pub fn dead_letters(&self) -> usize {
        FIRST_AGENT + self.agents.len()
    }

    /// The place of an agent.
    #[must_use]
    pub fn place_of(&self, agent: &str) -> Option<usize> {
        self.agents.iter().position(|name| **name == *agent)
    }

    /// The index of a step.
    #[must_use]
    pub fn index_of(&self, step: &str) -> Option<usize> {
        self.steps.iter().position(|name| **name == *step)
    }
}
