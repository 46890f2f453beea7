//! The conformance suite on each implementation of the ports, and what each of them promises besides.

mod directory;
mod durable;
mod dynamodb;
mod engine;
mod memory;
mod sqlite;
