//! The simulation: worlds of the [`rehearsal`] whose workflows and settings are drawn ([`draw`], [`shapes`]). The
//! [`auditor`] judges them.
//!
//! The worlds of [`engine`] are others: the real engine of the one-machine form, on a disk that fails. So are those of
//! [`aws`]: the real adapters of the functions, over a network that fails.

pub mod auditor;
pub mod aws;
pub mod draw;
pub mod engine;
pub mod lines;
pub mod mappings;
pub mod outside;
pub mod shapes;
pub mod ways;

use std::any::Any;

use auditor::{Auditor, Violation};
use rehearsal::faults::Counts;
use rehearsal::rng::Rng;
use rehearsal::trace::Line;
use rehearsal::world::World;

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
    let mut rng = Rng::new(seed);
    let (mut setup, drawn) = draw::setup(&mut rng, orders);
    draw::speak(&mut setup, seed);
    let auditor = Auditor::new(draw::rules(&setup, drawn));
    let state = World::new(rng, setup, Box::new(auditor), keeps_lines).run();
    let watcher: &dyn Any = &*state.watcher;
    let auditor: Option<&Auditor> = watcher.downcast_ref();
    Outcome {
        seed,
        violations: auditor.map(|auditor| auditor.violations().to_vec()).unwrap_or_default(),
        hash: state.trace.hash(),
        lasted_ms: state.now_ms,
        counts: state.counts,
        lines: state.trace.into_lines(),
    }
}
