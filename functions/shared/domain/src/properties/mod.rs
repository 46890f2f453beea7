//! Properties for random values. Every run draws the same values.

mod backoff;
mod draw;
mod json;
mod lines;
mod records;
mod walk;
mod walker;
mod words;
mod written;

use proptest::test_runner::{Config, RngSeed};

/// This many cases, always the same, with nothing left on disk.
fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(20), ..Config::default() }
}
