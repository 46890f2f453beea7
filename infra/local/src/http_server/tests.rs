//! The server over real sockets.

use std::path::Path;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;

use super::*;
use crate::client::Client;

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
    Server::start_with(limits, listener.into(), BODY_BYTES_MAX, 60_000, handle).unwrap()
}

/// The bytes of an answer, which tell when they are let go.
pub(super) struct Gone(pub(super) Vec<u8>, pub(super) Arc<Notify>);

impl AsRef<[u8]> for Gone {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.1.notify_one();
    }
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
    let answers = talk(&server, post("", "abc") + &post("connection: close\r\n", &"x".repeat(BODY_BYTES_MAX))).await;
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

#[tokio::test]
async fn a_body_has_no_coding_but_chunked_so_that_a_proxy_sees_the_same_end() {
    let server = server(length).await;
    for (codings, status) in [
        ("transfer-encoding: chunked\r\n", 200),
        ("transfer-encoding:  Chunked \r\n", 200),
        ("transfer-encoding: gzip, chunked\r\n", 400),
        ("transfer-encoding: chunked, chunked\r\n", 400),
        ("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n", 400),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", 400),
    ] {
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{codings}\r\n");
        let answer = talk(&server, format!("{head}3\r\nabc\r\n0\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{codings:?}: {answer}");
    }
}

#[tokio::test]
async fn a_head_over_the_limit_is_431_also_if_it_comes_in_one_piece() {
    let server = server(length).await;
    let (close, room) = ("host: x\r\nconnection: close\r\n", 200);
    for (target, value, status) in [
        (1, HEAD_BYTES_MAX - room, 200),
        (1, HEAD_BYTES_MAX, 431),
        (HEAD_BYTES_MAX, 1, 431),
        (HEAD_BYTES_MAX / 2, HEAD_BYTES_MAX / 2, 431),
        (1, 8 * HEAD_BYTES_MAX, 431),
    ] {
        let (target, value) = ("a".repeat(target), "b".repeat(value));
        let answer = talk(&server, format!("GET /{target} HTTP/1.1\r\n{close}x: {value}\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{} {}: {answer}", target.len(), value.len());
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of times of the host")]
#[tokio::test]
async fn a_half_head_and_a_connection_without_a_request_are_closed_in_time() {
    // The other of the two limits is never met.
    let never = 600_000_000;
    let server = server_with(Limits { head_ms_max: 100, idle_ms_max: never, ..Limits::default() }, length).await;
    let began = Instant::now();
    assert_eq!(talk(&server, "GET / HTTP/1.1\r\nhost:").await, "");
    assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
    let server = server_with(Limits { head_ms_max: never, idle_ms_max: 300, ..Limits::default() }, length).await;
    let began = Instant::now();
    let answer = talk(&server, post("", "abc")).await;
    assert!(answer.ends_with("got 3") && began.elapsed() >= Duration::from_millis(300), "{answer}");
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_closed() {
    const ANSWER_BYTES: usize = 16 * 1024 * 1024;
    let gone = Arc::new(Notify::new());
    let start = async |taking_ms_max| {
        let (limits, gone) =
            (Limits { taking_ms_max, untaken_bytes_max: usize::MAX, ..Limits::default() }, gone.clone());
        let handle = move |_| {
            let answer = Gone(vec![b'x'; ANSWER_BYTES], gone.clone());
            async { Ok(Response::new(Bytes::from_owner(answer))) }
        };
        server_with(limits, handle).await
    };
    let server = start(100).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(post("", "").as_bytes()).await.unwrap();
    gone.notified().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.len() < ANSWER_BYTES, "it has all of it");
    // Another one takes it, however slow the host is.
    let server = start(600_000).await;
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

/// A server on a socket alone.
async fn at_socket(path: &Path, limits: Limits) -> Server {
    let socket = Some(SocketFile::bind(path).await.unwrap());
    let listening = Listening { socket, ..Listening::default() };
    Server::start_with(limits, listening, BODY_BYTES_MAX, 60_000, length).unwrap()
}

#[tokio::test]
async fn a_socket_serves_until_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.sock");
    let server = at_socket(&path, Limits::default()).await;
    let client = Client::of_socket(&path);
    for body in ["abc", "", &"x".repeat(BODY_BYTES_MAX)] {
        let answer = client.post("http://localhost/orders?limit=1", &[], body.to_owned()).await.unwrap();
        assert_eq!(answer.body, format!("got {}", body.len()));
    }
    server.stop().await;
    assert!(!path.exists());
    let gone = client.exchange(Request::get("http://localhost/").body(Bytes::new()).unwrap()).await.unwrap_err();
    assert!(gone.is_unsent, "{gone}");
}

#[tokio::test]
async fn the_clients_of_a_socket_are_one_network_with_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.sock");
    let _server = at_socket(&path, Limits { connections_max: 8, of_network_max: 6, ..Limits::default() }).await;
    let mut hostile = Vec::new();
    for _ in 0..20 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(b"GET / HT").await.unwrap();
        hostile.push(stream);
        Client::of_socket(&path).get("http://localhost/").await.unwrap();
    }
    let mut first = Vec::new();
    assert_eq!(hostile[0].read_to_end(&mut first).await.unwrap_or(0), 0, "it was closed for the others");
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

#[tokio::test]
async fn a_handler_is_told_when_its_client_sends_no_more() {
    let server = server(|request: Request<Bytes>| async move {
        let NoMore(gone) = request.extensions().get().cloned().unwrap();
        gone.notified().await;
        length(request).await
    });
    let server = server.await;
    for (request, end) in [(post("", "abc"), "got 3"), ("GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), "got 0")] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with(end), "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_sends_no_more_gets_its_answer() {
    let may_answer = Arc::new(Notify::new());
    let waits = may_answer.clone();
    let server = server(move |request| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            length(request).await
        }
    });
    let server = server.await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(post("", "abc").as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    for _ in 0..1_000 {
        // The server sees the end meanwhile.
        tokio::task::yield_now().await;
    }
    may_answer.notify_one();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("got 3"), "{answer}");
}
