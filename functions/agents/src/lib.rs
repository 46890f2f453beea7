//! The agents of services that speak HTTP.
//!
//! The crate `agent` has the rules of an agent. This crate has the call of one HTTP service ([`HttpService`]), the
//! meaning of its answers (`answer`), and the agents of a process, each made of its settings ([`Fleet`]). A provider's
//! events come in here too (`webhook`).
//!
//! What must never be here: retries, waits or deadlines of its own, the environment (`main` reads it), and any
//! knowledge of the meaning of an order.

mod answer;
mod auth;
mod calls;
mod client;
mod fleet;
mod http_agent;
mod look;
mod poll;
mod pool;
pub mod preview;
mod retry_after;
mod service;
mod settings;
mod webhook;

#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod tests;

pub use agent::{Answer, Callbacks, handle};
pub use answer::{Expected, answer_to};
pub use auth::{Now, Resolver, Secret, Signer, Variable, machine_secrets};
#[cfg(feature = "simulated")]
pub use client::{CallOf, Network, NetworkBody, NetworkError};
pub use client::{HttpClients, TlsError};
pub use config::{BadUrl, Condition, Meaning, Operations, Reference, Remote, SecretSource, StatusTable};
pub use fleet::{Applied, Fleet, Host, HostPolicy, NothingApplied, WEBHOOKS};
pub use http_agent::{AgentFault, AgentService, HttpAgent, http_agent, http_service};
pub use poll::Polled;
pub use pool::Pool;
pub use service::{Answered, HttpService, Proof};
pub use settings::{AgentSettings, BadSettings, Settings};
pub use webhook::api::{CallbackApi, RemoteApi, Unanswered};
