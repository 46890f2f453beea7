//! One order as one trace: through the handlers, the shipped agents, and all ports, as in a function.

use std::io::{self, Write, sink};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents::{AgentSettings, HttpClients, http_agent};
use api::{ApiConfig, Caller};
use aws::config::Function as OnLambda;
use aws::ports::Ports;
use aws::telemetry::{Settings, Telemetry};
use bytes::Bytes;
use domain::message::Request;
use domain::ports::{HasStore, Store};
use domain::task::ProcessState;
use http::Response;
use local::http_server::Server;
use serde_json::json;
use tests::collector::{Collector, Span};
use tests::conformance::samples::NOON;
use tests::runtime_api::{Answered, RuntimeApi};
use tokio::net::TcpListener;
use trace::Traces;

use super::function::Function;
use super::order::{AGENTS, Queue, config};
use crate::dynamodb::local::Local;

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// All three services. They accept every call and record its `traceparent`.
struct Services {
    server: Server,
    seen: Arc<Mutex<Vec<Option<String>>>>,
}

impl Services {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let seen = Arc::<Mutex<Vec<Option<String>>>>::default();
        let noting = seen.clone();
        let server = Server::start(listener, 1_000_000, 0, move |request: http::Request<Bytes>| {
            let parent = request.headers().get("traceparent").map(|parent| parent.to_str().unwrap().to_owned());
            noting.lock().unwrap().push(parent);
            async { Ok(Response::new(Bytes::from_static(b"{}"))) }
        });
        Self { server: server.unwrap(), seen }
    }
}

/// Traces that go to this URL.
fn traces_to(url: &str) -> Option<Traces> {
    let url = url.to_owned();
    let lookup = move |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| url.clone());
    let (traces, problems) = local::traces::read(lookup);
    assert!(problems.is_empty(), "{problems:?}");
    traces
}

/// The calls and messages of an order.
struct Carried {
    order_id: String,
    /// The calls at the services.
    calls: Vec<Option<String>>,
    /// The attributes of the messages, in sending order.
    attributes: Vec<Option<String>>,
}

/// Posts an order and runs the handlers until no message is left.
async fn carry_through(traces: Option<Traces>, caller: Option<&str>) -> Carried {
    let (local, queue, services) = (Local::start().await, Queue::start().await, Services::start().await);
    let config = config(&local, &queue).await;
    let ports = Ports::new(&config).unwrap();
    let instance = ports.instance(&config, OnLambda::Scheduler).unwrap();
    let base = format!("http://{}", services.server.address());
    let clients = HttpClients::new();
    let agents = AGENTS.map(|name| http_agent(name, &base, AgentSettings::default(), &clients).unwrap());
    let telemetry = Telemetry::with_traces("tests", Settings::default(), || NOON, sink(), traces);
    let _listening = trace::listen(telemetry.subscriber());

    let mut post = http::Request::post("/orders").body(Bytes::from_static(b"{\"Item\":\"mug\"}")).unwrap();
    if let Some(caller) = caller {
        post.headers_mut().insert("traceparent", caller.parse().unwrap());
    }
    let accepted = api::handle(&ports, &ApiConfig::default(), &Caller::unrestricted("shop"), post).await;
    assert_eq!(accepted.status(), 202);
    let accepted: serde_json::Value = serde_json::from_slice(accepted.body()).unwrap();
    let mut attributes: Vec<Option<String>> = Vec::new();
    loop {
        attributes.extend(queue.waiting().into_iter().map(|(_, parent)| parent));
        let request = |name: &str| queue.next::<Request>(name);
        let failures = if let Some(batch) = queue.next("submission") {
            submission::handle(&ports, &instance, batch).await
        } else if let Some(batch) = queue.next("scheduler") {
            scheduler::handle(&ports, &instance, batch).await
        } else if let Some((agent, batch)) =
            AGENTS.iter().zip(&agents).find_map(|(name, agent)| Some((agent, request(name)?)))
        {
            agents::handle(&ports, agent, batch).await
        } else {
            break;
        };
        assert!(failures.0.is_empty());
    }
    let order_id = accepted["OrderID"].as_str().unwrap().to_owned();
    let task = ports.store().task(order_id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(task.process_state, ProcessState::Processed);
    let calls = services.seen.lock().unwrap().clone();
    Carried { order_id, calls, attributes }
}

/// The spans on the path from the first span to this one.
fn way<'a>(spans: &'a [Span], mut span: &'a Span) -> Vec<&'a str> {
    let mut names = vec![span.name()];
    while let Some(parent) = spans.iter().find(|parent| parent.text("spanId") == span.text("parentSpanId")) {
        names.insert(0, parent.name());
        span = parent;
    }
    names
}

#[tokio::test]
async fn an_order_is_one_trace_from_the_call_to_its_end_with_a_link_to_the_callers() {
    let collector = Collector::start().await.unwrap();
    let traces = traces_to(&collector.url()).unwrap();
    let carried = carry_through(Some(traces.clone()), Some(CALLER)).await;
    traces.flush(Duration::from_secs(60)).await;
    let spans = collector.spans();
    let trace_id = carried.order_id.replace('-', "");
    assert!(spans.iter().all(|span| span.text("traceId") == trace_id), "{spans:#?}");
    assert_eq!(spans.len(), 1 + 1 + 3 + 3 + 3, "posted, stored, three times asked, called and scheduled");

    let posted = spans.iter().find(|span| span.name() == "POST /orders").unwrap();
    assert_eq!((&posted.whole["kind"], posted.whole.get("parentSpanId")), (&json!(2), None));
    let link = &posted.whole["links"][0];
    assert_eq!(
        (link["traceId"].as_str().unwrap(), link["spanId"].as_str().unwrap()),
        (&CALLER[3..35], &CALLER[36..52])
    );
    assert_eq!(posted.attribute("http.response.status_code"), Some("202"));

    // The last span has every other span before it: one chain.
    let last = spans.iter().find(|span| span.attribute("stepwarden.process_state") == Some("Processed")).unwrap();
    let step = |agent: &'static str| [agent, "process scheduler"];
    let mut expected = vec!["POST /orders", "process submission"];
    expected.extend(["process inventory", "process payment", "process shipping"].into_iter().flat_map(step));
    assert_eq!(way(&spans, last), expected);
    let of_last = ["event", "step", "direction", "attempt", "outcome", "workflow", "workflow_version"];
    let of_last = of_last.map(|key| last.attribute(&format!("stepwarden.{key}")).unwrap());
    assert_eq!(of_last, ["Reply", "ship-order", "Forward", "1", "taken", "order", "1"]);
    assert_eq!(last.attribute("stepwarden.order_id"), Some(&*carried.order_id));
    let events: Vec<_> = last.whole["events"].as_array().unwrap().iter().map(|event| &event["name"]).collect();
    assert_eq!(events, ["step done", "order processed"]);
    let messaging =
        ["system", "destination.name", "operation.type"].map(|key| last.attribute(&format!("messaging.{key}")));
    assert_eq!(messaging, [Some("stepwarden"), Some("scheduler"), Some("process")]);

    // Each call is a child of the agent's span, and the service receives this child.
    let calls: Vec<_> = spans.iter().filter(|span| span.whole["kind"] == 3).collect();
    let names: Vec<_> = calls.iter().map(|call| call.name()).collect();
    assert_eq!(names, ["POST reserve", "POST charge", "POST ship"]);
    for (call, seen) in calls.iter().zip(&carried.calls) {
        assert_eq!(seen.as_deref(), Some(&*format!("00-{trace_id}-{}-01", call.text("spanId"))));
        assert_eq!(
            ["http.response.status_code", "stepwarden.retries", "stepwarden.outcome"].map(|key| call.attribute(key)),
            [Some("200"), Some("0"), Some("done")]
        );
        let parent = spans.iter().find(|span| span.text("spanId") == call.text("parentSpanId")).unwrap();
        assert_eq!(parent.name(), format!("process {}", call.attribute("peer.service").unwrap()));
    }
    assert!(spans.iter().all(|span| span.whole["status"] == json!({})), "nothing failed");
    assert_eq!(carried.attributes.len(), 7);
    assert!(carried.attributes.iter().all(Option::is_some), "{:?}", carried.attributes);
}

#[tokio::test]
async fn an_order_of_a_caller_who_is_not_recorded_is_not_either_and_nobody_on_the_way_is_told_otherwise() {
    let collector = Collector::start().await.unwrap();
    let traces = traces_to(&collector.url()).unwrap();
    let unsampled = CALLER.replace("-01", "-00");
    let carried = carry_through(Some(traces.clone()), Some(&unsampled)).await;
    traces.flush(Duration::from_secs(60)).await;
    assert!(collector.spans().is_empty());
    let told: Vec<_> = carried.calls.iter().chain(&carried.attributes).map(|told| told.as_deref().unwrap()).collect();
    assert_eq!(told.len(), 3 + 7);
    assert!(told.iter().all(|told| told.ends_with("-00")), "{told:?}");
}

#[tokio::test]
async fn a_caller_whose_traceparent_is_none_has_no_part_in_the_trace() {
    for nonsense in [
        "nonsense",
        "00-00000000000000000000000000000000-b7ad6b7169203331-00",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
    ] {
        let collector = Collector::start().await.unwrap();
        let traces = traces_to(&collector.url()).unwrap();
        carry_through(Some(traces.clone()), Some(nonsense)).await;
        traces.flush(Duration::from_secs(60)).await;
        let spans = collector.spans();
        assert_eq!(spans.len(), 11, "{nonsense}");
        assert!(spans.iter().all(|span| span.whole.get("links").is_none()));
    }
}

#[tokio::test]
async fn without_a_collector_nothing_carries_anything() {
    assert!(traces_to("").is_none());
    let carried = carry_through(None, Some(CALLER)).await;
    assert_eq!(carried.calls, [None, None, None]);
    assert_eq!(carried.attributes, vec![None; 7]);
}

#[tokio::test]
async fn a_collector_that_is_away_harms_no_order() {
    let gone = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
    let traces = traces_to(&format!("http://{gone}")).unwrap();
    carry_through(Some(traces.clone()), None).await;
    traces.flush(Duration::from_secs(1)).await;
    assert!(format!("{traces:?}").ends_with("buffer: 11 }"), "they wait for it: {traces:?}");
}

#[tokio::test]
async fn spans_that_nobody_will_have_are_counted() {
    let collector = Collector::start().await.unwrap();
    let elsewhere = format!("{}/elsewhere", collector.url());
    let lookup = |name: &str| (name == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").then(|| elsewhere.clone());
    let traces = local::traces::read(lookup).0.unwrap();
    let paper = Paper::default();
    let settings = Settings { levels: "warn".to_owned(), ..Settings::default() };
    let telemetry = Telemetry::with_traces("tests", settings, || NOON, paper.clone(), Some(traces.clone()));
    let listening = trace::listen(telemetry.subscriber());
    for _ in 0..3 {
        drop(domain::trace::found(ORDER.parse().unwrap()));
    }
    traces.flush(Duration::from_secs(60)).await;
    drop(listening);
    telemetry.flush();
    let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["message"].as_str().unwrap().contains("refused: 400"), "{text}");
    assert_eq!((&lines[1]["spans_dropped"], lines.len()), (&json!(3.0), 2), "{text}");
}

/// The written lines.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One wake for an order of this id, as a record.
fn record(order_id: &str, parent: &str) -> serde_json::Value {
    json!({"Records": [{
        "messageId": "m-1", "receiptHandle": "h", "body": json!({"Wake": {"OrderID": order_id}}).to_string(),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "0"},
        "messageAttributes": {"traceparent": {"stringValue": parent, "dataType": "String"}},
        "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-central-1:1:any",
    }]})
}

const ORDER: &str = "0af76519-16cd-43dd-8448-eb211c80319c";

#[tokio::test]
async fn the_spans_of_an_invocation_are_sent_before_it_is_answered() {
    let (platform, collector) = (RuntimeApi::start().await.unwrap(), Collector::start().await.unwrap());
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())];
    let _function = Function::traced(&platform, &variables);
    for count in 1..=3 {
        let answer = platform.invoke(&record(ORDER, CALLER), 60_000).await.unwrap();
        assert_eq!(answer, Answered::Answer(json!({"batchItemFailures": []})));
        let spans = collector.spans();
        assert_eq!(spans.len(), count, "it is there already");
        let span = spans.last().unwrap();
        assert_eq!((span.text("traceId"), span.text("parentSpanId")), (&CALLER[3..35], &CALLER[36..52]));
        assert_eq!((span.service.as_str(), span.name()), ("function-under-test", "process scheduler"));
        assert_eq!(span.attribute("messaging.system"), Some("aws_sqs"));
    }
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_no_record() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let platform = RuntimeApi::start().await.unwrap();
    let _function = Function::traced(&platform, &[("OTEL_EXPORTER_OTLP_ENDPOINT", url)]);
    platform.asked().await.unwrap();
    // How long it may hold them up, the tests of the exporter say: their clock stands still.
    for _ in 0..4 {
        let answer = platform.invoke(&record(ORDER, CALLER), 60_000).await.unwrap();
        assert_eq!(answer, Answered::Answer(json!({"batchItemFailures": []})));
    }
}
