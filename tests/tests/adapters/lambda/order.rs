//! One order through the handlers and all ports, as in a function, and its messages.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use api::{ApiConfig, Caller};
use aws::config::{Config, Function};
use aws::ports::Ports;
use bytes::Bytes;
use domain::json::Json;
use domain::message::{Delivery, Outcome, Priority, Receipt, Request, SchedulerMessage, decode};
use domain::ports::{HasQueues, HasStore, Queues, Store};
use domain::task::ProcessState;
use local::http_server::Server;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tests::runtime_api::RuntimeApi;
use tokio::net::TcpListener;

use crate::dynamodb::local::Local;

/// The limit of messages for a single order of three steps.
const MESSAGES_MAX: usize = 10;
pub(crate) const AGENTS: [&str; 3] = ["inventory", "payment", "shipping"];

/// The sending part of SQS.
pub(crate) struct Queue {
    server: Server,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    requests: usize,
    messages: usize,
    /// Bodies by queue, in sending order, each with its attribute `traceparent` if it has one.
    queues: BTreeMap<String, VecDeque<(String, Option<String>)>>,
}

impl Queue {
    pub(crate) async fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let taking = state.clone();
        let server = Server::start(listener, 2_000_000, 0, move |request: http::Request<Bytes>| {
            let taking = taking.clone();
            async move {
                assert_eq!(request.headers()["x-amz-target"], "AmazonSQS.SendMessageBatch");
                let answer = taking.lock().unwrap().take(&serde_json::from_slice(request.body()).unwrap());
                Ok(http::Response::new(answer.to_string().into()))
            }
        });
        Self { server: server.unwrap(), state }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The next message of a queue, as it is delivered.
    pub(crate) fn next<M: DeserializeOwned>(&self, name: &str) -> Option<Vec<Delivery<M>>> {
        let (body, parent) = self.state.lock().unwrap().queues.get_mut(name)?.pop_front()?;
        let parent = parent.and_then(|parent| parent.parse().ok());
        let receipt = Receipt { message_id: "m".into(), handle: "normal h".into() };
        Some(vec![Delivery { receipt, receive_count: 1, parent, body: decode(body.as_bytes()) }])
    }
}

impl Queue {
    /// Sent messages without a delivery, with their attribute `traceparent`.
    pub(crate) fn waiting(&self) -> Vec<(String, Option<String>)> {
        self.state.lock().unwrap().queues.values().flatten().cloned().collect()
    }
}

impl State {
    fn take(&mut self, body: &Value) -> Value {
        let queue = body["QueueUrl"].as_str().unwrap().rsplit('/').next().unwrap();
        let entries = body["Entries"].as_array().unwrap();
        self.requests += 1;
        self.messages += entries.len();
        let parent =
            |entry: &Value| entry["MessageAttributes"]["traceparent"]["StringValue"].as_str().map(str::to_owned);
        let messages = entries.iter().map(|entry| (entry["MessageBody"].as_str().unwrap().to_owned(), parent(entry)));
        self.queues.entry(queue.to_owned()).or_default().extend(messages);
        let taken = |entry: &Value| json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "x"});
        json!({"Successful": entries.iter().map(taken).collect::<Vec<_>>(), "Failed": []})
    }
}

/// The configuration of a function with these tables and queues.
pub(crate) async fn config(local: &Local, queue: &Queue) -> Config {
    let url = |name: &str| format!("{}/1/{name}", queue.url());
    let priorities = |name: &str| json!({"normal": url(name), "high": url(&format!("{name}-high"))});
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
    for (name, value) in RuntimeApi::start().await.unwrap().variables() {
        set(name, value);
    }
    for table in &aws::dynamo::TABLES {
        set(table.variable, local.tables.name(table.variable).unwrap().to_owned());
    }
    set("AWS_REGION", "eu-central-1".to_owned());
    set("AWS_ACCESS_KEY_ID", "test".to_owned());
    set("AWS_SECRET_ACCESS_KEY", "test".to_owned());
    set("AWS_ENDPOINT_URL", queue.url());
    set("AWS_ENDPOINT_URL_DYNAMODB", local.url.clone());
    set("SUBMISSION_QUEUE_URL", url("submission"));
    set("SUBMISSION_HIGH_QUEUE_URL", url("submission-high"));
    set("SCHEDULER_QUEUE_URL", url("scheduler"));
    set("SCHEDULER_HIGH_QUEUE_URL", url("scheduler-high"));
    set("AGENTS_QUEUE_URL", url("agents"));
    set("AGENTS_HIGH_QUEUE_URL", url("agents-high"));
    set(
        "AGENT_QUEUES",
        json!(AGENTS.map(|agent| (agent, priorities(agent))).into_iter().collect::<BTreeMap<_, _>>()).to_string(),
    );
    set("REPLY_CHANNELS", json!({"shop": url("shop")}).to_string());
    set("EVENT_BUS_NAME", "bus".to_owned());
    Config::read(Function::Api, |name| variables.get(name).cloned()).unwrap()
}

/// Posts an order and runs the handlers until no message is left. Sends messages and requests to SQS.
async fn carry_through(document: &str) -> (usize, usize) {
    let (local, queue) = (Local::start().await, Queue::start().await);
    let config = config(&local, &queue).await;
    let ports = Ports::new(&config).unwrap();
    let instance = ports.instance(&config, Function::Scheduler).unwrap();
    let api_config = ApiConfig::new(config.reply_channels.keys().cloned());
    let post = http::Request::post("/orders").body(Bytes::from(document.to_owned())).unwrap();
    let accepted = api::handle(&ports, &api_config, &Caller::unrestricted("shop"), post).await;
    let accepted: Value = serde_json::from_slice(accepted.body()).unwrap();
    let submissions = queue.next("submission").unwrap();
    assert!(submission::handle(&ports, &instance, submissions).await.0.is_empty());
    loop {
        if let Some(batch) = queue.next("scheduler") {
            assert!(scheduler::handle(&ports, &instance, batch).await.0.is_empty());
        } else if let Some(batch) = AGENTS.iter().find_map(|agent| queue.next::<Request>(agent)) {
            let reply = batch[0].body.as_ref().unwrap().reply(Outcome::Done(Json::of(&json!({"Receipt": 7}))));
            ports.queues().to_scheduler(SchedulerMessage::Reply(reply), Priority::Normal, 0).await.unwrap();
        } else {
            break;
        }
    }
    let order_id = accepted["OrderID"].as_str().unwrap().parse().unwrap();
    let task = ports.store().task(order_id).await.unwrap().unwrap();
    assert_eq!(task.process_state, ProcessState::Processed);
    let state = queue.state.lock().unwrap();
    (state.messages, state.requests)
}

#[tokio::test]
async fn an_order_of_three_steps_costs_seven_messages_and_two_more_with_a_reply_channel() {
    let (messages, requests) = carry_through(r#"{"Item":"mug","Total":25.00}"#).await;
    assert_eq!((messages, requests), (7, 7), "accepted, and three times a request and a reply");
    let (messages, requests) = carry_through(r#"{"Item":"mug","ReplyChannel":"shop"}"#).await;
    assert!(messages <= MESSAGES_MAX && requests <= MESSAGES_MAX, "{messages} messages in {requests} requests");
    assert_eq!(messages, 9, "received and processed besides");
}
