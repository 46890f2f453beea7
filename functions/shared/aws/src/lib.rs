//! The ports on DynamoDB, SQS and EventBridge, and the code that the functions share on Lambda.
//!
//! A function's `main` reads its [`config`], creates its [`ports`], and passes its handler to one of [`lambda`]'s
//! loops. The ports are the state store ([`dynamo`]), the [`queues`] and the [`bus`]; [`telemetry`] writes logs and
//! metrics.
//!
//! Must never be here:
//! - a decision about an order: `domain` makes it;
//! - a wait for something that only the next invocation brings: the process is frozen between two invocations.

mod batching;
pub mod bus;
#[cfg(test)]
mod chance;
pub mod clients;
pub mod config;
pub mod dynamo;
mod environment;
mod http_client;
pub mod lambda;
pub mod ports;
pub mod queues;
mod scope;
mod sdk_error;
pub mod telemetry;
#[cfg(test)]
mod testing;
