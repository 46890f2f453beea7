//! HTTP/1.1 as bytes on a socket: what a client library would never send can be sent, and what comes back is seen as it
//! is.

use std::io;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body as it came.
    pub text: String,
}

impl Answer {
    /// The value of a header; nothing where there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A member of the body that is a string.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn text_of(&self, name: &str) -> String {
        self.json()[name].as_str().unwrap_or_else(|| panic!("no text {name}: {self:?}")).to_owned()
    }
}

/// A request as bytes. The headers are the caller's own, but for `host` and `content-length`.
#[must_use]
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Sends one request on a connection of its own.
///
/// # Panics
/// When there is no whole answer.
pub async fn ask(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut connection = Connection::open(address).await.expect("a connection");
    connection.send(&request(method, path, headers, body)).await.expect("a request is taken");
    connection.answer(method != "HEAD").await.expect("a whole answer")
}

/// A connection on which requests can follow one another.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// What has come and is not yet part of an answer.
    come: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// The system's, where nobody listens.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, come: Vec::new() })
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The system's, where the other end is gone.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next answer. One to a HEAD has no body, whatever its headers say.
    ///
    /// # Errors
    /// The system's, or `InvalidData` where what comes is no answer.
    pub async fn answer(&mut self, has_body: bool) -> io::Result<Answer> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidData);
        let end = self.come_until(|come| come.windows(4).position(|four| four == b"\r\n\r\n")).await?;
        let head: Vec<u8> = self.come.drain(..end + 4).collect();
        let head = String::from_utf8(head).map_err(|_| invalid())?;
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
        let status = status.ok_or_else(invalid)?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers: Vec<_> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let mut answer = Answer { status, headers, text: String::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if has_body {
            self.come_until(|come| (come.len() >= length).then_some(length)).await?;
            let body = self.come.drain(..length).collect();
            answer.text = String::from_utf8(body).map_err(|_| invalid())?;
        }
        Ok(answer)
    }

    /// Everything that still comes until the other end closes.
    ///
    /// # Errors
    /// The system's.
    pub async fn rest(mut self) -> io::Result<Vec<u8>> {
        self.stream.read_to_end(&mut self.come).await?;
        Ok(self.come)
    }

    async fn come_until(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> io::Result<usize> {
        loop {
            if let Some(place) = found(&self.come) {
                return Ok(place);
            }
            if self.stream.read_buf(&mut self.come).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
