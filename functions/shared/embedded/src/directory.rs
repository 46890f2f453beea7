//! The data directory: made where it is missing, and owned by one process at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The engine could not take its data directory. Each message is one line that names what to look at.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the data directory {} is in use by another process", directory.display())]
    Locked {
        /// The data directory.
        directory: PathBuf,
    },
    /// It cannot be made or written.
    #[error("the data directory {} cannot be written: {source}", directory.display())]
    NotWritable {
        /// The data directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A later version of the program wrote it.
    #[error("{} is of schema version {found}, this program knows versions up to {known}", file.display())]
    Newer {
        /// The database file.
        file: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The database file cannot be used.
    #[error("{} cannot be opened: {source}", file.display())]
    Database {
        /// The database file.
        file: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The system gives no thread or no random bits.
    #[error("cannot start: {0}")]
    System(#[source] io::Error),
}

/// A data directory that this process owns.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The database in it.
    pub(crate) database: PathBuf,
    /// Held as long as the directory is owned; the system lets go of it when the process dies, however it dies.
    _lock: File,
}

impl Directory {
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let not_writable = |source| OpenError::NotWritable { directory: directory.to_owned(), source };
        fs::create_dir_all(directory).map_err(not_writable)?;
        let file = directory.join("stepwarden.lock");
        let lock = File::options().create(true).truncate(false).write(true).open(file).map_err(not_writable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { database: directory.join("stepwarden.db"), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { directory: directory.to_owned() }),
            Err(TryLockError::Error(source)) => Err(not_writable(source)),
        }
    }
}
