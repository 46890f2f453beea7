//! A fake AWS for tests, on a free port of this machine. It answers as the test defines, and records each request.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use aws_credential_types::Credentials;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::clients::Clients;
use crate::config::Access;
use crate::environment::Random;

/// An answer: a status and a body.
pub(crate) type Said = (u16, Value);

/// A server that stands in for AWS.
pub(crate) struct FakeAws {
    url: Arc<str>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    connections: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl FakeAws {
    /// Answers each request with the result of `answer` for its operation and body.
    pub(crate) async fn start(answer: impl Fn(&str, &Value) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).into();
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        let connections = Arc::<AtomicUsize>::default();
        let connected = connections.clone();
        let serving = tokio::spawn(async move {
            loop {
                let stream = TokioIo::new(listener.accept().await.unwrap().0);
                connected.fetch_add(1, Relaxed);
                let (seen, answer) = (seen.clone(), answer.clone());
                let service = service_fn(move |request| respond(request, seen.clone(), answer.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(stream, service));
            }
        });
        Self { url, requests, connections, serving }
    }

    /// An SQS and an EventBridge that accept every entry.
    pub(crate) async fn that_takes_everything() -> Self {
        Self::start(|_, body| (200, all_taken(body))).await
    }

    pub(crate) fn clients(&self) -> Clients {
        Clients::new(&access(&self.url)).unwrap()
    }

    pub(crate) fn url(&self) -> Arc<str> {
        self.url.clone()
    }

    /// The connections that were made so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// The recorded requests: operation and body.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for FakeAws {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn respond(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    answer: Arc<impl Fn(&str, &Value) -> Said>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let Some(target) = request.headers().get("x-amz-target") else {
        // Only the connection is wanted.
        return Ok(Response::new(Full::default()));
    };
    let target = target.to_str().unwrap();
    let operation = target.rsplit('.').next().unwrap().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(cloud::refusal(&operation, &body), None, "AWS refuses this {operation}: {body}");
    seen.lock().unwrap().push((operation.clone(), body.clone()));
    let (status, said) = answer(&operation, &body);
    let response = Response::builder().status(status).header("content-type", "application/x-amz-json-1.0");
    Ok(response.body(Full::new(said.to_string().into())).unwrap())
}

/// The answer of a service that accepted all entries of a request.
pub(crate) fn all_taken(body: &Value) -> Value {
    let entries = body["Entries"].as_array().cloned().unwrap_or_default();
    let taken = entries.iter().map(|entry| json!({"Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "x"}));
    json!({
        "Successful": taken.collect::<Vec<_>>(), "Failed": [],
        "Entries": vec![json!({"EventId": "e"}); entries.len()], "FailedEntryCount": 0,
    })
}

/// The access to a server at this URL.
pub(crate) fn access(url: &str) -> Access {
    let url: Option<Arc<str>> = Some(url.into());
    Access {
        region: "eu-central-1".into(),
        credentials: Credentials::new("key", "secret", None, None, "test"),
        dynamodb_url: url.clone(),
        sqs_url: url.clone(),
        eventbridge_url: url,
    }
}

pub(crate) fn random() -> Arc<Random> {
    Arc::new(Random::of_system().unwrap())
}
