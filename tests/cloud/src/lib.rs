//! AWS in the process, for tests: a transport for the SDK's clients ([`Network`]) and a DynamoDB ([`Dynamo`]).
//!
//! No socket is used. Whoever stands behind the network decides what becomes of each request, so that a seed can decide.

mod database;
mod network;
mod refusals;

pub use database::Dynamo;
pub use network::{Cloud, Course, Fault, Network, Said};
pub use refusals::refusal;
