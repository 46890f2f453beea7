//! A service on a real socket that sends a test's responses, byte for byte.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// The reaction to one request.
#[derive(Debug, Clone)]
pub(crate) enum Respond {
    /// Sends this.
    With(Vec<u8>),
    /// Sends this and closes the connection.
    WithAndHangUp(Vec<u8>),
    /// Never answers.
    Never,
}

/// A response with a length, the connection stays open.
pub(crate) fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Respond {
    let mut text = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    Respond::With(format!("{text}\r\n{body}").into_bytes())
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// The number of its connection, from 1.
    pub(crate) connection: usize,
    /// Like `POST /charge HTTP/1.1`.
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    /// `Null` if it is not JSON.
    pub(crate) body: Value,
    pub(crate) text: String,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The service. It ends with the runtime of its test.
#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) base: String,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    responses: Mutex<VecDeque<Respond>>,
    received: Mutex<Vec<Received>>,
    never: Notify,
}

impl StandIn {
    /// A service that gives these responses in this order.
    pub(crate) async fn start(responses: impl IntoIterator<Item = Respond>) -> Self {
        Self::serving(None, responses).await
    }

    /// The same with TLS. A connection whose handshake fails gets no response.
    pub(crate) async fn start_tls(config: ServerConfig, responses: impl IntoIterator<Item = Respond>) -> Self {
        Self::serving(Some(TlsAcceptor::from(Arc::new(config))), responses).await
    }

    async fn serving(tls: Option<TlsAcceptor>, responses: impl IntoIterator<Item = Respond>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let base = format!("{scheme}://{}", listener.local_addr().unwrap());
        let responses = Mutex::new(responses.into_iter().collect());
        let state = Arc::new(State { responses, received: Mutex::default(), never: Notify::new() });
        let serving = state.clone();
        tokio::spawn(async move {
            for connection in 1.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (tls, serving) = (tls.clone(), serving.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(serving, connection, stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(serving, connection, stream).await;
                            }
                        }
                    }
                });
            }
        });
        Self { base, state }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap().clone()
    }

    /// Waits until a request without a scripted answer has come.
    pub(crate) async fn has_one_unanswered(&self) {
        self.state.never.notified().await;
    }
}

async fn serve(state: Arc<State>, connection: usize, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    while let Some(request) = receive(connection, &mut stream).await {
        state.received.lock().unwrap().push(request);
        let respond = state.responses.lock().unwrap().pop_front().expect("a response for every request");
        match respond {
            Respond::With(bytes) => stream.write_all(&bytes).await.unwrap(),
            Respond::WithAndHangUp(bytes) => return stream.write_all(&bytes).await.unwrap(),
            Respond::Never => state.never.notify_one(),
        }
    }
}

/// The next request; `None` once the client has closed the connection.
async fn receive(connection: usize, stream: &mut (impl AsyncRead + Unpin)) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next().unwrap().to_owned();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let headers: Vec<_> = lines.filter_map(header).collect();
    let mut received = Received { connection, line, headers, body: Value::Null, text: String::new() };
    let length: usize = received.header("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        stream.read_buf(&mut bytes).await.ok().filter(|&count| count > 0)?;
    }
    received.text = String::from_utf8(bytes[head_end + 4..].to_vec()).unwrap();
    received.body = serde_json::from_str(&received.text).unwrap_or_default();
    Some(received)
}
