//! What an agent is written with: its author implements [`Service`] for one remote service, and [`handle`] does the rest
//! (design §5).
//!
//! The rest is: no call without time for it and silence after `CompleteBy` (rule 6), a time-out for each call, retries
//! with back-off that wait here when it is short and on the queue when it is long, a panic that fails one message alone,
//! outputs within their limit, and a reply that is sent before its message is let go (rule 2).
//!
//! One request is one `Work`, and it goes through three places, each of them the only one of its kind: `let_through`
//! says whether a call may start now, `carry_out` makes the calls until there is an `Ending`, and `settle` does what the
//! ending asks for. Whatever holds calls back or answers without a call belongs into the first and gives an `Ending`;
//! whatever has to remember a reply belongs into the last, before the reply is sent.
//!
//! What must never be here: a protocol such as HTTP, an async runtime, a clock, randomness, the environment. A failure
//! count is not kept either: an agent that gives up is silent, and the supervisor counts.

mod agent;
mod call;
mod deadline;
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
pub use output::OUTPUT_TOO_LARGE;
pub use policy::{Policy, PolicyError, RETRIES_MAX, WAIT_IN_INVOCATION_MS_MAX};
pub use service::{Answer, Call, Service};
