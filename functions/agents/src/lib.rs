//! Stepwarden's agents for inventory, payment and shipping, over HTTP.
//!
//! The crate `agent` has the rules of an agent. This crate has the call of one HTTP service ([`HttpService`]), the
//! meaning of its answers (`answer`), and the three services that ship ([`Shipped`]).
//!
//! What must never be here: retries, waits or deadlines of its own, the environment (`main` reads it), and any
//! knowledge of the meaning of an order.

mod answer;
mod auth;
mod client;
mod form;
mod retry_after;
mod service;
mod settings;
mod shipped;

#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod tests;

use agent::{Agent, AgentPorts};
use domain::batch::Failures;
use domain::message::{Delivery, Request};

pub use answer::answer_to;
pub use auth::{Now, Resolver, Secret, Variable, machine_secrets};
pub use client::{HttpClients, TlsError};
pub use config::{BadUrl, Condition, Meaning, Operations, Reference, Remote, SecretSource, StatusTable};
pub use service::HttpService;
pub use settings::{AgentSettings, BadSettings, Settings};
pub use shipped::{BadConfig, BadVariable, Fault, Shipped, ShippedAgents, Urls};

/// An agent whose service uses HTTP.
pub type HttpAgent = Agent<Box<dyn Fn() -> HttpService + Send + Sync>>;

/// Takes requests off one agent's queue: calls its service, and sends the answers to the scheduler. Failures must be
/// delivered again.
pub async fn handle(ports: &impl AgentPorts, agent: &HttpAgent, batch: Vec<Delivery<Request>>) -> Failures {
    agent::handle(ports, agent, batch).await
}
