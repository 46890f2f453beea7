//! The health of the remote service, shared by all instances of its agent.
//!
//! Each service has one record behind [`domain::ports::Records`]. It is a circuit breaker:
//!
//! - **Closed**: requests go through. Failures in a row open it. An instance counts them by itself and adds them to the
//!   record in lumps, so a service that is well costs no write at all, one that stumbles now and then neither, and a
//!   burst of failures one or two.
//! - **Open** until a time that the back-off draws: requests are parked, new ones too. No call is made and nothing is
//!   counted.
//! - **Half-open**: the first instance that finds the time over and wins the conditional write makes one call, the probe.
//!   All others wait on. A probe that is never heard of again is over at its own time, and another follows.
//! - A probe that the service answers closes the breaker and resets the back-off, one that it does not opens it for the
//!   next wait. A permanent no is an answer: a service that can refuse is alive.
//! - **Release**: once closed, new requests flow at once. Those that had to wait, of which there may be thousands, take
//!   permits from the record: so many in the first interval, twice as many in the next, up to a rate that is kept until
//!   nobody had to wait for some intervals. Then the record is a plain closed one again, and nobody writes any more.
//!
//! `machine` and `release` say what the record becomes, and are pure; `shared` reads it (at most once a second), writes it
//! and keeps what belongs to one instance.
//!
//! When the record cannot be read or written, calls flow (fail open): a call is safe at any time, since it carries its
//! idempotency key or is guarded by a memo, whereas an order held up by a lost table is a loss for certain. What the
//! instance knew last still counts, and so does what it finds out by itself: it has then a breaker of its own.

mod machine;
mod policy;
mod release;
mod shared;

pub use policy::HealthPolicy;
pub(crate) use shared::{Gate, Pass, SharedHealth};
