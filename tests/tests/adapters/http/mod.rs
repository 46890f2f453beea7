//! The HTTP interface end to end: on a real socket, with the real handlers, the real engine and services that speak HTTP.

mod bad_input;
mod fallback;
mod mapped;
mod operator;
mod orders;
mod refused;
mod repairable;
mod under_way;
mod watching;
mod wire;
