//! Traces: the spans that `domain::trace` has for an order, sent to an OpenTelemetry collector (OTLP as JSON over HTTP).
//!
//! Off unless the environment names a collector ([`Settings::read`]). Then [`Traces`] gives a [`Layer`] to listen with;
//! what it hears waits in a buffer that is bounded, until whoever runs the process has it sent: at the end of each
//! invocation with [`Traces::flush`], or all the time with [`Traces::run`]. How a request gets to the collector is the
//! host's own ([`Transport`]), so that nobody carries an HTTP client more than it has.
//!
//! It is our own instead of the OpenTelemetry SDK: what we need of that is one way in and one way out, for which it would
//! take half a megabyte of each bootstrap and some thirty crates, three times as much as all of this; and ids of traces,
//! sampling by ids that are UUIDs, and sending before a process is frozen would be our own all the same.
//!
//! What must never happen here: a collector that is slow, away or wrong holds up an order or fills the memory. What cannot
//! be sent in time is dropped and counted (`spans_dropped`).

mod buffer;
mod chance;
mod export;
mod fields;
mod layer;
mod otlp;
mod sampler;
mod settings;
mod span;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, StatusCode};

pub use export::Traces;
pub use layer::Layer;
pub use settings::{Reading, Settings};

/// The way to the collector.
pub trait Transport: Send + Sync {
    /// Sends a request and gives the status of its answer. Takes as long as it likes: whoever calls drops what takes too
    /// long.
    fn post(&self, request: Request<Bytes>) -> Posting<'_>;
}

/// A request on its way.
pub type Posting<'a> = Pin<Box<dyn Future<Output = Result<StatusCode, NotPosted>> + Send + 'a>>;

/// Why there is no answer.
pub type NotPosted = Box<dyn Error + Send + Sync>;
