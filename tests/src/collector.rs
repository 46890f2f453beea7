//! A collector of traces, on a free port of this machine: takes what OTLP has as JSON, and remembers it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use local::http_server::Server;
use serde_json::Value;
use tokio::net::TcpListener;

/// Largest request that it takes, in bytes.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The collector.
#[derive(Debug)]
pub struct Collector {
    server: Server,
    spans: Arc<Mutex<Vec<Span>>>,
}

/// One span, as it came.
#[derive(Debug, Clone)]
pub struct Span {
    /// All of it.
    pub whole: Value,
    /// The name of the process that sent it.
    pub service: String,
}

impl Collector {
    /// # Errors
    /// Where no port can be bound.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let taking = spans.clone();
        let server = Server::start(listener, BODY_BYTES_MAX, 0, move |request: Request<Bytes>| {
            let status = match (request.uri().path(), serde_json::from_slice::<Value>(request.body())) {
                ("/v1/traces", Ok(body)) => {
                    lock(&taking).extend(of(&body));
                    StatusCode::OK
                }
                _ => StatusCode::BAD_REQUEST,
            };
            let mut response = Response::new(Bytes::from_static(b"{}"));
            *response.status_mut() = status;
            async move { Ok(response) }
        })?;
        Ok(Self { server, spans })
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// What it was sent so far, in the order in which it came.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        lock(&self.spans).clone()
    }
}

impl Span {
    /// A member that is a text; empty where there is none.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.whole[name].as_str().unwrap_or_default()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// An attribute, a whole number in its decimal form.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let all = self.whole["attributes"].as_array()?;
        let value = &all.iter().find(|attribute| attribute["key"] == key)?["value"];
        value["stringValue"].as_str().or_else(|| value["intValue"].as_str())
    }
}

/// The spans of one request.
fn of(body: &Value) -> Vec<Span> {
    let resource = &body["resourceSpans"][0];
    let attributes = resource["resource"]["attributes"].as_array().cloned().unwrap_or_default();
    let name = attributes.iter().find(|attribute| attribute["key"] == "service.name");
    let service = name.and_then(|name| name["value"]["stringValue"].as_str()).unwrap_or_default();
    let spans = resource["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default();
    spans.into_iter().map(|whole| Span { whole, service: service.to_owned() }).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
