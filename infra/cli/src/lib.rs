//! The program `stepwarden`: its command line ([`args`]), and the commands for a local or deployed API ([`commands`]). The
//! crate `local` serves on this machine; [`demo`] and [`outage`] try it as clients of its API.
//!
//! Never here: a decision about an order. A command asks the API, which decides; `try` and `probe` ask the code of the
//! API, of the state machine and of the agents.

pub mod args;
pub mod commands;
pub mod demo;
mod error_line;
pub mod exit;
mod follow;
pub mod logs;
pub mod outage;
mod paint;
pub mod remote;
mod scenario;
mod show;

pub use error_line::one_line;
pub use paint::Paint;
