//! The health of the remote service, shared by all instances of its agent.
//!
//! Each service has one record behind [`domain::ports::Records`]. It is a circuit breaker:
//!
//! - **Closed**: requests go through. Failures in a row open it where there are few calls; where there are many, only
//!   many more failures than successes do ([`evidence`]). An instance counts them and adds them to the record in batches. So
//!   a healthy service costs no write, an occasional failure costs none either, and a burst of failures costs one or two.
//! - **Whose failures they are**: an order whose calls fail while the service answers others bears its failures itself.
//!   They count nowhere here. What fewer than five orders opened holds up these alone: the call of another one goes
//!   through, and tells. Orders that failed before an answer to another one are none of these five.
//! - **Open** until a time that the back-off draws, and at least as long as the service asked for: all requests are
//!   parked, new ones too. No call is made and no failure is counted.
//! - **Half-open**: the first instance that finds the time over, and wins the conditional write, makes one call, the
//!   probe. All others wait. A lost probe is over at its own time, and another follows.
//! - If the service answers the probe, the breaker closes and the back-off is reset. If not, the breaker opens for the
//!   next wait. A permanent refusal is an answer: a service that can refuse is alive.
//! - **Brake** (rule 18): the breaker also opens when most of the last minute's answers are rejections. Then only a step
//!   that is done closes it, or an operator, and a rejection is given back like the answer of a failing service.
//! - **Release**: once closed, new requests flow at once, also when they come back from a back-off of their own. Those that
//!   the outage may have delayed, possibly thousands, take permits from the record. The first interval has as many as the
//!   service carried before, and each next one has twice as many, or half as many if most calls with a permit failed, up to
//!   a maximum rate. That rate is kept until no request had to wait for some intervals. Then the record is a plain closed
//!   one again, and the writes end.
//!
//! The record of a service with a rate also has the times that its calls have taken ([`pace`], rule 20). Each call of
//! such a service costs a write, which requests that wait at the same time share.
//!
//! `machine`, `evidence`, `release`, `rejections` and `pace` compute the next record, and are pure. `shared` reads it (at most once
//! a second), writes it, and keeps the state of one instance (`known`). `report` tells it the end of a call, and `turns` gives
//! calls their times.
//!
//! When the record cannot be read or written, calls flow (fail open). A call is safe at any time, since it carries its
//! idempotency key or is guarded by a memo; an order held up by a lost table is a certain loss. The instance's last
//! state of the record still counts, and so do its own observations: it then has a breaker of its own.

mod evidence;
mod known;
mod machine;
mod pace;
mod pass;
mod policy;
mod rejections;
mod release;
mod report;
mod shared;
mod turns;

pub use pace::{RATE_CALLS, RATE_PER_MS, Rate};
pub(crate) use pass::Pass;
pub use policy::{HealthPolicy, REJECTIONS_WINDOW_MS, RejectionsPolicy};
pub(crate) use shared::{Gate, SharedHealth};
pub(crate) use turns::Turn;
