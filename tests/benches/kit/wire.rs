//! HTTP/1.1 messages with a body of known length, on a socket.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Room for a message and what may follow it.
const BUFFER_BYTES: usize = 16 * 1024;

/// One connection, from either end.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    come: Vec<u8>,
    /// Bytes of `come` that belong to the message that was read last.
    used: usize,
}

/// One message, as long as no other is read.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// First line and headers.
    pub head: &'a str,
    /// The body.
    pub body: &'a [u8],
}

impl Wire {
    /// # Errors
    /// The system's, where nobody listens.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpStream::connect(address).await?)
    }

    /// # Errors
    /// The system's, where the connection is gone already.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, come: Vec::with_capacity(BUFFER_BYTES), used: 0 })
    }

    /// # Errors
    /// The system's, where the other end is gone.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next message; nothing where the other end closed between two.
    ///
    /// # Errors
    /// The system's, `UnexpectedEof` in the middle of a message, `InvalidData` where the head is no text.
    pub async fn next(&mut self) -> io::Result<Option<Message<'_>>> {
        self.come.drain(..self.used);
        self.used = 0;
        let head_bytes = loop {
            if let Some(end) = find_end(&self.come) {
                break end;
            }
            if self.stream.read_buf(&mut self.come).await? == 0 {
                return if self.come.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        };
        let body_bytes = match std::str::from_utf8(&self.come[..head_bytes]) {
            Ok(head) => header(head, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0),
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        };
        self.used = head_bytes + body_bytes;
        while self.come.len() < self.used {
            if self.stream.read_buf(&mut self.come).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let (head, body) = self.come[..self.used].split_at(head_bytes);
        let head = std::str::from_utf8(head).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(Some(Message { head, body }))
    }
}

impl<'a> Message<'a> {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        header(self.head, name)
    }

    /// Of a request: the path.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Of an answer: the status, 0 where there is none.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
    }
}

fn find_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|place| place + 4)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
