//! The rules of the protocol, each as tests.

mod claim;
mod compensation;
mod operator;
mod reply;
mod supervision;
