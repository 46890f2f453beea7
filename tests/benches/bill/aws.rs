//! AWS, as far as the bill goes: DynamoDB behind a counter that has it say what each request took, SQS, an event bus, and
//! remote services. Each answer is held back for as long as AWS would take, times the dilation.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use local::client::Client;
use local::http_server::{HangUp, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::local::Local;
use crate::prices::Assumed;

/// Largest body that any of them takes, in bytes.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Messages that one receive gives at most.
const BATCH_MAX: usize = 10;

/// What was counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) write_units: f64,
    /// Bytes of the requests that write.
    pub(crate) written_bytes: u64,
    pub(crate) read_units: f64,
    pub(crate) messages: u64,
    pub(crate) sends: u64,
    pub(crate) receives: u64,
    /// Receives that found nothing for as long as they waited.
    pub(crate) empty_receives: u64,
    pub(crate) deletes: u64,
    pub(crate) events: u64,
}

/// All of it.
pub(crate) struct Aws {
    /// Where SQS and the event bus are.
    pub(crate) url: String,
    pub(crate) dynamodb_url: String,
    pub(crate) services_url: String,
    pub(crate) shared: Arc<Shared>,
    _servers: [Server; 3],
    local: Local,
}

/// What its servers share.
pub(crate) struct Shared {
    counts: Mutex<Counts>,
    queues: Mutex<BTreeMap<String, VecDeque<Message>>>,
    news: Notify,
    delays: Delays,
}

/// One message on a queue.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) body: String,
}

/// How long AWS takes, dilated.
#[derive(Debug, Clone, Copy)]
struct Delays {
    write: Duration,
    read: Duration,
    sqs: Duration,
    long_poll: Duration,
    remote: Duration,
}

impl Aws {
    pub(crate) async fn start(assumed: &Assumed, dilation: f64) -> io::Result<Self> {
        let of = |ms: f64| Duration::from_secs_f64(ms * dilation / 1_000.0);
        let delays = Delays {
            write: of(assumed.dynamodb_write_ms),
            read: of(assumed.dynamodb_read_ms),
            sqs: of(assumed.sqs_ms),
            long_poll: of(assumed.long_poll_s * 1_000.0),
            remote: of(assumed.remote_call_ms),
        };
        let shared =
            Arc::new(Shared { counts: Mutex::default(), queues: Mutex::default(), news: Notify::new(), delays });
        let local = Local::start().await;
        let behind = local.url.clone();
        let client = Client::new();
        let counter = {
            let shared = shared.clone();
            serve(move |request| dynamodb_answer(shared.clone(), client.clone(), behind.clone(), request)).await?
        };
        let queues = {
            let shared = shared.clone();
            serve(move |request| queues_answer(shared.clone(), request)).await?
        };
        let services = {
            let shared = shared.clone();
            serve(move |_| service_answer(shared.clone())).await?
        };
        let url = |server: &Server| format!("http://{}", server.address());
        Ok(Self {
            url: url(&queues),
            dynamodb_url: url(&counter),
            services_url: url(&services),
            shared,
            _servers: [counter, queues, services],
            local,
        })
    }

    /// The names of the tables, by the variable that tells a function.
    pub(crate) fn tables(&self) -> BTreeMap<String, String> {
        let name = |variable: &str| self.local.tables.name(variable).unwrap_or_default().to_owned();
        aws::dynamo::TABLES.iter().map(|table| (table.variable.to_owned(), name(table.variable))).collect()
    }

    /// What was counted since the last time.
    pub(crate) fn take_counts(&self) -> Counts {
        std::mem::take(&mut *lock(&self.shared.counts))
    }
}

impl Shared {
    /// The next messages of a queue, as a poller gets them: each request waits for one as long as a request may.
    pub(crate) async fn receive(&self, queue: &str) -> Vec<Message> {
        loop {
            if let Ok(taken) = tokio::time::timeout(self.delays.long_poll, self.taken(queue)).await {
                lock(&self.counts).receives += 1;
                wait(self.delays.sqs).await;
                return taken;
            }
            lock(&self.counts).empty_receives += 1;
        }
    }

    /// Takes what there is, or what comes first.
    async fn taken(&self, queue: &str) -> Vec<Message> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let taken: Vec<Message> = {
                let mut queues = lock(&self.queues);
                let waiting = queues.entry(queue.to_owned()).or_default();
                let count = waiting.len().min(BATCH_MAX);
                waiting.drain(..count).collect()
            };
            if !taken.is_empty() {
                return taken;
            }
            news.await;
        }
    }

    /// What was handled is deleted, with one request.
    pub(crate) async fn delete(&self) {
        lock(&self.counts).deletes += 1;
        wait(self.delays.sqs).await;
    }
}

async fn serve<Answering>(answer: impl Fn(Request<Bytes>) -> Answering + Send + Sync + 'static) -> io::Result<Server>
where
    Answering: Future<Output = Response<Bytes>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Server::start(listener, BODY_BYTES_MAX, 0, move |request| {
        let answering = answer(request);
        async move { Ok::<_, HangUp>(answering.await) }
    })
}

/// Asks DynamoDB to tell what a request takes, and counts it.
async fn dynamodb_answer(
    shared: Arc<Shared>,
    client: Client,
    behind: String,
    request: Request<Bytes>,
) -> Response<Bytes> {
    let target = header(&request, "x-amz-target");
    let mut body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    body["ReturnConsumedCapacity"] = "TOTAL".into();
    let (authorization, date) = (header(&request, "authorization"), header(&request, "x-amz-date"));
    let headers = [
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", target.as_str()),
        ("authorization", authorization.as_str()),
        ("x-amz-date", date.as_str()),
    ];
    let Ok(answer) = client.post(&behind, &headers, body.to_string()).await else {
        return status(StatusCode::BAD_GATEWAY);
    };
    // A function opens its connections with a request that names no operation.
    if !answer.status.is_success() && !target.is_empty() {
        eprintln!("{target}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let units = units(&told["ConsumedCapacity"]);
    let is_read = ["GetItem", "Query", "Scan"].iter().any(|read| target.ends_with(read));
    {
        let mut counts = lock(&shared.counts);
        *(if is_read { &mut counts.read_units } else { &mut counts.write_units }) += units;
        counts.written_bytes += if is_read { 0 } else { request.body().len() as u64 };
    }
    wait(if is_read { shared.delays.read } else { shared.delays.write }).await;
    let mut response = Response::new(answer.body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response.headers_mut().remove("transfer-encoding");
    response
}

/// One table's units, or those of several.
fn units(capacity: &Value) -> f64 {
    match capacity {
        Value::Array(tables) => tables.iter().map(units).sum(),
        Value::Object(table) => table.get("CapacityUnits").and_then(Value::as_f64).unwrap_or(0.0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0.0,
    }
}

async fn queues_answer(shared: Arc<Shared>, request: Request<Bytes>) -> Response<Bytes> {
    let target = header(&request, "x-amz-target");
    let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
    wait(shared.delays.sqs).await;
    let entries = body["Entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    let answer = match target.rsplit('.').next() {
        Some("SendMessageBatch") => shared.send(body["QueueUrl"].as_str().unwrap_or_default(), entries),
        Some("PutEvents") => {
            lock(&shared.counts).events += entries.len() as u64;
            json!({"FailedEntryCount": 0, "Entries": entries.iter().map(|_| json!({"EventId": "e"})).collect::<Vec<_>>()})
        }
        Some(_) | None => return status(StatusCode::BAD_REQUEST),
    };
    let mut response = Response::new(answer.to_string().into());
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/x-amz-json-1.0"));
    response
}

impl Shared {
    fn send(&self, url: &str, entries: &[Value]) -> Value {
        let queue = url.rsplit('/').next().unwrap_or_default().to_owned();
        let first = {
            let mut counts = lock(&self.counts);
            counts.sends += 1;
            counts.messages += entries.len() as u64;
            counts.messages
        };
        let bodies = entries.iter().filter_map(|entry| entry["MessageBody"].as_str());
        let messages = bodies.zip(first..).map(|(body, id)| Message { id, body: body.to_owned() });
        lock(&self.queues).entry(queue).or_default().extend(messages);
        self.news.notify_waiters();
        let taken = |entry: &Value| json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "x"});
        json!({"Successful": entries.iter().map(taken).collect::<Vec<_>>(), "Failed": []})
    }
}

async fn service_answer(shared: Arc<Shared>) -> Response<Bytes> {
    wait(shared.delays.remote).await;
    Response::new(Bytes::from_static(br#"{"Reference":"R-5b1d0fa35c0b1e77","Status":"done"}"#))
}

fn header(request: &Request<Bytes>, name: &str) -> String {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

fn status(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
