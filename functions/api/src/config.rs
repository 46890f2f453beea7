//! What the API was told by its deployment.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::limits::DOCUMENT_BYTES_MAX;
use domain::message::Priority;
use domain::redaction::Redaction;
use domain::workflow::Workflows;

/// Longest body that is looked at, in bytes. A host reads at most one byte more, so that a longer body is seen as such.
pub const BODY_BYTES_MAX: usize = DOCUMENT_BYTES_MAX;

/// The API's configuration; it does not change while the process runs.
#[derive(Debug, Clone, Default)]
pub struct ApiConfig {
    /// Names that an order may give as its `ReplyChannel` (rule 10).
    reply_channels: BTreeSet<Arc<str>>,
    /// Names of the agents, which are those of the remote services.
    services: BTreeSet<Arc<str>>,
    /// The priority of orders that name none.
    priority: Priority,
    /// All that orders may go through.
    workflows: Option<Workflows>,
    /// What is not shown of documents and outputs.
    redaction: Redaction,
}

impl ApiConfig {
    /// An API that knows these reply channels by name.
    #[must_use]
    pub fn new<Name: Into<Arc<str>>>(reply_channels: impl IntoIterator<Item = Name>) -> Self {
        let reply_channels = reply_channels.into_iter().map(Into::into).collect();
        Self { reply_channels, ..Self::default() }
    }

    /// The priority of orders that name none: that of the workflow that they will get. Without it, the normal one.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// The names of all agents, whose services are listed even if they never failed.
    #[must_use]
    pub fn with_services<Name: Into<Arc<str>>>(mut self, agents: impl IntoIterator<Item = Name>) -> Self {
        self.services = agents.into_iter().map(Into::into).collect();
        self
    }

    /// What orders go through: their priority and their services are those of these workflows.
    #[must_use]
    pub fn with_workflows(self, workflows: &Workflows) -> Self {
        let known = self.with_priority(workflows.current().priority).with_services(workflows.agents());
        Self { workflows: Some(workflows.clone()), ..known }
    }

    /// The names of members whose values are not shown, in documents and outputs. Without it, all are.
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

    /// The priority that an order is queued in, where it names `named`. Nothing stands for the priority that nobody has to name.
    pub(crate) fn priority(&self, named: Option<Priority>) -> Option<Priority> {
        named.or_else(|| (!self.priority.is_normal()).then_some(self.priority))
    }

    /// The names of the remote services, sorted.
    pub(crate) const fn services(&self) -> &BTreeSet<Arc<str>> {
        &self.services
    }

    /// What orders go through, where it was told.
    pub(crate) const fn workflows(&self) -> Option<&Workflows> {
        self.workflows.as_ref()
    }

    /// What is not shown of documents and outputs.
    pub(crate) const fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}
