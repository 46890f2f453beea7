//! What `dynoxide-rs` gets for the rusqlite that it asks for.

pub use current::*;
