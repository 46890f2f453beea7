//! What a simulation puts in the place of the network: its services answer HTTP, and its clock times what waits.
//!
//! Nothing here needs a runtime, a clock of the machine or a socket, so that a simulation decides when each call goes on.
//! What must never be here: a meaning of an answer. Calls of both kinds go through the same code.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use agent::Call;
use bytes::Bytes;
use domain::id::OrderId;
use domain::time::Timestamp;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;

use super::sockets;
use super::sockets::TlsError;
use crate::calls::Calls;

/// The network of a simulation.
pub trait Network: Send + Sync {
    /// Carries a request to the service of its URL, and the answer back. The headers that a connection adds, `Host` and
    /// `Content-Length`, are not there. If the future is dropped, the caller waits no longer; the service may have got the
    /// request all the same.
    fn request(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<NetworkBody>, NetworkError>>;

    /// Waits by the clock of the simulation.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The call that a request is of: among the extensions of the request, where no service sees it. A request for a token
/// has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOf {
    /// The order.
    pub order_id: OrderId,
    /// The step.
    pub step: Arc<str>,
    /// The key of the call.
    pub idempotency_key: Arc<str>,
    /// The attempt.
    pub attempt: u32,
    /// The start of the call, by the clock of the agent. A call may have several requests: a token may be refused.
    pub started_at: Timestamp,
    /// The time-out of the call, in milliseconds.
    pub timeout_ms: u64,
}

/// The request, which is of this call.
pub(crate) fn of_call(mut request: Request<Full<Bytes>>, call: &Call<'_>) -> Request<Full<Bytes>> {
    request.extensions_mut().insert(CallOf {
        order_id: call.order_id,
        step: call.step.into(),
        idempotency_key: call.idempotency_key.into(),
        attempt: call.attempt,
        started_at: call.started_at,
        timeout_ms: call.timeout_ms,
    });
    request
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// There was no connection, so nothing was sent. The cause may be one of this machine, such as a want of file
    /// descriptors (F70).
    #[error("no connection")]
    Unconnected(#[source] io::Error),
    /// The connection broke after the request was sent, so its effect is open.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}

/// The body of an answer.
pub struct NetworkBody(BoxStream<'static, io::Result<Bytes>>);

/// The clients of a process: over sockets, or over the network of a simulation. A clone shares it.
#[derive(Debug, Clone)]
pub struct HttpClients {
    over: Over<sockets::HttpClients>,
    pub(crate) calls: Calls,
}

/// What a call uses: sockets, or a simulation.
#[derive(Debug, Clone)]
enum Over<S> {
    Sockets(S),
    Network(Simulated),
}

#[derive(Clone)]
struct Simulated(Arc<dyn Network>);

/// The client for one service.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient(Over<sockets::HttpClient>);

/// What times a wait beside a call.
#[derive(Debug, Clone)]
pub(crate) struct Timer(Over<sockets::Timer>);

/// A response before its body is read.
pub(crate) type Responded = Response<http_body_util::Either<Incoming, NetworkBody>>;

/// Why no response came: no connection, or a broken one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoResponse {
    #[error(transparent)]
    Sockets(#[from] sockets::NoResponse),
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl HttpClients {
    /// Over sockets. No connection is made yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_calls_max(usize::MAX)
    }

    /// The same, with this bound of the calls under way, over all services.
    #[must_use]
    pub fn with_calls_max(calls_max: usize) -> Self {
        let sockets = sockets::HttpClients::with_calls_max(calls_max);
        let calls = sockets.calls.clone();
        Self { over: Over::Sockets(sockets), calls }
    }

    /// Over the network of a simulation, also for https. TLS is not simulated: the secrets of `tls` are not read.
    #[must_use]
    pub fn over(network: Arc<dyn Network>) -> Self {
        Self { over: Over::Network(Simulated(network)), calls: Calls::new(usize::MAX) }
    }

    /// # Errors
    /// [`TlsError`] if the service uses HTTPS and the machine has no root certificates.
    pub(crate) fn reaching(&self, is_encrypted: bool) -> Result<HttpClient, TlsError> {
        Ok(HttpClient(match &self.over {
            Over::Sockets(sockets) => Over::Sockets(sockets.reaching(is_encrypted)?),
            Over::Network(network) => Over::Network(network.clone()),
        }))
    }

    /// Whether a service with TLS gets certificates, and shows its own.
    pub(crate) const fn have_tls(&self) -> bool {
        matches!(&self.over, Over::Sockets(sockets) if sockets.have_tls())
    }

    #[cfg(test)]
    pub(crate) fn has_read_root_certificates(&self) -> bool {
        matches!(&self.over, Over::Sockets(sockets) if sockets.has_read_root_certificates())
    }
}

impl Default for HttpClients {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpClient {
    /// A client of its own, over sockets, with this certificate and these authorities.
    ///
    /// # Errors
    /// [`TlsError`] if there are none, and the machine has no root certificates.
    pub(crate) fn with_tls(
        identity: Option<Arc<CertifiedKey>>,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Result<Self, TlsError> {
        Ok(Self(Over::Sockets(sockets::HttpClient::with_tls(identity, authorities)?)))
    }

    /// The same client with connections of its own.
    pub(crate) fn apart(&self) -> Self {
        Self(match &self.0 {
            Over::Sockets(sockets) => Over::Sockets(sockets.apart()),
            Over::Network(network) => Over::Network(network.clone()),
        })
    }

    /// From now on no request uses a connection from before. A simulation has none.
    pub(crate) fn renew(&self) {
        if let Over::Sockets(sockets) = &self.0 {
            sockets.renew();
        }
    }

    /// What times a wait beside a call.
    pub(crate) fn timer(&self) -> Timer {
        Timer(match &self.0 {
            Over::Sockets(sockets) => Over::Sockets(sockets.timer()),
            Over::Network(network) => Over::Network(network.clone()),
        })
    }

    /// # Errors
    /// [`NoResponse`].
    pub(crate) async fn request(&self, request: Request<Full<Bytes>>) -> Result<Responded, NoResponse> {
        match &self.0 {
            Over::Sockets(sockets) => Ok(sockets.request(request).await?.map(http_body_util::Either::Left)),
            Over::Network(Simulated(network)) => {
                let request = request.map(|body| body.into_inner().unwrap_or_default());
                Ok(network.request(request).await?.map(http_body_util::Either::Right))
            }
        }
    }
}

impl Timer {
    /// The clock of this machine.
    pub(crate) const fn of_machine() -> Self {
        Self(Over::Sockets(sockets::Timer::of_machine()))
    }

    /// The output of `work`, or `None` if it takes longer.
    pub(crate) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        match &self.0 {
            Over::Sockets(timer) => timer.within(limit, work).await,
            Over::Network(Simulated(network)) => match select(pin!(work), network.sleep(limit)).await {
                Either::Left((output, _)) => Some(output),
                Either::Right(_) => None,
            },
        }
    }
}

impl NoResponse {
    /// Whether there was no connection.
    pub(crate) fn is_connect(&self) -> bool {
        match self {
            Self::Sockets(error) => error.is_connect(),
            Self::Network(error) => matches!(error, NetworkError::Unconnected(_)),
        }
    }
}

impl NetworkBody {
    /// A body that comes in pieces. It is cut at an error, and never ends if the stream does not.
    #[must_use]
    pub fn of(pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Self {
        Self(pieces.boxed())
    }
}

impl From<Bytes> for NetworkBody {
    /// All of it is there.
    fn from(whole: Bytes) -> Self {
        Self::of(stream::iter([Ok(whole)]))
    }
}

impl Body for NetworkBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_next_unpin(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

impl fmt::Debug for NetworkBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetworkBody")
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulated")
    }
}
