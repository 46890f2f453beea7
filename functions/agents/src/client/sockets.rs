//! Pooled clients over sockets.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{Request, Response};
use http_body_util::Full;
use hyper::rt::Timer as _;
use hyper_rustls::builderstates::WantsSchemes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use crate::calls::Calls;
use crate::pool::Pool;

/// A response before its body is read.
pub(crate) type Responded = Response<hyper::body::Incoming>;
/// Why no response came: no connection, or a broken one.
pub(crate) type NoResponse = hyper_util::client::legacy::Error;

/// Time-out of connecting. It bounds the connection that an abandoned call leaves behind.
const CONNECT: Duration = Duration::from_secs(10);

/// The clients of a process: one for plain HTTP and, once a service needs it, one for HTTPS. Root certificates are
/// read only then: reading them takes long, and a machine without any can still use plain HTTP.
/// A clone shares both.
#[derive(Debug, Clone)]
pub struct HttpClients {
    plain: Plain,
    tls: Arc<Mutex<Option<Tls>>>,
    pub(crate) calls: Calls,
}

/// The system's root certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("no root certificates to check an https service with: {0}")]
pub struct TlsError(String);

type Plain = Pool<HttpConnector>;
type Tls = Pool<HttpsConnector<HttpConnector>>;

/// The client for one service. Cloning it shares the pool.
#[derive(Debug, Clone)]
pub(crate) enum HttpClient {
    Plain(Plain),
    Tls(Tls),
}

/// What times a wait beside a call.
#[derive(Debug, Clone)]
pub(crate) struct Timer;

impl HttpClients {
    /// No connection is made yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_calls_max(usize::MAX)
    }

    /// The same, with this bound of the calls under way, over all services.
    #[must_use]
    pub fn with_calls_max(calls_max: usize) -> Self {
        let calls = Calls::new(calls_max);
        Self { plain: Pool::for_requests(connector(), calls_max), tls: Arc::default(), calls }
    }

    /// # Errors
    /// [`TlsError`] if the service uses HTTPS and the machine has no root certificates.
    pub(crate) fn reaching(&self, is_encrypted: bool) -> Result<HttpClient, TlsError> {
        if !is_encrypted {
            return Ok(HttpClient::Plain(self.plain.clone()));
        }
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = &*tls {
            return Ok(HttpClient::Tls(tls.clone()));
        }
        let connector = tls_connector(None, Vec::new())?.https_only().enable_http1().wrap_connector(connector());
        Ok(HttpClient::Tls(tls.insert(Pool::for_requests(connector, self.calls.max)).clone()))
    }

    /// Whether a service with TLS gets certificates, and shows its own.
    pub(crate) const fn have_tls(&self) -> bool {
        true
    }

    #[cfg(test)]
    pub(crate) fn has_read_root_certificates(&self) -> bool {
        self.tls.lock().unwrap().is_some()
    }
}

impl Default for HttpClients {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpClient {
    /// A client of its own, which shows this certificate to a service that asks for one. It also trusts these
    /// authorities.
    ///
    /// # Errors
    /// [`TlsError`] if there are none, and the machine has no root certificates.
    pub(crate) fn with_tls(
        identity: Option<Arc<CertifiedKey>>,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Result<Self, TlsError> {
        let builder = tls_connector(identity, authorities)?;
        // A token endpoint may be on this machine, without TLS.
        Ok(Self::Tls(Pool::new(builder.https_or_http().enable_http1().wrap_connector(connector()))))
    }

    /// The same client with connections of its own.
    pub(crate) fn apart(&self) -> Self {
        match self {
            Self::Plain(pool) => Self::Plain(pool.apart()),
            Self::Tls(pool) => Self::Tls(pool.apart()),
        }
    }

    /// From now on no request uses a connection from before.
    pub(crate) fn renew(&self) {
        match self {
            Self::Plain(pool) => pool.renew(),
            Self::Tls(pool) => pool.renew(),
        }
    }

    /// What times a wait beside a call.
    pub(crate) const fn timer(&self) -> Timer {
        Timer
    }

    /// # Errors
    /// [`NoResponse`].
    pub(crate) async fn request(&self, request: Request<Full<Bytes>>) -> Result<Responded, NoResponse> {
        match self {
            Self::Plain(client) => client.request(request).await,
            Self::Tls(client) => client.request(request).await,
        }
    }
}

impl Timer {
    /// The clock of this machine.
    pub(crate) const fn of_machine() -> Self {
        Self
    }

    /// The output of `work`, or `None` if it takes longer. A call of a service has the agent's own time-out instead.
    pub(crate) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        // Work that is ready needs no timer.
        match select(pin!(work), pin!(async { TokioTimer::new().sleep(limit).await })).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(_) => None,
        }
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT));
    connector.enforce_http(false);
    connector
}

fn tls_connector(
    identity: Option<Arc<CertifiedKey>>,
    authorities: Vec<CertificateDer<'static>>,
) -> Result<HttpsConnectorBuilder<WantsSchemes>, TlsError> {
    let system = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.certs.into_iter().chain(authorities));
    if roots.is_empty() {
        return Err(TlsError(format!("the system has none ({:?})", system.errors)));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| TlsError(error.to_string()))?.with_root_certificates(roots);
    let config = match identity {
        Some(identity) => config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))),
        None => config.with_no_client_auth(),
    };
    Ok(HttpsConnectorBuilder::new().with_tls_config(config))
}
