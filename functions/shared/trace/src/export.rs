//! The export from the buffer to the collector.

#![expect(clippy::disallowed_methods, reason = "the patience with a collector is no part of the protocol")]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::observe::METRICS;
use domain::time::whole_seconds;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::response::Parts;
use http::{HeaderValue, Request, StatusCode};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tokio::{pin, select};

use crate::buffer::Buffer;
use crate::layer::Layer;
use crate::otlp;
use crate::settings::Settings;
use crate::span::Done;
use crate::{NotPosted, Transport};

/// The first back-off after a failure; it doubles with each failure.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest back-off.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The time to fill a batch in a continuous export.
const GATHER: Duration = Duration::from_secs(1);
/// The time-out of the last export before the process ends.
const LAST: Duration = Duration::from_secs(2);
/// The longest back-off that a collector may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(15 * 60);
/// Statuses after which OTLP allows a retry.
const PASSING: [StatusCode; 4] = [
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// The traces of a process. Cloning copies a pointer.
#[derive(Clone)]
pub struct Traces(Arc<Inner>);

struct Inner {
    settings: Settings,
    transport: Box<dyn Transport>,
    buffer: Arc<Buffer>,
    way: Mutex<Way>,
}

/// The state of the export.
#[derive(Debug, Default)]
struct Way {
    failures: u32,
    /// The end of the back-off.
    pause_until: Option<Instant>,
}

/// The reason for not taking spans.
#[derive(Debug, thiserror::Error)]
enum NotTaken {
    #[error("no answer: {0}")]
    Unanswered(NotPosted),
    #[error("no answer in time")]
    TooSlow,
    #[error("answered {}", .0.status)]
    Passing(Box<Parts>),
    #[error("refused: {0}")]
    Refused(StatusCode),
    #[error("cannot be written: {0}")]
    Unwritable(String),
}

impl NotTaken {
    /// The time for which the collector asks to be left alone. A date says nothing without its clock.
    fn retry_after(&self) -> Duration {
        let Self::Passing(head) = self else { return Duration::ZERO };
        let seconds = head.headers.get(RETRY_AFTER).and_then(|value| whole_seconds(value.to_str().ok()?.trim()));
        seconds.map_or(Duration::ZERO, Duration::from_secs)
    }
}

impl Traces {
    /// Traces for the collector of these settings, over this transport.
    #[must_use]
    pub fn new(settings: Settings, transport: impl Transport + 'static) -> Self {
        let (transport, buffer) = (Box::new(transport), Arc::default());
        Self(Arc::new(Inner { settings, transport, buffer, way: Mutex::default() }))
    }

    /// The layer for `tracing`, to be installed once.
    #[must_use]
    pub fn layer(&self) -> Layer {
        let Inner { settings, buffer, .. } = &*self.0;
        Layer { buffer: buffer.clone(), sampler: settings.sampler, messaging: settings.messaging.into() }
    }

    /// Exports the buffered spans within the time-out. During a back-off nothing is sent. Unsent spans stay in the buffer,
    /// as far as there is room.
    pub async fn flush(&self, within: Duration) {
        let until = Instant::now() + within;
        // A concurrent export sends all spans.
        let Ok(mut way) = self.0.way.try_lock() else { return };
        while self.0.buffer.len() > 0 && !way.is_paused() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.0.send_batch(&mut way, left).await;
        }
        self.0.tell_dropped();
    }

    /// Exports continuously until `stopped`, then the remaining spans within two seconds.
    pub async fn run(&self, stopped: impl Future<Output = ()>) {
        pin!(stopped);
        loop {
            select! {
                () = &mut stopped => break,
                () = self.0.buffer.is_much.notified() => {}
                () = sleep(GATHER) => {}
            }
            select! {
                () = &mut stopped => break,
                () = self.flush(self.0.settings.timeout) => {}
            }
        }
        self.flush(LAST).await;
    }
}

impl Inner {
    async fn send_batch(&self, way: &mut Way, left: Duration) {
        let mut batch = Unsent { buffer: &self.buffer, spans: self.buffer.take() };
        match self.post(&batch.spans, left).await {
            Ok(()) => {
                batch.spans.clear();
                way.works();
            }
            Err(error @ (NotTaken::Unanswered(_) | NotTaken::TooSlow | NotTaken::Passing(_))) => way.fails(&error),
            Err(error @ (NotTaken::Refused(_) | NotTaken::Unwritable(_))) => {
                self.buffer.give_up(batch.spans.len());
                batch.spans.clear();
                way.fails(&error);
            }
        }
    }

    async fn post(&self, spans: &[Done], left: Duration) -> Result<(), NotTaken> {
        let Settings { endpoint, headers, resource, .. } = &self.settings;
        let body = otlp::request(resource, spans).map_err(|error| NotTaken::Unwritable(error.to_string()))?;
        let mut request = Request::new(Bytes::from(body));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = endpoint.clone();
        *request.headers_mut() = headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match timeout(left.min(self.settings.timeout), self.transport.post(request)).await {
            Ok(Ok(head)) if head.status.is_success() => Ok(()),
            Ok(Ok(head)) if PASSING.contains(&head.status) => Err(NotTaken::Passing(Box::new(head))),
            Ok(Ok(head)) => Err(NotTaken::Refused(head.status)),
            Ok(Err(error)) => Err(NotTaken::Unanswered(error)),
            Err(_) => Err(NotTaken::TooSlow),
        }
    }

    fn tell_dropped(&self) {
        let dropped = self.buffer.dropped();
        if dropped > 0 {
            tracing::debug!(target: METRICS, { monotonic_counter.spans_dropped = dropped }, "spans dropped");
        }
    }
}

/// Spans that go back to the buffer on drop, unless they were sent.
struct Unsent<'a> {
    buffer: &'a Buffer,
    spans: Vec<Done>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.buffer.put_back(std::mem::take(&mut self.spans));
    }
}

impl Way {
    fn is_paused(&self) -> bool {
        self.pause_until.is_some_and(|until| Instant::now() < until)
    }

    fn works(&mut self) {
        if self.failures > 0 {
            tracing::info!(failures = self.failures, "the collector of traces takes spans again");
        }
        *self = Self::default();
    }

    fn fails(&mut self, error: &NotTaken) {
        let own = PAUSE.saturating_mul(1_u32 << self.failures.min(6)).min(PAUSE_MAX);
        let pause = own.max(error.retry_after().min(RETRY_AFTER_MAX));
        self.pause_until = Some(Instant::now() + pause);
        self.failures = self.failures.saturating_add(1);
        // Logged ever more rarely: an outage may be long.
        if self.failures.is_power_of_two() {
            tracing::warn!(failures = self.failures, "spans not taken by the collector of traces: {error}");
        }
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("settings", &self.0.settings).field("buffer", &self.0.buffer.len()).finish()
    }
}
