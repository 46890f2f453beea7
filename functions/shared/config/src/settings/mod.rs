//! The settings of agents, from a file.
//!
//! A table `[agents.NAME]` for each agent, in TOML. Every setting may be left out. All faults of a file are found at
//! once, each with its line, its column and advice. `functions/shared/agent/README.md` has a whole example.

mod answers;
mod auth;
mod fallback;
mod fault;
mod headers;
#[cfg(test)]
mod tests;
mod webhook;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use agent::{
    BACKOFF_CEILING_MAX, CONCURRENCY_MAX, HealthPolicy, MEMO_RETENTION_MS_MAX, MemoPolicy, Policy, RATE_CALLS,
    RATE_PER_MS, REJECTIONS_WINDOW_MS, RETRIES_MAX, Rate, RejectionsPolicy,
};
use domain::backoff::BackoffPolicy;
use domain::limits::{COMPLETE_WITHIN_MS_MAX, NAME_CHARS_MAX, SETTLES_WITHIN_MS_DEFAULT, SETTLES_WITHIN_MS_MAX};
use domain::located::{Entry, Reader, Table, known_names, time_text};
use domain::trace::TRACEPARENT;
use domain::workflow::{Workflows, is_name};
use http::{HeaderMap, HeaderName};
use toml::de::DeValue;

pub(crate) use auth::{reference, required_text};
pub use fault::BadSettings;
pub use headers::without_header_values;

use crate::auth::AuthSettings;
use crate::deployment::DeploymentFile;
use crate::remote::{Operations, Remote};
use crate::status::{Meaning, StatusTable};
use crate::webhook::WebhookSettings;
use fault::settling;

/// The header with the key by which a service recognises a repeated call.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header with the address for a result that comes later (rule 38).
pub const CALLBACK_URL: HeaderName = HeaderName::from_static("callback-url");
/// The header with the trace of a call.
pub const TRACE: HeaderName = HeaderName::from_static(TRACEPARENT);
/// Longest name of an operation, in characters.
const OPERATION_CHARS_MAX: usize = 128;
/// Statuses that a service can answer with. Those below 200 are not answers.
const STATUSES: RangeInclusive<u16> = 200..=599;
/// Longest time-out of a call, in milliseconds. A call may have its effect for longer than that.
const CALL_TIMEOUT_MS_MAX: u64 = SETTLES_WITHIN_MS_MAX - 60 * 1_000;

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
        let deployment = DeploymentFile::parse(text).map_err(|faults| BadSettings::new(file, faults))?;
        Ok(deployment.settings)
    }

    /// Reads the tables of all agents.
    pub(crate) fn read(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Self {
        let mut settings = BTreeMap::new();
        let Some(mut table) = reader.table(entry) else { return Self(settings) };
        let tables: Vec<_> = table.take_all().collect();
        let shipped = Workflows::SHIPPED_AGENTS.map(Arc::from);
        let mut known: Vec<Arc<str>> = tables.iter().map(|(name, ..)| Arc::from(&**name)).chain(shipped).collect();
        known.sort();
        known.dedup();
        for (name, at, entry) in tables {
            if !is_name(&name) {
                let words = format!("use 1 to {NAME_CHARS_MAX} letters, digits, '-' and '_'");
                reader.blame(at, format!("{} is not a valid name of an agent: {words}", entry.path));
            }
            if let Some(table) = reader.table(Some(entry)) {
                let of_agent = AgentSettings::read(reader, table, &name, &known);
                settings.insert(name.into(), of_agent);
            }
        }
        Self(settings)
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

    fn read(reader: &mut Reader<'_>, mut table: Table<'_>, name: &str, agents: &[Arc<str>]) -> Self {
        let queue = table.take("queue");
        let has_own_queue = reader.word(queue, &[("own", true), ("shared", false)]).unwrap_or(false);
        let allow_http = table.take("allow_http");
        let allow_http = reader.flag(allow_http).unwrap_or(false);
        let url = table.take("url");
        let url = url.and_then(|entry| url_of(reader, entry, allow_http));
        let forward = table.take("forward").map(|entry| operation(reader, entry)).unwrap_or_default();
        let undo = table.take("undo").map(|entry| operation(reader, entry)).unwrap_or_default();
        let (call_timeout_ms, settles_within_ms) = times(reader, &mut table);
        let (backoff, retries_max) = backoff(reader, &mut table);
        let mut health = breaker(reader, &mut table);
        health.rate = table.take("rate").and_then(|entry| rate(reader, entry));
        let concurrency = table.take("concurrency");
        let concurrency = reader.number(concurrency, 1..=CONCURRENCY_MAX);
        let memo = table.take("memo").and_then(|entry| memo(reader, entry));
        let fallback = fallback::fallback(reader, &mut table, name, agents, memo.is_some());
        let (headers, secret_headers) = headers::headers(reader, &mut table);
        let auth = auth::auth(reader, &mut table, secret_headers);
        let webhook = webhook::webhook(reader, &mut table, memo.is_some());
        reader.end(table);
        let policy =
            Policy { call_timeout_ms, retries_max, backoff, health, concurrency, memo, fallback, ..Policy::default() };
        Self { url, forward, undo, policy, settles_within_ms, headers, auth, has_own_queue, webhook }
    }
}

fn url_of(reader: &mut Reader<'_>, entry: Entry<'_>, allow_http: bool) -> Option<String> {
    let (url, entry) = reader.text(Some(entry))?;
    // The operations are checked by themselves.
    match Remote::new(&url, Operations { forward: "forward", undo: "undo" }) {
        Err(fault) => reader.blame_value(&entry, format_args!("cannot be used: {fault}")),
        Ok(remote) if remote.is_encrypted() || allow_http || is_loopback(remote.host()) => return Some(url),
        Ok(_) => reader.blame_value(&entry, "is not encrypted: give an https URL, or add allow_http = true"),
    }
    None
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.map_or(host.eq_ignore_ascii_case("localhost"), |ip| ip.to_canonical().is_loopback())
}

/// Its name alone, or a table.
fn operation(reader: &mut Reader<'_>, entry: Entry<'_>) -> OperationSettings {
    if entry.value.is_str() {
        return OperationSettings { name: operation_name(reader, Some(entry)), ..OperationSettings::default() };
    }
    let Some(mut table) = reader.table(Some(entry)) else { return OperationSettings::default() };
    let name = table.take("operation");
    let name = operation_name(reader, name);
    let statuses = table.take("status");
    let statuses = reader.table(statuses).map(|table| statuses_of(reader, table)).unwrap_or_default();
    let answers = table.take("answers");
    let conditions = answers::conditions(reader, answers);
    reader.end(table);
    OperationSettings { name, statuses: StatusTable { statuses, conditions } }
}

fn operation_name(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<String> {
    let (name, entry) = reader.text(entry)?;
    let is_segment = |segment: &str| {
        let mut bytes = segment.bytes();
        !["", ".", ".."].contains(&segment) && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
    };
    if name.len() <= OPERATION_CHARS_MAX && name.split('/').all(is_segment) {
        return Some(name);
    }
    let fault = format_args!(
        "must be a path such as \"charge\" or \"v1/charges\", of letters, digits, - . _ ~ and at most \
         {OPERATION_CHARS_MAX} characters"
    );
    reader.blame_value(&entry, fault);
    None
}

fn statuses_of(reader: &mut Reader<'_>, mut table: Table<'_>) -> BTreeMap<u16, Meaning> {
    let mut statuses = BTreeMap::new();
    for (key, at, entry) in table.take_all() {
        let status = key.parse().ok().filter(|status| STATUSES.contains(status));
        if status.is_none() {
            let (from, to) = (STATUSES.start(), STATUSES.end());
            reader.blame(at, format!("{} must be a status from {from} to {to}", entry.path));
        }
        if let (Some(meaning), Some(status)) = (meaning(reader, Some(entry)), status) {
            statuses.insert(status, meaning);
        }
    }
    statuses
}

fn meaning(reader: &mut Reader<'_>, entry: Option<Entry<'_>>) -> Option<Meaning> {
    let (word, entry) = reader.text(entry)?;
    let meaning = Meaning::of(&word);
    if meaning.is_none() {
        let meanings = known_names(&word, "Meanings", &Meaning::ALL.map(Meaning::word));
        reader.blame_value(&entry, format_args!("is {word:?}, which is not a meaning{meanings}"));
    }
    meaning
}

/// The time-out of a call, and the time for which a call may have its effect.
fn times(reader: &mut Reader<'_>, table: &mut Table<'_>) -> (u64, u64) {
    let (timeout, settles) = (table.take("call_timeout"), table.take("settles_within"));
    let [timeout_at, settles_at] = [&timeout, &settles].map(|entry| entry.as_ref().map(|entry| entry.at));
    let call_timeout_ms = reader.time_ms(timeout, 1..=CALL_TIMEOUT_MS_MAX);
    let settles_within_ms = settling(reader, settles);
    let call_timeout_ms = call_timeout_ms.unwrap_or_else(|| Policy::default().call_timeout_ms);
    let settles_within_ms = settles_within_ms.unwrap_or(SETTLES_WITHIN_MS_DEFAULT);
    if settles_within_ms <= call_timeout_ms {
        let [settles_within, call_timeout] = [settles_within_ms, call_timeout_ms].map(time_text);
        let path = &table.path;
        match (settles_at, timeout_at) {
            (Some(at), timeout_at) => {
                let default = if timeout_at.is_none() { " by default" } else { "" };
                let fault = format!(
                    "{path}.settles_within is \"{settles_within}\" and must be longer than call_timeout, \
                     \"{call_timeout}\"{default}: a call may have its effect after its caller left"
                );
                reader.blame(at, fault);
            }
            (None, Some(at)) => {
                let fault = format!(
                    "{path}.call_timeout is \"{call_timeout}\", and settles_within must be longer (default \
                     \"{settles_within}\"): set settles_within too, longer than \"{call_timeout}\""
                );
                reader.blame(at, fault);
            }
            (None, None) => {}
        }
    }
    (call_timeout_ms, settles_within_ms)
}

fn backoff(reader: &mut Reader<'_>, table: &mut Table<'_>) -> (BackoffPolicy, u32) {
    let Policy { mut backoff, mut retries_max, .. } = Policy::default();
    let table = table.take("backoff");
    if let Some(mut table) = reader.table(table) {
        let slot = table.take("slot");
        backoff.slot_time_ms = reader.time_ms(slot, 1..=COMPLETE_WITHIN_MS_MAX).unwrap_or(backoff.slot_time_ms);
        let ceiling = table.take("ceiling");
        backoff.ceiling = reader.number(ceiling, 0..=BACKOFF_CEILING_MAX).unwrap_or(backoff.ceiling);
        let stay = table.take("stay_at_ceiling");
        backoff.stay_at_ceiling = reader.flag(stay).unwrap_or(backoff.stay_at_ceiling);
        let retries = table.take("retries_max");
        retries_max = reader.number(retries, 0..=RETRIES_MAX).unwrap_or(retries_max);
        reader.end(table);
    }
    (backoff, retries_max)
}

fn breaker(reader: &mut Reader<'_>, table: &mut Table<'_>) -> HealthPolicy {
    let mut health = HealthPolicy::default();
    let table = table.take("breaker");
    if let Some(mut table) = reader.table(table) {
        let failures = table.take("failures");
        health.failures_to_open = reader.number(failures, 1..=u32::MAX).unwrap_or(health.failures_to_open);
        let (first, longest) = (table.take("first_wait"), table.take("longest_wait"));
        let place = longest.as_ref().or(first.as_ref()).map_or(table.at, |entry| entry.at);
        let first_ms = reader.time_ms(first, 1..=COMPLETE_WITHIN_MS_MAX);
        let longest_ms = reader.time_ms(longest, 1..=COMPLETE_WITHIN_MS_MAX);
        let longest_ms = longest_ms.unwrap_or_else(|| health.backoff.wait_ms_max());
        health.backoff.slot_time_ms = first_ms.unwrap_or(health.backoff.slot_time_ms);
        match ceiling_below(health.backoff, longest_ms) {
            Some(ceiling) => health.backoff.ceiling = ceiling,
            None => {
                let [first, longest] = [health.backoff.slot_time_ms, longest_ms].map(time_text);
                let path = &table.path;
                let fault = format!(
                    "{path}.longest_wait is \"{longest}\" and must not be shorter than first_wait, \"{first}\""
                );
                reader.blame(place, fault);
            }
        }
        let stay = table.take("stay_at_ceiling");
        health.backoff.stay_at_ceiling = reader.flag(stay).unwrap_or(health.backoff.stay_at_ceiling);
        health.rejections = rejections(reader, &mut table);
        reader.end(table);
    }
    health
}

/// The brake on mass rejection (rule 18).
fn rejections(reader: &mut Reader<'_>, table: &mut Table<'_>) -> Option<RejectionsPolicy> {
    let mut policy = RejectionsPolicy::default();
    let table = table.take("rejections");
    let Some(mut table) = reader.table(table) else { return Some(policy) };
    let is_on = table.take("on");
    let is_on = reader.flag(is_on).unwrap_or(true);
    let answers = table.take("answers");
    policy.answers_min = reader.number(answers, 1..=u32::MAX).unwrap_or(policy.answers_min);
    let percent = table.take("percent");
    policy.percent = reader.number(percent, 1..=99).unwrap_or(policy.percent);
    let window = table.take("window");
    policy.window_ms = reader.time_ms(window, REJECTIONS_WINDOW_MS).unwrap_or(policy.window_ms);
    reader.end(table);
    is_on.then_some(policy)
}

/// The largest ceiling of a back-off whose waits are not longer.
fn ceiling_below(backoff: BackoffPolicy, wait_ms: u64) -> Option<u32> {
    let is_below = |ceiling: &u32| BackoffPolicy { ceiling: *ceiling, ..backoff }.wait_ms_max() <= wait_ms;
    (1..=BACKOFF_CEILING_MAX).take_while(is_below).last()
}

/// Calls a second, or a table of calls and their time.
fn rate(reader: &mut Reader<'_>, entry: Entry<'_>) -> Option<Rate> {
    const SECOND_MS: u64 = 1_000;
    if entry.value.is_integer() {
        return reader.number(Some(entry), RATE_CALLS).map(|calls| Rate { calls, per_ms: SECOND_MS });
    }
    if !entry.value.is_table() {
        reader.blame_value(&entry, "must be the calls in a second, or a table like { calls = 100, per = \"1m\" }");
        return None;
    }
    let mut table = reader.table(Some(entry))?;
    let (calls, per) = (table.take("calls"), table.take("per"));
    let (at, is_whole) = (table.at, calls.is_some());
    let calls = reader.number(calls, RATE_CALLS);
    let per_ms = reader.time_ms(per, RATE_PER_MS).unwrap_or(SECOND_MS);
    if !is_whole {
        reader.blame(at, format!("{} needs calls", table.path));
    }
    reader.end(table);
    calls.map(|calls| Rate { calls, per_ms })
}

fn memo(reader: &mut Reader<'_>, entry: Entry<'_>) -> Option<MemoPolicy> {
    if let DeValue::Boolean(is_on) = entry.value {
        return is_on.then(MemoPolicy::default);
    }
    if !entry.value.is_table() {
        reader.blame_value(&entry, "must be true, false or { retention = \"7d\" }");
        return None;
    }
    let mut table = reader.table(Some(entry))?;
    let retention = table.take("retention");
    let retention_ms = reader.time_ms(retention, COMPLETE_WITHIN_MS_MAX..=MEMO_RETENTION_MS_MAX);
    reader.end(table);
    Some(retention_ms.map_or_else(MemoPolicy::default, |retention_ms| MemoPolicy { retention_ms }))
}
