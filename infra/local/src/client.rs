//! A small HTTP client, for reply channels, for the demo and the outage, and for tests.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// The longest answer that it reads.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The longest that it waits for an answer: longer than any `Prefer: wait`.
const ANSWER_MS_MAX: u64 = 30_000;

/// Keeps connections open between calls. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Client(legacy::Client<HttpConnector, Full<Bytes>>);

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
    /// A client without connections yet.
    #[must_use]
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(legacy::Client::builder(TokioExecutor::new()).build(connector))
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
        let request = request.body(Full::new(Bytes::from(body)))?;
        let no_answer = |why: String| ClientError::NoAnswer { method: method.clone(), url: url.to_owned(), why };
        let calling = async {
            let response = self.0.request(request).await.map_err(|error| no_answer(root_cause(&error)))?;
            let (head, body) = response.into_parts();
            let body =
                Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|error| no_answer(error.to_string()))?;
            Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
        };
        #[expect(clippy::disallowed_methods, reason = "the client's own patience, no part of the protocol")]
        let answered = tokio::time::timeout(Duration::from_millis(ANSWER_MS_MAX), calling).await;
        answered.unwrap_or_else(|_| Err(no_answer("no answer in time".to_owned())))
    }
}

/// The innermost cause says most: the client's own words are "client error".
fn root_cause(error: &legacy::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
