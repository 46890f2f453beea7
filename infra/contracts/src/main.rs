//! `cargo run -p contracts` writes the contracts anew.

#![allow(clippy::disallowed_methods, reason = "a tool of the repository reads and writes files")]

use std::{fs, io};

fn main() -> io::Result<()> {
    for (path, text) in contracts::documents()? {
        fs::write(contracts::folder().join(path), text)?;
    }
    Ok(())
}
