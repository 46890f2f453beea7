//! Stepwarden's tests beyond one crate: end to end, conformance, kill, faults, and the proof.
//!
//! `tests/README.md` lists the promises, the assumptions, the commands, and the limits of the simulation. [`simulation`],
//! [`model`], [`conformance`] and [`fuzzing`] explain themselves.
//!
//! Never here: code that ships.

#[path = "../benches/kit/mod.rs"]
pub mod bench;
pub mod collector;
pub mod conformance;
pub mod documents;
pub mod fuzzing;
pub mod keys;
pub mod machine;
#[path = "../model/mod.rs"]
pub mod model;
pub mod runtime_api;
#[path = "../simulation/mod.rs"]
pub mod simulation;
pub mod socket;
pub mod world;
