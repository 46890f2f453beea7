//! DynamoDB, SQS and EventBridge, and the network to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws::config::Config;
use aws::dynamo::TABLES;
use cloud::{Cloud, Course, Dynamo, Fault, Said};
use domain::message::{CloudEvent, decode};
use domain::time::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::World;
use super::plan::{KINDS, Plan};
use super::sqs::{ARN, Sqs, queue};
use super::stream::Stream;
use crate::simulation::outside::services::{AT_WORK, BUSY};
use crate::simulation::outside::{CHANNEL, Shared};
use rehearsal::setup::Setup;

/// Every fault. In enough worlds each one occurs.
pub const FAULTS: [&str; 25] = [
    THROTTLED,
    "error, not done",
    "error, done",
    "connection broken, not done",
    "connection broken, done",
    "no answer, not done",
    "no answer, done",
    ENTRY,
    EVENT,
    INDEX,
    TWICE,
    LATE,
    DELETION,
    REPEATED,
    DEAD,
    KILLED,
    SKEWED,
    "call declined",
    "call refused for a while",
    "call without an answer",
    "late answer",
    AT_WORK,
    BUSY,
    "operator",
    "invalid receipt",
];
const THROTTLED: &str = "throttled";
const ENTRY: &str = "message not taken";
const EVENT: &str = "event not taken";
const INDEX: &str = "index behind";
pub(super) const TWICE: &str = "message delivered twice";
const LATE: &str = "message late";
pub(super) const DELETION: &str = "deletion lost";
pub(super) const REPEATED: &str = "changes delivered again";
pub(super) const DEAD: &str = "dead letter";
pub(super) const KILLED: &str = "instance killed";
pub(super) const SKEWED: &str = "wrong clock";
/// What only [`run_through_outage`](super::run_through_outage) has.
pub(super) const DOWN: &str = "store down";
/// The URL of each queue before its name.
pub(super) const URL: &str = "https://sqs.eu-central-1.amazonaws.com/1/";

/// A variable of the functions' configuration.
pub(super) fn variable(name: &str, shards: u8) -> Option<String> {
    let url = |queue: &str| format!("{URL}{queue}");
    let queue = |queue: &str| Some(url(queue));
    match name {
        "AWS_REGION" => Some("eu-central-1".into()),
        "SHARDS" => Some(shards.to_string()),
        "SUBMISSION_QUEUE_URL" => queue("submission"),
        "SUBMISSION_HIGH_QUEUE_URL" => queue("submission-high"),
        "SCHEDULER_QUEUE_URL" => queue("scheduler"),
        "SCHEDULER_HIGH_QUEUE_URL" => queue("scheduler-high"),
        "AGENTS_QUEUE_URL" => queue("agents"),
        "AGENTS_HIGH_QUEUE_URL" => queue("agents-high"),
        "REPLY_CHANNELS" => Some(json!({ CHANNEL: url(CHANNEL) }).to_string()),
        "DEAD_LETTER_QUEUES" => {
            let arn = |name: &str| format!("{ARN}{name}-dead");
            let queues = json!({
                arn("submission"): "Submission", arn("scheduler"): "Scheduler", arn("agents"): { "Agent": "agents" },
            });
            Some(queues.to_string())
        }
        name if name.starts_with("AWS_LAMBDA") || name.starts_with("AWS_ACCESS") || name.starts_with("AWS_SECRET") => {
            Some("1".into())
        }
        name if name.ends_with("_TABLE") || name.ends_with("BUS_NAME") => Some(name.into()),
        _ => None,
    }
}

/// A stream of the tasks that began with their table.
fn stream_arn(dynamo: &Dynamo) -> String {
    let (_, said) = dynamo.serve("DescribeTable", &json!({ "TableName": "TASKS_TABLE" }));
    #[expect(clippy::cast_possible_truncation, reason = "whole seconds")]
    let made_ms = (said["Table"]["CreationDateTime"].as_f64().unwrap_or_default() * 1_000.0) as i64;
    let made = Timestamp::from_epoch_ms(made_ms).to_string();
    format!("arn:aws:dynamodb:eu-central-1:1:table/TASKS_TABLE/stream/{}", made.trim_end_matches('Z'))
}

/// The services of AWS.
pub(super) struct Region {
    dynamo: Dynamo,
    pub(super) sqs: Sqs,
    pub(super) stream: Stream,
    /// A message was sent, or one may be visible earlier.
    pub(super) sent: Arc<Notify>,
    plan: Plan,
    outside: Shared,
}

impl Region {
    pub(super) fn new(config: &Config, setup: &Setup, plan: Plan, outside: Shared) -> Self {
        let tables = TABLES.iter().filter_map(|table| Some(table.creation(config.tables.name(table.variable)?)));
        let sqs = Sqs::new(setup.visibility_ms, setup.receives_max);
        let dynamo = Dynamo::new(tables);
        let stream = Stream::of(stream_arn(&dynamo));
        Self { dynamo, sqs, stream, sent: Arc::default(), plan, outside }
    }

    /// Whether no message is left.
    pub(super) fn is_quiet(&self) -> bool {
        self.sqs.is_empty() && self.stream.is_quiet()
    }

    fn serve(&mut self, operation: &str, body: &Value) -> Said {
        let said = self.answer(operation, body);
        if ["UpdateItem", "PutItem", "TransactWriteItems"].contains(&operation) {
            let changes = self.dynamo.changes("TASKS_TABLE", self.stream.last.as_deref());
            let now_ms = self.outside.lock().clock.now_ms();
            self.stream.take(changes, now_ms);
        }
        said
    }

    fn answer(&mut self, operation: &str, body: &Value) -> Said {
        match operation {
            "SendMessageBatch" => self.send(body),
            "ChangeMessageVisibility" => self.hide(body),
            "PutEvents" => self.put(body),
            "UpdateItem" | "PutItem" => self.write(operation, body),
            "Query" | "Scan" => {
                let (status, mut said) = self.dynamo.serve(operation, body);
                if body["IndexName"] == "watch"
                    && let Some(items) = said["Items"].as_array_mut()
                {
                    let mut outside = self.outside.lock();
                    items.retain(|_| !outside.strikes(INDEX, self.plan.index));
                }
                (status, said)
            }
            _ => self.dynamo.serve(operation, body),
        }
    }

    /// A write, whose new version must follow the stored one.
    fn write(&self, operation: &str, body: &Value) -> Said {
        let (key, of) = match (operation, body["TableName"].as_str()) {
            ("UpdateItem", Some("TASKS_TABLE")) => (body["Key"].clone(), "rule 1"),
            ("PutItem", Some("TASKS_TABLE")) => {
                let key = json!({ "OrderID": body["Item"]["OrderID"] });
                self.has_order(&key);
                (key, "rule 3")
            }
            ("PutItem", Some("SERVICES_TABLE")) => (json!({ "Service": body["Item"]["Service"] }), "rule 21"),
            _ => return self.dynamo.serve(operation, body),
        };
        let get = json!({ "TableName": body["TableName"], "Key": key, "ConsistentRead": true });
        let version = || -> u64 {
            let (_, said) = self.dynamo.serve("GetItem", &get);
            said["Item"]["Version"]["N"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0)
        };
        let before = version();
        let said = self.dynamo.serve(operation, body);
        let after = version();
        // A dead submission begins with its second version.
        let follows = after == before + 1 || (of == "rule 3" && before == 0);
        if said.0 == 200 && !follows {
            let order = key["OrderID"]["S"].as_str().and_then(|order| order.parse().ok());
            self.outside.lock().complain(of, order, &format!("version {after} was written over version {before}"));
        }
        said
    }

    /// No task is put before its order.
    fn has_order(&self, key: &Value) {
        let get = json!({ "TableName": "ORDERS_TABLE", "Key": key, "ConsistentRead": true });
        let (_, said) = self.dynamo.serve("GetItem", &get);
        if said["Item"].is_null() {
            let order = key["OrderID"]["S"].as_str().and_then(|order| order.parse().ok());
            self.outside.lock().complain("1", order, "a task was put without its order");
        }
    }

    fn send(&mut self, body: &Value) -> Said {
        let url = body["QueueUrl"].as_str().unwrap_or_default();
        let to = queue(url.strip_prefix(URL).unwrap_or_default());
        let mut outside = self.outside.lock();
        let (mut successful, mut failed) = (Vec::new(), Vec::new());
        for entry in body["Entries"].as_array().into_iter().flatten() {
            let id = &entry["Id"];
            if to.is_none() && outside.refuses(entry["MessageBody"].as_str().unwrap_or_default()) {
                failed.push(json!({ "Id": id, "Code": "InvalidMessageContents", "SenderFault": true }));
                continue;
            }
            if outside.strikes(ENTRY, self.plan.entries) {
                match outside.rng.below(3) {
                    0 => failed.push(json!({ "Id": id, "Code": "InternalError", "SenderFault": false })),
                    1 => failed.push(json!({ "Id": id, "Code": "RequestThrottled", "SenderFault": true })),
                    // The answer mentions it with nothing.
                    _ => {}
                }
                continue;
            }
            let text = entry["MessageBody"].as_str().unwrap_or_default();
            match to {
                Some(queue) => {
                    // A function gives it up.
                    if url.ends_with("-dead") {
                        outside.counts.add(DEAD);
                    }
                    let late = outside.strikes(LATE, self.plan.late);
                    let late_ms = if late { outside.rng.below(60_000) } else { 0 };
                    let delay_ms = 1_000 * entry["DelaySeconds"].as_i64().unwrap_or(0);
                    let now_ms = outside.clock.now_ms();
                    self.sqs.send(queue, text.into(), now_ms, delay_ms.saturating_add_unsigned(late_ms));
                }
                None => {
                    if let Ok(event) = decode::<CloudEvent>(text.as_bytes()) {
                        outside.heard(&event);
                    }
                }
            }
            successful.push(json!({ "Id": id, "MessageId": "m", "MD5OfMessageBody": "x" }));
        }
        drop(outside);
        self.sent.notify_waiters();
        (200, json!({ "Successful": successful, "Failed": failed }))
    }

    fn hide(&mut self, body: &Value) -> Said {
        let name = body["QueueUrl"].as_str().and_then(|url| url.strip_prefix(URL)).unwrap_or_default();
        let handle = body["ReceiptHandle"].as_str().unwrap_or_default();
        let hidden_ms = 1_000 * body["VisibilityTimeout"].as_i64().unwrap_or(0);
        let now_ms = self.outside.lock().clock.now_ms();
        self.sent.notify_waiters();
        if queue(name).is_some_and(|queue| self.sqs.hide(queue, handle, hidden_ms, now_ms)) {
            self.outside.lock().counts.add("message hidden");
            return (200, json!({}));
        }
        self.outside.lock().counts.add("invalid receipt");
        (400, json!({ "__type": "com.amazonaws.sqs#ReceiptHandleIsInvalid", "message": "it was delivered again" }))
    }

    fn put(&self, body: &Value) -> Said {
        let mut outside = self.outside.lock();
        let entries = body["Entries"].as_array().into_iter().flatten();
        let results: Vec<Value> = entries
            .map(|entry| {
                if outside.strikes(EVENT, self.plan.entries) {
                    return json!({ "ErrorCode": "ThrottlingException" });
                }
                if let Ok(event) = decode::<CloudEvent>(entry["Detail"].as_str().unwrap_or_default().as_bytes()) {
                    outside.heard(&event);
                }
                json!({ "EventId": "e" })
            })
            .collect();
        (200, json!({ "FailedEntryCount": 0, "Entries": results }))
    }
}

/// The network of one instance.
pub(super) struct Reach {
    pub(super) world: Arc<World>,
    /// Whether the instance lives. The last requests of a dead one arrive, but it makes no other.
    pub(super) lives: Arc<AtomicBool>,
    pub(super) meets_faults: bool,
}

impl Cloud for Reach {
    fn course(&mut self, operation: &str) -> Course {
        if !self.meets_faults {
            return Course::default();
        }
        if !self.lives.load(Ordering::Relaxed) {
            return Course { fault: Some(Fault::Silence { done: false }), ..Course::default() };
        }
        let (plan, mut outside) = (self.world.plan, self.world.outside.lock());
        let of_dynamo = !["SendMessageBatch", "ChangeMessageVisibility", "PutEvents"].contains(&operation);
        let is_down = |from_ms: u64| outside.clock.now_ms().unsigned_abs() >= from_ms && !outside.is_calm;
        if of_dynamo && plan.down_from_ms.is_some_and(is_down) {
            outside.counts.add(DOWN);
            return Course { fault: Some(Fault::Error { done: false }), ..Course::default() };
        }
        let latency_ms = self.world.setup.latency_ms;
        let (there_ms, back_ms) = (outside.rng.between(1, latency_ms), outside.rng.between(1, latency_ms));
        let fault = (!outside.is_calm && outside.rng.chance(plan.requests)).then(|| {
            let kind = if outside.rng.chance(5_000) { plan.usual } else { outside.rng.below(KINDS) };
            outside.counts.add(FAULTS[usize::try_from(kind).unwrap_or_default()]);
            // The request may have been carried out or not.
            let done = kind.is_multiple_of(2);
            match kind {
                0 => Fault::Throttled(outside.rng.below(24)),
                1 | 2 => Fault::Error { done },
                3 | 4 => Fault::Broken { done },
                _ => Fault::Silence { done },
            }
        });
        Course { there_ms, fault, back_ms }
    }

    fn serve(&mut self, operation: &str, body: &Value) -> Said {
        self.world.region().serve(operation, body)
    }
}
