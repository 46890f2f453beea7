//! A Lambda function's binary, configured as on AWS, on a platform of this program.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use aws::dynamo::TABLES;
use serde_json::Value;
use tokio::time::timeout;

use super::process::{Usage, usage};
use crate::runtime_api::{Answered, RuntimeApi};

/// The agents of the shipped workflow.
const AGENTS: [&str; 3] = ["inventory", "payment", "shipping"];
/// How long an invocation may take, in milliseconds.
const INVOCATION_MS_MAX: u64 = 60_000;

/// How long a start may take.
const ASKED: Duration = Duration::from_secs(30);
/// How much of a log's end is kept.
const TAIL_BYTES: usize = 4_096;

/// What a function finds around it.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Where SQS, EventBridge and all else is; empty for where AWS has it.
    pub endpoint: String,
    /// Where DynamoDB is; empty for where the rest is.
    pub dynamodb: String,
    /// Where the remote services are.
    pub services: String,
    /// The names of the tables, by their variable; each has that of its variable where none is given.
    pub tables: BTreeMap<String, String>,
    /// How much it logs, as `RUST_LOG` says it; empty for as much as it does by itself.
    pub log: String,
}

/// The process of a function; it goes when this is dropped.
#[derive(Debug)]
pub struct Function {
    process: Child,
    platform: RuntimeApi,
    log: Arc<Mutex<Log>>,
}

/// What a function wrote.
#[derive(Debug, Default)]
struct Log {
    bytes: u64,
    lines: u64,
    /// Its end.
    tail: Vec<u8>,
}

impl Function {
    /// Starts one. It asks its platform for work as soon as it is ready.
    ///
    /// # Errors
    /// Where there is no such program, or no port for its platform.
    pub async fn start(program: &Path, surroundings: &Surroundings) -> io::Result<Self> {
        let platform = RuntimeApi::start().await?;
        let mut command = Command::new(program);
        command.env_clear().envs(platform.variables()).envs(variables(surroundings));
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process = spawned
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}; build it first", program.display())))?;
        let log = Arc::<Mutex<Log>>::default();
        if let Some(mut stdout) = process.stdout.take() {
            let log = log.clone();
            thread::spawn(move || {
                let mut read = [0; 8_192];
                while let Ok(count @ 1..) = stdout.read(&mut read) {
                    lock(&log).add(&read[..count]);
                }
            });
        }
        Ok(Self { process, platform, log })
    }

    /// Its platform.
    #[must_use]
    pub const fn platform(&self) -> &RuntimeApi {
        &self.platform
    }

    /// Waits until it asks for work, and says when it did.
    ///
    /// # Errors
    /// With the end of its log, if it does not ask.
    pub async fn asked(&self) -> io::Result<Instant> {
        match timeout(ASKED, self.platform.asked()).await {
            Ok(asked) => asked,
            Err(_) => Err(io::Error::other(format!("a function does not ask for work:\n{}", self.log_tail()))),
        }
    }

    /// Gives it an event, and waits for its answer.
    ///
    /// # Errors
    /// When the platform is gone.
    pub async fn invoke(&self, event: &Value) -> io::Result<Answered> {
        self.platform.invoke(event, INVOCATION_MS_MAX).await
    }

    /// What its process has taken so far.
    ///
    /// # Errors
    /// Where it ended.
    pub fn usage(&self) -> io::Result<Usage> {
        usage(self.process.id())
    }

    /// What it has logged so far: bytes and lines.
    #[must_use]
    pub fn logged(&self) -> (u64, u64) {
        let log = lock(&self.log);
        (log.bytes, log.lines)
    }

    /// The last of what it has logged, for a reader who wonders what went wrong.
    #[must_use]
    pub fn log_tail(&self) -> String {
        String::from_utf8_lossy(&lock(&self.log).tail).into_owned()
    }
}

impl Log {
    fn add(&mut self, written: &[u8]) {
        self.bytes += written.len() as u64;
        self.lines += written.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.tail.extend_from_slice(written);
        let too_much = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..too_much);
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The variables of all functions: each takes what it needs.
fn variables(surroundings: &Surroundings) -> Vec<(String, String)> {
    let Surroundings { endpoint, dynamodb, services, tables, log } = surroundings;
    let queues_at = if endpoint.is_empty() { "https://sqs.eu-central-1.amazonaws.com" } else { endpoint };
    let url = |name: &str| format!("{queues_at}/1/{name}");
    let mut variables = vec![
        ("AGENTS_QUEUE_URL".to_owned(), url("agents")),
        ("AGENTS_HIGH_QUEUE_URL".to_owned(), url("agents-high")),
        ("DEAD_LETTER_QUEUES".to_owned(), r#"{"arn:aws:sqs:eu-central-1:1:dead":"Scheduler"}"#.to_owned()),
    ];
    let mut set = |name: &str, value: &str| variables.push((name.to_owned(), value.to_owned()));
    set("AWS_REGION", "eu-central-1");
    set("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    set("AWS_SECRET_ACCESS_KEY", "secret");
    set("AWS_ENDPOINT_URL", endpoint);
    set("AWS_ENDPOINT_URL_DYNAMODB", dynamodb);
    set("RUST_LOG", log);
    set("EVENT_BUS_NAME", "bus");
    set("METRICS_NAMESPACE", "Stepwarden");
    set("SENDERS", r#"{"System":["AROAEXAMPLE"],"Agents":"AROAEXAMPLE"}"#);
    let services = if services.is_empty() { "https://service.example" } else { services };
    for name in AGENTS {
        set(&format!("{}_URL", name.to_uppercase()), &format!("{services}/{name}"));
    }
    set("STANDINS_TABLE", "standins");
    set("STANDINS_TOKEN", "0123456789abcdef");
    for table in &TABLES {
        set(table.variable, tables.get(table.variable).map_or(table.variable, String::as_str));
    }
    for queue in ["SUBMISSION", "SUBMISSION_HIGH", "SCHEDULER", "SCHEDULER_HIGH"] {
        let name = queue.to_lowercase().replace('_', "-");
        set(&format!("{queue}_QUEUE_URL"), &url(&name));
    }
    variables
}
