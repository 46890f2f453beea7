//! Stepwarden on one machine: all functions in one process on one file.
//!
//! Everything that AWS does around the functions is done here: the API listens on a socket ([`serve`]), queues feed
//! handlers ([`event_source`]), supervisors run on a schedule ([`ticker`]), alerts reach the terminal ([`alerts`]) and
//! status messages reach applications ([`reply_channels`]). The handlers are the ones that Lambda runs. They are compiled
//! for the embedded engine in this crate, once.
//!
//! What must never be here: a decision about an order; that is made in `domain`. Nor a command for an API: those are in
//! `infra/cli`.

pub mod alerts;
mod channel_pause;
pub mod client;
pub mod demo;
mod ending;
pub mod event_source;
pub mod http_server;
pub mod open_files;
pub mod outage;
pub mod paint;
pub mod reply_channels;
pub mod run;
pub mod serve;
pub mod signals;
pub mod standin;
pub mod step;
pub mod stop;
pub mod ticker;
pub mod traces;

pub use ending::Ending;
pub use paint::Paint;
