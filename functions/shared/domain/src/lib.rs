//! The Scheduler-Agent-Supervisor pattern, pure.
//!
//! This crate holds the records ([`order`], [`task`]), the [`workflow`] and its [`definition`]s, the state machine ([`machine`]), the
//! [`message`]s and the [`ports`]. One function makes every decision about an order: [`machine::decide`]. It takes a
//! task and an event, returns the task to write and the messages to send, and performs neither. [`advance`] performs
//! both in the one order that loses nothing: commit, then send, then acknowledge.
//!
//! What must never be here: AWS, SQLite, an async runtime, a clock, randomness, the environment. `now`, ids and random
//! bits come in as arguments or through a port, so that a test or a simulation controls them. The crate depends on no
//! other crate of the workspace.

pub mod advance;
pub mod alert;
pub mod audit;
pub mod author;
pub mod backoff;
pub mod batch;
pub mod bulk;
pub mod callback;
pub mod child;
mod child_request;
#[cfg(feature = "contract")]
pub mod contract;
mod decimal;
pub mod definition;
pub mod delivery;
pub mod header;
pub mod id;
pub mod index;
pub mod instance;
pub mod json;
pub mod keys;
pub mod lease;
pub mod limits;
pub mod located;
pub mod machine;
pub mod message;
pub mod notice;
pub mod observe;
pub mod order;
pub mod output;
mod outputs;
mod pin;
pub mod ports;
pub mod priority;
#[cfg(test)]
mod properties;
#[cfg(feature = "contract")]
mod published;
pub mod redaction;
pub mod schedule;
pub mod schema;
pub mod search;
pub mod settlement;
pub mod situation;
mod state;
pub mod tally;
pub mod task;
pub mod template;
pub mod text;
pub mod time;
mod tokens;
pub mod trace;
pub mod traceparent;
pub mod trust;
pub mod workflow;
