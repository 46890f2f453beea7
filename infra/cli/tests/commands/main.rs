//! The commands as processes, against a served instance or a server that plays one: what they print and with which status
//! they end.

#![allow(clippy::disallowed_methods, reason = "a test")]

mod audit;
mod backup;
mod bulk;
mod console;
mod contexts;
mod data;
mod doctor;
mod folder;
mod hosts;
mod ids;
mod lines;
mod listening;
mod lost;
mod operator;
mod orders;
mod rehearse;
mod run;
mod signed;
mod stub;
mod tokens;
mod workflows;
mod wrong;
