#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! One request is one `Work`. It goes through three places, each of them the only one of its kind. `let_through` decides
//! whether a call may start now. `carry_out` makes the calls until there is an `Ending`. `settle` does what the ending
//! asks for. Everything that holds calls back, or answers without a call, is in the first and gives an `Ending`.
//! Everything that has to remember a reply is in the last, before the reply is sent.
//!
//! A request has one of four ends. It is **replied** to. It is **parked** on its queue, for its back-off, for the recovery
//! of the service or for a call with the same key, and comes back. It is **deferred**, which costs the step no failure:
//! it would have to wait for a failing service beyond its deadline, it waited too long for its turn, or its message was
//! parked so often that it would end as a dead letter. Or there is **silence**, and the supervisor counts.
//!
//! What must never be here: a protocol such as HTTP, an async runtime, a clock, randomness, the environment. A failure
//! count is not kept either: an agent that gives up is silent, and the supervisor counts.

mod agent;
mod call;
mod deadline;
mod health;
mod memo;
mod output;
mod policy;
mod retries;
mod service;
mod work;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use agent::{Agent, AgentPorts, handle};
pub use health::HealthPolicy;
pub use memo::{MemoPolicy, UNDONE};
pub use output::OUTPUT_TOO_LARGE;
pub use policy::{Policy, PolicyError, RETRIES_MAX, WAIT_IN_INVOCATION_MS_MAX};
pub use service::{Answer, Call, Service};
