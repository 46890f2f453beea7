//! Why no backup was made, or none was restored.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::directory::OpenError;

/// No backup was made, or none was restored. Each error text is one line and names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The data directory has no database.
    #[error("{} has no data: give the directory of `stepwarden serve --data`", .0.display())]
    NoData(PathBuf),
    /// The destination is taken.
    #[error("{} exists: give another name", .0.display())]
    Exists(PathBuf),
    /// The destination's folder is missing, or the destination has no name.
    #[error("a backup is a new folder in one that is there, and {} cannot be one", .0.display())]
    NoPlace(PathBuf),
    /// Another backup is under way.
    #[error("another backup is being written to {}: wait until it is done", .0.display())]
    UnderWay(PathBuf),
    /// The directory of a restore has data.
    #[error(
        "{} is there already: rename the directory, and keep it, since its files belong together; then restore into a \
         new one", .0.display()
    )]
    HasData(PathBuf),
    /// The source of a restore is no backup.
    #[error("{} is no backup: it {why}", path.display())]
    NoBackup {
        /// The source.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// A disk has no room.
    #[error("there is no room in {}: make room, or use another disk", .0.display())]
    NoRoom(PathBuf),
    /// The log could not be emptied for too long.
    #[error(
        "given up, since the write-ahead log grew to {} MB meanwhile: copy to a faster disk, or when less is written",
        .0 / (1024 * 1024)
    )]
    LogGrew(u64),
    /// A server started, and waits for the log.
    #[error("given up, since a server was started on the data: start the backup again")]
    ServerStarted,
    /// Whoever watches it said so.
    #[error("stopped; nothing is left of it")]
    Stopped,
    /// The copy is not sound.
    #[error("{} is damaged: {faults}", file.display())]
    Damaged {
        /// The database.
        file: PathBuf,
        /// What is wrong.
        faults: String,
    },
    /// A database or a directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl BackupError {
    /// The error of a file at this path.
    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let is_full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if is_full { Self::NoRoom(path) } else { Self::File { path, source } }
    }

    /// The error about the file that the checked one is a copy of.
    pub(super) fn about(mut self, of: &Path) -> Self {
        if let Self::Damaged { file, .. } | Self::NoBackup { path: file, .. } = &mut self {
            of.clone_into(file);
        }
        self
    }

    /// SQLite's error about this database.
    pub(super) fn database(file: &Path, source: rusqlite::Error) -> Self {
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::NoRoom(file.to_owned()),
            Some(ErrorCode::OperationInterrupted) => Self::Stopped,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { file: file.to_owned(), faults: source.to_string() }
            }
            _ => Self::Open(OpenError::Database { file: file.to_owned(), source }),
        }
    }
}
