//! The configuration of a function: the environment, read once and checked as a whole.

mod reader;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use aws_credential_types::Credentials;
use domain::definition::Catalogue;
use domain::instance::Instance;
use domain::limits::{NAME_CHARS_MAX, SHARDS, SHARDS_MAX};
use domain::message::Priority;
use domain::ports::SourceQueue;
use domain::redaction::{REDACTED_BY_DEFAULT, Redaction};
use domain::trust::Senders;
use domain::workflow::{WorkflowError, Workflows, settles_within_ms};
use serde::Deserialize;

use crate::dynamo::Tables;
use reader::Reader;

/// The lateness at which a supervisor doubts an expired attempt, in milliseconds. It then gives the attempt its whole
/// time again before it counts a failure, because the machines' clocks may differ. The supervisor runs once a minute,
/// so no attempt is this late in normal operation.
const DOUBT_AFTER_MS: u64 = 90_000;
pub use reader::{BadConfig, BadVariable};

/// The function that is configured. All functions share some variables, and some functions need more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The API.
    Api,
    /// Takes accepted orders off the submission queue.
    Submission,
    /// Advances tasks.
    Scheduler,
    /// Calls a remote service.
    Agents,
    /// Handles overdue work.
    Supervisor,
}

/// The configuration of one function.
#[derive(Debug, Clone)]
pub struct Config {
    /// The access to AWS.
    pub access: Access,
    /// The names of the tables.
    pub tables: Tables,
    /// The URLs of the queues.
    pub queues: QueueUrls,
    /// The name of the event bus.
    pub event_bus: Arc<str>,
    /// The queues of the reply channels, by the name that an order may give (rule 10).
    pub reply_channels: BTreeMap<Arc<str>, Arc<str>>,
    /// The number of shards of the index `watch`.
    pub shards: u8,
    /// The settings of the agents, in TOML; the scheduler, the supervisor and the agents have them.
    pub agents: Arc<str>,
    /// The time for which calls of each agent may still have their effect, in milliseconds, from those settings.
    pub settles_within_ms: BTreeMap<Arc<str>, u64>,
    /// The services that the agents call, beside those settings.
    pub services: ServicesConfig,
    /// The agents that have a service without a table of their own (rule 22). `None`: it is not known.
    pub served: Option<BTreeSet<Arc<str>>>,
    /// Who may send what (rule 45), for [`Function::Scheduler`].
    pub senders: Senders,
    /// The names of members whose values the API hides, and by which no order is found.
    pub redacted: Vec<Arc<str>>,
    /// How the scopes of tokens begin that are roles (rule 42). `None`: scopes are no roles.
    pub role_scopes: Option<Arc<str>>,
    /// The roles of the callers that sign their requests (rule 42), as JSON. `None`: the gateway alone decides.
    pub iam_roles: Option<String>,
    /// The source queue of each dead-letter queue, by the dead-letter queue's ARN. Empty except for
    /// [`Function::Supervisor`].
    pub dead_letter_queues: BTreeMap<Arc<str>, SourceQueue>,
}

/// The access to AWS.
#[derive(Debug, Clone)]
pub struct Access {
    /// The region of the tables and queues.
    pub region: Arc<str>,
    /// The keys that Lambda gives to a function. They are valid for the life of the process.
    pub credentials: Credentials,
    /// The URL of DynamoDB, if it is not AWS's own.
    pub dynamodb_url: Option<Arc<str>>,
    /// The URL of SQS, if it is not AWS's own.
    pub sqs_url: Option<Arc<str>>,
    /// The URL of EventBridge, if it is not AWS's own.
    pub eventbridge_url: Option<Arc<str>>,
}

/// The URLs of a queue's two priorities.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePair {
    /// The queue of normal priority.
    pub normal: Arc<str>,
    /// The queue of high priority.
    pub high: Arc<str>,
}

/// The URLs of all queues between the functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueUrls {
    /// Accepted orders.
    pub submission: QueuePair,
    /// Wakes, replies and commands.
    pub scheduler: QueuePair,
    /// Requests to the agents that have no queues of their own.
    pub shared: QueuePair,
    /// Requests to an agent with queues of its own, by agent.
    pub agents: BTreeMap<Arc<str>, QueuePair>,
    /// Where this function puts the messages that it gives up. `None`: it leaves them to their queue.
    pub dead_letters: Option<Arc<str>>,
}

/// The services that the agents call, beside the agents' settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServicesConfig {
    /// The base URLs of the services that ship, by agent.
    pub urls: BTreeMap<Arc<str>, Arc<str>>,
    /// The base URL of the stand-ins, which play every other service.
    pub stand_ins: Option<Arc<str>>,
    /// The base URL of the API, for the addresses of results that come later.
    pub api: Option<Arc<str>>,
    /// Whether each agent keeps a memo.
    pub memo: bool,
}

impl Config {
    /// Reads the environment of the process. Only telemetry reads variables of its own.
    ///
    /// # Errors
    /// [`BadConfig`] names every missing or bad variable, with advice to fix it.
    pub fn from_env(function: Function) -> Result<Self, BadConfig> {
        Self::read(function, environment)
    }

    /// Reads the variables that `lookup` returns. An empty or blank variable counts as unset.
    ///
    /// # Errors
    /// [`BadConfig`] names every missing or bad variable, with advice to fix it.
    pub fn read(function: Function, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, BadConfig> {
        let mut reader = Reader::new(&lookup);
        reader.expects_lambda();
        let access = Access::read(&mut reader);
        let tables = tables(&mut reader);
        let queues = QueueUrls::read(&mut reader);
        let event_bus = reader.text("EVENT_BUS_NAME", "give the name of the event bus");
        let reply_channels = reply_channels(&mut reader);
        let shards = reader.number("SHARDS", SHARDS, 1, SHARDS_MAX);
        let agents = reader.optional("AGENTS").unwrap_or_default();
        let settles_within_ms = settles_within_ms(&agents).unwrap_or_else(|fault| {
            reader.blame("AGENTS", format!("{fault}: give the settings of the agents, or leave it out"));
            BTreeMap::new()
        });
        let services = ServicesConfig::read(&mut reader);
        let served = reader.optional("SERVED_AGENTS").map(|names| {
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Arc::from);
            names.chain(queues.agents.keys().cloned()).collect()
        });
        let dead_letter_queues = match function {
            Function::Supervisor => dead_letter_queues(&mut reader),
            Function::Api | Function::Submission | Function::Scheduler | Function::Agents => BTreeMap::new(),
        };
        let senders = match function {
            Function::Scheduler => senders(&mut reader, &queues),
            Function::Api | Function::Submission | Function::Agents | Function::Supervisor => Senders::default(),
        };
        let redacted = redacted(&mut reader);
        let role_scopes = reader.optional("ROLE_SCOPES");
        // What the parameter has unless somebody gives roles. `sam local` knows no condition that leaves a variable out.
        let iam_roles = reader.optional("IAM_ROLES").filter(|text| **text != *"{}").map(|text| text.to_string());
        reader.finish(Self {
            access,
            tables,
            queues,
            event_bus,
            reply_channels,
            shards,
            agents,
            settles_within_ms,
            services,
            served,
            senders,
            redacted,
            role_scopes,
            iam_roles,
            dead_letter_queues,
        })
    }

    /// The redaction by the names of members.
    #[must_use]
    pub fn redaction(&self) -> Redaction {
        Redaction::of(&self.redacted)
    }

    /// The identity of this process among all running ones: the function's name and some random digits.
    ///
    /// # Errors
    /// [`WorkflowError`] when a shipped workflow is wrong. A test of `domain` checks that every shipped workflow is
    /// right.
    pub fn instance(&self, function: &str, random: u64) -> Result<Instance, WorkflowError> {
        // The name is short, because every claim stores it.
        let name = format!("{function}-{:08x}", random >> 32).into();
        let settles_within_ms = self.settles_within_ms.clone();
        let (compiled, served) = (Workflows::shipped()?, self.served.clone());
        let catalogue = Catalogue::serving(compiled, Some(DOUBT_AFTER_MS), settles_within_ms, served);
        let catalogue = catalogue.redacting(self.redaction());
        Ok(Instance { name, catalogue, shards: self.shards })
    }
}

impl Access {
    /// Reads the variables that Lambda gives to every function, and the URLs that replace AWS's own.
    fn read(reader: &mut Reader<'_>) -> Self {
        let region = reader.text("AWS_REGION", "Lambda sets it; elsewhere give a region such as eu-central-1");
        let key_id = reader.text("AWS_ACCESS_KEY_ID", "Lambda sets it; elsewhere give an access key");
        let secret = reader.text("AWS_SECRET_ACCESS_KEY", "Lambda sets it; elsewhere give the access key's secret");
        let token = reader.optional("AWS_SESSION_TOKEN").map(|token| token.to_string());
        let credentials = Credentials::new(&*key_id, &*secret, token, None, "environment");
        let everywhere = reader.url("AWS_ENDPOINT_URL");
        let mut of = |name| reader.url(name).or_else(|| everywhere.clone());
        Self {
            region,
            credentials,
            dynamodb_url: of("AWS_ENDPOINT_URL_DYNAMODB"),
            sqs_url: of("AWS_ENDPOINT_URL_SQS"),
            eventbridge_url: of("AWS_ENDPOINT_URL_EVENTBRIDGE"),
        }
    }

    /// Reads only these settings, for a program that is not one of the [`Function`]s. The caller passes its own
    /// variables, each with the advice for a missing one. Their values come back in the same order.
    ///
    /// # Errors
    /// [`BadConfig`] names every missing or bad variable, with advice to fix it.
    pub fn from_env_with<const N: usize>(
        own: [(&'static str, &'static str); N],
    ) -> Result<(Self, [Arc<str>; N]), BadConfig> {
        Self::read_with(environment, own)
    }

    fn read_with<const N: usize>(
        lookup: impl Fn(&str) -> Option<String>,
        own: [(&'static str, &'static str); N],
    ) -> Result<(Self, [Arc<str>; N]), BadConfig> {
        let mut reader = Reader::new(&lookup);
        reader.expects_lambda();
        let access = Self::read(&mut reader);
        let own = own.map(|(name, advice)| reader.text(name, advice));
        reader.finish((access, own))
    }
}

impl QueuePair {
    /// The URL of the queue of this priority.
    #[must_use]
    pub const fn get(&self, priority: Priority) -> &Arc<str> {
        match priority {
            Priority::Normal => &self.normal,
            Priority::High => &self.high,
        }
    }
}

impl QueueUrls {
    fn read(reader: &mut Reader<'_>) -> Self {
        let mut queue_pair = |normal, high| QueuePair { normal: reader.queue(normal), high: reader.queue(high) };
        let submission = queue_pair("SUBMISSION_QUEUE_URL", "SUBMISSION_HIGH_QUEUE_URL");
        let scheduler = queue_pair("SCHEDULER_QUEUE_URL", "SCHEDULER_HIGH_QUEUE_URL");
        let shared = queue_pair("AGENTS_QUEUE_URL", "AGENTS_HIGH_QUEUE_URL");
        let agents = agent_queues(reader);
        let dead_letters = reader.url("DEAD_LETTER_QUEUE_URL");
        Self { submission, scheduler, shared, agents, dead_letters }
    }

    /// The URL of the queue whose URL ends so, with account and name. All queues of a function are in one region.
    pub(crate) fn url_of(&self, queue: &str) -> String {
        let region = self.scheduler.normal.rsplitn(3, '/').nth(2).unwrap_or_default();
        format!("{region}/{queue}")
    }
}

impl ServicesConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let urls = [("inventory", "INVENTORY_URL"), ("payment", "PAYMENT_URL"), ("shipping", "SHIPPING_URL")];
        let urls = urls.into_iter().filter_map(|(agent, name)| Some((agent.into(), reader.optional(name)?)));
        let urls = urls.collect();
        Self {
            urls,
            stand_ins: reader.url("STAND_INS_URL"),
            api: reader.url("API_URL"),
            memo: reader.flag("AGENT_MEMO"),
        }
    }
}

/// A variable of the environment. Only secrets, to which settings refer, are read so by other crates.
#[expect(clippy::disallowed_methods, reason = "this is where the environment is read, once")]
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn tables(reader: &mut Reader<'_>) -> Tables {
    let mut table = |variable| reader.text(variable, "give the name of the table").to_string();
    Tables {
        orders: table("ORDERS_TABLE"),
        tasks: table("TASKS_TABLE"),
        leases: table("LEASES_TABLE"),
        services: table("SERVICES_TABLE"),
        memos: table("MEMOS_TABLE"),
        jobs: table("JOBS_TABLE"),
        definitions: table("DEFINITIONS_TABLE"),
        dead_letters: table("DEAD_LETTERS_TABLE"),
        index: table("INDEX_TABLE"),
        numbers: table("NUMBERS_TABLE"),
    }
}

fn agent_queues(reader: &mut Reader<'_>) -> BTreeMap<Arc<str>, QueuePair> {
    const VARIABLE: &str = "AGENT_QUEUES";
    const ADVICE: &str = r#"give {"name":{"normal":"https://...","high":"https://..."}} with the queues of each agent that has its own, or leave it out"#;
    let queues = reader.json::<BTreeMap<Arc<str>, QueuePair>>(VARIABLE, ADVICE).unwrap_or_default();
    for (agent, queue_pair) in &queues {
        for (priority, url) in [("normal", &queue_pair.normal), ("high", &queue_pair.high)] {
            reader.check_url(VARIABLE, url, || format!("of {agent}, {priority}"));
        }
    }
    queues
}

/// The roles of the stack, as the template gives them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Roles {
    system: BTreeSet<Arc<str>>,
    agents: Arc<str>,
}

/// Who may send what.
fn senders(reader: &mut Reader<'_>, queues: &QueueUrls) -> Senders {
    const ROLES: &str = "SENDERS";
    const OWN: &str = "AGENT_SENDERS";
    let advice = r#"give {"System":["AROA...",...],"Agents":"AROA..."} with the unique ids of the stack's roles"#;
    let Some(Roles { system, agents }) = reader.json(ROLES, advice) else {
        reader.missing(ROLES, advice);
        return Senders::default();
    };
    let advice =
        r#"give {"name":["AROA..."]} with the roles that answer for agents with queues of their own, or leave it out"#;
    let mut named: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = reader.json(OWN, advice).unwrap_or_default();
    for (agent, ids) in &named {
        if !queues.agents.contains_key(agent) {
            reader.blame(OWN, format!("names {agent:?}, which has no queues of its own: name them in AGENT_QUEUES"));
        }
        for id in ids.iter().filter(|id| id.is_empty() || id.contains([':', '/'])) {
            reader.blame(OWN, format!("has {id:?} of {agent:?}, which is no unique id: {advice}"));
        }
    }
    let own = queues.agents.keys().map(|agent| (agent.clone(), named.remove(agent).unwrap_or_default())).collect();
    Senders { system, agents, own }
}

fn reply_channels(reader: &mut Reader<'_>) -> BTreeMap<Arc<str>, Arc<str>> {
    const VARIABLE: &str = "REPLY_CHANNELS";
    let advice = r#"give {"name":"https://sqs..."} with the queue of each reply channel, or leave it out"#;
    let channels = reader.json::<BTreeMap<Arc<str>, Arc<str>>>(VARIABLE, advice).unwrap_or_default();
    for (name, url) in &channels {
        if name.is_empty() || name.chars().nth(NAME_CHARS_MAX).is_some() {
            reader.blame(VARIABLE, format!("names a channel {name:?}: a name has 1 to {NAME_CHARS_MAX} characters"));
        }
        reader.check_url(VARIABLE, url, || format!("of the channel {name:?}"));
    }
    channels
}

/// The names of members, separated by commas.
fn redacted(reader: &mut Reader<'_>) -> Vec<Arc<str>> {
    const VARIABLE: &str = "REDACT";
    let Some(names) = reader.optional(VARIABLE) else {
        return REDACTED_BY_DEFAULT.map(Into::into).to_vec();
    };
    let names: Vec<Arc<str>> = names.split(',').map(|name| name.trim().into()).collect();
    if names.iter().any(|name| name.is_empty() || name.chars().nth(NAME_CHARS_MAX).is_some()) {
        let fault = format!("must be names of members separated by commas, of 1 to {NAME_CHARS_MAX} characters each");
        reader.blame(VARIABLE, fault);
    }
    names
}

fn dead_letter_queues(reader: &mut Reader<'_>) -> BTreeMap<Arc<str>, SourceQueue> {
    const VARIABLE: &str = "DEAD_LETTER_QUEUES";
    const ADVICE: &str = r#"give {"arn:...":"Submission","arn:...":"Scheduler","arn:...":{"Agent":"payment"},...}"#;
    let Some(queues) = reader.json::<BTreeMap<Arc<str>, SourceQueue>>(VARIABLE, ADVICE) else {
        reader.missing(VARIABLE, ADVICE);
        return BTreeMap::new();
    };
    for arn in queues.keys().filter(|arn| !arn.starts_with("arn:")) {
        reader.blame(VARIABLE, format!("has {arn:?}, which is no ARN of a queue: {ADVICE}"));
    }
    queues
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Api => "api",
            Self::Submission => "submission",
            Self::Scheduler => "scheduler",
            Self::Agents => "agents",
            Self::Supervisor => "supervisor",
        })
    }
}
