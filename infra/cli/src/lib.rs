//! The program `stepwarden`: its command line ([`args`]), and the commands for a local or deployed API ([`commands`]). The
//! crate `local` serves on this machine.
//!
//! Never here: a decision about an order. A command asks the API, which decides.

pub mod args;
pub mod commands;
mod error_line;
pub mod exit;
pub mod logs;
pub mod remote;
mod show;

pub use error_line::one_line;
use local::paint;
