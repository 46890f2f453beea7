//! How the code reads each message.

use domain::message::{CloudEvent, Request, SchedulerMessage, decode};
use domain::order::Order;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a message of this name and writes it again. Returns the error if the code refuses it.
pub(crate) fn read(name: &str, message: &Value) -> Result<Value, String> {
    match name {
        "submission" => again::<Order>(message),
        "wake" | "reply" | "command" | "child" => again::<SchedulerMessage>(message),
        "request" => again::<Request>(message),
        event => {
            assert!(
                ["order-", "service-", "alert-"].iter().any(|of| event.starts_with(of))
                    || ["-failing", "-unreadable"].iter().any(|what| event.ends_with(what)),
                "{event}"
            );
            again::<CloudEvent>(message)
        }
    }
}

fn again<M: Serialize + DeserializeOwned>(message: &Value) -> Result<Value, String> {
    let message: M = decode(message.to_string().as_bytes()).map_err(|error| error.to_string())?;
    Ok(written(&message))
}

/// A message as it is sent.
pub(crate) fn written(message: &impl Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
}

/// The schema of a message on the scheduler queue.
pub(crate) fn name_of(message: &SchedulerMessage) -> &'static str {
    match message {
        SchedulerMessage::Wake(_) => "wake",
        SchedulerMessage::Reply(_) => "reply",
        SchedulerMessage::Command(_) => "command",
        SchedulerMessage::Child(_) => "child",
    }
}

/// The schema of an event of this type: `OrderNeedsOperator` is `order-needs-operator`.
pub(crate) fn name_of_event(kind: &str) -> String {
    let mut name = String::new();
    for dead_letter in kind.chars() {
        if dead_letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(dead_letter.to_ascii_lowercase());
    }
    name
}
