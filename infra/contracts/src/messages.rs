//! The schemas of messages: one for each message, and one of the parts that they share.

use std::collections::BTreeMap;
use std::{fs, io};

use domain::alert::Turn;
use domain::message::{CloudEvent, Request, SchedulerMessage};
use domain::notice;
use domain::order::Order;
use domain::ports::OutageReason;
use domain::task::NoticeKind;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::tidy::{For, tidy};
use crate::{example, folder};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// The messages as the first version writes them.
const EXAMPLES: &str = "v1";

/// The schemas, by their paths.
pub(crate) fn schemas() -> io::Result<BTreeMap<String, Value>> {
    let mut messages = Map::new();
    let mut parts = read(&mut messages);
    parts.append(&mut written(&mut messages));
    let mut schemas = BTreeMap::new();
    for (title, message) in messages {
        let name = name(&title);
        let examples = if title == BUS_EVENT { vec![delivered()?] } else { examples(&name)? };
        let mut schema = json!({"$schema": DIALECT, "title": title, "examples": examples});
        merge(&mut schema, &outside(message));
        schemas.insert(format!("schemas/{name}.json"), schema);
    }
    let common = json!({
        "$schema": DIALECT,
        "title": "The parts of messages",
        "description": "A reader ignores unknown members, since two versions may run side by side. A writer writes \
             numbers without a fraction or an exponent.",
        "$defs": parts,
    });
    schemas.insert("schemas/common.json".to_owned(), common);
    Ok(schemas)
}

/// The messages that functions read, which agents write, too. Returns their parts.
fn read(messages: &mut Map<String, Value>) -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<SchedulerMessage>();
    generator.subschema_for::<Request>();
    generator.subschema_for::<Order>();
    let mut parts = parts(generator, For::Writers);
    if let Some(Value::Object(scheduler)) = parts.remove("SchedulerMessage")
        && let Some(Value::Array(variants)) = scheduler.get("oneOf")
    {
        for variant in variants {
            let name = variant["required"][0].as_str().unwrap_or_default();
            messages.insert(name.to_owned(), variant.clone());
        }
    }
    for name in ["Request", "Submission"] {
        messages.extend(parts.remove(name).map(|message| (name.to_owned(), message)));
    }
    parts
}

/// The events. Returns their parts.
fn written(messages: &mut Map<String, Value>) -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.subschema_for::<CloudEvent>();
    let events = events(&mut generator);
    let mut parts = parts(generator, For::Readers);
    let event = parts.remove("CloudEvent").unwrap_or_default();
    let mut alerts = Vec::new();
    for Event { kind, is_alert, text, data } in events {
        let mut message = event.clone();
        message["description"] = text.into();
        message["properties"]["type"]["const"] = kind.into();
        message["properties"]["data"] = data;
        messages.insert(kind.to_owned(), message);
        if is_alert {
            alerts.push(kind);
        }
    }
    messages.insert(BUS_EVENT.to_owned(), bus_event(&alerts));
    parts
}

/// The collected definitions, as they are published.
fn parts(mut generator: SchemaGenerator, whom: For) -> Map<String, Value> {
    let mut parts = Value::Object(generator.take_definitions(false));
    tidy(&mut parts, whom);
    if let Value::Object(parts) = parts { parts } else { Map::new() }
}

/// A kind of event.
struct Event {
    kind: &'static str,
    /// Whether it goes to the event bus.
    is_alert: bool,
    text: &'static str,
    data: Value,
}

fn events(generator: &mut SchemaGenerator) -> Vec<Event> {
    let notices = NoticeKind::ALL.into_iter().filter(|kind| kind.is_event() && *kind != NoticeKind::OrderLateStatus);
    let notices = notices.map(|kind| {
        let (text, required) = of_order(kind);
        let mut data = notice::schema(kind, generator).to_value();
        if !required.is_empty() {
            data["required"] = required.into();
        }
        if kind == NoticeKind::OrderNeedsOperator {
            data = json!({"anyOf": [data, supervisor::contract::lost_command(generator)]});
        }
        Event { kind: kind.name(), is_alert: !kind.is_status(), text, data }
    });
    let mut events: Vec<Event> = notices.collect();
    for (reason, text) in [
        (
            OutageReason::Misconfigured,
            "Alert on the event bus: a service refuses every call because of its own configuration or the agent's. \
             Its orders wait. One alert for each outage.",
        ),
        (
            OutageReason::Rejections,
            "Alert on the event bus: a service rejects most steps. Its orders wait, and its rejections do not count. \
             One alert for each outage.",
        ),
    ] {
        let data = supervisor::contract::service(generator).to_value();
        events.extend(reason.alert().map(|kind| Event { kind, is_alert: true, text, data }));
    }
    for (turn, required, text) in [
        (
            Turn::Began,
            "ToDo",
            "Alert on the event bus: a cause needs an operator. One for a cause, however many orders wait because of \
             it.",
        ),
        (Turn::Ended, "EndedAt", "On the event bus: a cause was gone for a minute, so its alert is over."),
    ] {
        let mut data = domain::alert::schema(generator).to_value();
        data["required"] = json!([required]);
        events.push(Event { kind: turn.kind(), is_alert: true, text, data });
    }
    events.push(Event {
        kind: supervisor::contract::DEAD_LETTER_UNREADABLE,
        is_alert: true,
        text: "Alert on the event bus: an unreadable message was delivered too often. `GET /dead-letters` shows its \
             body.",
        data: supervisor::contract::unreadable(generator).to_value(),
    });
    events
}

/// What an event about an order says, and the members that its data have besides those that all data of its type have.
const fn of_order(kind: NoticeKind) -> (&'static str, &'static [&'static str]) {
    match kind {
        NoticeKind::OrderReceived => ("To the order's reply channel: the order is stored.", &[]),
        NoticeKind::OrderProcessed => ("To the order's reply channel: every step is processed. Final.", &[]),
        NoticeKind::OrderFailed => (
            "To the order's reply channel: the order waits for an operator. It may still be processed or compensated.",
            &[],
        ),
        NoticeKind::OrderCompensated => ("To the order's reply channel: the order is compensated. Final.", &[]),
        NoticeKind::OrderClosed => {
            ("To the order's reply channel: an operator closed the order, with its steps as they were. Final.", &[])
        }
        NoticeKind::OrderWaiting => {
            ("To the order's reply channel: a step waits for people, or for a result that comes later.", &[])
        }
        NoticeKind::OrderLate | NoticeKind::OrderLateStatus => (
            "On the event bus, and to the order's reply channel: the order is not finished at its deadline. Each \
             order has at most one.",
            &["CompleteBy", "LateSince"],
        ),
        NoticeKind::OrderNeedsOperator => {
            ("Alert on the event bus: the order needs an operator. It is sent until the bus confirms it.", &[])
        }
        NoticeKind::ReplyChannelFailing => (
            "Alert on the event bus: the order's reply channel does not take its messages. The order itself continues.",
            &[],
        ),
        NoticeKind::OrderNeedsApproval => ("Alert on the event bus: a step waits for people to decide.", &[]),
        NoticeKind::ParentTold => ("No event: the order whose step made this one gets a reply.", &[]),
    }
}

/// The title of the frame in which the bus delivers an alert.
const BUS_EVENT: &str = "BusEvent";

fn bus_event(alerts: &[&str]) -> Value {
    let details: Vec<Value> = alerts.iter().map(|kind| json!({"$ref": format!("{}.json", name(kind))})).collect();
    json!({
        "description": "An alert as EventBridge delivers it to the targets of a rule: the envelope, and the \
             CloudEvent in `detail`.",
        "type": "object",
        "required": ["detail-type", "source", "detail"],
        "properties": {
            "detail-type": {"description": "The alert's `type`.", "type": "string", "enum": alerts},
            "source": {"description": "The sender, for rules to match.", "const": "stepwarden"},
            "detail": {"description": "The alert.", "anyOf": details},
        },
    })
}

/// An alert in its frame.
fn delivered() -> io::Result<Value> {
    let detail = example(&format!("{EXAMPLES}/reply-channel-failing.json"))?;
    Ok(json!({
        "version": "0",
        "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
        "detail-type": detail["type"],
        "source": detail["source"],
        "account": "111122223333",
        "time": "2026-11-20T17:26:44Z",
        "region": "eu-west-1",
        "resources": [],
        "detail": detail,
    }))
}

/// The examples of a message.
fn examples(name: &str) -> io::Result<Vec<Value>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder().join("examples").join(EXAMPLES))? {
        files.extend(entry?.file_name().into_string());
    }
    files.sort();
    let of_message = files.iter().filter(|file| file.split('.').next() == Some(name));
    of_message.map(|file| example(&format!("{EXAMPLES}/{file}"))).collect()
}

/// The file's name of a message: `OrderNeedsOperator` is `order-needs-operator`.
fn name(title: &str) -> String {
    let mut name = String::new();
    for character in title.chars() {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

/// The same schema outside of the file with the parts.
fn outside(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let outside = |(name, inner): (String, Value)| {
                let path = inner.as_str().filter(|path| name == "$ref" && path.starts_with('#'));
                let moved = path.map(|path| Value::from(format!("common.json{path}")));
                (name, moved.unwrap_or_else(|| outside(inner)))
            };
            members.into_iter().map(outside).collect()
        }
        Value::Array(elements) => elements.into_iter().map(outside).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn merge(schema: &mut Value, other: &Value) {
    for (name, member) in other.as_object().into_iter().flatten() {
        schema[name] = member.clone();
    }
}
