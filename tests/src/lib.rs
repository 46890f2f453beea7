//! Stepwarden's tests beyond one crate: end to end, conformance, kill, faults, and the proof.
//!
//! `tests/README.md` says what is promised, on which assumptions, how each part is run, and what the simulation does not
//! see. [`simulation`], [`model`], [`conformance`] and [`fuzzing`] say how they work.
//!
//! What must never be here: code that ships.

#[path = "../benches/kit/mod.rs"]
pub mod bench;
pub mod collector;
pub mod conformance;
pub mod documents;
pub mod fuzzing;
pub mod machine;
#[path = "../model/mod.rs"]
pub mod model;
pub mod runtime_api;
#[path = "../simulation/mod.rs"]
pub mod simulation;
pub mod socket;
pub mod world;
