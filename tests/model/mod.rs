//! The model check: the protocol in every reachable state.
//!
//! A world has one or two orders of two steps each, schedulers, supervisors, agents, services, an operator, and the
//! messages between them. The model checker `stateright` explores it exhaustively: every order of events, every message
//! redelivered, late, out of order or lost, every instance killed between any two actions. Every decision comes from
//! [`domain::machine::decide`], the function that ships, and every request from `domain::machine::request`. The model
//! itself has only the invariants ([`audit`], `properties`).
//!
//! **Left out of a state** ([`task`]): texts, nonces, history, hops, priorities, outputs and status messages, since no
//! decision depends on them; times, except those of the one clock ([`bounds::Clocks`]); versions. The outcome of a
//! conditional write needs no version: after an instance's read, another instance has written or not ([`state::Seen`]).
//! Schedulers are interchangeable, so they are kept sorted.
//!
//! **Bounded** ([`bounds::Bounds`]): orders, steps, instances, attempts, messages in flight, operators' commands and agents'
//! deferrals. Faults are unbounded: any message may be lost or redelivered any number of times, and any instance may die
//! any number of times. A message stays in flight until it is acknowledged or lost. Its redelivery may be marked or not.
//!
//! **Not modelled**: the inside of an agent (retries, circuit breaker, memo), leases, the horizon and the doubt of the
//! supervisor, the hop limit, batches, and dead submissions. The simulation covers them.
//!
//! **Calls that outlive their attempt** ([`bounds::Bounds::settles`]): a forward call may get no answer, and have its effect
//! at any time within `settles_within` (rule 16), also after its attempt ended.
//!
//! **Results that come later** ([`bounds::Bounds::callbacks`]): a service takes the second step on, and tells the result at
//! any time and as often as it likes, until it is undone (rules 36 and 38). The API's own check says which results it queues.
//!
//! **Lines** ([`bounds::Shape::Lines`]): one step goes through two lines of the order, and drops a line that fails (rule 50).
//!
//! **Two orders.** A decision reads and writes one task, and a message names one order. So orders meet only in the
//! instances, which handle one message at a time here. A test checks that two orders reach no state that one alone does
//! not reach (`two_orders_come_to_what_each_comes_to_alone`). So the large runs need only one order.
//!
//! **Versions** ([`versions`]): in one world an operator applies another default and other versions in the middle. Two orders
//! begin at any time, one of the default workflow, the other of a named one. The catalogue that ships chooses and finds
//! the versions, as an instance would that knows of the application or does not. The application is written by
//! [`config::apply`].
//!
//! **The checker is checked** ([`broken`]): with a dropped condition, each invariant is found broken.

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
mod service;
pub mod state;
mod submission;
pub mod task;
pub mod versions;

pub use decision::Decide;
