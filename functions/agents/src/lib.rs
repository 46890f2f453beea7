//! Stepwarden's agents for inventory, payment and shipping: they speak HTTP.
//!
//! What makes an agent is in the crate `agent`; here is only how one HTTP service is called ([`HttpService`]), what its
//! answers mean (`answer`), and which three services ship ([`Shipped`]).
//!
//! What must never be here: retries, waits or deadlines of its own, the environment (`main` reads it), and any
//! knowledge of what an order means.

mod answer;
mod client;
mod remote;
mod retry_after;
mod service;
mod shipped;

#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod tests;

use agent::{Agent, AgentPorts};
use domain::batch::Failures;
use domain::message::{Delivery, Request};

pub use answer::answer_to;
pub use client::{HttpClients, TlsError};
pub use remote::{BadUrl, Operations, Remote};
pub use service::HttpService;
pub use shipped::{BadConfig, BadVariable, Fault, Shipped, ShippedAgents, Urls};

/// An agent whose service speaks HTTP.
pub type HttpAgent = Agent<Box<dyn Fn() -> HttpService + Send + Sync>>;

/// Takes requests off one agent's queue: calls its service, and sends the answers to the scheduler. Failures are to be
/// delivered again.
pub async fn handle(ports: &impl AgentPorts, agent: &HttpAgent, batch: Vec<Delivery<Request>>) -> Failures {
    agent::handle(ports, agent, batch).await
}
