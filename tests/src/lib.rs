//! Stepwarden's tests beyond one crate: end to end, conformance, kill.

pub mod conformance;
pub mod faulty;
pub mod machine;
pub mod memory;
pub mod socket;
