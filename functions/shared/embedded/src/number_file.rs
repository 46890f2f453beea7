//! The file of a data directory that the engine uses without SQLite.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::generation::FILE;
use crate::options::NumberFile;

/// The file in a data directory.
pub(crate) struct Beside {
    directory: PathBuf,
    /// The number's file, since the first write.
    number: OnceLock<File>,
}

impl Beside {
    pub(crate) fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), number: OnceLock::new() }
    }

    fn open(&self) -> io::Result<&File> {
        if self.number.get().is_none() {
            let path = self.directory.join(FILE);
            let _ = self.number.set(File::options().create(true).truncate(false).write(true).open(path)?);
        }
        self.number.get().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl NumberFile for Beside {
    fn number(&self) -> io::Result<String> {
        fs::read_to_string(self.directory.join(FILE))
    }

    fn write_number(&self, text: &str) -> io::Result<()> {
        self.open()?.write_all_at(text.as_bytes(), 0)
    }

    fn sync_number(&self) -> io::Result<()> {
        self.open()?.sync_data()
    }
}
