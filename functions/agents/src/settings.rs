//! The settings of agents, with the secrets that they refer to. The crate `config` reads the settings themselves.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use agent::Policy;
pub use config::BadSettings;
use domain::located::Reader;

use crate::auth::{Auth, Resolver};
use crate::client::HttpClients;

/// The settings of all agents that a file names.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    file: config::Settings,
    agents: BTreeMap<Arc<str>, AgentSettings>,
}

/// The settings of one agent. The default is that of an agent without any.
#[derive(Debug, Clone, Default)]
pub struct AgentSettings {
    of_file: config::AgentSettings,
    /// Its secrets, if it has any.
    pub(crate) auth: Option<Arc<Auth>>,
}

impl Settings {
    /// Reads the settings of the agents, and the secrets of those that are `served` here. `file` is the name for
    /// messages.
    ///
    /// # Errors
    /// [`BadSettings`] with every fault of the text or, if it has none, of the secrets.
    pub async fn read(
        file: &str,
        text: &str,
        served: &[&str],
        resolver: &Resolver,
        clients: &HttpClients,
    ) -> Result<Self, BadSettings> {
        let parsed = config::Settings::parse(file, text)?;
        let mut settings = Self::from(parsed.clone());
        let mut reader = Reader::new(text);
        for (name, of_file) in parsed.all() {
            if !served.contains(&&**name) {
                continue;
            }
            // Without its secrets no result of its calls can come in (rule 41).
            if let Some(webhook) = &of_file.webhook {
                let faults = crate::webhook::faults(webhook, resolver).await;
                faults.into_iter().for_each(|(at, problem)| reader.blame(at, problem));
            }
            if of_file.auth.is_empty() {
                continue;
            }
            match Auth::start(of_file.auth.clone(), resolver.clone(), clients).await {
                Ok(auth) => settings.agents.entry(name.clone()).or_default().auth = Some(Arc::new(auth)),
                Err(faults) => faults.into_iter().for_each(|(at, problem)| reader.blame(at, problem)),
            }
        }
        reader.finish(settings).map_err(|faults| BadSettings::new(file, faults))
    }

    /// The agents that the file names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.file.names()
    }

    /// The settings of an agent, if the file has any.
    #[must_use]
    pub fn of(&self, agent: &str) -> Option<&AgentSettings> {
        self.agents.get(agent)
    }

    /// The time for which calls for a step of an agent may still have their effect, in milliseconds: the longest of the
    /// agent and its fallback. `None` if the file does not name the agent.
    #[must_use]
    pub fn settles_within_ms(&self, agent: &str) -> Option<u64> {
        self.file.settles_within_ms(agent)
    }
}

/// Without secrets.
impl From<config::Settings> for Settings {
    fn from(file: config::Settings) -> Self {
        let agents = file.all().map(|(name, of_file)| (name.clone(), AgentSettings::from(of_file.clone()))).collect();
        Self { file, agents }
    }
}

impl AgentSettings {
    /// This policy, and otherwise the default.
    #[must_use]
    pub fn with_policy(policy: Policy) -> Self {
        config::AgentSettings::with_policy(policy).into()
    }

    /// The base URL of its service.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.of_file.url()
    }
}

/// Without secrets.
impl From<config::AgentSettings> for AgentSettings {
    fn from(of_file: config::AgentSettings) -> Self {
        Self { of_file, auth: None }
    }
}

impl Deref for AgentSettings {
    type Target = config::AgentSettings;

    fn deref(&self) -> &config::AgentSettings {
        &self.of_file
    }
}

impl DerefMut for AgentSettings {
    fn deref_mut(&mut self) -> &mut config::AgentSettings {
        &mut self.of_file
    }
}
