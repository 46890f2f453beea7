//! The rules of an agent, and the faults that it withstands.

mod brake;
mod callbacks;
mod fallback;
mod looks;
mod memos;
mod outages;
mod over;
mod pace;
mod parks;
mod queued;
mod release;
mod requests;
mod retry_after;
mod share;
mod under_way;
mod whose;
