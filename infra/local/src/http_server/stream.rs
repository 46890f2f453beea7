//! The bytes of a connection, with the time-outs that hyper does not have. What is received counts without TLS, and what
//! is taken as the system takes it, so that no layer between them hides a slow client.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connections::{Connection, Phase};
use super::limits::TAKEN_BYTES_MIN;

/// A stream of bytes in both directions.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}

impl<Stream: AsyncRead + AsyncWrite + Send + Unpin> Transport for Stream {}

/// A stream that ends if a head comes too slowly.
pub(super) struct Receiving {
    stream: Box<dyn Transport>,
    connection: Arc<Connection>,
    /// Runs while a head is incomplete.
    head: Timer,
}

/// A stream that ends if an answer is taken too slowly.
pub(super) struct Sending {
    stream: Box<dyn Transport>,
    connection: Arc<Connection>,
    /// Runs while the client has to take something.
    taking: Timer,
    /// What it took since the timer began.
    taken_bytes: usize,
}

#[derive(Debug, Default)]
struct Timer(Option<Pin<Box<Sleep>>>);

impl Receiving {
    pub(super) fn new(stream: Box<dyn Transport>, connection: Arc<Connection>) -> Self {
        Self { stream, connection, head: Timer::default() }
    }
}

impl Sending {
    pub(super) fn new(stream: Box<dyn Transport>, connection: Arc<Connection>) -> Self {
        Self { stream, connection, taking: Timer::default(), taken_bytes: 0 }
    }

    /// The result of a write of `bytes`.
    fn written(
        &mut self,
        cx: &mut Context<'_>,
        bytes: usize,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(count)) => {
                self.connection.taken(*count);
                self.taken_bytes += count;
                if *count == bytes || self.taken_bytes >= TAKEN_BYTES_MIN {
                    self.taking.end();
                    self.taken_bytes = 0;
                }
            }
            Poll::Pending => {
                if self.taking.is_over(cx, self.connection.limits().taking_ms_max) {
                    return Poll::Ready(Err(too_slow("an answer")));
                }
            }
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl Timer {
    /// Whether the time since the first of these calls is over. Wakes the task when it is.
    #[expect(clippy::disallowed_methods, reason = "a time-out of the host, not of the protocol")]
    fn is_over(&mut self, cx: &mut Context<'_>, ms: u64) -> bool {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + Duration::from_millis(ms))));
        sleep.as_mut().poll(cx).is_ready()
    }

    fn end(&mut self) {
        self.0 = None;
    }
}

fn too_slow(what: &str) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("{what} goes too slowly"))
}

impl AsyncRead for Receiving {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.connection.received();
        }
        let is_end = matches!(&read, Poll::Ready(Ok(()))) && buffer.filled().len() == before && buffer.remaining() > 0;
        let this = &mut *self;
        if is_end && !matches!(this.connection.phase(), Phase::Idle | Phase::Head) {
            // Who sends no more may still wait for the answer. hyper would end the request, and asks again after it.
            this.connection.gone().notify_one();
            return Poll::Pending;
        }
        if this.connection.phase() != Phase::Head {
            this.head.end();
        } else if read.is_pending() && this.head.is_over(cx, this.connection.limits().head_ms_max) {
            return Poll::Ready(Err(too_slow("a head")));
        }
        read
    }
}

impl AsyncWrite for Receiving {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Sending {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Sending {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.written(cx, data.len(), written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, data);
        self.written(cx, data.iter().map(|part| part.len()).sum(), written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
