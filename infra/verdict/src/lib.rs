//! Rehearses a configuration folder: its own workflows and settings in worlds of the [`rehearsal`], with services as their
//! user describes them. It judges how the orders end ([`judge`]), and looks for the key whose change ends what goes wrong
//! ([`remedy`], [`search`]).
//!
//! What must never be here: files, the environment, the clock, and a call that leaves the process.

pub mod day;
pub mod doubts;
pub mod edit;
pub mod folder;
pub mod judge;
mod orders;
pub mod remedy;
pub mod report;
pub mod search;
pub mod story;
pub mod watch;
mod wishes;
mod words;
pub mod worlds;
