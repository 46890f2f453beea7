//! A small HTTP/1.1 server for the API and the stand-ins. Heads, bodies, connections and answers that nobody takes are
//! bounded; it stops in order.

mod bodies;
mod connections;
mod limits;
mod listening;
mod stream;
mod tls;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, poll};
use http::header::{CONNECTION, HOST, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::select;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet, yield_now};

use crate::host_time::{pause, within};
use crate::open_files;
use crate::problem::problem;
use crate::stop::{self, Stop, Stopper};
use bodies::BodyBytes;
use connections::{Admitted, Connection, Connections};
use limits::Limits;
use listening::Accepted;
use stream::{Receiving, Sending, Transport};

pub use limits::connections_max;
pub use listening::{Listening, SocketFile};
pub use tls::{Tls, TlsError};

/// The longest head, in bytes. As much is kept of requests that come before their turn.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The time-out of a body.
const BODY_MS_MAX: u64 = 30_000;
/// Bytes of a too large body that are read and discarded, so that its sender can read the answer.
const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The time-out of discarding.
const DISCARDED_MS_MAX: u64 = 5_000;
/// The wait after a failed accept, most often for lack of file descriptors.
const ACCEPT_RETRY_MS: u64 = 100;

/// Ends a connection without an answer, like a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was closed without an answer")]
pub struct HangUp;

/// The sender of a request, among its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its network: an IPv4 address, or the first half of an IPv6 address.
    pub network: IpAddr,
    /// Its address. `None`: it came by the socket.
    pub address: Option<IpAddr>,
    /// Whether the request came before the answer to the one before it (pipelining).
    pub is_ahead: bool,
}

/// Tells when the sender of a request sends no more, among its extensions. It may be gone, or still wait for the answer.
#[derive(Debug, Clone, Default)]
pub struct NoMore(pub Arc<Notify>);

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    address: Option<SocketAddr>,
    stopper: Stopper,
    serving: JoinHandle<()>,
}

impl Server {
    /// Serves what comes to `listening` with `handle`. Of a body above `body_bytes_max`, the handler gets one byte more than the limit, so
    /// that it can detect and refuse it; the connection is closed then. Requests in flight at a stop get `grace_ms`.
    ///
    /// # Errors
    /// If the listener has no local address; a bound one always has.
    pub fn start<Handle, Handling>(
        listening: impl Into<Listening>,
        body_bytes_max: usize,
        grace_ms: u64,
        handle: Handle,
    ) -> std::io::Result<Self>
    where
        Handle: Fn(Request<Bytes>) -> Handling + Send + Sync + 'static,
        Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send + 'static,
    {
        Self::start_with(Limits::default(), listening.into(), body_bytes_max, grace_ms, handle)
    }

    fn start_with<Handle, Handling>(
        limits: Limits,
        listening: Listening,
        body_bytes_max: usize,
        grace_ms: u64,
        handle: Handle,
    ) -> std::io::Result<Self>
    where
        Handle: Fn(Request<Bytes>) -> Handling + Send + Sync + 'static,
        Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send + 'static,
    {
        let address = listening.address()?;
        let (stopper, stop) = stop::pair();
        let connections = Connections::new(limits);
        let serving = tokio::spawn(accept(listening, connections, Arc::new(handle), body_bytes_max, grace_ms, stop));
        Ok(Self { address, stopper, serving })
    }

    /// The address of its port. Port 0 stands for none.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))
    }

    /// Stops accepting, and waits until the requests in flight are answered or their grace is over.
    pub async fn stop(mut self) {
        self.stopper.stop();
        // Only a panic can fail it, and the panic is logged.
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept<Handle, Handling>(
    listening: Listening,
    all: Arc<Connections>,
    handle: Arc<Handle>,
    body_bytes_max: usize,
    grace_ms: u64,
    stop: Stop,
) where
    Handle: Fn(Request<Bytes>) -> Handling + Send + Sync + 'static,
    Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(all.limits.idle_ms_max));
    builder.max_buf_size(HEAD_BYTES_MAX);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = select! {
            () = stop.requested() => break,
            accepted = listening.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("connection not accepted: {error}");
                if open_files::is_want(&error) {
                    all.make_room();
                }
                pause(ACCEPT_RETRY_MS).await;
                continue;
            }
        };
        let network = accepted.network();
        let Some(admitted) = all.admit(network) else {
            tracing::debug!("connection of {network} refused: there are too many");
            continue;
        };
        let Admitted(connection) = &admitted;
        let (handle, asking, client) = (handle.clone(), connection.clone(), accepted.client);
        let service = service_fn(move |request| {
            // Before the future runs: hyper looks then for the end of what the client sends.
            let peer = Peer { network, address: client, is_ahead: asking.asked() };
            answer(handle.clone(), asking.clone(), peer, request, body_bytes_max)
        });
        let (connection, builder, watcher, stop) =
            (connection.clone(), builder.clone(), graceful.watcher(), stop.clone());
        let serving = async move {
            let Some(stream) = opened(accepted, &connection, &stop).await else { return };
            let stream = TokioIo::new(Receiving::new(stream, connection));
            if let Err(error) = watcher.watch(builder.serve_connection(stream, service)).await {
                tracing::debug!("connection ended: {error}");
            }
        };
        connections.spawn(async move {
            select! {
                () = serving => {}
                () = admitted.0.closed() => tracing::debug!("connection of {network} closed for others"),
            }
        });
    }
    drop(listening);
    if within(grace_ms, graceful.shutdown()).await.is_none() {
        tracing::info!("requests cancelled at shutdown");
    }
    connections.shutdown().await;
}

/// The bytes of a connection; under TLS after the handshake, which has the time of a head.
async fn opened(accepted: Accepted, connection: &Arc<Connection>, stop: &Stop) -> Option<Box<dyn Transport>> {
    let stream = Sending::new(accepted.stream, connection.clone());
    let Some(acceptor) = accepted.tls else { return Some(Box::new(stream)) };
    let shaken = select! {
        () = stop.requested() => return None,
        shaken = within(connection.limits().head_ms_max, acceptor.accept(stream)) => shaken,
    };
    match shaken {
        Some(Ok(stream)) => Some(Box::new(stream)),
        Some(Err(error)) => {
            tracing::debug!("no TLS with {}: {error}", connection.network());
            None
        }
        None => {
            tracing::debug!("no TLS with {}: its handshake goes too slowly", connection.network());
            None
        }
    }
}

async fn answer<Handle, Handling>(
    handle: Arc<Handle>,
    connection: Arc<Connection>,
    peer: Peer,
    request: Request<Incoming>,
    body_bytes_max: usize,
) -> Result<Response<Full<Bytes>>, HangUp>
where
    Handle: Fn(Request<Bytes>) -> Handling + Send + Sync,
    Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send,
{
    let response = response(&*handle, peer, &connection, request, body_bytes_max).await?;
    connection.answered(response.body().len());
    Ok(response.map(Full::new))
}

async fn response<Handle, Handling>(
    handle: &Handle,
    peer: Peer,
    connection: &Connection,
    request: Request<Incoming>,
    body_bytes_max: usize,
) -> Result<Response<Bytes>, HangUp>
where
    Handle: Fn(Request<Bytes>) -> Handling + Send + Sync,
    Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send,
{
    let (mut head, body) = request.into_parts();
    if let Some((status, fault)) = fault(&head) {
        return Ok(closing(problem(status, fault)));
    }
    // It counts until the answer is made.
    let mut counted = connection.body();
    let body = select! {
        biased;
        body = within(BODY_MS_MAX, read(body, body_bytes_max, &mut counted)) => body,
        () = connection.gone().notified() => return Err(HangUp),
    };
    let body = match body {
        Some(Ok(Some(body))) => body,
        Some(Ok(None)) => return Ok(closing(too_much())),
        // The sender of an incomplete body is gone or sends no valid HTTP.
        Some(Err(_)) => return Err(HangUp),
        None => return Ok(closing(problem(StatusCode::REQUEST_TIMEOUT, "the body came too slowly"))),
    };
    // Until it is its turn, it can be closed for others.
    let turn = connection.turn().await;
    if peer.is_ahead {
        // hyper would go on with this connection, request by request, and the others would wait.
        yield_now().await;
    }
    connection.handled();
    head.extensions.insert(peer);
    head.extensions.insert(NoMore(connection.gone().clone()));
    let too_large = body.len() > body_bytes_max;
    let handling = AssertUnwindSafe(async { handle(Request::from_parts(head, body)).await });
    let mut handling = pin!(handling.catch_unwind());
    // What it does before it first waits; then its turn is over.
    let begun = poll!(&mut handling);
    drop(turn);
    let handled = match begun {
        Poll::Ready(handled) => handled,
        Poll::Pending => handling.await,
    };
    let response = handled.unwrap_or_else(|_| {
        tracing::error!("a request's handler panicked");
        Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "the request was not handled to its end"))
    })?;
    Ok(if too_large || connection.is_short() { closing(response) } else { response })
}

/// What is wrong with the head of a request that hyper takes.
fn fault(head: &Parts) -> Option<(StatusCode, &'static str)> {
    if !has_its_host(head.version, &head.headers) {
        Some((StatusCode::BAD_REQUEST, "the request must have one Host header"))
    } else if !has_one_framing(&head.headers) {
        Some((StatusCode::BAD_REQUEST, "Transfer-Encoding must be chunked alone"))
    } else if head_bytes(head) > HEAD_BYTES_MAX {
        Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head has more than 32 KiB"))
    } else {
        None
    }
}

/// Whether a proxy and this server see the end of the body at the same place. hyper looks at the last coding alone, and
/// closes after a request with a length beside it.
fn has_one_framing(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.next().is_none_or(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
        && codings.next().is_none()
}

/// The head without its blanks and ends of lines. hyper's own bound is that of its buffer, which may have room for more.
fn head_bytes(head: &Parts) -> usize {
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() + target
}

/// Whether a request has the header `Host` that RFC 9112 asks for. With two, a proxy and this server may believe different
/// ones.
fn has_its_host(version: Version, headers: &HeaderMap) -> bool {
    match headers.get_all(HOST).iter().count() {
        0 => version < Version::HTTP_11,
        count => count == 1,
    }
}

/// The body, or its first `bytes_max + 1` bytes. `None`: all bodies together are too much.
async fn read(
    mut body: Incoming,
    bytes_max: usize,
    counted: &mut BodyBytes<'_>,
) -> Result<Option<Bytes>, hyper::Error> {
    let mut read = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if !counted.add(data.len()) {
            return Ok(None);
        }
        if read.is_empty() {
            // Most bodies arrive in one frame and are not copied.
            read = data;
        } else {
            let mut joined = BytesMut::from(read);
            let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0);
            joined.reserve(data.len() + announced.min(bytes_max));
            joined.extend_from_slice(&data);
            read = joined.freeze();
        }
        if read.len() > bytes_max {
            within(DISCARDED_MS_MAX, discard(&mut body)).await;
            return Ok(Some(read.slice(..=bytes_max)));
        }
    }
    Ok(Some(read))
}

/// The sender may send it again.
fn too_much() -> Response<Bytes> {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, "too many bodies are being received");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

async fn discard(body: &mut Incoming) {
    let mut discarded_bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded_bytes += frame.data_ref().map_or(0, Bytes::len);
        if discarded_bytes > DISCARDED_BYTES_MAX {
            return;
        }
    }
}

fn closing(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests;
