//! AsyncAPI: its references exist, and its queues and functions match the template.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::schemas::{folder, messages};
use crate::template::cloudformation::Template;

fn document() -> Value {
    serde_json::from_slice(&std::fs::read(folder().join("asyncapi.json")).unwrap()).unwrap()
}

fn entries<'a>(document: &'a Value, of: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    document.pointer(of).and_then(Value::as_object).unwrap_or_else(|| panic!("there is no {of}")).iter()
}

/// All references in a document.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|inner| references(inner, found));
        }
        Value::Array(elements) => elements.iter().for_each(|inner| references(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 40, "{found:?}");
    for reference in found {
        let (file, pointer) = reference.split_once('#').unwrap_or((&reference, ""));
        let text = if file.is_empty() { "asyncapi.json" } else { file };
        let target = std::fs::read(folder().join(text)).unwrap_or_else(|error| panic!("{reference}: {error}"));
        let target: Value = serde_json::from_slice(&target).unwrap();
        assert!(target.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn every_message_has_its_schema_and_its_channel_and_every_schema_its_message() {
    let document = document();
    let mut schemas = BTreeSet::new();
    let mut carried = BTreeSet::new();
    for (_, channel) in entries(&document, "/channels") {
        carried.extend(channel["messages"].as_object().unwrap().keys().cloned());
    }
    for (name, message) in entries(&document, "/components/messages") {
        assert!(carried.contains(name), "no channel carries {name}");
        let schema = message["payload"]["schema"]["$ref"].as_str().unwrap();
        schemas.insert(schema.trim_start_matches("./schemas/").trim_end_matches(".json").to_owned());
    }
    assert_eq!(schemas, messages().into_iter().collect());
}

#[test]
fn every_message_is_sent_by_somebody_and_received_by_somebody_of_ours_or_outside() {
    let document = document();
    let mut pairs = BTreeSet::new();
    for (name, operation) in entries(&document, "/operations") {
        let channel = operation["channel"]["$ref"].as_str().unwrap();
        for message in operation["messages"].as_array().unwrap() {
            let message = message["$ref"].as_str().unwrap();
            assert!(message.starts_with(&format!("{channel}/")), "{name}: {message} is not of {channel}");
            pairs.insert((operation["action"].as_str().unwrap().to_owned(), message.to_owned()));
        }
    }
    for (channel, content) in entries(&document, "/channels") {
        let is_outside = ["replyChannel", "eventBus"].contains(&channel.as_str());
        let is_dead = channel.ends_with("DeadLetters");
        for message in content["messages"].as_object().unwrap().keys() {
            let message = format!("#/channels/{channel}/messages/{message}");
            // Dead letters are copies that SQS or a function makes.
            assert_eq!(pairs.contains(&("send".to_owned(), message.clone())), !is_dead, "sending of {message}");
            assert_eq!(pairs.contains(&("receive".to_owned(), message.clone())), !is_outside, "receiving of {message}");
        }
    }
}

#[test]
fn queues_are_as_the_template_makes_them() {
    let (document, template) = (document(), Template::main());
    let mut described = BTreeSet::new();
    for (channel, content) in entries(&document, "/channels").filter(|(_, content)| !content["bindings"].is_null()) {
        let queue = &content["bindings"]["sqs"]["queue"];
        for id in content["x-resources"].as_array().unwrap() {
            let made = template.resource(id.as_str().unwrap());
            described.insert(made.id);
            let of = |name: &str| &made.properties[name];
            assert_eq!(&queue["visibilityTimeout"], of("VisibilityTimeout"), "{channel}: {id}");
            assert_eq!(&queue["messageRetentionPeriod"], of("MessageRetentionPeriod"), "{channel}: {id}");
            assert_eq!(queue["fifoQueue"], json!(!of("FifoQueue").is_null()), "{channel}: {id}");
            assert_eq!(
                queue["redrivePolicy"]["maxReceiveCount"],
                of("RedrivePolicy")["maxReceiveCount"],
                "{channel}: {id}"
            );
            let bytes_max = of("MaximumMessageSize").as_u64().unwrap();
            assert!(
                channel.ends_with("DeadLetters")
                    || content["description"].as_str().unwrap().contains(&format!("{bytes_max} bytes")),
                "{channel}: {id}"
            );
            assert_eq!(
                address(content["address"].as_str().unwrap(), made.id),
                name(of("QueueName")),
                "{channel}: {id}"
            );
        }
    }
    let made: BTreeSet<&str> = template.of_kind("AWS::SQS::Queue").iter().map(|queue| queue.id).collect();
    // No function sends to the last one, and none receives: it keeps events of the bus that the topic did not take.
    let described: BTreeSet<&str> = described.into_iter().chain(["UndeliveredAlerts"]).collect();
    assert_eq!(described, made, "every queue is in a channel");
}

/// The address of a channel for one resource.
fn address(pattern: &str, resource: &str) -> String {
    let priority = if resource.contains("High") { "-high" } else { "" };
    let agent = resource.trim_end_matches("DeadLetters").trim_end_matches("Queue").trim_end_matches("High");
    pattern.replace("{lane}", priority).replace("{agent}", &agent.to_lowercase())
}

/// A queue's name, with the stack's name as the channel writes it.
fn name(of: &Value) -> String {
    let name = of["Fn::Sub"].as_str().unwrap_or_else(|| panic!("{of}"));
    name.replace("${AWS::StackName}", "{stack}")
}

#[test]
fn functions_receive_batches_as_the_template_says() {
    let (document, template) = (document(), Template::main());
    let mut received = 0;
    for (name, operation) in entries(&document, "/operations").filter(|(_, operation)| operation["action"] == "receive")
    {
        let function = template.resource(operation["x-function"].as_str().unwrap());
        let channel = operation["channel"]["$ref"].as_str().unwrap().trim_start_matches('#');
        let queues = document.pointer(&format!("{channel}/x-resources")).unwrap().as_array().unwrap();
        let queues: BTreeSet<&str> = queues.iter().filter_map(Value::as_str).collect();
        let events = function.properties["Events"].as_object().unwrap().values().map(|event| &event["Properties"]);
        let sources = events.filter(|source| {
            let queue = source["Queue"]["Fn::GetAtt"].as_str().unwrap_or_default();
            queues.contains(queue.trim_end_matches(".Arn"))
        });
        for source in sources {
            assert_eq!(source["BatchSize"], operation["x-batch-size"], "{name}");
            received += 1;
        }
    }
    assert!(received >= 9, "{received} sources");
}
