//! The adapters: one conformance suite on every store and queue, the functions as Lambda runs them, HTTP, logs and metrics.

mod alarms;
mod conformance;
mod dynamodb;
mod http;
mod lambda;
mod schemas;
mod telemetry;
