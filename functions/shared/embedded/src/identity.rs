//! Whether the names in the data directory still are the files that SQLite has open.
//!
//! A file that is removed, moved or replaced goes on existing for the process that has it open. What is written to it
//! then is lost when the process ends.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::generation::log_of;

/// The database and its write-ahead log, each with its device and inode. SQLite has them open, so these numbers are not
/// used for other files.
#[derive(Debug)]
pub(crate) struct Identity(Vec<(PathBuf, (u64, u64))>);

/// A file is no longer at its name.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{} is not the file that this process has open: it was removed, moved or replaced. Stop this process only after you \
     have saved its open files, for example from /proc/{}/fd",
    .0.display(),
    std::process::id()
)]
pub(crate) struct Gone(PathBuf);

impl Identity {
    pub(crate) fn of(database: &Path) -> Self {
        let files = [database.to_owned(), log_of(database)].into_iter();
        Self(files.filter_map(|file| inode(&file).map(|inode| (file, inode))).collect())
    }

    /// # Errors
    /// [`Gone`] with the first file that is not the same.
    pub(crate) fn check(&self) -> Result<(), Gone> {
        match self.0.iter().find(|(file, opened)| inode(file) != Some(*opened)) {
            None => Ok(()),
            Some((file, _)) => Err(Gone(file.clone())),
        }
    }
}

/// The device and the inode of what is at this path.
pub(crate) fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
