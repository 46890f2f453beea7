//! The settings of agents, from a file.
//!
//! A table `[agents.NAME]` for each agent, in TOML. Every setting may be left out. All faults of a file are found at
//! once, each with its line, its column and advice. `infra/examples` has whole ones.

mod auth;
mod fallback;
mod fault;
mod headers;
#[cfg(test)]
mod tests;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent::{BACKOFF_CEILING_MAX, HealthPolicy, MemoPolicy, Policy, Rate, RejectionsPolicy};
use domain::backoff::BackoffPolicy;
use domain::keys::time_text;
use domain::limits::SETTLES_WITHIN_MS_DEFAULT;
use domain::located::{Document, Entry, Reader, Table};
use domain::search::Pointer;
use domain::template::BodyCondition;
use domain::workflow::Workflows;
use http::HeaderMap;

pub(crate) use auth::secret;
pub use fault::BadSettings;
pub use headers::without_likely_secrets;

use crate::auth::AuthSettings;
use crate::keys::{DEPLOYMENT, is_loopback};
use crate::remote::{Operations, Remote};
use crate::status::{Condition, Meaning, StatusTable};
use crate::webhook::WebhookSettings;

/// The settings of all agents that a file names.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<Arc<str>, AgentSettings>);

/// The settings of one agent. The default is that of an agent without any.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    url: Option<String>,
    forward: OperationSettings,
    undo: OperationSettings,
    /// The policy. The margin before a deadline is the deployment's, and not in the file.
    pub policy: Policy,
    /// The time for which a call without an answer may still have its effect, in milliseconds (rule 16).
    pub settles_within_ms: u64,
    /// The headers of each call. Those with secrets are in `auth`.
    pub headers: HeaderMap,
    /// The references to its secrets.
    pub auth: AuthSettings,
    /// Whether its requests are on a pair of queues of its own, for a program of its own.
    pub has_own_queue: bool,
    /// The events of its provider that tell results (rule 41).
    pub webhook: Option<WebhookSettings>,
}

/// One operation of a service.
#[derive(Debug, Clone, Default)]
struct OperationSettings {
    name: Option<String>,
    statuses: StatusTable,
}

impl Settings {
    /// Reads the settings of the agents. `file` is the name for messages.
    ///
    /// # Errors
    /// [`BadSettings`] with every fault of the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, BadSettings> {
        let document = Document::new(text);
        let (mut reader, root) = document.read(DEPLOYMENT);
        let settings = Self::read(&mut reader, &root);
        reader.finish(settings).map_err(|faults| BadSettings::new(file, faults))
    }

    /// Reads the tables of all agents.
    pub(crate) fn read(reader: &mut Reader<'_>, root: &Table<'_>) -> Self {
        let tables = root.named("agents");
        let shipped = Workflows::SHIPPED_AGENTS.into_iter();
        let known: BTreeSet<&str> = tables.iter().map(|(name, ..)| *name).chain(shipped).collect();
        let mut read = |(name, _, entry): (&str, usize, Entry<'_>)| {
            Some((Arc::from(name), AgentSettings::read(reader, &entry.table()?, name, &known)))
        };
        Self(tables.into_iter().filter_map(&mut read).collect())
    }

    /// The names of the agents that have settings, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    /// All agents with their settings, by name.
    pub fn all(&self) -> impl Iterator<Item = (&Arc<str>, &AgentSettings)> {
        self.0.iter()
    }

    /// The settings of an agent, if the file has any.
    #[must_use]
    pub fn of(&self, agent: &str) -> Option<&AgentSettings> {
        self.0.get(agent)
    }

    /// The time for which calls for a step of an agent may still have their effect, in milliseconds: the longest of the
    /// agent and its fallback. `None` if the file does not name the agent.
    #[must_use]
    pub fn settles_within_ms(&self, agent: &str) -> Option<u64> {
        let own = self.of(agent)?;
        let of = |name: &Arc<str>| self.of(name).map_or(SETTLES_WITHIN_MS_DEFAULT, |other| other.settles_within_ms);
        Some(own.policy.fallback.iter().map(of).fold(own.settles_within_ms, u64::max))
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            url: None,
            forward: OperationSettings::default(),
            undo: OperationSettings::default(),
            policy: Policy::default(),
            settles_within_ms: SETTLES_WITHIN_MS_DEFAULT,
            headers: HeaderMap::new(),
            auth: AuthSettings::default(),
            has_own_queue: false,
            webhook: None,
        }
    }
}

impl AgentSettings {
    /// This policy, and otherwise the default.
    #[must_use]
    pub fn with_policy(policy: Policy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// The base URL of its service.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Its operations, where `usual` are those without settings.
    #[must_use]
    pub fn operations<'a>(&'a self, usual: Operations<'a>) -> Operations<'a> {
        Operations {
            forward: self.forward.name.as_deref().unwrap_or(usual.forward),
            undo: self.undo.name.as_deref().unwrap_or(usual.undo),
        }
    }

    /// What the answers to the forward operation mean.
    #[must_use]
    pub const fn forward_statuses(&self) -> &StatusTable {
        &self.forward.statuses
    }

    /// What the answers to the undo mean.
    #[must_use]
    pub const fn undo_statuses(&self) -> &StatusTable {
        &self.undo.statuses
    }

    fn read(reader: &mut Reader<'_>, table: &Table<'_>, name: &str, agents: &BTreeSet<&str>) -> Self {
        let (call_timeout_ms, settles_within_ms) = times(reader, table);
        let [memo, backoff] = ["memo", "backoff"].map(|key| table.table(key));
        let memo = (table.flag("memo") || memo.is_given())
            .then(|| MemoPolicy { retention_ms: memo.time_ms("retention").unwrap_or_default() });
        let (headers, secrets) = headers::headers(reader, table);
        let policy = Policy {
            call_timeout_ms,
            retries_max: backoff.number("retries_max").unwrap_or_default(),
            backoff: BackoffPolicy {
                slot_time_ms: backoff.time_ms("slot").unwrap_or_default(),
                ceiling: backoff.number("ceiling").unwrap_or_default(),
                stay_at_ceiling: backoff.flag("stay_at_ceiling"),
            },
            health: HealthPolicy { rate: rate(table), ..breaker(reader, &table.table("breaker")) },
            concurrency: table.number("concurrency"),
            fallback: fallback::fallback(reader, table, name, agents, memo.is_some()),
            memo,
            ..Policy::default()
        };
        Self {
            url: encrypted_url(reader, table, "url"),
            forward: operation(table, "forward"),
            undo: operation(table, "undo"),
            settles_within_ms,
            headers,
            auth: auth::auth(reader, table, secrets),
            has_own_queue: table.text("queue") == Some("own"),
            webhook: webhook::webhook(reader, table, policy.memo.is_some()),
            policy,
        }
    }
}

/// A URL that is encrypted, leads to this machine, or is allowed not to be encrypted.
fn encrypted_url(reader: &mut Reader<'_>, table: &Table<'_>, key: &str) -> Option<String> {
    let entry = table.get(key)?;
    let url = entry.text()?;
    // The operations are checked by themselves.
    let remote = Remote::new(url, Operations { forward: "forward", undo: "undo" }).ok()?;
    if !remote.is_encrypted() && !table.flag("allow_http") && !is_loopback(remote.host()) {
        reader.blame_value(&entry, "is not encrypted: give an https URL, or add allow_http = true");
        return None;
    }
    Some(url.to_owned())
}

/// Its name alone, or a table.
fn operation(table: &Table<'_>, key: &str) -> OperationSettings {
    let of_call = table.table(key);
    let name = table.text(key).or_else(|| of_call.text("operation"));
    let meaning = |entry: &Entry<'_>| Meaning::of(entry.text()?);
    let status = |(status, _, entry): (&str, usize, Entry<'_>)| Some((status.parse().ok()?, meaning(&entry)?));
    let statuses = of_call.named("status").into_iter().filter_map(status).collect();
    let conditions = of_call.elements("answers").into_iter().filter_map(|entry| condition(&entry.table()?)).collect();
    OperationSettings { name: name.map(str::to_owned), statuses: StatusTable { statuses, conditions } }
}

fn condition(table: &Table<'_>) -> Option<Condition> {
    Some(Condition {
        status: table.number("status")?.try_into().ok()?,
        when: BodyCondition::parse(table.text("when")?).ok()?,
        means: Meaning::of(table.text("means")?)?,
    })
}

fn pointer(table: &Table<'_>, key: &str) -> Option<Pointer> {
    Pointer::parse(table.text(key)?).ok()
}

/// The time-out of a call, and the time for which a call may have its effect.
fn times(reader: &mut Reader<'_>, table: &Table<'_>) -> (u64, u64) {
    let [call_timeout_ms, settles_within_ms] =
        ["call_timeout", "settles_within"].map(|key| table.time_ms(key).unwrap_or_default());
    if settles_within_ms <= call_timeout_ms {
        let [settles_within, call_timeout] = [settles_within_ms, call_timeout_ms].map(time_text);
        let path = &table.path;
        match (table.get("settles_within"), table.get("call_timeout")) {
            (Some(settles), timeout) => {
                let default = if timeout.is_none() { " by default" } else { "" };
                let fault = format!(
                    "{path}.settles_within is \"{settles_within}\" and must be longer than call_timeout, \
                     \"{call_timeout}\"{default}: a call may have its effect after its caller left"
                );
                reader.blame(settles.at, fault);
            }
            (None, Some(timeout)) => {
                let fault = format!(
                    "{path}.call_timeout is \"{call_timeout}\", and settles_within must be longer (default \
                     \"{settles_within}\"): set settles_within too, longer than \"{call_timeout}\""
                );
                reader.blame(timeout.at, fault);
            }
            (None, None) => {}
        }
    }
    (call_timeout_ms, settles_within_ms)
}

fn breaker(reader: &mut Reader<'_>, table: &Table<'_>) -> HealthPolicy {
    let [first_ms, longest_ms] = ["first_wait", "longest_wait"].map(|key| table.time_ms(key).unwrap_or_default());
    let waits = BackoffPolicy { slot_time_ms: first_ms, ceiling: 0, stay_at_ceiling: table.flag("stay_at_ceiling") };
    let ceiling = ceiling_below(waits, longest_ms);
    if ceiling.is_none() {
        let [first, longest] = [first_ms, longest_ms].map(time_text);
        let path = &table.path;
        let fault =
            format!("{path}.longest_wait is \"{longest}\" and must not be shorter than first_wait, \"{first}\"");
        let entry = table.get("longest_wait").or_else(|| table.get("first_wait"));
        reader.blame(entry.map_or(table.at, |entry| entry.at), fault);
    }
    let rejections = table.table("rejections");
    HealthPolicy {
        failures_to_open: table.number("failures").unwrap_or_default(),
        backoff: BackoffPolicy { ceiling: ceiling.unwrap_or_default(), ..waits },
        rejections: rejections.flag("on").then(|| RejectionsPolicy {
            answers_min: rejections.number("answers").unwrap_or_default(),
            percent: rejections.number("percent").unwrap_or_default(),
            window_ms: rejections.time_ms("window").unwrap_or_default(),
        }),
        ..HealthPolicy::default()
    }
}

/// The largest ceiling of a back-off whose waits are not longer.
fn ceiling_below(backoff: BackoffPolicy, wait_ms: u64) -> Option<u32> {
    let is_below = |ceiling: &u32| BackoffPolicy { ceiling: *ceiling, ..backoff }.wait_ms_max() <= wait_ms;
    (1..=BACKOFF_CEILING_MAX).take_while(is_below).last()
}

/// Calls a second, or a table of calls and their time.
fn rate(table: &Table<'_>) -> Option<Rate> {
    let rate = table.table("rate");
    let calls = table.number("rate").or_else(|| rate.number("calls"))?;
    Some(Rate { calls, per_ms: rate.time_ms("per")? })
}
