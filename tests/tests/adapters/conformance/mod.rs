//! The conformance suite on each implementation of the ports, and the further guarantees of each.

mod directory;
mod durable;
mod dynamodb;
mod engine;
mod memory;
mod sqlite;
