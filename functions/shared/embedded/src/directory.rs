//! The data directory. The engine creates it if it is missing. One process owns it at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The engine could not open its data directory. Each error text is one line and names the cause.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process owns it.
    #[error("the data directory {} is in use by another process", directory.display())]
    Locked {
        /// The data directory.
        directory: PathBuf,
    },
    /// It cannot be created or written.
    #[error("the data directory {} cannot be written: {source}", directory.display())]
    NotWritable {
        /// The data directory.
        directory: PathBuf,
        /// The system's error.
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
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The system provides no thread or no random bits.
    #[error("cannot start: {0}")]
    System(#[source] io::Error),
}

/// A data directory that this process owns.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The database in the directory.
    pub(crate) database: PathBuf,
    /// The lock on the directory. The system releases it when the process ends, even after a crash.
    _lock: Option<File>,
}

impl Directory {
    /// On a simulated machine, where nobody else is.
    pub(crate) fn simulated(directory: &Path) -> Self {
        Self { database: directory.join("stepwarden.db"), _lock: None }
    }

    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let not_writable = |source| OpenError::NotWritable { directory: directory.to_owned(), source };
        fs::create_dir_all(directory).map_err(not_writable)?;
        let file = directory.join("stepwarden.lock");
        let lock = File::options().create(true).truncate(false).write(true).open(file).map_err(not_writable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { database: directory.join("stepwarden.db"), _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked { directory: directory.to_owned() }),
            Err(TryLockError::Error(source)) => Err(not_writable(source)),
        }
    }
}
