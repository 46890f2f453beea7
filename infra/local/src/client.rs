//! The HTTP client of the program, for commands, reply channels, traces, the demo and the outage, and for tests.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The longest answer that it reads: a page of 100 orders with 50 steps each stays far below.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest that [`Client::get`] and [`Client::post`] wait for an answer: longer than any `Prefer: wait`.
const ANSWER_MS_MAX: u64 = 30_000;

/// Keeps connections open between calls. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Client(Connections);

#[derive(Debug, Clone)]
enum Connections {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// There was no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NoAnswer {
    /// In words, from the innermost cause.
    pub why: String,
    /// Whether no connection came up at all, so that nobody can have seen the request.
    pub is_unsent: bool,
}

/// A call by method and URL has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The request could not be made of what was given.
    #[error("not a request: {0}")]
    Request(#[from] http::Error),
    /// No connection, or it ended before the answer.
    #[error("{method} {url}: {why}")]
    NoAnswer {
        /// What was tried.
        method: Method,
        /// Where.
        url: String,
        /// In words, from the innermost cause.
        why: String,
    },
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client for `http` alone, without connections yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Connections::Plain(legacy::Client::builder(TokioExecutor::new()).build(connector())))
    }

    /// A client for `https` alone, without connections yet.
    ///
    /// # Errors
    /// The system's, where it has no root certificates to check a server's name with.
    pub fn tls() -> io::Result<Self> {
        let mut connector = connector();
        connector.enforce_http(false);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
        let connector = builder.https_only().enable_http1().wrap_connector(connector);
        Ok(Self(Connections::Tls(legacy::Client::builder(TokioExecutor::new()).build(connector))))
    }

    /// Sends a request and gives the answer, with its body whole.
    ///
    /// # Errors
    /// [`NoAnswer`]; any status is an answer.
    pub async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoAnswer> {
        let (head, body) = self.begin(request).await?.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| NoAnswer { why: innermost(&*error), is_unsent: false })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }

    /// Sends a request and gives the answer as soon as its head has come.
    ///
    /// # Errors
    /// [`NoAnswer`]; any status is an answer.
    pub async fn begin(&self, request: Request<Bytes>) -> Result<Response<Incoming>, NoAnswer> {
        let request = request.map(Full::new);
        let response = match &self.0 {
            Connections::Plain(client) => client.request(request),
            Connections::Tls(client) => client.request(request),
        };
        response.await.map_err(|error| NoAnswer { why: innermost(&error), is_unsent: error.is_connect() })
    }

    /// `GET url`.
    ///
    /// # Errors
    /// [`ClientError`] when there is no answer; any status is an answer.
    pub async fn get(&self, url: &str) -> Result<Answer, ClientError> {
        self.call(Method::GET, url, &[], String::new()).await
    }

    /// `POST url` with a body, which is JSON unless a header `content-type` says otherwise.
    ///
    /// # Errors
    /// [`ClientError`] when there is no answer; any status is an answer.
    pub async fn post(&self, url: &str, headers: &[(&str, &str)], body: String) -> Result<Answer, ClientError> {
        self.call(Method::POST, url, headers, body).await
    }

    async fn call(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Answer, ClientError> {
        let mut request = Request::builder().method(method.clone()).uri(url);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let calling = self.exchange(request.body(Bytes::from(body))?);
        #[expect(clippy::disallowed_methods, reason = "the client's own patience, no part of the protocol")]
        let answered = tokio::time::timeout(Duration::from_millis(ANSWER_MS_MAX), calling).await;
        let why = match answered {
            Ok(Ok(answer)) => {
                let (head, body) = answer.into_parts();
                return Ok(Answer { status: head.status, headers: head.headers, body });
            }
            Ok(Err(NoAnswer { why, .. })) => why,
            Err(_) => "no answer in time".to_owned(),
        };
        Err(ClientError::NoAnswer { method, url: url.to_owned(), why })
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector
}

/// The innermost cause says most: the client's own words are "client error".
fn innermost(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&error| error.source()).last().map(ToString::to_string).unwrap_or_default()
}
