//! The agents of a process: one for each name, made of its settings when its first request comes.
//!
//! The settings are those that were applied, or else the host's. An agent keeps what it knows of its service until its
//! own settings change. Requests for an agent without valid settings are answered as misconfigured (rule 17): orders
//! wait, and an operator is alerted. None is lost, and none is compensated for it.
//!
//! A stand-in plays an agent only if its table names no URL, or nothing was applied and the agent is shipped. An agent
//! without a table may have had a real service before. A stand-in would only seem to undo what that service did.

#[cfg(test)]
mod tests;
mod webhooks;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use agent::{AgentPorts, Callbacks};
use domain::batch::{Cause, Failure, Failures, HasCause};
use domain::definition::Catalogue;
use domain::message::{Delivery, Request};
use domain::ports::{Environment, PortError};
use domain::time::Timestamp;
use domain::workflow::Workflows;
use futures_util::future::join_all;
use futures_util::lock::Mutex as Turns;

use crate::auth::Resolver;
use crate::client::HttpClients;
use crate::http_agent::{HttpAgent, http_agent, misconfigured};
use crate::settings::{AgentSettings, Settings};
use webhooks::Hooks;
pub use webhooks::WEBHOOKS;

/// The name of the applied settings in messages.
const APPLIED: &str = "stepwarden.toml";
/// How long a fault of the settings counts before they are read again, in milliseconds. A missing secret may be there
/// by then.
const FAULTY_MS: u64 = 5_000;

/// The settings that were applied to the running system.
pub trait Applied: Send + Sync {
    /// The version of the settings and their text; `None` if none were applied, or they name no agent. `newest` bypasses
    /// a cache.
    ///
    /// # Errors
    /// [`PortError`] if they cannot be read.
    fn settings(
        &self,
        ports: &impl AgentPorts,
        newest: bool,
    ) -> impl Future<Output = Result<Option<(u64, Arc<str>)>, PortError>> + Send;
}

impl Applied for Catalogue {
    async fn settings(&self, ports: &impl AgentPorts, newest: bool) -> Result<Option<(u64, Arc<str>)>, PortError> {
        let deployment = if newest { self.newest_deployment(ports).await? } else { self.deployment(ports).await? };
        Ok(deployment.and_then(|deployment| Some((deployment.version, deployment.agents()?.clone()))))
    }
}

/// Nothing is ever applied.
#[derive(Debug, Clone, Copy)]
pub struct NothingApplied;

impl Applied for NothingApplied {
    async fn settings(&self, _: &impl AgentPorts, _: bool) -> Result<Option<(u64, Arc<str>)>, PortError> {
        Ok(None)
    }
}

/// Adds the host's part to the settings of the agent of this name.
pub type HostPolicy = Box<dyn Fn(&str, &mut AgentSettings) + Send + Sync>;

/// The host's part of the settings.
pub struct Host {
    /// The settings of the agents, in TOML, if none were applied.
    pub settings: Arc<str>,
    /// Their name in messages.
    pub source: String,
    /// The base URLs of services, by agent, for settings without one.
    pub urls: BTreeMap<Arc<str>, Arc<str>>,
    /// The base URL of stand-ins for services without a URL: each is below it under its agent's name.
    pub stand_ins: Option<Arc<str>>,
    /// The addresses for results that come later. `None`: calls have none.
    pub callbacks: Option<Callbacks>,
    /// Adds to the settings of each agent.
    pub policy: HostPolicy,
    /// Reads secrets.
    pub secrets: Resolver,
}

/// The agents of a process.
pub struct Fleet<A> {
    applied: A,
    host: Host,
    clients: HttpClients,
    agents: Mutex<BTreeMap<Arc<str>, Slot>>,
    hooks: Mutex<Option<Hooks>>,
    stopping: Arc<AtomicBool>,
}

type Slot = Arc<Turns<Option<Known>>>;

/// An agent, and the settings that it was made of.
struct Known {
    agent: Arc<HttpAgent>,
    /// The version of the applied settings.
    version: Option<u64>,
    /// Its own table.
    table: Option<toml::Value>,
    /// When a fault was found in it.
    faulty_at: Option<Timestamp>,
}

impl<A: Applied> Fleet<A> {
    /// No agent is made yet.
    #[must_use]
    pub fn new(applied: A, host: Host, clients: HttpClients) -> Self {
        Self { applied, host, clients, agents: Mutex::default(), hooks: Mutex::default(), stopping: Arc::default() }
    }

    /// The same agents, whose calls have these addresses for results that come later.
    #[must_use]
    pub fn called_back(self, callbacks: Callbacks) -> Self {
        Self { host: Host { callbacks: Some(callbacks), ..self.host }, ..self }
    }

    /// The same agents, with the settings that are applied here.
    #[must_use]
    pub fn applying<B: Applied>(self, applied: B) -> Fleet<B> {
        Fleet::new(applied, self.host, self.clients)
    }

    /// From now on no call starts. Requests go back to their queue (rule 25).
    pub fn stop_calling(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Takes requests off a queue: each goes to its agent. Failures must be delivered again.
    pub async fn handle(&self, ports: &impl AgentPorts, batch: Vec<Delivery<Request>>) -> Failures {
        let (mut requests, mut refused) = (BTreeMap::<Arc<str>, Vec<_>>::new(), Vec::new());
        for delivery in batch {
            match &delivery.body {
                Ok(request) => requests.entry(request.agent.clone()).or_default().push(delivery),
                Err(_) => refused.push(delivery),
            }
        }
        let of_agents = requests.into_iter().map(|(name, batch)| self.handle_of(name, ports, batch));
        let mut failures = agent::refuse(refused);
        failures.0.extend(join_all(of_agents).await.into_iter().flat_map(|failed| failed.0));
        failures
    }

    async fn handle_of(&self, name: Arc<str>, ports: &impl AgentPorts, batch: Vec<Delivery<Request>>) -> Failures {
        match self.agent(ports, &name).await {
            Ok(Some(agent)) => agent::handle(ports, &agent, batch).await,
            Ok(None) => agent::refuse(batch),
            Err(error) => {
                tracing::warn!(agent = &*name, "the settings of the agents cannot be read: {error}");
                let cause = if error.may_pass() { Cause::Passing } else { Cause::Lasting };
                let failed = batch.into_iter().map(|Delivery { receipt, .. }| Failure { receipt, cause });
                Failures(failed.collect())
            }
        }
    }

    /// The agent of this name; `None` if no agent can have this name.
    ///
    /// # Errors
    /// [`PortError`] if the applied settings cannot be read.
    pub async fn agent(&self, ports: &impl AgentPorts, name: &Arc<str>) -> Result<Option<Arc<HttpAgent>>, PortError> {
        let slot = self.agents.lock().unwrap_or_else(PoisonError::into_inner).entry(name.clone()).or_default().clone();
        let mut slot = slot.lock().await;
        let applied = self.applied.settings(ports, false).await?;
        let now = ports.environment().now();
        let is_kept = |known: &Known| {
            let is_over = |at: Timestamp| at.plus_ms(FAULTY_MS) <= now || now < at;
            known.version == version(&applied) && !known.faulty_at.is_some_and(is_over)
        };
        if let Some(known) = slot.as_ref().filter(|known| is_kept(known)) {
            return Ok(Some(known.agent.clone()));
        }
        // Boxed, so that the future of another batch stays small.
        let mut made = Box::pin(self.make(slot.take(), name, &applied, now)).await;
        if made.as_ref().is_some_and(|known| known.faulty_at.is_some()) {
            // The cached settings may be older than the request.
            let newest = self.applied.settings(ports, true).await?;
            if version(&newest) != version(&applied) {
                made = Box::pin(self.make(None, name, &newest, now)).await;
            }
        }
        *slot = made;
        Ok(slot.as_ref().map(|known| known.agent.clone()))
    }

    /// Makes the agent, unless the known one has the same settings.
    async fn make(
        &self,
        known: Option<Known>,
        name: &str,
        applied: &Option<(u64, Arc<str>)>,
        now: Timestamp,
    ) -> Option<Known> {
        let text = applied.as_ref().map_or(&self.host.settings, |(_, text)| text);
        let (version, table) = (version(applied), table_of(text, name));
        if let Some(known) = known
            && known.faulty_at.is_none()
            && known.version.is_some() == version.is_some()
            && known.table == table
        {
            return Some(Known { version, ..known });
        }
        let source = if applied.is_some() { APPLIED } else { &self.host.source };
        match self.valid(source, text, name, applied.is_some()).await {
            Ok(agent) => Some(Known {
                agent: Arc::new(agent.called_back(self.host.callbacks.clone()).stopped_by(self.stopping.clone())),
                version,
                table,
                faulty_at: None,
            }),
            Err(fault) => {
                tracing::error!(agent = name, "the agent cannot call its service: {fault}");
                let mut settings = AgentSettings::default();
                (self.host.policy)(name, &mut settings);
                // No further call can have another result.
                settings.policy.health.failures_to_open = 1;
                let agent = misconfigured(name, settings.policy.clone(), &fault).ok()?;
                Some(Known { agent: Arc::new(agent), version, table, faulty_at: Some(now) })
            }
        }
    }

    /// The agent as its settings say.
    async fn valid(&self, source: &str, text: &str, name: &str, is_applied: bool) -> Result<HttpAgent, String> {
        let settings = Settings::read(source, text, &[name], &self.host.secrets, &self.clients).await;
        let settings = settings.map_err(|faults| faults.to_string())?.of(name).cloned();
        let may_be_played = settings.is_some() || (!is_applied && Workflows::SHIPPED_AGENTS.contains(&name));
        let mut settings = settings.unwrap_or_default();
        if settings.has_own_queue {
            return Err(format!(
                "agents.{name} of {source} has a queue of its own, and its requests come here: name the queue in the \
                 parameter AgentQueues of the deployment"
            ));
        }
        (self.host.policy)(name, &mut settings);
        if settings.webhook.is_some() && settings.policy.memo.is_some() {
            return Err(format!(
                "agents.{name} of {source} has a webhook, and a memo does not know of results that come later: leave the memo out"
            ));
        }
        let base = self
            .host
            .base(name, &settings, may_be_played)
            .ok_or_else(|| format!("agents.{name} has no url: give it one in {source}, and apply it"))?;
        let setting = format!("agents.{name}.url");
        let variable = if settings.url().is_some() { setting } else { format!("{}_URL", name.to_uppercase()) };
        http_agent(name, &base, settings, &self.clients).map_err(|fault| format!("{variable}: {fault}"))
    }

    /// Makes these agents of the host's settings, to find their faults at the start.
    ///
    /// # Errors
    /// Each fault, once.
    pub async fn check(&self, names: &[&str]) -> Result<(), Vec<String>> {
        let mut faults: Vec<String> = Vec::new();
        for name in names {
            if let Err(fault) = self.valid(&self.host.source, &self.host.settings, name, false).await
                && !faults.contains(&fault)
            {
                faults.push(fault);
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }
}

impl Host {
    fn base(&self, name: &str, settings: &AgentSettings, may_be_played: bool) -> Option<String> {
        let own = settings.url().or_else(|| self.urls.get(name).map(|url| &**url)).map(str::to_owned);
        let stand_ins = self.stand_ins.as_deref().filter(|_| may_be_played);
        own.or_else(|| Some(format!("{}/{name}", stand_ins?)))
    }
}

fn version(applied: &Option<(u64, Arc<str>)>) -> Option<u64> {
    applied.as_ref().map(|(version, _)| *version)
}

/// The table of an agent. A text with faults has none.
fn table_of(text: &str, name: &str) -> Option<toml::Value> {
    let mut root: toml::Table = toml::from_str(text).ok()?;
    let toml::Value::Table(agents) = root.get_mut("agents")? else { return None };
    agents.remove(name)
}

impl<A> std::fmt::Debug for Fleet<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("source", &self.host.source).finish_non_exhaustive()
    }
}
