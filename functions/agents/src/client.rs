//! The pooled HTTP clients that all calls share.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// A response before its body is read.
pub(crate) type Answered = Response<hyper::body::Incoming>;

/// How long an unused connection is kept: below the 60 s after which common load balancers drop one silently.
const POOL_IDLE: Duration = Duration::from_secs(45);
/// Unused connections kept for each host.
const POOL_IDLE_MAX: usize = 256;
/// Time-out of connecting. It bounds the connection that an abandoned call leaves behind.
const CONNECT: Duration = Duration::from_secs(10);

/// The clients of a process: one for plain HTTP and, once a service needs it, one for HTTPS. Root certificates are
/// read only then: reading them takes long, and a machine without any can still use plain HTTP.
#[derive(Debug)]
pub struct HttpClients {
    plain: Plain,
    tls: Option<Tls>,
}

/// The system's root certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("no root certificates to check an https service with: {source}")]
pub struct TlsError {
    #[source]
    source: std::io::Error,
}

type Plain = Client<HttpConnector, Full<Bytes>>;
type Tls = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The client for one service. Cloning it shares the pool.
#[derive(Debug, Clone)]
pub(crate) enum HttpClient {
    Plain(Plain),
    Tls(Tls),
}

impl HttpClients {
    /// No connection is made yet.
    #[must_use]
    pub fn new() -> Self {
        Self { plain: pooled().build(connector()), tls: None }
    }

    /// # Errors
    /// [`TlsError`] if the service uses HTTPS and the machine has no root certificates.
    pub(crate) fn reaching(&mut self, is_encrypted: bool) -> Result<HttpClient, TlsError> {
        if !is_encrypted {
            return Ok(HttpClient::Plain(self.plain.clone()));
        }
        let tls = match &self.tls {
            Some(tls) => tls.clone(),
            None => self.tls.insert(pooled().build(tls_connector()?)).clone(),
        };
        Ok(HttpClient::Tls(tls))
    }

    #[cfg(test)]
    pub(crate) const fn has_read_root_certificates(&self) -> bool {
        self.tls.is_some()
    }
}

impl Default for HttpClients {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpClient {
    /// # Errors
    /// If no response came: no connection, or a broken one.
    pub(crate) async fn request(&self, request: Request<Full<Bytes>>) -> Result<Answered, ClientError> {
        match self {
            Self::Plain(client) => client.request(request).await,
            Self::Tls(client) => client.request(request).await,
        }
    }
}

/// An error with all its sources, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn pooled() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_idle_timeout(POOL_IDLE).pool_max_idle_per_host(POOL_IDLE_MAX).pool_timer(TokioTimer::new());
    builder
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector
}

fn tls_connector() -> Result<HttpsConnector<HttpConnector>, TlsError> {
    let mut connector = connector();
    connector.enforce_http(false);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider);
    let builder = builder.map_err(|source| TlsError { source })?;
    Ok(builder.https_only().enable_http1().wrap_connector(connector))
}
