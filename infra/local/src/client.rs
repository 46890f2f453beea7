//! The HTTP client of the program, for commands, reply channels, traces, the demo and the outage, and for tests.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agents::Pool;
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_rustls::builderstates::WantsSchemes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::UnixStream;

/// The longest answer that is read: a page of 100 orders with 50 steps each is far shorter.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The time-out of a connection attempt.
const CONNECT: Duration = Duration::from_secs(10);
/// The time-out of [`Client::get`] and [`Client::post`]: longer than any `Prefer: wait`.
const ANSWER_MS_MAX: u64 = 30_000;

/// Keeps connections open between calls. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Client(Connections);

#[derive(Debug, Clone)]
enum Connections {
    Plain(Pool<HttpConnector>),
    Tls(Pool<HttpsConnector<HttpConnector>>),
    /// Each call has a connection of its own.
    Socket(PathBuf),
}

/// The answer of a server.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// There was no answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NoAnswer {
    /// The innermost cause.
    pub why: String,
    /// Whether no connection was established, so that the server cannot have seen the request.
    pub is_unsent: bool,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client for `http` only, without connections yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Connections::Plain(Pool::new(connector())))
    }

    /// A client for `https` only, without connections yet.
    ///
    /// # Errors
    /// If the system has no root certificates.
    pub fn tls() -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Ok(Self::secure(HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?))
    }

    /// A client for `https` only, which trusts no certificates but those that these issued, in PEM.
    ///
    /// # Errors
    /// If there is no certificate among them, or a malformed one.
    pub fn trusting(issuers: &[u8]) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for issuer in CertificateDer::pem_slice_iter(issuers) {
            let issuer = issuer.map_err(|error| io::Error::other(error.to_string()))?;
            roots.add(issuer).map_err(io::Error::other)?;
        }
        if roots.is_empty() {
            return Err(io::Error::other("there is no certificate in PEM"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
        Ok(Self::secure(HttpsConnectorBuilder::new().with_tls_config(config)))
    }

    fn secure(builder: HttpsConnectorBuilder<WantsSchemes>) -> Self {
        let mut connector = connector();
        connector.enforce_http(false);
        let connector = builder.https_only().enable_http1().wrap_connector(connector);
        Self(Connections::Tls(Pool::new(connector)))
    }

    /// A client for the server at this socket, whatever host a URL names.
    #[must_use]
    pub fn of_socket(path: &Path) -> Self {
        Self(Connections::Socket(path.to_owned()))
    }

    /// Sends a request and returns the answer with its whole body.
    ///
    /// # Errors
    /// [`NoAnswer`]; any status is an answer.
    pub async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, NoAnswer> {
        let (head, body) = self.begin(request).await?.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| NoAnswer { why: innermost(&*error), is_unsent: false })?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }

    /// Sends a request and returns the answer as soon as its head has arrived.
    ///
    /// # Errors
    /// [`NoAnswer`]; any status is an answer.
    pub async fn begin(&self, request: Request<Bytes>) -> Result<Response<Incoming>, NoAnswer> {
        let request = request.map(Full::new);
        let response = match &self.0 {
            Connections::Plain(pool) => pool.request(request).await,
            Connections::Tls(pool) => pool.request(request).await,
            Connections::Socket(path) => return by_socket(path, request).await,
        };
        response.map_err(|error| NoAnswer { why: innermost(&error), is_unsent: error.is_connect() })
    }

    /// `GET url`.
    ///
    /// # Errors
    /// [`NoAnswer`]; any status is an answer.
    pub async fn get(&self, url: &str) -> Result<Answer, NoAnswer> {
        self.call(Method::GET, url, &[], String::new()).await
    }

    /// `POST url` with a body, which is JSON unless a header `content-type` says otherwise.
    ///
    /// # Errors
    /// [`NoAnswer`]; any status is an answer.
    pub async fn post(&self, url: &str, headers: &[(&str, &str)], body: String) -> Result<Answer, NoAnswer> {
        self.call(Method::POST, url, headers, body).await
    }

    async fn call(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Answer, NoAnswer> {
        let mut request = Request::builder().method(method).uri(url);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let malformed = |error: http::Error| NoAnswer { why: format!("not a request: {error}"), is_unsent: true };
        let calling = self.exchange(request.body(Bytes::from(body)).map_err(malformed)?);
        #[expect(clippy::disallowed_methods, reason = "a time-out of the client, not of the protocol")]
        let answered = tokio::time::timeout(Duration::from_millis(ANSWER_MS_MAX), calling).await;
        let late = |_| NoAnswer { why: "no answer in time".to_owned(), is_unsent: false };
        let (head, body) = answered.map_err(late)??.into_parts();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }
}

async fn by_socket(path: &Path, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, NoAnswer> {
    let unsent = |error: &(dyn Error + 'static)| NoAnswer { why: innermost(error), is_unsent: true };
    let stream = UnixStream::connect(path).await.map_err(|error| unsent(&error))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| unsent(&error))?;
    // It ends with the answer.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("connection ended: {error}");
        }
    });
    let sent = sender.send_request(of_origin(request)).await;
    sent.map_err(|error| NoAnswer { why: innermost(&error), is_unsent: false })
}

/// A request as a server gets it: the path alone, and the host beside it.
fn of_origin(mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let host = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let path = request.uri().path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    if let Some(host) = host {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    *request.uri_mut() = path;
    request
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector
}

/// The innermost cause is the informative one: the client's own message is "client error".
fn innermost(error: &(dyn Error + 'static)) -> String {
    std::iter::successors(Some(error), |&error| error.source()).last().map(ToString::to_string).unwrap_or_default()
}
