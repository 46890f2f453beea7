//! Stepwarden's tests beyond one crate: end to end, conformance, kill, faults.

pub mod conformance;
pub mod faulty;
pub mod machine;
pub mod memory;
pub mod runtime_api;
pub mod socket;
pub mod world;
