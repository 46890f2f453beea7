//! A small HTTP/1.1 server for the API and the stand-ins. Heads, bodies, connections and answers that nobody takes are
//! bounded; it stops in order.

mod connections;
mod stream;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::task::{JoinHandle, JoinSet, yield_now};

use crate::stop::{self, Stop, Stopper};
use connections::{Admitted, BodyBytes, Connection, Connections, Limits};
use stream::Stream;

pub use connections::connections_max;

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
    /// Whether the request came before the answer to the one before it (pipelining).
    pub is_ahead: bool,
}

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stopper: Stopper,
    serving: JoinHandle<()>,
}

impl Server {
    /// Serves `listener` with `handle`. Of a body above `body_bytes_max`, the handler gets one byte more than the limit, so
    /// that it can detect and refuse it; the connection is closed then. Requests in flight at a stop get `grace_ms`.
    ///
    /// # Errors
    /// If the listener has no local address; a bound one always has.
    pub fn start<Handle, Handling>(
        listener: TcpListener,
        body_bytes_max: usize,
        grace_ms: u64,
        handle: Handle,
    ) -> std::io::Result<Self>
    where
        Handle: Fn(Request<Bytes>) -> Handling + Send + Sync + 'static,
        Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send + 'static,
    {
        Self::start_with(Limits::default(), listener, body_bytes_max, grace_ms, handle)
    }

    fn start_with<Handle, Handling>(
        limits: Limits,
        listener: TcpListener,
        body_bytes_max: usize,
        grace_ms: u64,
        handle: Handle,
    ) -> std::io::Result<Self>
    where
        Handle: Fn(Request<Bytes>) -> Handling + Send + Sync + 'static,
        Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let (stopper, stop) = stop::pair();
        let connections = Connections::new(limits);
        let serving = tokio::spawn(accept(listener, connections, Arc::new(handle), body_bytes_max, grace_ms, stop));
        Ok(Self { address, stopper, serving })
    }

    /// The address of the server.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
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
    listener: TcpListener,
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
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("connection not accepted: {error}");
                pause(ACCEPT_RETRY_MS).await;
                continue;
            }
        };
        let Some(admitted) = all.admit(client) else {
            tracing::debug!("connection of {client} refused: there are too many");
            continue;
        };
        let Admitted(connection) = &admitted;
        let (handle, asking) = (handle.clone(), connection.clone());
        let service = service_fn(move |request| answer(handle.clone(), asking.clone(), request, body_bytes_max));
        let stream = TokioIo::new(Stream::new(prepared(stream), connection.clone()));
        let serving = graceful.watch(builder.serve_connection(stream, service));
        connections.spawn(async move {
            select! {
                served = serving => if let Err(error) = served {
                    tracing::debug!("connection ended: {error}");
                },
                () = admitted.0.closed() => tracing::debug!("connection of {client} closed for others"),
            }
        });
    }
    drop(listener);
    if within(grace_ms, graceful.shutdown()).await.is_none() {
        tracing::info!("requests cancelled at shutdown");
    }
    connections.shutdown().await;
}

/// Answers are small and urgent.
fn prepared(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("no delay: {error}");
    }
    stream
}

async fn answer<Handle, Handling>(
    handle: Arc<Handle>,
    connection: Arc<Connection>,
    request: Request<Incoming>,
    body_bytes_max: usize,
) -> Result<Response<Full<Bytes>>, HangUp>
where
    Handle: Fn(Request<Bytes>) -> Handling + Send + Sync,
    Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send,
{
    let is_ahead = connection.asked();
    let response =
        response(&*handle, Peer { network: connection.network(), is_ahead }, &connection, request, body_bytes_max);
    let response = response.await?;
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
    if !has_its_host(head.version, &head.headers) {
        return Ok(closing(problem(StatusCode::BAD_REQUEST, "the request must have one Host header")));
    }
    // It counts until the answer is made.
    let mut counted = connection.body();
    let body = match within(BODY_MS_MAX, read(body, body_bytes_max, &mut counted)).await {
        Some(Ok(Some(body))) => body,
        Some(Ok(None)) => return Ok(closing(too_much())),
        // The sender of an incomplete body is gone or sends no valid HTTP.
        Some(Err(_)) => return Err(HangUp),
        None => return Ok(closing(problem(StatusCode::REQUEST_TIMEOUT, "the body came too slowly"))),
    };
    connection.handled();
    if peer.is_ahead {
        // Other connections come first.
        yield_now().await;
    }
    head.extensions.insert(peer);
    let too_large = body.len() > body_bytes_max;
    let handling = AssertUnwindSafe(async { handle(Request::from_parts(head, body)).await });
    let response = handling.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("a request's handler panicked");
        Ok(problem(StatusCode::INTERNAL_SERVER_ERROR, "the request was not handled to its end"))
    })?;
    Ok(if too_large { closing(response) } else { response })
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

/// An RFC 9457 problem for a request that never reaches the handler.
fn problem(status: StatusCode, detail: &str) -> Response<Bytes> {
    let (title, status_code) = (status.canonical_reason().unwrap_or("Error"), status.as_u16());
    let body = format!(r#"{{"type":"about:blank","title":"{title}","status":{status_code},"detail":"{detail}"}}"#);
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

#[expect(clippy::disallowed_methods, reason = "a time-out of the host, not of the protocol")]
async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// The output of `work`, or `None` after `ms`.
#[expect(clippy::disallowed_methods, reason = "a time-out of the host, not of the protocol")]
async fn within<T>(ms: u64, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::from_millis(ms), work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    use super::*;

    const BODY_BYTES_MAX: usize = 1_000;

    async fn server<Handle, Handling>(handle: Handle) -> Server
    where
        Handle: Fn(Request<Bytes>) -> Handling + Send + Sync + 'static,
        Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send + 'static,
    {
        server_with(Limits::default(), handle).await
    }

    async fn server_with<Handle, Handling>(limits: Limits, handle: Handle) -> Server
    where
        Handle: Fn(Request<Bytes>) -> Handling + Send + Sync + 'static,
        Handling: Future<Output = Result<Response<Bytes>, HangUp>> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        Server::start_with(limits, listener, BODY_BYTES_MAX, 60_000, handle).unwrap()
    }

    /// Sends bytes and reads until the server closes.
    async fn talk(server: &Server, sent: impl AsRef<[u8]>) -> String {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(sent.as_ref()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn post(headers: &str, body: &str) -> String {
        format!("POST / HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    }

    /// Answers with the length of the received body.
    async fn length(request: Request<Bytes>) -> Result<Response<Bytes>, HangUp> {
        Ok(Response::new(format!("got {}", request.body().len()).into()))
    }

    #[tokio::test]
    async fn a_connection_serves_one_request_after_the_other() {
        let server = server(length).await;
        let answers =
            talk(&server, post("", "abc") + &post("connection: close\r\n", &"x".repeat(BODY_BYTES_MAX))).await;
        assert!(answers.contains("got 3") && answers.ends_with("got 1000"), "{answers}");
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_seen_as_such_and_answered_before_the_connection_closes() {
        let server = server(length).await;
        let large = "x".repeat(3_000_000);
        for sent in [
            post("", &large),
            format!(
                "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
                large.len()
            ),
        ] {
            let answer = talk(&server, sent).await;
            assert!(answer.contains("connection: close") && answer.ends_with("got 1001"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_500_and_the_server_goes_on() {
        let server = server(|request: Request<Bytes>| async move {
            assert_ne!(request.body().len(), 3, "this panic is part of the test");
            length(request).await
        })
        .await;
        let answers = talk(&server, post("", "abc") + &post("connection: close\r\n", "abcd")).await;
        assert!(answers.starts_with("HTTP/1.1 500 ") && answers.ends_with("got 4"), "{answers}");
    }

    #[tokio::test]
    async fn a_hang_up_gives_no_answer() {
        let server = server(|_| async { Err(HangUp) }).await;
        assert_eq!(talk(&server, post("", "abc")).await, "");
    }

    #[tokio::test]
    async fn a_request_has_one_host_unless_it_is_older_than_that() {
        let server = server(length).await;
        for (version, hosts, status) in [
            ("1.1", "host: a\r\n", 200),
            ("1.1", "", 400),
            ("1.1", "host: a\r\nhost: a\r\n", 400),
            ("1.0", "", 200),
            ("1.0", "host: a\r\nHOST: b\r\n", 400),
        ] {
            let close = "connection: close\r\n";
            let answer = talk(&server, format!("GET / HTTP/{version}\r\n{hosts}{close}\r\n")).await;
            assert!(answer.starts_with(&format!("HTTP/{version} {status} ")), "{version} {hosts:?}: {answer}");
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a test of times of the host")]
    #[tokio::test]
    async fn a_half_head_and_a_connection_without_a_request_are_closed_in_time() {
        let server = server_with(Limits { head_ms_max: 100, idle_ms_max: 300, ..Limits::default() }, length).await;
        let began = Instant::now();
        assert_eq!(talk(&server, "GET / HTTP/1.1\r\nhost:").await, "");
        assert!((100..300).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        let answer = talk(&server, post("", "abc")).await;
        assert!(answer.ends_with("got 3") && began.elapsed() >= Duration::from_millis(400), "{answer}");
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_of_its_answer_is_closed() {
        const ANSWER_BYTES: usize = 64 * 1024 * 1024;
        let limits = Limits { taking_ms_max: 100, untaken_bytes_max: usize::MAX, ..Limits::default() };
        let server = server_with(limits, |_| async { Ok(Response::new(vec![b'x'; ANSWER_BYTES].into())) }).await;
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(post("", "").as_bytes()).await.unwrap();
        pause(500).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.len() < ANSWER_BYTES, "it has all of it");
        // Another one takes it.
        let answer = talk(&server, post("connection: close\r\n", "")).await;
        assert!(answer.len() > ANSWER_BYTES);
    }

    #[tokio::test]
    async fn new_clients_are_served_beside_as_many_hostile_ones_as_there_may_be() {
        let limits = Limits { connections_max: 20, of_network_max: 15, ..Limits::default() };
        let server = server_with(limits, length).await;
        let mut hostile = Vec::new();
        for sent in ["", "GET / HT", "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n"].repeat(20) {
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            hostile.push(stream);
            let answer = talk(&server, post("connection: close\r\n", "abc")).await;
            assert!(answer.ends_with("got 3"), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_handler_learns_what_came_before_its_turn() {
        let server = server(|request: Request<Bytes>| async move {
            let peer = request.extensions().get::<Peer>().copied().unwrap();
            assert_eq!(peer.network.to_string(), "127.0.0.1");
            Ok(Response::new(format!("<{}>", peer.is_ahead).into()))
        })
        .await;
        let answers = talk(&server, post("", "a") + &post("", "b") + &post("connection: close\r\n", "c")).await;
        let ahead: Vec<&str> = answers.split('<').skip(1).filter_map(|rest| rest.split('>').next()).collect();
        assert_eq!(ahead, ["false", "true", "true"]);
    }

    #[tokio::test]
    async fn a_stop_lets_the_request_under_way_be_answered_and_takes_no_new_one() {
        let (begun, gate) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let server = {
            let (begun, gate) = (begun.clone(), gate.clone());
            server(move |request| {
                let (begun, gate) = (begun.clone(), gate.clone());
                async move {
                    begun.notify_one();
                    gate.notified().await;
                    length(request).await
                }
            })
            .await
        };
        let address = server.address();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(post("", "abc").as_bytes()).await.unwrap();
        begun.notified().await;
        let stopping = tokio::spawn(server.stop());
        // Connections are accepted until the server notices the stop.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        gate.notify_one();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("got 3"), "{answer}");
        stopping.await.unwrap();
    }
}
