//! The contract of queues and events: `AsyncAPI` 3.0. A test compares the queues and the batches with the template.

use std::collections::BTreeMap;

use domain::task::NoticeKind;
use serde_json::{Map, Value, json};

/// The schema that lists the types of all alerts.
const FRAME: &str = "schemas/bus-event.json";

/// The document. The schemas are those of messages, by their paths.
pub(crate) fn document(schemas: &BTreeMap<String, Value>) -> Value {
    let mut messages = Map::new();
    for (path, schema) in schemas.iter().filter(|(path, _)| !["schemas/common.json", FRAME].contains(&path.as_str())) {
        let title = schema["title"].as_str().unwrap_or_default();
        let message = json!({
            "name": title,
            "title": title,
            "summary": schema["description"],
            "contentType": "application/json",
            "payload": {
                "schemaFormat": "application/schema+json;version=2020-12",
                "schema": {"$ref": format!("./{path}")},
            },
            "traits": [{"$ref": "#/components/messageTraits/traced"}],
        });
        messages.insert(title.to_owned(), message);
    }
    let alerts = schemas[FRAME]["properties"]["detail-type"]["enum"].as_array().into_iter().flatten();
    let channels = channels(&alerts.filter_map(Value::as_str).collect::<Vec<_>>());
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Stepwarden: queues and events",
            "version": "1.0.0",
            "description": "The messages between Stepwarden's functions, and to applications and operators. JSON in \
                 UTF-8. Readers ignore unknown members. A message of alternatives (`Wake`, `Reply`, `Command`, `Child`, and the \
                 outcomes) has exactly one of the known members. All queues deliver at least once and in any order.",
            "license": {"name": env!("CARGO_PKG_LICENSE")},
        },
        "defaultContentType": "application/json",
        "operations": operations(&channels),
        "channels": channels,
        "components": {
            "messages": messages,
            "messageTraits": {"traced": {"headers": {
                "type": "object",
                "description": "Message attributes of SQS. None is needed.",
                "properties": {"traceparent": {
                    "description": "W3C trace context, if tracing is enabled.",
                    "type": "string",
                    "pattern": "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
                    "examples": ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
                }},
            }}},
            "parameters": {
                "stack": {
                    "description": "Name of the deployment's stack.",
                    "default": "stepwarden",
                    "examples": ["stepwarden"],
                },
                "lane": {
                    "description": "Empty for normal priority, `-high` for high priority. Both have the same settings.",
                    "enum": ["", "-high"],
                    "default": "",
                },
                "agent": {
                    "description": "`agents` for the shared queues. An agent with queues of its own: its name.",
                    "examples": ["agents", "customs"],
                },
            },
        },
    })
}

/// References to parts of the document, by name.
fn references(to: &str, names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), json!({"$ref": format!("{to}/{name}")}))).collect()
}

fn notices(are_status: bool) -> Vec<&'static str> {
    let of = NoticeKind::ALL.into_iter().filter(|kind| kind.is_event() && kind.is_status() == are_status);
    of.map(NoticeKind::name).collect()
}

/// A queue, or a pair of them: one of each priority.
struct Queue {
    channel: &'static str,
    address: &'static str,
    title: &'static str,
    text: &'static str,
    messages: &'static [&'static str],
    visibility_s: u32,
    retention_s: u32,
    /// In the template.
    resources: &'static [&'static str],
}

const OF_SUBMISSION: &[&str] = &["Submission"];
const OF_SCHEDULER: &[&str] = &["Wake", "Reply", "Command", "Child"];
const OF_AGENTS: &[&str] = &["Request"];

const QUEUES: [Queue; 6] = [
    Queue {
        channel: "submission",
        address: "{stack}-submission{lane}",
        title: "Accepted orders",
        text: "Orders that were answered 202 and are not stored yet. At most 1048576 bytes a message.",
        messages: OF_SUBMISSION,
        visibility_s: 180,
        retention_s: 345_600,
        resources: &["SubmissionQueue", "SubmissionHighQueue"],
    },
    Queue {
        channel: "scheduler",
        address: "{stack}-scheduler{lane}",
        title: "Wakes, replies and commands",
        text: "All messages that advance a task. Agents send their replies here, to the priority queue of the \
             request. At most 1048576 bytes a message.",
        messages: OF_SCHEDULER,
        visibility_s: 180,
        retention_s: 345_600,
        resources: &["SchedulerQueue", "SchedulerHighQueue"],
    },
    Queue {
        channel: "agent",
        address: "{stack}-{agent}{lane}",
        title: "Requests to agents",
        text: "Agents share the queues named agents; the message group of a request is its agent. An agent may have \
             queues of its own. An agent parks a request with a visibility time-out. Each wait costs a delivery, so \
             many deliveries are allowed. At most 1048576 bytes a message.",
        messages: OF_AGENTS,
        visibility_s: 360,
        retention_s: 604_800,
        resources: &["AgentsQueue", "AgentsHighQueue"],
    },
    Queue {
        channel: "submissionDeadLetters",
        address: "{stack}-submission-dead",
        title: "Orders delivered too often",
        text: "The unchanged body from either priority queue. The supervisor stores the order and alerts an operator.",
        messages: OF_SUBMISSION,
        visibility_s: 360,
        retention_s: 864_000,
        resources: &["SubmissionDeadLetters"],
    },
    Queue {
        channel: "schedulerDeadLetters",
        address: "{stack}-scheduler-dead",
        title: "Wakes, replies and commands delivered too often",
        text: "The unchanged body from either priority queue; also bodies that are not valid messages.",
        messages: OF_SCHEDULER,
        visibility_s: 360,
        retention_s: 1_209_600,
        resources: &["SchedulerDeadLetters"],
    },
    Queue {
        channel: "agentDeadLetters",
        address: "{stack}-{agent}-dead",
        title: "Requests delivered too often",
        text: "The unchanged body from either priority queue; also bodies that are not valid requests.",
        messages: OF_AGENTS,
        visibility_s: 360,
        retention_s: 1_209_600,
        resources: &["AgentsDeadLetters"],
    },
];

fn channels(alerts: &[&str]) -> Value {
    let mut channels = json!({
        "replyChannel": {
            "address": "{queue}",
            "title": "Status messages to an application",
            "description": "A queue of the application, registered under a name that orders give as `ReplyChannel`. At \
                 least once and in any order: keep the event with the highest `data.Version`. A FIFO queue gets the \
                 OrderID as message group and the event's id for deduplication.",
            "parameters": {"queue": {"description": "The queue behind the registered name."}},
            "messages": references("#/components/messages", &notices(true)),
        },
        "eventBus": {
            "address": "{stack}",
            "title": "Alerts",
            "description": "An EventBridge bus. Each event has the source `stepwarden`, the alert's type as \
                 detail-type, and a CloudEvent as detail. A rule of the deployment sends it to a topic.",
            "parameters": references("#/components/parameters", &["stack"]),
            "messages": references("#/components/messages", alerts),
            "x-resources": ["EventBus"],
        },
    });
    for Queue { channel, address, title, text, messages, visibility_s, retention_s, resources } in &QUEUES {
        let mut queue = json!({
            "name": address,
            "fifoQueue": false,
            "visibilityTimeout": visibility_s,
            "messageRetentionPeriod": retention_s,
        });
        if let Some(stem) = address.strip_suffix("{lane}") {
            let dead_letters = json!({"name": format!("{stem}-dead")});
            queue["redrivePolicy"] = json!({"deadLetterQueue": dead_letters, "maxReceiveCount": 1_000});
        }
        let mut parameters = vec!["stack", "lane", "agent"];
        parameters.retain(|name| address.contains(&format!("{{{name}}}")));
        channels[channel] = json!({
            "address": address,
            "title": title,
            "description": text,
            "parameters": references("#/components/parameters", &parameters),
            "messages": references("#/components/messages", messages),
            "bindings": {"sqs": {"queue": queue, "bindingVersion": "0.2.0"}},
            "x-resources": resources,
        });
    }
    channels
}

/// What functions receive and send: the function, the channel, and messages if they are not all of the channel.
fn operations(channels: &Value) -> Value {
    const ALL: &[&str] = &[];
    const NOTIFIES: &str = "Sends the application a status message after the commit.";
    const ALERTS: &str = "Alerts an operator.";
    let alerts = &notices(false)[..];
    let received = [
        ("submission.receive", "submission", "Stores an order and then its task, with the first claims, once."),
        ("scheduler.receive", "scheduler", "Advances the task by one change."),
        ("agent.receive", "agent", "Calls the remote service. README.md lists the obligations of an agent."),
        ("supervisor.settleSubmissions", "submissionDeadLetters", "Stores the order, stopped before its first step."),
        ("supervisor.settleSchedulerMessages", "schedulerDeadLetters", "Reconciles the lost message with its order."),
        ("supervisor.settleRequests", "agentDeadLetters", "Puts the order in `Error` if it still needs the attempt."),
    ];
    let sent = [
        ("api.submit", "submission", ALL, "Queues an accepted order."),
        ("api.command", "scheduler", &["Command"], "Queues an operator's command."),
        (
            "submission.wake",
            "scheduler",
            &["Wake", "Reply", "Child"],
            "Has the scheduler woken when the first wait of a new order ends. Replies for a request that cannot be \
             built. Asks for the child order of a first step.",
        ),
        (
            "submission.request",
            "agent",
            ALL,
            "Sends an agent the request of a first step, which was claimed with the order.",
        ),
        ("submission.notify", "replyChannel", ALL, NOTIFIES),
        ("submission.alert", "eventBus", alerts, ALERTS),
        (
            "scheduler.wake",
            "scheduler",
            &["Wake", "Child", "Reply"],
            "Wakes itself when a back-off is over, asks for child orders, and tells a parent the end of its child.",
        ),
        ("scheduler.request", "agent", ALL, "Sends an agent the request of a claimed step."),
        ("scheduler.notify", "replyChannel", ALL, NOTIFIES),
        ("scheduler.alert", "eventBus", alerts, ALERTS),
        ("agent.reply", "scheduler", &["Reply"], "Answers a request before its deadline, or not at all."),
        (
            "supervisor.wake",
            "scheduler",
            &["Wake", "Command", "Reply"],
            "Wakes overdue tasks, resubmits the orders of a bulk job, and tells a parent the end of its child again.",
        ),
        ("supervisor.notify", "replyChannel", ALL, "Resends status messages that a channel did not take."),
        ("supervisor.alert", "eventBus", ALL, ALERTS),
    ];
    let operation = |name: &str, action: &str, channel: &str, messages: &[&str], summary: &str| {
        let all = || channels[channel]["messages"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let messages = if messages.is_empty() { all().collect() } else { messages.to_vec() };
        json!({
            "action": action,
            "channel": {"$ref": format!("#/channels/{channel}")},
            "summary": summary,
            "messages": of_channel(channel, &messages),
            "x-function": match name.split('.').next() {
                Some("api") => "Api",
                Some("submission") => "Submission",
                Some("scheduler") => "Scheduler",
                Some("supervisor") => "Supervisor",
                _ => "AgentsFunction",
            },
        })
    };
    let mut operations = Map::new();
    for (name, channel, summary) in received {
        let mut received = operation(name, "receive", channel, ALL, summary);
        received["x-batch-size"] = 10.into();
        operations.insert(name.to_owned(), received);
    }
    for (name, channel, messages, summary) in sent {
        operations.insert(name.to_owned(), operation(name, "send", channel, messages, summary));
    }
    operations["agent.receive"]["reply"] =
        json!({"channel": {"$ref": "#/channels/scheduler"}, "messages": of_channel("scheduler", &["Reply"])});
    operations.into()
}

fn of_channel(channel: &str, messages: &[&str]) -> Vec<Value> {
    messages.iter().map(|message| json!({"$ref": format!("#/channels/{channel}/messages/{message}")})).collect()
}
