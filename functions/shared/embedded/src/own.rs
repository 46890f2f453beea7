//! New files and directories, which only their owner reads.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

/// The mode of a new directory: only its owner may read orders.
pub(crate) const OWN_DIRECTORY: u32 = 0o700;
/// The mode of a new file.
const OWN_FILE: u32 = 0o600;

/// Opens a file for writing, and creates one that only the owner reads. One that is there keeps its mode.
pub(crate) fn own_file() -> OpenOptions {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(OWN_FILE);
    options
}
