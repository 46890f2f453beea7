//! The configuration of the API by its deployment.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::json::Json;
use domain::limits::DOCUMENT_BYTES_MAX;
use domain::message::Priority;
use domain::redaction::Redaction;
use domain::workflow::Workflows;

use crate::problem::Problem;

/// Longest body that is read, in bytes. A host reads at most one byte more, so that a longer body is recognised.
pub const BODY_BYTES_MAX: usize = DOCUMENT_BYTES_MAX;

/// The API's configuration; it does not change while the process runs.
#[derive(Debug, Clone, Default)]
pub struct ApiConfig {
    /// The registered reply channels: the valid values of `ReplyChannel` (rule 10).
    reply_channels: BTreeSet<Arc<str>>,
    /// The names of the agents, which are the names of the remote services.
    services: BTreeSet<Arc<str>>,
    /// The priority of orders that name none.
    priority: Priority,
    /// The workflows of the deployment.
    workflows: Option<Workflows>,
    /// The redaction of documents and outputs.
    redaction: Redaction,
}

impl ApiConfig {
    /// An API with these registered reply channels.
    #[must_use]
    pub fn new<Name: Into<Arc<str>>>(reply_channels: impl IntoIterator<Item = Name>) -> Self {
        let reply_channels = reply_channels.into_iter().map(Into::into).collect();
        Self { reply_channels, ..Self::default() }
    }

    /// The priority of orders that name none: that of their workflow. Without it, the normal one.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// The names of all agents. Their services are listed even if they never failed.
    #[must_use]
    pub fn with_services<Name: Into<Arc<str>>>(mut self, agents: impl IntoIterator<Item = Name>) -> Self {
        self.services = agents.into_iter().map(Into::into).collect();
        self
    }

    /// The workflows of the deployment, with their priority and their services.
    #[must_use]
    pub fn with_workflows(self, workflows: &Workflows) -> Self {
        let known = self.with_priority(workflows.current().priority).with_services(workflows.agents());
        Self { workflows: Some(workflows.clone()), ..known }
    }

    /// The names of members whose values are not shown, in documents and outputs. Without it, all are shown.
    #[must_use]
    pub fn redacting<Name: AsRef<str>>(mut self, names: impl IntoIterator<Item = Name>) -> Self {
        self.redaction = Redaction::of(names);
        self
    }

    /// Whether a reply channel of this name is registered.
    #[must_use]
    pub fn knows(&self, reply_channel: &str) -> bool {
        self.reply_channels.contains(reply_channel)
    }

    /// Refuses a document with members that no order of the workflow may carry (rule 19).
    ///
    /// # Errors
    /// [`Problem::MemberRefused`], with their names.
    pub(crate) fn check(&self, document: &Json) -> Result<(), Problem> {
        let Some(workflow) = self.workflows.as_ref().map(Workflows::current) else { return Ok(()) };
        let names: Vec<String> = workflow.refuse.met_by(document).into_iter().map(str::to_owned).collect();
        match names.is_empty() {
            true => Ok(()),
            false => Err(Problem::MemberRefused { workflow: workflow.name.clone(), names }),
        }
    }

    /// The priority of an order that names `named`. `None` stands for the default priority.
    pub(crate) fn priority(&self, named: Option<Priority>) -> Option<Priority> {
        named.or_else(|| (!self.priority.is_normal()).then_some(self.priority))
    }

    /// The names of the remote services, sorted.
    pub(crate) const fn services(&self) -> &BTreeSet<Arc<str>> {
        &self.services
    }

    /// The workflows, if the deployment has set them.
    pub(crate) const fn workflows(&self) -> Option<&Workflows> {
        self.workflows.as_ref()
    }

    /// The redaction of documents and outputs.
    pub(crate) const fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}
