//! Traces: the spans that `domain::trace` has for an order, sent to an OpenTelemetry collector (OTLP as JSON over HTTP).
//!
//! Tracing is off unless the environment names a collector ([`Settings::read`]). Then [`Traces`] provides a [`Layer`],
//! which records spans into a bounded buffer. The host exports them: at the end of each invocation with
//! [`Traces::flush`], or continuously with [`Traces::run`]. The host also provides the [`Transport`], so that this crate
//! needs no HTTP client.
//!
//! This crate replaces the OpenTelemetry SDK. The SDK would add half a megabyte to each bootstrap and about thirty crates.
//! Trace IDs, sampling by UUIDs, and the export before a process is frozen would still be our own code.
//!
//! Never here: a slow, absent or faulty collector that holds up an order or fills the memory. Spans that cannot be sent in
//! time are dropped and counted (`spans_dropped`).

mod buffer;
mod chance;
mod export;
mod fields;
mod layer;
mod listening;
mod otlp;
mod sampler;
mod settings;
mod span;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::pin::Pin;

use bytes::Bytes;
use http::Request;
use http::response::Parts;

pub use export::Traces;
pub use layer::Layer;
pub use listening::listen;
pub use settings::{Reading, Settings};

/// The transport to the collector.
pub trait Transport: Send + Sync {
    /// Sends a request and returns the head of its answer. The caller applies the time-out.
    fn post(&self, request: Request<Bytes>) -> Posting<'_>;
}

/// A request in flight.
pub type Posting<'a> = Pin<Box<dyn Future<Output = Result<Parts, NotPosted>> + Send + 'a>>;

/// The cause of a missing answer.
pub type NotPosted = Box<dyn Error + Send + Sync>;
