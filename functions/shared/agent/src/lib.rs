//! What an agent is written with: its author implements [`Service`] for one remote service, and [`handle`] does the
//! rest.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//!
//! use agent::{Agent, AgentPorts, Answer, Call, Policy, PolicyError, Service, handle};
//! use domain::batch::Failures;
//! use domain::json::Json;
//! use domain::message::{Delivery, Request};
//! # #[derive(Clone, Default)] struct Courier;
//! # impl Courier {
//! #     async fn book(&self, _key: &str, _order: &Json) -> Result<String, CourierError> { Ok("1Z999".to_owned()) }
//! #     async fn cancel(&self, _key: &str, _order: &Json) -> Result<(), CourierError> { Ok(()) }
//! # }
//! # enum CourierError { Busy, NoSuchAddress }
//!
//! /// Calls the courier. Its client is shared by all objects, so that making one is cheap.
//! struct Shipping(Arc<Courier>);
//!
//! impl Service for Shipping {
//!     async fn forward(&mut self, call: &Call<'_>) -> Answer {
//!         match self.0.book(call.idempotency_key, call.order).await {
//!             Ok(parcel) => Answer::Done(Json::of(&BTreeMap::from([("Parcel", parcel)]))),
//!             Err(error) => answer_to(error),
//!         }
//!     }
//!
//!     async fn undo(&mut self, call: &Call<'_>) -> Answer {
//!         self.0.cancel(call.idempotency_key, call.order).await.map_or_else(answer_to, |()| Answer::Done(Json::of(&())))
//!     }
//! }
//!
//! fn answer_to(error: CourierError) -> Answer {
//!     match error {
//!         CourierError::Busy => Answer::retry("the courier is busy"),
//!         CourierError::NoSuchAddress => Answer::fail("no-such-address", "the courier does not know the address"),
//!     }
//! }
//!
//! fn agent(courier: Arc<Courier>) -> Result<Agent<impl Fn() -> Shipping>, PolicyError> {
//!     Agent::new("shipping", Policy::default(), move || Shipping(courier.clone()))
//! }
//!
//! /// For each batch of requests, with the same agent.
//! async fn on_batch(
//!     ports: &impl AgentPorts,
//!     agent: &Agent<impl Fn() -> Shipping + Sync>,
//!     batch: Vec<Delivery<Request>>,
//! ) -> Failures {
//!     handle(ports, agent, batch).await
//! }
//! # let shipping = agent(Arc::default()).unwrap();
//! # assert_eq!(&**shipping.name(), "shipping");
//! ```
//!
//! The rest is: no call without time for it and silence after `CompleteBy` (rule 6), a time-out for each call, retries
//! with back-off that wait here when it is short and on the queue when it is long, a circuit breaker that all instances
//! share (`health`), a memory for services that do not recognise idempotency keys (`memo`), a panic that fails one
//! message alone, outputs within their limit, and a reply that is sent before its message is let go (rule 2).
//!
//! One request is one `Work`, and it goes through three places, each of them the only one of its kind: `let_through`
//! says whether a call may start now, `carry_out` makes the calls until there is an `Ending`, and `settle` does what the
//! ending asks for. Whatever holds calls back or answers without a call is in the first and gives an `Ending`; whatever
//! has to remember a reply is in the last, before the reply is sent.
//!
//! A request has one of four ends. It is **replied** to. It is **parked** on its queue, for its back-off, for the recovery
//! of the service or for a call with the same key, and comes back. It is **deferred**: it would have to wait for a failing
//! service beyond its deadline, or its message was parked so often that it would end as a dead letter, so the attempt is
//! given back in time and costs the step none of its failures. Or there is **silence**, and the supervisor counts.
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
