//! The sample events of `infra/events` match the functions' input.

use std::collections::BTreeMap;
use std::fs;

use domain::message::{Request, SchedulerMessage, decode, idempotency_key};
use domain::order::Order;
use serde_json::Value;

use super::cloudformation::{Template, root};

/// The sample events by the name of their file, without its ending.
fn events() -> BTreeMap<String, Value> {
    let folder = fs::read_dir(root().join("infra/events")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    files
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
        })
        .collect()
}

/// The queues and bodies of an event's records.
fn records(event: &Value) -> Vec<(&str, &str)> {
    let Some(records) = event["Records"].as_array() else { return Vec::new() };
    records
        .iter()
        .map(|record| {
            let arn = record["eventSourceARN"].as_str().unwrap();
            (arn.rsplit_once(":stepwarden-").unwrap().1, record["body"].as_str().unwrap())
        })
        .collect()
}

fn sample_document() -> Value {
    serde_json::from_str(&fs::read_to_string(root().join("infra/examples/order.json")).unwrap()).unwrap()
}

fn is_sound(order: &Order) {
    assert_eq!(serde_json::from_str::<Value>(order.document.text()).unwrap(), sample_document());
    assert_eq!(*order.fingerprint, order.document.fingerprint());
}

#[test]
fn every_message_is_one_of_its_queue() {
    let mut seen = 0;
    for (name, event) in events() {
        for (queue, body) in records(&event) {
            seen += 1;
            let body = body.as_bytes();
            match queue {
                "submission" | "submission-dead" => is_sound(&decode(body).unwrap()),
                "scheduler" => drop(decode::<SchedulerMessage>(body).unwrap()),
                queue => {
                    let request: Request = decode(body).unwrap();
                    assert_eq!((queue, &name), ("agents", &format!("agent-{}", request.agent)));
                    let key = idempotency_key(request.order_id, &request.step, request.direction);
                    assert_eq!(request.idempotency_key, key, "{name}");
                }
            }
        }
    }
    assert_eq!(seen, 8);
}

#[test]
fn every_message_comes_from_a_queue_that_is_deployed_and_feeds_that_function() {
    let template = Template::main();
    let names: Vec<String> = template
        .of_kind("AWS::SQS::Queue")
        .into_iter()
        .map(|queue| queue.properties["QueueName"]["Fn::Sub"].as_str().unwrap().replace("${AWS::StackName}-", ""))
        .collect();
    for (name, event) in events() {
        for (queue, _) in records(&event) {
            assert!(names.iter().any(|deployed| deployed == queue), "{name}: {queue}");
            let function = queue.strip_suffix("-dead").map_or(queue, |_| "supervisor");
            assert_eq!(name.split('-').next(), Some(function.trim_end_matches('s')), "{name}");
        }
    }
}

#[test]
fn every_call_goes_to_a_route_that_is_deployed() {
    let template = Template::main();
    let routes: Vec<&str> = template
        .of_kind("AWS::ApiGatewayV2::Route")
        .into_iter()
        .map(|route| route.properties["RouteKey"].as_str().unwrap())
        .collect();
    let events = events();
    let calls: Vec<_> = events.iter().filter(|(_, event)| event.get("version").is_some()).collect();
    assert_eq!(calls.len(), 3);
    for (name, event) in calls {
        let route = event["routeKey"].as_str().unwrap();
        assert!(routes.contains(&route), "{name}: {route}");
        let method = event["requestContext"]["http"]["method"].as_str().unwrap();
        let path = event["rawPath"].as_str().unwrap();
        let (of_route, pattern) = route.split_once(' ').unwrap();
        let fits = pattern.split('/').zip(path.split('/')).all(|(part, found)| part.starts_with('{') || part == found);
        assert!(fits && of_route == method && pattern.split('/').count() == path.split('/').count(), "{name}: {path}");
    }
}

#[test]
fn an_order_is_posted_as_the_sample_is() {
    let body = events()["api-post-order"]["body"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), sample_document());
}
