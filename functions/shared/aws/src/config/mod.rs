//! What a function is told by its environment, read once and checked as a whole.

mod reader;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use aws_credential_types::Credentials;
use domain::instance::Instance;
use domain::limits::{NAME_CHARS_MAX, SHARDS, SHARDS_MAX};
use domain::message::Priority;
use domain::ports::SourceQueue;
use domain::redaction::REDACTED_BY_DEFAULT;
use domain::workflow::{WorkflowError, Workflows};
use serde::Deserialize;

use crate::dynamo::Tables;
use reader::Reader;

/// A supervisor that finds an attempt expired so much too late, in milliseconds, gives it its whole time again before it
/// counts a failure: the machines' clocks may differ. Runs come once a minute, so nothing is that late by itself.
const DOUBT_AFTER_MS: u64 = 90_000;
pub use reader::{BadConfig, BadVariable};

/// Which of the functions is configured. Each needs what all need, and some need more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The API.
    Api,
    /// Takes accepted orders.
    Submission,
    /// Advances tasks.
    Scheduler,
    /// Calls a remote service.
    Agents,
    /// Looks after what is overdue.
    Supervisor,
}

/// The configuration of one function.
#[derive(Debug)]
pub struct Config {
    /// How AWS is reached.
    pub access: Access,
    /// The names of the tables.
    pub tables: Tables,
    /// The URLs of the queues.
    pub queues: QueueUrls,
    /// The name of the event bus.
    pub event_bus: Arc<str>,
    /// The queues behind the reply channels, by the name that an order may give (rule 10).
    pub reply_channels: BTreeMap<Arc<str>, Arc<str>>,
    /// Shards of the index `watch`.
    pub shards: u8,
    /// What an agent needs besides; set for [`Function::Agents`] alone.
    pub agent: Option<AgentConfig>,
    /// The names of members whose values the API does not show.
    pub redacted: Vec<Arc<str>>,
    /// Whose dead letters a queue holds, by the queue's ARN; empty except for [`Function::Supervisor`].
    pub dead_letter_queues: BTreeMap<Arc<str>, SourceQueue>,
}

/// How AWS is reached.
#[derive(Debug, Clone)]
pub struct Access {
    /// Where the tables and queues are.
    pub region: Arc<str>,
    /// The keys that Lambda gives to a function. They hold for as long as it lets the process live.
    pub credentials: Credentials,
    /// Where DynamoDB is, if not where AWS has it.
    pub dynamodb_url: Option<Arc<str>>,
    /// Where SQS is, if not where AWS has it.
    pub sqs_url: Option<Arc<str>>,
    /// Where EventBridge is, if not where AWS has it.
    pub eventbridge_url: Option<Arc<str>>,
}

/// The URLs of a queue's two priorities.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePair {
    /// Of orders that are in no hurry.
    pub normal: Arc<str>,
    /// Of those that go before them.
    pub high: Arc<str>,
}

/// The URLs of all queues between the functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueUrls {
    /// Accepted orders.
    pub submission: QueuePair,
    /// Wakes, replies and commands.
    pub scheduler: QueuePair,
    /// Requests, by agent.
    pub agents: BTreeMap<Arc<str>, QueuePair>,
}

/// What an agent needs besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// Its name in workflows.
    pub name: Arc<str>,
    /// The base URL of its service.
    pub url: Arc<str>,
    /// Whether its service needs the agent's memory, since it does not recognise repeated idempotency keys.
    pub memo: bool,
}

impl Config {
    /// Reads the environment of the process; nothing else does.
    ///
    /// # Errors
    /// [`BadConfig`], which names every variable that is missing or bad, and says what to do.
    pub fn from_env(function: Function) -> Result<Self, BadConfig> {
        Self::read(function, environment)
    }

    /// Reads the variables that `lookup` gives. One that is empty, or blank, counts as unset.
    ///
    /// # Errors
    /// [`BadConfig`], which names every variable that is missing or bad, and says what to do.
    pub fn read(function: Function, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, BadConfig> {
        let mut reader = Reader::new(&lookup);
        reader.expects_lambda();
        let access = Access::read(&mut reader);
        let tables = tables(&mut reader);
        let queues = QueueUrls::read(&mut reader);
        let event_bus = reader.text("EVENT_BUS_NAME", "give the name of the event bus");
        let reply_channels = reply_channels(&mut reader);
        let shards = reader.number("SHARDS", SHARDS, 1, SHARDS_MAX);
        let agent = (function == Function::Agents).then(|| AgentConfig::read(&mut reader)).flatten();
        let dead_letter_queues = match function {
            Function::Supervisor => dead_letter_queues(&mut reader),
            Function::Api | Function::Submission | Function::Scheduler | Function::Agents => BTreeMap::new(),
        };
        let redacted = redacted(&mut reader);
        reader.finish(Self {
            access,
            tables,
            queues,
            event_bus,
            reply_channels,
            shards,
            agent,
            redacted,
            dead_letter_queues,
        })
    }

    /// Who this process is, of all that run at the same time: the function's name and some random digits.
    ///
    /// # Errors
    /// [`WorkflowError`] when a shipped workflow is wrong; a test of `domain` makes sure that none is.
    pub fn instance(&self, function: &str, random: u64) -> Result<Instance, WorkflowError> {
        // Short, since every claim stores it.
        let name = format!("{function}-{:08x}", random >> 32).into();
        Ok(Instance { name, workflows: Workflows::shipped()?.doubting_after(DOUBT_AFTER_MS), shards: self.shards })
    }
}

impl Access {
    /// Reads what Lambda gives to every function, and where AWS is if not at its usual place.
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

    /// Reads no more than this from the environment, for a program that is not one of the [`Function`]s: its own
    /// variables come with what to do where one is missing, and go out in the same order.
    ///
    /// # Errors
    /// [`BadConfig`], which names every variable that is missing or bad, and says what to do.
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
    /// The URL of one of the two.
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
        let agents = agent_queues(reader);
        Self { submission, scheduler, agents }
    }

    /// The priority of the queue with this ARN. A queue that is not known is nobody's fast priority.
    #[must_use]
    pub fn priority_of(&self, arn: &str) -> Priority {
        let name = arn.rsplit(':').next().unwrap_or_default();
        let mut all = [&self.submission, &self.scheduler].into_iter().chain(self.agents.values());
        match all.any(|queue_pair| queue_pair.high.rsplit('/').next() == Some(name)) {
            true => Priority::High,
            false => Priority::Normal,
        }
    }
}

impl AgentConfig {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let advice = "give the agent that this function is: inventory, payment or shipping";
        let name = reader.text("AGENT", advice);
        let memo = reader.flag("AGENT_MEMO");
        let variable = match &*name {
            "inventory" => "INVENTORY_URL",
            "payment" => "PAYMENT_URL",
            "shipping" => "SHIPPING_URL",
            "" => return None,
            _ => {
                reader.blame("AGENT", format!("is {name:?}: {advice}"));
                return None;
            }
        };
        let url = reader.text(variable, "give the base URL of the service that this agent calls");
        Some(Self { name, url, memo })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment is read, once")]
fn environment(name: &str) -> Option<String> {
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
        dead_letters: table("DEAD_LETTERS_TABLE"),
    }
}

fn agent_queues(reader: &mut Reader<'_>) -> BTreeMap<Arc<str>, QueuePair> {
    const VARIABLE: &str = "AGENT_QUEUES";
    const ADVICE: &str =
        r#"give {"inventory":{"normal":"https://...","high":"https://..."},...} with each agent's queues"#;
    let Some(queues) = reader.json::<BTreeMap<Arc<str>, QueuePair>>(VARIABLE, ADVICE) else {
        reader.missing(VARIABLE, ADVICE);
        return BTreeMap::new();
    };
    for agent in Workflows::SHIPPED_AGENTS.into_iter().filter(|agent| !queues.contains_key(*agent)) {
        reader.blame(VARIABLE, format!("names no queues for the agent {agent:?}: {ADVICE}"));
    }
    for (agent, queue_pair) in &queues {
        for (priority, url) in [("normal", &queue_pair.normal), ("high", &queue_pair.high)] {
            reader.check_url(VARIABLE, url, || format!("of {agent}, {priority}"));
        }
    }
    queues
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

/// Names of members, separated by commas.
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
