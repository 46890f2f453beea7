//! What holds for everything, tried on things drawn at random: the same ones at each run.

mod backoff;
mod draw;
mod json;
mod records;
mod walk;
mod walker;
mod words;

use proptest::test_runner::{Config, RngSeed};

/// So many cases, always the same, and nothing left on disk.
fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(20), ..Config::default() }
}
