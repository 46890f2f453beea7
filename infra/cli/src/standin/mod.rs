//! Stand-ins for the three remote services: what a newcomer runs against, and what tests and the demo check with.
//!
//! They behave as design §5 asks of a good remote service: `POST /{service}/{operation}` with an `Idempotency-Key`, the
//! same key gives the same answer and no second effect, undoing nothing succeeds, and a forward call after its undo is
//! refused. They count what they did, so that "exactly once" can be checked from outside. And they can be told to be worse
//! than that, by an order for itself or by a switch for all.

mod behaviour;
mod ledger;
mod pace;
mod server;
mod service;
mod switches;

pub use behaviour::{Behaviour, HELP};
pub use ledger::{KeyEffects, Ledger, ServiceEffects, Totals, Verdict, forward_key};
pub use server::{Effects, KEYS_SERVE, KEYS_UNLIMITED, StandIns};
pub use service::{Operation, Service};
pub use switches::Switches;
