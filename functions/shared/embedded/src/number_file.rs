//! The file of a data directory that the engine uses without SQLite.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::generation::FILE;
use crate::lock::lock;
use crate::options::NumberFile;
use crate::own::own_file;

/// The file in a data directory.
pub(crate) struct Beside {
    directory: PathBuf,
    /// The number's file, since the first write.
    number: Mutex<Option<File>>,
}

impl Beside {
    pub(crate) fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), number: Mutex::default() }
    }

    /// Uses the file that has the name now: who removed or replaced it shall not make later numbers vanish.
    fn with_file(&self, used: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        let path = self.directory.join(FILE);
        let mut number = lock(&self.number);
        let open = number.take().filter(|file| is_at(file, &path));
        let file = match open {
            Some(file) => file,
            None => own_file().open(path)?,
        };
        let done = used(&file);
        *number = Some(file);
        done
    }
}

impl NumberFile for Beside {
    fn number(&self) -> io::Result<String> {
        fs::read_to_string(self.directory.join(FILE))
    }

    fn write_number(&self, text: &str) -> io::Result<()> {
        self.with_file(|file| file.write_all_at(text.as_bytes(), 0))
    }

    fn sync_number(&self) -> io::Result<()> {
        self.with_file(File::sync_data)
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let inode = |found: fs::Metadata| (found.dev(), found.ino());
    matches!((file.metadata().map(inode), fs::metadata(path).map(inode)), (Ok(open), Ok(named)) if open == named)
}
