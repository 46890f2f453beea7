//! The rules of an agent and the faults that it withstands, each under its name.

mod crowds;
mod memos;
mod outages;
mod parks;
mod release;
mod requests;
