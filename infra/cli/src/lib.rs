//! Stepwarden on one machine: all functions in one process on one file.
//!
//! Everything that AWS does around the functions is done here: the API listens on a socket ([`serve`]), queues feed
//! handlers ([`event_source`]), the supervisors get their schedule ([`ticker`]), what goes out reaches the terminal
//! ([`alerts`]) and applications ([`reply_channels`]). The handlers are the ones that Lambda
//! runs. The other half are the commands ([`commands`]) for an API anywhere, this one or a deployed one. What must never be here: a decision about an order; that is made in `domain`. The engine is named in `main.rs`
//! alone; all else is generic over the ports.

pub mod alerts;
pub mod args;
mod channel_pause;
pub mod client;
pub mod commands;
pub mod demo;
mod ending;
mod error_line;
pub mod event_source;
pub mod exit;
pub mod http_server;
pub mod logs;
pub mod open_files;
pub mod outage;
mod paint;
pub mod remote;
pub mod reply_channels;
pub mod serve;
mod show;
pub mod signals;
pub mod standin;
pub mod stop;
pub mod ticker;
pub mod traces;
mod wire;

pub use ending::Ending;
pub use error_line::one_line;
pub use paint::Paint;
