//! Folders of stores: copied, brought to the disk and read before anything is measured on them.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;

/// Copies a store that nobody has open.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Brings both stores into the same state: what was written is on the disk, what is in the files is in the page cache.
///
/// A store that was just filled or copied leaves gigabytes that the system still has to write: a sync of the measured
/// process would have to share the disk with them.
pub(crate) fn settle(data: &Path) -> io::Result<()> {
    let status = Command::new("sync").arg("--file-system").arg(data).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("sync of {} ended with {status}", data.display())));
    }
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if entry.metadata()?.is_file() {
            io::copy(&mut File::open(entry.path())?, &mut io::sink())?;
        }
    }
    Ok(())
}
