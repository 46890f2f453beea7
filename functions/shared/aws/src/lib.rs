//! The ports on DynamoDB, SQS and EventBridge, and what the functions share on Lambda.
//!
//! A function's `main` reads its [`config`], makes its [`ports`], and hands its handler to one of [`lambda`]'s loops. The
//! ports are the state store ([`dynamo`]), the [`queues`] and the [`bus`]; [`telemetry`] writes what happened.
//!
//! What must never be here: a decision about an order; that is made in `domain`. And nothing waits for something that only
//! the next invocation brings, since between two of them the process stands still.

mod batching;
pub mod bus;
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
