//! Stand-ins for the three remote services, told by each order how to behave.
//!
//! They behave as a good remote service does: `POST /{service}/{operation}` with an `Idempotency-Key`, the
//! same key gives the same answer and no second effect, undoing nothing succeeds, and a forward call after its undo is
//! refused. And they can be told to be worse than that, by an order for itself, in its member `StandIn`.
//!
//! Here is what a service does with a call, which is the same everywhere. Where it remembers its keys differs: on one
//! machine in memory, and in its Lambda function (feature `lambda`) in a table that all instances share.

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
