//! A small world without faults, for the tests of its parts.

use std::sync::Arc;

use agent::Policy;
use domain::workflow::Workflows;

use crate::faults::Plan;
use crate::rng::Rng;
use crate::seen::Seen;
use crate::setup::{Habits, Setup};
use crate::shape::Shape;
use crate::state::State;
use crate::watcher::Watcher;

const ORDER: &str = "name = \"order\"\nversion = 1\n[[step]]\nname = \"s0\"\nagent = \"stock\"\n";

/// Looks on.
struct Bystander;

impl Watcher for Bystander {
    fn see(&mut self, _: i64, _: &Seen) {}

    fn troubled(&mut self, _: i64) {}

    fn jumped(&mut self, _: i64) {}

    fn is_done(&self) -> bool {
        false
    }
}

/// Its constants.
pub(crate) fn setup() -> Setup {
    let agents: Vec<Arc<str>> = ["stock", "money"].map(Arc::from).to_vec();
    let first = Workflows::parse(&[ORDER], "order", &["stock", "money"]).unwrap();
    let one = first.current().clone();
    let shape = Shape {
        steps: vec!["s0".into()],
        both: first.clone(),
        two: one.clone(),
        applied: Vec::new(),
        short_horizon: false,
        agents,
        first,
        one,
    };
    let agents = shape.agents.len();
    Setup {
        plan: Plan::none(),
        orders: 1,
        documents: Vec::new(),
        calm_at_ms: 60_000,
        posts_within_ms: 1_000,
        shards: 1,
        instances: 1,
        supervisors: 1,
        tick_ms: 1_000,
        skew_ms: 0,
        latency_ms: 2,
        ports_are_slow: true,
        service_ms: 5,
        visibility_ms: 30_000,
        receives_max: 10,
        batch_max: 10,
        settings: "".into(),
        policies: vec![Policy::default(); agents],
        services: vec![Habits::careful(30_000); agents],
        outages: Vec::new(),
        mishap: None,
        failing_lines: None,
        deployed_at_ms: None,
        named: Vec::new(),
        applied: Vec::new(),
        shape: Arc::new(shape),
    }
}

/// The world.
pub(crate) fn state(setup: Setup) -> State {
    State::new(Rng::new(1), Arc::new(setup), Box::new(Bystander), false)
}
