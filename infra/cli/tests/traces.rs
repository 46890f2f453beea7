//! `stepwarden serve` with a collector: each order is one trace, from the call of the application to those of the remote
//! services, and a collector that is away is no matter.

#![allow(clippy::disallowed_methods, reason = "a test")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use local::client::Client;
use local::http_server::Server;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::sleep;

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Collector and remote services in one: keeps what comes to `/v1/traces`, says yes to everything else, and keeps the
/// `traceparent` of that.
struct Outside {
    server: Server,
    spans: Arc<Mutex<Vec<Value>>>,
    calls: Arc<Mutex<Vec<Option<String>>>>,
}

impl Outside {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (spans, calls) = (Arc::<Mutex<Vec<Value>>>::default(), Arc::<Mutex<Vec<Option<String>>>>::default());
        let (taking, noting) = (spans.clone(), calls.clone());
        let server = Server::start(listener, 16_000_000, 0, move |request: Request<Bytes>| {
            if request.uri().path() == "/v1/traces" {
                let header = |name: &str| request.headers()[name].to_str().unwrap();
                assert_eq!((header("content-type"), header("api-key")), ("application/json", "k"));
                let body: Value = serde_json::from_slice(request.body()).unwrap();
                let sent = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
                taking.lock().unwrap().extend(sent.iter().cloned());
            } else {
                let parent = request.headers().get("traceparent").map(|parent| parent.to_str().unwrap().to_owned());
                noting.lock().unwrap().push(parent);
            }
            async { Ok(Response::new(Bytes::from_static(b"{}"))) }
        });
        Self { server: server.unwrap(), spans, calls }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The spans of an order, once there are so many.
    async fn spans_of(&self, order_id: &str, count: usize) -> Vec<Value> {
        let trace_id = order_id.replace('-', "");
        for _ in 0..2_000 {
            let all = self.spans.lock().unwrap().clone();
            let of_order: Vec<Value> = all.into_iter().filter(|span| span["traceId"] == *trace_id).collect();
            if of_order.len() >= count {
                return of_order;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("not {count} spans of {order_id}: {:#?}", self.spans.lock().unwrap());
    }
}

/// A served instance, killed at the end of the test if it still runs.
struct Served {
    process: Child,
    url: String,
}

impl Served {
    fn start(data: &Path, outside: &Outside, collector: Option<&str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepwarden"));
        command.args(["serve", "--port", "0", "--data", data.to_str().unwrap()]).env_remove("RUST_LOG");
        for service in ["inventory", "payment", "shipping"] {
            command.env(format!("{}_URL", service.to_uppercase()), format!("{}/{service}", outside.url()));
        }
        if let Some(collector) = collector {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector).env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.strip_prefix("stepwarden: listening on ").unwrap().split(',').next().unwrap().to_owned();
        Self { process, url }
    }

    /// Posts an order, waits until it is processed, and gives its id.
    async fn process(&self, caller: Option<&str>) -> String {
        let mut headers = vec![("prefer", "wait=20")];
        headers.extend(caller.map(|caller| ("traceparent", caller)));
        let answer = Client::new().post(&format!("{}/orders", self.url), &headers, "{}".to_owned()).await.unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body["ProcessState"], "Processed", "{body}");
        body["OrderID"].as_str().unwrap().to_owned()
    }

    /// Tells it to end, and waits until it has.
    fn end(&mut self) -> Option<i32> {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The names of the spans on the way from the first to this one.
fn way<'a>(spans: &'a [Value], mut span: &'a Value) -> Vec<&'a str> {
    let mut names = vec![span["name"].as_str().unwrap()];
    while let Some(parent) = spans.iter().find(|parent| parent["spanId"] == span["parentSpanId"]) {
        names.insert(0, parent["name"].as_str().unwrap());
        span = parent;
    }
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_one_trace_with_all_that_was_done_for_it() {
    let (outside, data) = (Outside::start().await, tempfile::tempdir().unwrap());
    let mut served = Served::start(data.path(), &outside, Some(&outside.url()));
    let unrecorded = served.process(Some(&CALLER.replace("-01", "-00"))).await;
    let order_id = served.process(Some(CALLER)).await;
    let strange = served.process(Some("00-nonsense")).await;

    let spans = outside.spans_of(&order_id, 11).await;
    assert_eq!(spans.len(), 11);
    let last =
        |span: &&Value| span["events"].as_array().into_iter().flatten().any(|event| event["name"] == "order processed");
    let last = spans.iter().find(last).unwrap();
    let step = |agent: &'static str| [agent, "process scheduler"];
    let mut expected = vec!["POST /orders", "begin"];
    expected.extend(["process inventory", "process payment", "process shipping"].into_iter().flat_map(step));
    assert_eq!(way(&spans, last), expected);
    let posted = spans.iter().find(|span| span["kind"] == 2).unwrap();
    assert_eq!(
        (posted["links"][0]["traceId"].as_str().unwrap(), &posted["parentSpanId"]),
        (&CALLER[3..35], &Value::Null)
    );

    let calls: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 3).collect();
    assert_eq!(calls.len(), 3);
    for call in calls {
        let carried = format!("00-{}-{}-01", order_id.replace('-', ""), call["spanId"].as_str().unwrap());
        assert!(outside.calls.lock().unwrap().contains(&Some(carried)), "the service was told: {call}");
    }

    let of_strange = outside.spans_of(&strange, 11).await;
    assert!(of_strange.iter().all(|span| span.get("links").is_none()));
    assert_eq!(served.end(), Some(0));
    // What was left was sent at the end; of the order whose caller is not recorded there was nothing.
    let unrecorded = unrecorded.replace('-', "");
    assert!(outside.spans.lock().unwrap().iter().all(|span| span["traceId"] != *unrecorded));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_spans_are_sent_when_it_is_told_to_end() {
    let (outside, data) = (Outside::start().await, tempfile::tempdir().unwrap());
    let mut served = Served::start(data.path(), &outside, Some(&outside.url()));
    let order_id = served.process(None).await;
    assert_eq!(tokio::task::spawn_blocking(move || served.end()).await.unwrap(), Some(0));
    let sent = outside.spans.lock().unwrap().clone();
    assert_eq!(sent.iter().filter(|span| span["traceId"] == *order_id.replace('-', "")).count(), 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_or_never_answers_harms_no_order_and_not_the_end() {
    let gone = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    for collector in [gone, silent.local_addr().unwrap()] {
        let (outside, data) = (Outside::start().await, tempfile::tempdir().unwrap());
        let mut served = Served::start(data.path(), &outside, Some(&format!("http://{collector}")));
        for _ in 0..20 {
            served.process(None).await;
        }
        let began = Instant::now();
        assert_eq!(served.end(), Some(0));
        assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_collector_no_service_is_told_of_a_trace() {
    let (outside, data) = (Outside::start().await, tempfile::tempdir().unwrap());
    let served = Served::start(data.path(), &outside, None);
    served.process(Some(CALLER)).await;
    assert_eq!(*outside.calls.lock().unwrap(), [None, None, None]);
    assert!(outside.spans.lock().unwrap().is_empty());
}
