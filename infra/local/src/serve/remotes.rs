//! The remote services, real or stand-ins, and the agents that call them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agents::{
    AgentSettings, Fleet, Host, HostPolicy, HttpClients, NothingApplied, Operations, Remote, Settings, Variable,
    machine_secrets,
};
use domain::workflow::Workflows;
use embedded::system_time;

use standins::Service;

use crate::BadSetting;
use crate::open_files;
use crate::stand_ins::StandIns;

/// The URLs of the remote services, and the settings of their agents.
#[derive(Debug, Clone, Default)]
pub struct RemoteSettings {
    /// The base URLs of services, by agent.
    pub urls: BTreeMap<Arc<str>, Arc<str>>,
    /// Services that ignore idempotency keys. Their agents store the results.
    pub memo: Vec<Service>,
    /// The most waiting orders released per second when a failed service recovers.
    pub release_max: Option<u32>,
    /// The time for which a call without an answer may still have its effect, in milliseconds, for the agents without a
    /// time of their own (rule 16).
    pub settles_within_ms: Option<u64>,
    /// The name and the text of `stepwarden.toml`. Its URLs are used before those above.
    pub file: Option<(String, Arc<str>)>,
    /// The environment, for the secrets in that file.
    pub variable: Option<Variable>,
}

impl RemoteSettings {
    /// The settings with these base URLs of the shipped services. An empty one is none.
    ///
    /// # Errors
    /// [`BadSetting`] with those that cannot be used.
    pub fn at(given: [Option<&str>; 3]) -> Result<Self, BadSetting> {
        let (mut urls, mut faults) = (BTreeMap::new(), Vec::new());
        for (agent, url) in Workflows::SHIPPED_AGENTS.into_iter().zip(given) {
            let Some(url) = url.map(str::trim).filter(|url| !url.is_empty()) else { continue };
            if let Err(fault) = Remote::new(url, Operations::usual(agent)) {
                faults.push(format!("{}_URL: {fault}", agent.to_uppercase()));
            }
            urls.insert(agent.into(), url.into());
        }
        if faults.is_empty() { Ok(Self { urls, ..Self::default() }) } else { Err(faults_of(&faults)) }
    }
}

/// The agents, and the stand-ins for services without a URL.
#[derive(Debug)]
pub struct Remotes {
    pub(super) agents: Fleet<NothingApplied>,
    settings: Settings,
    settles_within_ms: Option<u64>,
    /// The agents with a URL of the command line or the environment.
    pub(super) served: BTreeSet<Arc<str>>,
    pub(super) stand_ins: Option<StandIns>,
}

impl Remotes {
    /// Builds the agents from the settings of the command line and the environment. A stand-in replaces a service without
    /// a URL, and keeps its newest `stand_in_keys_max` idempotency keys.
    ///
    /// # Errors
    /// [`BadSetting`]; its message is one line.
    pub async fn start(settings: &RemoteSettings, stand_in_keys_max: usize) -> Result<Self, BadSetting> {
        let clients = HttpClients::with_calls_max(open_files::for_calls());
        let secrets = machine_secrets(settings.variable.unwrap_or(|_| None), system_time, &clients);
        let (source, text) = settings.file.clone().unwrap_or_default();
        let parsed = Settings::read(&source, &text, &[], &secrets, &clients).await;
        let parsed = parsed.map_err(|error| BadSetting(error.to_string()))?;
        let urls = settings.urls.clone();
        let has_url =
            |agent: &&str| parsed.of(agent).is_some_and(|own| own.url().is_some()) || urls.contains_key(*agent);
        let needs_stand_in = !Workflows::SHIPPED_AGENTS.iter().all(has_url);
        let served = urls.keys().cloned().collect();
        let stand_ins = match needs_stand_in {
            true => Some(
                StandIns::start_anywhere(stand_in_keys_max)
                    .await
                    .map_err(|error| BadSetting(format!("cannot start the stand-ins: {error}")))?,
            ),
            false => None,
        };
        let host = Host {
            settings: text,
            source,
            urls,
            stand_ins: stand_ins.as_ref().map(|stand_ins| stand_ins.url().into()),
            callbacks: None,
            policy: policy(settings),
            secrets,
        };
        let agents = Fleet::new(NothingApplied, host, clients);
        let named = parsed.names().filter(|name| !Workflows::SHIPPED_AGENTS.contains(name));
        let names: Vec<&str> = Workflows::SHIPPED_AGENTS.into_iter().chain(named).collect();
        if stand_ins.is_none() {
            without_url(&parsed, &names)?;
        }
        agents.check(&names).await.map_err(|faults| faults_of(&faults))?;
        let settles_within_ms = settings.settles_within_ms;
        Ok(Self { agents, settings: parsed, settles_within_ms, served, stand_ins })
    }

    /// The times for which calls without an answer may still have their effect, by agent, where they are set.
    pub(super) fn all_settle_within_ms(&self) -> BTreeMap<Arc<str>, u64> {
        let of = |agent: &str| self.settings.settles_within_ms(agent).or(self.settles_within_ms);
        Workflows::SHIPPED_AGENTS.into_iter().filter_map(|agent| Some((agent.into(), of(agent)?))).collect()
    }

    /// The stand-ins, where a service has no URL of its own.
    #[must_use]
    pub const fn stand_ins(&self) -> Option<&StandIns> {
        self.stand_ins.as_ref()
    }
}

/// All of them at once.
fn faults_of(faults: &[String]) -> BadSetting {
    BadSetting(faults.join("; "))
}

/// All three services have a URL, so there are no stand-ins: every other agent needs one too.
///
/// # Errors
/// The agents without one.
fn without_url(settings: &Settings, names: &[&str]) -> Result<(), BadSetting> {
    let of = |name: &&str| settings.of(name).filter(|agent| agent.url().is_none() && !agent.has_own_queue);
    let others = names.iter().filter(|name| !Workflows::SHIPPED_AGENTS.contains(name) && of(name).is_some());
    let advice = "give it one. Stand-ins run only while inventory, payment or shipping has none";
    let faults: Vec<String> = others.map(|name| format!("agents.{name} has no url: {advice}")).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults_of(&faults)) }
}

/// The margin before `CompleteBy` in which no call starts, in milliseconds. During an outage thousands of requests wait
/// until just before it. One that wakes up after `CompleteBy` counts as a failure, so the margin covers a late wake-up.
/// The steps of the shipped workflow have 30 s.
const MARGIN_MS: u64 = 1_000;

/// What the command line adds to the policy of an agent.
fn policy(options: &RemoteSettings) -> HostPolicy {
    let (memo, release_max) = (options.memo.clone(), options.release_max);
    Box::new(move |agent: &str, settings: &mut AgentSettings| {
        let policy = &mut settings.policy;
        policy.margin_ms = MARGIN_MS;
        if let Some(release_max) = release_max {
            policy.health.release_max = release_max;
            policy.health.release_first = policy.health.release_first.min(release_max);
        }
        if memo.iter().any(|service| service.name() == agent) {
            policy.memo.get_or_insert_default();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_ins::KEYS_UNLIMITED;

    fn urls(inventory: &str, payment: &str, shipping: &str) -> RemoteSettings {
        RemoteSettings::at([inventory, payment, shipping].map(Some)).unwrap()
    }

    #[test]
    fn a_memo_is_for_the_services_that_need_one_and_the_release_is_for_all() {
        let policy = |options: &RemoteSettings, agent: &str| {
            let mut of_agent = AgentSettings::default();
            policy(options)(agent, &mut of_agent);
            of_agent.policy.clone()
        };
        let shipped = agent::Policy { margin_ms: MARGIN_MS, ..agent::Policy::default() };
        assert_eq!(policy(&RemoteSettings::default(), "payment"), shipped);
        let settings =
            RemoteSettings { memo: vec![Service::Payment], release_max: Some(7), ..RemoteSettings::default() };
        let policies = Workflows::SHIPPED_AGENTS.map(|agent| policy(&settings, agent));
        assert_eq!(policies.each_ref().map(|policy| policy.memo.is_some()), [false, true, false]);
        assert!(policies.iter().all(|policy| (policy.health.release_first, policy.health.release_max) == (7, 7)));
    }

    #[tokio::test]
    async fn a_stand_in_plays_a_service_whose_url_is_not_given_or_empty() {
        let none = Remotes::start(&RemoteSettings::default(), KEYS_UNLIMITED).await.unwrap();
        assert!(none.stand_ins().is_some());
        let empty =
            Remotes::start(&urls("http://localhost:1", " ", "http://localhost:3"), KEYS_UNLIMITED).await.unwrap();
        assert!(empty.stand_ins().is_some());
        let all = urls("http://localhost:1", "http://localhost:2/pay/", "http://localhost:3");
        assert!(Remotes::start(&all, KEYS_UNLIMITED).await.unwrap().stand_ins().is_none());
    }

    #[test]
    fn every_bad_url_is_named_in_one_line() {
        let error = RemoteSettings::at([Some("nonsense"), None, Some("ftp://localhost")]).unwrap_err().to_string();
        assert!(error.contains("INVENTORY_URL") && error.contains("SHIPPING_URL"), "{error}");
        assert!(!error.contains("PAYMENT_URL") && !error.contains('\n'), "{error}");
    }

    /// The settings of this file.
    async fn start_with(text: &str) -> Result<Remotes, BadSetting> {
        let settings = RemoteSettings {
            memo: vec![Service::Shipping],
            file: Some(("stepwarden.toml".to_owned(), text.into())),
            ..urls("http://localhost:1", "", "http://localhost:3")
        };
        Remotes::start(&settings, KEYS_UNLIMITED).await
    }

    #[tokio::test]
    async fn a_file_sets_what_it_names_and_its_url_is_used_first() {
        let text = "[agents.payment]\nurl = \"http://localhost:2\"\nsettles_within = \"2m\"\ncall_timeout = \"15s\"";
        let remotes = start_with(text).await.unwrap();
        assert!(remotes.stand_ins().is_none());
        assert_eq!(remotes.all_settle_within_ms(), BTreeMap::from([("payment".into(), 120_000)]));
        let store = memory::Memory::default();
        let mut policies = Vec::new();
        for agent in Workflows::SHIPPED_AGENTS {
            let agent = remotes.agents.agent(&store, &agent.into()).await.unwrap().unwrap();
            let policy = agent.policy();
            policies.push((policy.call_timeout_ms, policy.memo.is_some(), policy.margin_ms));
        }
        let expected = [(10_000, false, MARGIN_MS), (15_000, false, MARGIN_MS), (10_000, true, MARGIN_MS)];
        assert_eq!(policies, expected);
    }

    #[tokio::test]
    async fn without_stand_ins_every_agent_of_the_file_needs_a_url() {
        let text = "[agents.payment]\nurl = \"http://localhost:2\"\n[agents.bank]";
        let error = start_with(text).await.unwrap_err().to_string();
        let advice = "give it one. Stand-ins run only while inventory, payment or shipping has none";
        assert_eq!(error, format!("agents.bank has no url: {advice}"));
        assert!(start_with("[agents.bank]").await.unwrap().stand_ins().is_some());
    }

    #[tokio::test]
    async fn a_bad_file_is_named_in_one_line_with_each_fault() {
        let error = start_with("[agents.payment]\nurl = 7\ncolour = 1").await.unwrap_err().to_string();
        assert!(error.contains("stepwarden.toml:2:7: ") && error.contains("stepwarden.toml:3:1: "), "{error}");
    }
}
