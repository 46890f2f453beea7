//! Backups of a data directory, also while a process uses it; and the way back.
//!
//! A backup is a folder with the database as of one transaction and a manifest. It needs no other file.
//!
//! # By pages, within one read transaction
//!
//! SQLite's backup starts afresh if another process writes between two of its steps, so under load it would never end.
//! One read transaction around all steps fixes the state. Until it ends the write-ahead log cannot be emptied, and grows by
//! what is written meanwhile. So nothing but the copying is done in this transaction: the check and the checksum come
//! after it. All of it rests while orders are carried (`work.rs`), the copying only as long as the log is small. The copy is
//! given up before the log or the copy fills a disk, and if a server starts, which needs the log for itself. `VACUUM INTO`
//! takes as long, and can neither rest nor be given up.

mod copy;
mod inspect;
mod place;
mod restore;
mod work;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use domain::time::Timestamp;
use rusqlite::ErrorCode;
use serde::{Deserialize, Serialize};

use crate::directory::OpenError;
use copy::Source;
#[cfg(test)]
pub(crate) use copy::has_room;
use inspect::{Inspected, digest, inspect};
use place::Place;
use work::Work;

pub use restore::{Restored, restore};

/// The manifest's name in a backup.
const MANIFEST: &str = "backup.json";
/// The size above which the write-ahead log ends a backup, unless the database is larger.
const LOG_BYTES: u64 = 1024 * 1024 * 1024;
/// The room that a backup and a restore leave on each disk.
const ROOM_BYTES: u64 = 64 * 1024 * 1024;

/// What a backup is a copy of, and how to tell that it is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Manifest {
    /// When it was begun.
    pub taken_at: Timestamp,
    /// The version of the program that made it.
    pub program: String,
    /// The schema version of its database.
    pub schema: i64,
    /// The last transaction in it.
    pub transaction: u64,
    /// The size of its database.
    pub bytes: u64,
    /// The SHA-256 of its database, in hexadecimal.
    pub sha256: String,
}

/// How far a backup or a restore is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is done at present.
    pub stage: Stage,
    /// The bytes that are done.
    pub done: u64,
    /// All bytes.
    pub all: u64,
}

/// The stages of a backup and of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The database is copied.
    Copy,
    /// The copy is checked.
    Check,
    /// The checksum of the copy is computed.
    Checksum,
}

/// Who watches a backup or a restore.
pub struct Watch<'a> {
    /// Is told of the progress.
    pub show: &'a mut dyn FnMut(Progress),
    /// Once it is set, the work ends, and nothing is left of it.
    pub stop: &'a Arc<AtomicBool>,
}

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
    fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        let is_full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if is_full { Self::NoRoom(path) } else { Self::File { path, source } }
    }

    /// The error about the file that the checked one is a copy of.
    fn about(mut self, of: &Path) -> Self {
        if let Self::Damaged { file, .. } | Self::NoBackup { path: file, .. } = &mut self {
            of.clone_into(file);
        }
        self
    }

    /// SQLite's error about this database.
    fn database(file: &Path, source: rusqlite::Error) -> Self {
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

/// Copies the data of `directory` into the new folder `destination`, checks the copy, and gives it its name only then.
/// Another process may use the data meanwhile. `now` is for the manifest.
///
/// # Errors
/// [`BackupError`]. The destination is then not there.
pub fn back_up(
    directory: &Path,
    destination: &Path,
    now: Timestamp,
    watch: Watch<'_>,
) -> Result<Manifest, BackupError> {
    with_limit(directory, destination, now, LOG_BYTES, watch)
}

pub(crate) fn with_limit(
    directory: &Path,
    destination: &Path,
    now: Timestamp,
    log_bytes: u64,
    watch: Watch<'_>,
) -> Result<Manifest, BackupError> {
    let place = Place::take(destination)?;
    let mut work = Work::beside(directory, watch);
    let copied = Source::open(directory, log_bytes)?.copy(&place, &mut work)?;
    work.take_time();
    let file = place.database();
    let sha256 = digest(&file, copied.bytes, &mut work)?;
    // The copy goes, and the data has the same faults.
    let Inspected { schema, transaction, .. } = inspect(&file, work).map_err(|error| error.about(&copied.file))?;
    if transaction != copied.transaction {
        let faults = format!("its copy ends at transaction {transaction} in place of {}", copied.transaction);
        return Err(BackupError::Damaged { file: copied.file, faults });
    }
    let program = env!("CARGO_PKG_VERSION").to_owned();
    let manifest = Manifest { taken_at: now, program, schema, transaction, bytes: copied.bytes, sha256 };
    place.finish(&manifest)?;
    Ok(manifest)
}
