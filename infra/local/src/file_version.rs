//! By what a changed file is recognised.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// One content of a file, as far as its metadata tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    modified: Option<SystemTime>,
    bytes: u64,
    /// A file that was replaced is another one; one with another owner or mode was changed then.
    inode: u64,
    changed: (i64, i64),
}

impl FileVersion {
    /// `None` while there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        Some(Self {
            modified: about.modified().ok(),
            bytes: about.len(),
            inode: about.ino(),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }
}
