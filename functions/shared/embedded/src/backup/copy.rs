//! The data that is copied: the state of one transaction, while others write.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::error::BackupError;
use super::place::Place;
use super::work::{Progress, Stage, Work};
use crate::directory::{DATABASE, OpenError, free_bytes, taken_at};
use crate::generation::{self, Found, log_of};
use crate::number_file::Beside;
use crate::schema::VERSION;

/// The pages of a step: 2 MiB.
const STEP_PAGES: i32 = 512;
/// The bytes of a page.
const PAGE_BYTES: u64 = 4_096;
/// The room that a backup and a restore leave on each disk.
const ROOM_BYTES: u64 = 64 * 1024 * 1024;
/// How long to wait for a writer.
const BUSY: Duration = Duration::from_secs(5);

/// A database in a read transaction.
pub(super) struct Source {
    directory: PathBuf,
    file: PathBuf,
    connection: Connection,
    /// The last transaction.
    transaction: u64,
    bytes: u64,
    /// The size above which the log ends the copying.
    log_bytes_max: u64,
    /// When a process last took the directory.
    taken_at: Option<SystemTime>,
}

/// What was copied.
pub(super) struct Copied {
    /// The database that it is a copy of.
    pub(super) file: PathBuf,
    pub(super) transaction: u64,
    pub(super) bytes: u64,
}

impl Source {
    /// Fixes the state that is copied.
    pub(super) fn open(directory: &Path, log_bytes: u64) -> Result<Self, BackupError> {
        let file = directory.join(DATABASE);
        if !file.is_file() {
            return Err(BackupError::NoData(directory.to_owned()));
        }
        let taken_at = taken_at(directory);
        // A running process counts on: first what it recorded, then what it has.
        let found = Found::look(&Beside::of(directory), &file);
        let failed = |source| BackupError::database(&file, source);
        let connection = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        connection.execute_batch("BEGIN").map_err(failed)?;
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(failed);
        let schema = number("PRAGMA user_version")?;
        if schema > VERSION {
            return Err(OpenError::Newer { file, found: schema, known: VERSION }.into());
        }
        if let Some(loss) = found.loss(&connection).map_err(failed)? {
            return Err(OpenError::Lost { file, loss }.into());
        }
        let transaction = generation::count(&connection).map_err(failed)?;
        let bytes = number("PRAGMA page_count")?.saturating_mul(number("PRAGMA page_size")?);
        let bytes = u64::try_from(bytes).unwrap_or(0);
        let directory = directory.to_owned();
        Ok(Self { directory, file, connection, transaction, bytes, log_bytes_max: log_bytes.max(bytes), taken_at })
    }

    /// Copies it, and releases the transaction. The copy is on disk then.
    pub(super) fn copy(self, place: &Place, work: &mut Work<'_>) -> Result<Copied, BackupError> {
        has_room(place.folder(), self.bytes)?;
        let copy = place.make_database()?;
        let failed = |source| BackupError::database(&place.database(), source);
        let mut to = Connection::open(place.database()).map_err(failed)?;
        // A copy that is not finished is of no use, and a finished one is synced.
        to.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").map_err(failed)?;
        let backup = Backup::new(&self.connection, &mut to).map_err(failed)?;
        let (mut done, all) = (0, self.bytes);
        loop {
            work.reached(Progress { stage: Stage::Copy, done, all })?;
            let log_bytes = self.may_go_on(place)?;
            if log_bytes <= self.log_bytes_max / 2 {
                work.rest();
            } else {
                work.skip_rest();
            }
            if backup.step(STEP_PAGES).map_err(failed)? == StepResult::Done {
                break;
            }
            let left = u64::try_from(backup.progress().remaining).unwrap_or(0);
            done = all.saturating_sub(left.saturating_mul(PAGE_BYTES));
        }
        drop(backup);
        drop(to);
        let Self { file, connection, transaction, .. } = self;
        drop(connection);
        let synced = copy.sync_all().and_then(|()| copy.metadata());
        let bytes = synced.map_err(|error| BackupError::file(&place.database(), error))?.len();
        Ok(Copied { file, transaction, bytes })
    }

    /// Whether the process that uses the data does well. Gives the size of its log.
    fn may_go_on(&self, place: &Place) -> Result<u64, BackupError> {
        if taken_at(&self.directory) != self.taken_at {
            return Err(BackupError::ServerStarted);
        }
        let log_bytes = fs::metadata(log_of(&self.file)).map_or(0, |log| log.len());
        if log_bytes > self.log_bytes_max {
            return Err(BackupError::LogGrew(log_bytes));
        }
        has_room(&self.directory, 0)?;
        has_room(place.folder(), 0)?;
        Ok(log_bytes)
    }
}

/// Whether this much can be written here, and some room be left.
pub(crate) fn has_room(folder: &Path, bytes: u64) -> Result<(), BackupError> {
    // Where the system does not tell, the write does.
    let has_room = free_bytes(folder).is_none_or(|free| free >= bytes.saturating_add(ROOM_BYTES));
    if has_room { Ok(()) } else { Err(BackupError::NoRoom(folder.to_owned())) }
}
