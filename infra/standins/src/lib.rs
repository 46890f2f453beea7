//! Stand-ins for remote services: those that ship, and that of any other agent. Each order sets their behaviour.
//!
//! By default they behave as a good remote service does. They answer `POST /{service}/{operation}` with an
//! `Idempotency-Key`. The same key gives the same answer and no second effect. An undo without an effect to compensate
//! succeeds. A forward call after its undo is refused. The member `StandIn` of an order makes them behave worse for
//! this order.
//!
//! A call takes three steps: [`Call::read`] decodes it, [`Entry::call`] decides it on the state of its key, and
//! [`Call::answer`] builds the answer. These do no I/O and have no clock. A host brings the request and the time, waits
//! for the delay, and sends the response. Only the storage of keys differs. [`Services`] keeps them in memory, and
//! `infra/local` serves it on a socket. The Lambda function (feature `lambda`) keeps them in a table that all instances
//! share.

mod behaviour;
mod call;
mod entry;
#[cfg(feature = "lambda")]
pub mod lambda;
mod ledger;
mod pace;
mod service;
mod services;

pub use behaviour::{Behaviour, HELP};
pub use call::{Answer, CALL_BYTES_MAX, Call};
pub use entry::{Decision, Entry, Side, Verdict};
pub use ledger::{KeyEffects, ServiceEffects, Totals};
pub use service::{Operation, Service};
pub use services::{Effects, Services};
