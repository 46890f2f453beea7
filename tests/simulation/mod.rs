//! The simulation: the real handlers in a world where everything that can go wrong does, again and again, and the same way
//! for the same seed.
//!
//! A world is one thread, one stream of chance and one virtual clock. The five handlers run on ports of their own
//! ([`ports`]); each call of a port is a place to wait, before it takes effect and again before its answer is there, and at
//! each of them an instance may be killed, paused or overtaken ([`executor`]). Queues behave as the platform's do
//! ([`queues`]), the index lags ([`store`]), the remote services are the truth about what happened ([`services`]), and the
//! plan of the seed says what goes wrong and how often ([`faults`]). The [`auditor`] is shown what an onlooker could see
//! and knows nothing else. After a while the faults stop, operators see to what waits for them, and everything must come to
//! an end ([`calm`]).

pub mod actors;
pub mod auditor;
pub mod calm;
pub mod customers;
pub mod executor;
pub mod faults;
pub mod observe;
pub mod operators;
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
pub mod world;

use auditor::Violation;
use faults::Counts;
use trace::Line;
use world::World;

/// Orders in a world, unless somebody asks for more.
pub const ORDERS: usize = 5;

/// What became of one world.
#[derive(Debug)]
pub struct Outcome {
    /// Which world it was.
    pub seed: u64,
    /// What was wrong, the first first.
    pub violations: Vec<Violation>,
    /// Hash of all that happened.
    pub hash: u64,
    /// How long it lasted, in milliseconds of its own time.
    pub lasted_ms: i64,
    /// How often each fault struck.
    pub counts: Counts,
    /// What happened, where lines were asked for.
    pub lines: Vec<Line>,
}

/// Runs the world of a seed with so many orders, and keeps lines of what happens or only their hash.
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
