//! Stepwarden on one machine: all functions in one process on one file.
//!
//! This crate replaces AWS around the functions. The API listens on a socket ([`serve`]), queues feed handlers
//! ([`event_source`]), and supervisors run on a schedule ([`ticker`]). Alerts reach the terminal ([`alerts`]), and status
//! messages reach applications ([`reply_channels`]). The handlers are those of Lambda, compiled for the embedded engine.
//!
//! Never here: a decision about an order, which belongs to `domain`, or a command for an API, which belongs to `infra/cli`.

pub mod alerts;
pub mod backup;
mod bad_setting;
mod channel_pause;
pub mod client;
pub mod direct;
pub mod event_source;
pub mod folder;
mod host_time;
pub mod hosts;
pub mod http_server;
pub mod open_files;
pub mod problem;
pub mod reply_channels;
mod reread;
pub mod run;
pub mod serve;
pub mod signals;
pub mod sinks;
pub mod stand_ins;
pub mod stop;
pub mod terminal;
pub mod ticker;
pub mod tokens;
pub mod traces;
mod webhook;

pub use bad_setting::BadSetting;
