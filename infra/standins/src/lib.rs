//! Stand-ins for the three remote services. Each order sets their behaviour.
//!
//! By default they behave as a good remote service does. They answer `POST /{service}/{operation}` with an
//! `Idempotency-Key`. The same key gives the same answer and no second effect. An undo without an effect to compensate
//! succeeds. A forward call after its undo is refused. The member `StandIn` of an order makes them behave worse for
//! this order.
//!
//! This crate handles a call in the same way everywhere. Only the storage of keys differs. On one machine the keys are
//! in memory. In the Lambda function (feature `lambda`) they are in a table that all instances share.

mod behaviour;
mod call;
mod entry;
#[cfg(feature = "lambda")]
pub mod lambda;
mod service;

pub use behaviour::Behaviour;
pub use call::{CALL_BYTES_MAX, Call, answer_to, problem, response};
pub use entry::{Entry, Side, UNDO_SUFFIX, Verdict, forward_key};
pub use service::{Operation, Service};
