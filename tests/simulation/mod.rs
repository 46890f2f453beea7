//! The simulation: the real handlers in a world full of faults, deterministic for each seed.
//!
//! A world is one thread, one random stream and one virtual clock. The five handlers run on simulated ports ([`ports`]).
//! Each port call waits before its effect and again before its answer. At each wait an instance may be killed, paused or
//! overtaken ([`executor`]). Queues behave like the platform's ([`queues`]), and the index lags ([`store`]). Calls
//! of the remote services ([`services`]) have their begin, their effect and their answer apart, and the services keep the
//! true effects ([`books`]), what was done [`by_hand`] too. The seed's plan sets the faults and their rates ([`faults`]). The
//! [`auditor`] sees only outside observations. After a while the faults stop, operators act, and every order must end
//! ([`calm`]).
//!
//! The worlds of [`engine`] are others: the real engine of the one-machine form, on a disk that fails. So are those of
//! [`aws`]: the real adapters of the functions, over a network that fails.

pub mod actors;
pub mod applied;
pub mod auditor;
pub mod aws;
pub mod books;
pub mod by_hand;
pub mod calm;
pub mod customers;
pub mod engine;
pub mod executor;
pub mod faults;
pub mod mappings;
pub mod observe;
pub mod operators;
pub mod outside;
pub mod ports;
pub mod queues;
pub mod records;
pub mod rng;
pub mod services;
pub mod setup;
pub mod shapes;
pub mod sleep;
pub mod state;
pub mod store;
pub mod trace;
pub mod ways;
pub mod world;

use auditor::Violation;
use faults::Counts;
use trace::Line;
use world::World;

/// The default number of orders in a world.
pub const ORDERS: usize = 5;

/// The result of one world.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The violations, in order.
    pub violations: Vec<Violation>,
    /// Hash of all events.
    pub hash: u64,
    /// Its duration, in milliseconds of its own clock.
    pub lasted_ms: i64,
    /// The count of each fault.
    pub counts: Counts,
    /// The trace, if requested.
    pub lines: Vec<Line>,
}

/// Runs the world of a seed with this number of orders, and keeps its trace or only the hash.
#[must_use]
pub fn run(seed: u64, orders: usize, keeps_lines: bool) -> Outcome {
    let state = World::new(seed, orders, keeps_lines).run();
    Outcome {
        seed,
        violations: state.auditor.violations().to_vec(),
        hash: state.trace.hash(),
        lasted_ms: state.now_ms,
        counts: state.counts,
        lines: state.trace.into_lines(),
    }
}
