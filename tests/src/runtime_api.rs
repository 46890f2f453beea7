//! The Lambda runtime API for one function: delivers invocations one after the other, and takes the answers.

#![allow(clippy::disallowed_methods, reason = "the platform has a clock of its own")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use local::http_server::{HangUp, Server};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The longest accepted answer, in bytes.
const ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024;
/// The path of invocations.
const INVOCATION: &str = "/2018-06-01/runtime/invocation/";

/// A platform for one function, on a free port of this machine.
#[derive(Debug)]
pub struct RuntimeApi {
    server: Server,
    invocations: UnboundedSender<Invocation>,
    count: AtomicU64,
    asked: Mutex<UnboundedReceiver<Instant>>,
    answered: Mutex<UnboundedReceiver<Answered>>,
}

/// The outcome of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The function's answer.
    Answer(Value),
    /// The function's error.
    Error(Value),
}

#[derive(Debug)]
struct Invocation {
    id: u64,
    payload: String,
    deadline_ms: u128,
}

/// The state shared by the server and the test.
#[derive(Debug)]
struct Platform {
    waiting: Mutex<UnboundedReceiver<Invocation>>,
    asked: UnboundedSender<Instant>,
    answered: UnboundedSender<Answered>,
}

impl RuntimeApi {
    /// # Errors
    /// Where no port can be bound.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (invocations, waiting) = unbounded_channel();
        let (asked, asked_here) = unbounded_channel();
        let (answered, answered_here) = unbounded_channel();
        let platform = Arc::new(Platform { waiting: Mutex::new(waiting), asked, answered });
        let server = Server::start(listener, ANSWER_BYTES_MAX, 0, move |request| serve(platform.clone(), request))?;
        Ok(Self {
            server,
            invocations,
            count: AtomicU64::new(0),
            asked: Mutex::new(asked_here),
            answered: Mutex::new(answered_here),
        })
    }

    /// The variables that the platform sets for a function.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("AWS_LAMBDA_RUNTIME_API", self.address().to_string()),
            ("AWS_LAMBDA_FUNCTION_NAME", "function-under-test".to_owned()),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".to_owned()),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256".to_owned()),
        ]
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Waits until the function asks for work, and returns the time. Each request is reported once.
    ///
    /// # Errors
    /// When the platform is gone.
    pub async fn asked(&self) -> io::Result<Instant> {
        self.asked.lock().await.recv().await.ok_or_else(gone)
    }

    /// Sends the function an invocation with a time-out of `left_ms`.
    ///
    /// # Errors
    /// When the platform is gone.
    pub fn give(&self, payload: &Value, left_ms: u64) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = self.count.fetch_add(1, Ordering::Relaxed);
        let deadline_ms = now.as_millis() + u128::from(left_ms);
        self.invocations.send(Invocation { id, payload: payload.to_string(), deadline_ms }).map_err(|_| gone())
    }

    /// Waits for the function's next answer.
    ///
    /// # Errors
    /// When the platform is gone.
    pub async fn answered(&self) -> io::Result<Answered> {
        self.answered.lock().await.recv().await.ok_or_else(gone)
    }

    /// Sends the function an invocation, and waits for its answer.
    ///
    /// # Errors
    /// When the platform is gone.
    pub async fn invoke(&self, payload: &Value, left_ms: u64) -> io::Result<Answered> {
        self.give(payload, left_ms)?;
        self.answered().await
    }
}

fn gone() -> io::Error {
    io::Error::other("the platform is gone")
}

async fn serve(platform: Arc<Platform>, request: Request<Bytes>) -> Result<Response<Bytes>, HangUp> {
    let path = request.uri().path().strip_prefix(INVOCATION).unwrap_or_default().to_owned();
    // The test may no longer listen.
    match (request.method(), path.rsplit('/').next()) {
        (&Method::GET, Some("next")) => {
            let _ = platform.asked.send(Instant::now());
            let invocation = platform.waiting.lock().await.recv().await.ok_or(HangUp)?;
            next(invocation).map_err(|_| HangUp)
        }
        (&Method::POST, Some("response")) => {
            let _ = platform.answered.send(Answered::Answer(body(&request)));
            accepted()
        }
        (&Method::POST, Some("error")) => {
            let _ = platform.answered.send(Answered::Error(body(&request)));
            accepted()
        }
        _ => Ok(status(StatusCode::NOT_FOUND)),
    }
}

fn next(invocation: Invocation) -> http::Result<Response<Bytes>> {
    let Invocation { id, payload, deadline_ms } = invocation;
    Response::builder()
        // As long as Lambda's IDs: log lines contain it and are billed by the byte.
        .header("lambda-runtime-aws-request-id", format!("8476a536-e9f4-11e8-9739-{id:012}"))
        .header("lambda-runtime-deadline-ms", deadline_ms.to_string())
        .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-central-1:1:function:function-under-test")
        .header("lambda-runtime-trace-id", format!("Root=1-0-{id};Sampled=1"))
        .body(payload.into())
}

fn body(request: &Request<Bytes>) -> Value {
    serde_json::from_slice(request.body()).unwrap_or_else(|_| String::from_utf8_lossy(request.body()).into())
}

fn accepted() -> Result<Response<Bytes>, HangUp> {
    Ok(status(StatusCode::ACCEPTED))
}

fn status(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}
