//! The HTTP client that all SDK clients of a process share. It uses HTTP/1.1, keeps connections, and uses TLS only for
//! endpoints that need it.
//!
//! It replaces the SDK's own client. That client brings HTTP/2, proxies and a second pool. A function never uses them,
//! and they add to its size and its start time.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::retry::ErrorKind;
use bytes::Bytes;
use http::response::Parts;
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::client::legacy::{Builder, Client, Error as ClientError, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// The time-out of a new connection, without its TLS handshake. The time-out of the attempt covers the handshake.
const CONNECT: Duration = Duration::from_secs(1);
/// The idle time after which the pool drops a connection. It is shorter than AWS's own limit. A connection that was
/// dropped while the function was frozen fails at its next use, and the request is repeated.
const POOL_IDLE: Duration = Duration::from_secs(20);
/// Idle connections kept for each host. A batch of ten records uses no more for its reads and writes.
const POOL_IDLE_MAX: usize = 16;

/// The part of an answer that is read when only its status matters, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The system's root certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("no root certificates to check the endpoints of AWS with: {source}")]
pub struct TlsError {
    #[source]
    source: std::io::Error,
}

/// The pool of connections. Cloning it shares them.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    Plain(Client<TcpConnector, SdkBody>),
    Tls(Client<HttpsConnector<TcpConnector>, SdkBody>),
}

impl Pool {
    /// A pool without TLS. It does not read the root certificates.
    pub(crate) fn plain() -> Self {
        Self::Plain(pooled().build(tcp()))
    }

    /// A pool that uses TLS for `https` URLs. It reads the root certificates now, because Lambda runs initialisation
    /// faster than a first request.
    ///
    /// # Errors
    /// [`TlsError`] if the system has no root certificates.
    pub(crate) fn tls() -> Result<Self, TlsError> {
        let mut connector = tcp();
        connector.enforce_http(false);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider);
        let builder = builder.map_err(|source| TlsError { source })?;
        Ok(Self::Tls(pooled().build(builder.https_or_http().enable_http1().wrap_connector(connector))))
    }

    fn request(&self, request: http::Request<SdkBody>) -> ResponseFuture {
        match self {
            Self::Plain(client) => client.request(request),
            Self::Tls(client) => client.request(request),
        }
    }
}

impl Pool {
    /// Sends a request whose answer matters only by its head. It reads a short body, so that the connection can be
    /// reused.
    ///
    /// # Errors
    /// [`ClientError`] if there is no answer.
    pub(crate) async fn send(&self, request: http::Request<Bytes>) -> Result<Parts, ClientError> {
        let response = self.request(request.map(SdkBody::from)).await?;
        let (head, body) = response.into_parts();
        // The body does not matter, and neither does an error in it.
        let _ = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        Ok(head)
    }
}

impl HttpClient for Pool {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Pool {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let request = match request.try_into_http1x() {
            Ok(request) => request,
            Err(error) => return HttpConnectorFuture::ready(Err(ConnectorError::user(error.into()))),
        };
        let answering = self.request(request);
        HttpConnectorFuture::new(async move {
            let response = answering.await.map_err(unanswered)?;
            HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// The SDK's error for a request without an answer. Every such error is retryable: the SDK signs and sends again, and
/// each of our requests may arrive twice.
fn unanswered(error: ClientError) -> ConnectorError {
    let is_io = error.is_connect() || has_source::<std::io::Error>(&error);
    if is_io {
        ConnectorError::io(error.into())
    } else {
        ConnectorError::other(error.into(), Some(ErrorKind::TransientError))
    }
}

fn has_source<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| error.is::<E>())
}

fn pooled() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_idle_timeout(POOL_IDLE).pool_max_idle_per_host(POOL_IDLE_MAX).pool_timer(TokioTimer::new());
    builder
}

fn tcp() -> TcpConnector {
    let mut connector = TcpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use aws_sdk_sqs::Client;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use crate::clients::Clients;
    use crate::testing::access;

    /// The server's behaviour on a connection after its first answer.
    #[derive(Clone, Copy)]
    enum Then {
        /// The server closes the connection.
        Close,
        /// The server takes another request on it, and closes it without an answer.
        Swallow,
    }

    /// Reads one request from the connection. Returns false if there is none.
    async fn request(stream: &mut TcpStream) -> bool {
        let mut read = Vec::new();
        loop {
            let head = read.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(head) = head {
                let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
                if read.len() >= head + 4 + length.unwrap_or(0) {
                    return true;
                }
            }
            match stream.read_buf(&mut read).await {
                Ok(0) | Err(_) => return false,
                Ok(_) => {}
            }
        }
    }

    /// Sends `count` requests one after the other, and returns the number that the server saw.
    async fn sent(count: u32, then: Then) -> u32 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = std::sync::Arc::new(AtomicU32::new(0));
        let seen_there = seen.clone();
        let serving = tokio::spawn(async move {
            loop {
                let mut stream = listener.accept().await.unwrap().0;
                let seen = seen_there.clone();
                tokio::spawn(async move {
                    if request(&mut stream).await {
                        seen.fetch_add(1, Relaxed);
                        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\n\
                                      content-length: 2\r\n\r\n{}";
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                    if matches!(then, Then::Swallow) && request(&mut stream).await {
                        seen.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        let client: Client = Clients::new(&access(&url)).unwrap().sqs;
        for _ in 0..count {
            client
                .change_message_visibility()
                .queue_url("q")
                .receipt_handle("h")
                .visibility_timeout(1)
                .send()
                .await
                .unwrap();
        }
        serving.abort();
        seen.load(Relaxed)
    }

    #[tokio::test]
    async fn a_connection_that_the_other_side_closed_meanwhile_is_not_used_again() {
        assert_eq!(sent(5, Then::Close).await, 5);
    }

    #[tokio::test]
    async fn a_request_whose_connection_ends_without_an_answer_is_made_again() {
        let seen = sent(3, Then::Swallow).await;
        assert!(seen > 3, "the first of each connection is answered, the next one swallowed: {seen}");
    }
}
