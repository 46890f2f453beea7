//! Stand-ins for the three remote services in this process: what a newcomer runs against, and what tests and the demo
//! check with.
//!
//! What they do with a call is in the crate `standins`. Here they listen on a socket, remember their keys in memory, and
//! count what they did, so that "exactly once" can be checked from outside; and a whole service can be switched to be bad,
//! whatever the orders say.

mod help;
mod ledger;
mod pace;
mod server;
mod switches;

pub use help::HELP;
pub use ledger::{KeyEffects, Ledger, ServiceEffects, Totals};
pub use server::{Effects, KEYS_SERVE, KEYS_UNLIMITED, StandIns};
pub use standins::{Behaviour, Operation, Service, Verdict, forward_key};
pub use switches::Switches;
