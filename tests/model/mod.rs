//! The protocol, checked in every state that it can get into.
//!
//! A world of one or two orders of two steps each, with schedulers, supervisors, agents, services, an operator, and the
//! messages between them, is walked through exhaustively with the model checker `stateright`: every order of events, every
//! message delivered again, late, out of order or never, every instance killed between any two of its actions. Whatever an
//! instance decides, it asks of [`domain::machine::decide`], the function that ships, and the requests are made by
//! `domain::machine::request`; nothing of the protocol is written down here a second time but its invariants
//! ([`audit`], `properties`).
//!
//! **What is left out of a state** ([`task`]): words, nonces, history, hops, priorities, outputs and status messages, since
//! they decide nothing; times, but for those of the one clock ([`bounds::Clocks`]); versions. Whether a conditional write is
//! won is known without them: an instance has read the task, and either somebody has written since or not
//! ([`state::Seen`]). Which of two schedulers is at something makes no difference, so they are kept sorted.
//!
//! **What is bounded** ([`bounds::Bounds`]): orders, steps, instances, attempts, messages in flight at once, operators'
//! commands and agents' deferrals. Faults are not: any message may be lost or delivered again any number of times (it stays
//! in flight until it is acknowledged or lost, and is known to be redelivered or not, as the queue likes), and any instance
//! may die any number of times.
//!
//! **What is not modelled**: the inside of an agent (its retries, breaker and memo), leases, the horizon and the doubt of
//! the supervisor, the hop limit, batches, and dead submissions. Those are the simulation's.
//!
//! **Two orders.** A decision looks at one task and writes one task, and a message names one order, so orders meet only in
//! the instances, which are busy with one thing at a time here. That two orders come to nothing that one alone does not
//! come to is checked as well (`two_orders_come_to_what_each_comes_to_alone`), so that the large runs need only one.
//!
//! **The checker is checked** ([`broken`]): with a condition dropped somewhere, each invariant is found to be broken.

pub mod action;
pub mod audit;
pub mod bounds;
pub mod broken;
mod decision;
mod drain;
pub mod explore;
pub mod message;
mod properties;
pub mod protocol;
pub mod report;
pub mod state;
pub mod task;

pub use decision::Decide;
