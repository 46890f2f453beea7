//! The data directory. The engine creates it if it is missing. One process owns it at a time.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::clock::system_time;
use crate::generation::{Generation, Loss};
use crate::number_file::Beside;
use crate::options::{NumberFile, Simulated};
use crate::own::{OWN_DIRECTORY, own_file};

/// The database's name.
pub const DATABASE: &str = "stepwarden.db";
const LOCK: &str = "stepwarden.lock";
/// The name of a database that a restore has not completed.
pub(crate) const PART: &str = "stepwarden.part";

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
    /// A restore into it was cut off.
    #[error(
        "{} has a part of a backup and no database: restore the backup again, or delete that part",
        part.display()
    )]
    HalfRestored {
        /// The file that is not complete.
        part: PathBuf,
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
    /// Committed transactions are missing.
    #[error("{}: {loss}. Restore a backup, or go on without them: `stepwarden serve --accept-loss`", file.display())]
    Lost {
        /// The database file.
        file: PathBuf,
        /// How many.
        loss: Loss,
    },
    /// The system provides no thread or no random bits.
    #[error("cannot start: {0}")]
    System(#[source] io::Error),
}

/// The free bytes of the disk of a folder. `None` if the system does not tell.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Has new files of a directory written in place where the file system copies on write (btrfs). On a full disk, a copied
/// page of the mapped `-shm` would end the process by a signal. Other file systems refuse the attribute.
fn write_in_place(directory: &File) {
    #[cfg(target_os = "linux")]
    if let Ok(flags) = rustix::fs::ioctl_getflags(directory) {
        let _ = rustix::fs::ioctl_setflags(directory, flags | rustix::fs::IFlags::NOCOW);
    }
}

/// When a process last took this directory.
pub(crate) fn taken_at(directory: &Path) -> Option<SystemTime> {
    fs::metadata(directory.join(LOCK)).and_then(|lock| lock.modified()).ok()
}

/// A data directory that this process owns.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    /// The database in the directory.
    pub(crate) database: PathBuf,
    /// The number of the last transaction, and its file.
    pub(crate) generation: Generation,
    /// The locks on a file and on the directory itself: the file may be removed. The system releases them when the
    /// process ends, even after a crash. The database is not locked in this way: a process that closes a file loses
    /// all of SQLite's locks on it.
    _locks: Vec<File>,
}

impl Directory {
    /// On a simulated machine, where nobody else is.
    pub(crate) fn simulated(directory: &Path, machine: &Simulated) -> Self {
        Self::new(directory, machine.number.clone(), Vec::new())
    }

    fn new(directory: &Path, files: Arc<dyn NumberFile>, locks: Vec<File>) -> Self {
        let database = directory.join(DATABASE);
        Self { path: directory.to_owned(), database, generation: Generation::new(files), _locks: locks }
    }

    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        let not_writable = |source| OpenError::NotWritable { directory: directory.to_owned(), source };
        DirBuilder::new().recursive(true).mode(OWN_DIRECTORY).create(directory).map_err(not_writable)?;
        let lock = own_file().open(directory.join(LOCK)).map_err(not_writable)?;
        let locks = vec![lock, File::open(directory).map_err(not_writable)?];
        for lock in &locks {
            lock.try_lock().map_err(|refused| match refused {
                TryLockError::WouldBlock => OpenError::Locked { directory: directory.to_owned() },
                TryLockError::Error(source) => not_writable(source),
            })?;
        }
        write_in_place(&locks[1]);
        // A backup under way gives up then, since a start needs the log. A system that refuses it only makes both wait.
        let now = Duration::from_millis(u64::try_from(system_time().epoch_ms()).unwrap_or(0));
        let _ = locks[0].set_modified(SystemTime::UNIX_EPOCH + now);
        Ok(Self::new(directory, Arc::new(Beside::of(directory)), locks))
    }

    /// A database of its name is complete. An empty one must not take the place of one that was being restored.
    pub(crate) fn whole(self) -> Result<Self, OpenError> {
        let part = self.path.join(PART);
        if part.exists() && !self.database.exists() { Err(OpenError::HalfRestored { part }) } else { Ok(self) }
    }

    /// Begins to count after this transaction, the last of the database.
    pub(crate) fn count_after(&mut self, number: u64) -> Result<(), OpenError> {
        let not_writable = |source| OpenError::NotWritable { directory: self.path.clone(), source };
        self.generation.begin(number).map_err(not_writable)
    }
}
