//! Stepwarden's tests beyond one crate: end to end, conformance, kill, faults, simulation.

pub mod conformance;
pub mod faulty;
pub mod fuzzing;
pub mod machine;
pub mod memory;
#[path = "../model/mod.rs"]
pub mod model;
pub mod runtime_api;
#[path = "../simulation/mod.rs"]
pub mod simulation;
pub mod socket;
pub mod world;
