//! Writes the tables of keys in the documents anew.

use std::fs;

use tests::documents::{root, text_of};
use tests::keys::{DOCUMENTS, with_tables};

fn main() -> std::io::Result<()> {
    DOCUMENTS.iter().try_for_each(|path| fs::write(root().join(path), with_tables(&text_of(path))))
}
