//! The rules of the protocol, each as tests.

mod claim;
mod close;
mod compensation;
mod fallback;
mod mapping;
mod note;
mod operator;
mod reply;
mod settle;
mod supervision;
mod trouble;
mod wait;
