#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! One request is one `Work`. It passes three functions. `let_through` decides whether a call may start now.
//! `carry_out` makes the calls until there is an `Ending`. `settle` does what the ending requires. Every rule that
//! holds calls back, or answers without a call, is in the first and returns an `Ending`. Everything that must remember
//! a reply is in the last, before the reply is sent.
//!
//! A request ends in one of four ways. It is **replied** to. It is **parked** on its queue and comes back: for its
//! back-off, for the recovery of the service or for a call with the same key. It is **deferred**, which counts no
//! failure: it was queued too long, its wait for a failing service would exceed its deadline, it was parked too often,
//! or, for an undo, a call with the same key took too long. A deferred request may be **declined** for another agent
//! (rule 21). Or there is **silence**, and the supervisor counts. If
//! memos or queue fail, the message comes again.
//!
//! What must never be here: a protocol such as HTTP, an async runtime, a clock, randomness, the environment. The agent
//! counts no failures of a step either: it is silent, and the supervisor counts.

mod agent;
mod bounds;
mod call;
mod callbacks;
mod concurrency;
mod deadline;
mod handler;
mod health;
mod memo;
mod parked;
mod policy;
mod ports;
mod retries;
mod service;
mod usable;
mod work;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use agent::Agent;
pub use bounds::{BACKOFF_CEILING_MAX, PolicyError};
pub use callbacks::Callbacks;
pub use domain::output::OUTPUT_TOO_LARGE;
pub use handler::{handle, refuse};
pub use health::{HealthPolicy, RATE_CALLS, RATE_PER_MS, REJECTIONS_WINDOW_MS, Rate, RejectionsPolicy};
pub use memo::{MEMO_RETENTION_MS_MAX, MemoPolicy, UNDONE};
pub use policy::{CONCURRENCY_MAX, Policy, RETRIES_MAX, WAIT_IN_INVOCATION_MS_MAX};
pub use ports::AgentPorts;
pub use service::{Answer, Call, MayBegin, Service};
