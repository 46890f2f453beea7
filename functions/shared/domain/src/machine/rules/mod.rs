//! The rules of the protocol (design §4), each told as a test.

mod claim;
mod compensation;
mod operator;
mod reply;
mod supervision;
