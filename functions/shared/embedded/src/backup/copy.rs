//! The data that is copied: the state of one transaction, while others write.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OpenFlags};

use super::error::BackupError;
use super::place::Place;
use super::work::{Progress, Stage, Work};
use crate::directory::{DATABASE, OpenError, free_bytes, taken_at};
use crate::generation::{self, Found, log_of};
use crate::number_file::Beside;
use crate::own::own_file;
use crate::schema::VERSION;

const STEP_BYTES: u64 = 8 * 1024 * 1024;
/// The head of a log says which of its frames count.
const LOG_HEAD_BYTES: usize = 32;
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
        let database = File::open(&self.file).map_err(|error| BackupError::file(&self.file, error))?;
        self.copy_database(&database, &copy, place, work)?;
        self.copy_log(place)?;
        self.may_go_on(place)?;
        let Self { file, connection, transaction: at_least, .. } = self;
        drop(connection);
        // Whoever closes a file loses the locks of its process on it. SQLite needs none any more.
        drop(database);
        let failed = |source| BackupError::database(&place.database(), source);
        let transaction = fold(&place.database()).map_err(failed)?;
        if transaction < at_least {
            let faults = format!("its copy ends at transaction {transaction} in place of {at_least}");
            return Err(BackupError::Damaged { file, faults });
        }
        let synced = copy.sync_all().and_then(|()| copy.metadata());
        let bytes = synced.map_err(|error| BackupError::file(&place.database(), error))?.len();
        Ok(Copied { file, transaction, bytes })
    }

    /// The pages. A checkpoint may write some meanwhile; all of these are in the log as well.
    fn copy_database(&self, from: &File, to: &File, place: &Place, work: &mut Work<'_>) -> Result<(), BackupError> {
        let mut done = 0;
        loop {
            work.reached(Progress { stage: Stage::Copy, done: done.min(self.bytes), all: self.bytes })?;
            if self.may_go_on(place)? <= self.log_bytes_max / 2 {
                work.rest();
            } else {
                work.skip_rest();
            }
            // The system copies, without a buffer of this process.
            let copied = io::copy(&mut from.take(STEP_BYTES), &mut { to });
            match copied.map_err(|error| BackupError::file(&place.database(), error))? {
                0 => return Ok(()),
                bytes => done += bytes,
            }
        }
    }

    /// The log, which is only appended to as long as this transaction reads from it. If it does not need the log, the pages
    /// are all of it and do not change; the log may then begin anew, and what was read of it is nothing.
    fn copy_log(&self, place: &Place) -> Result<(), BackupError> {
        let (from, to) = (log_of(&self.file), log_of(&place.database()));
        let failed = |error| BackupError::file(&to, error);
        let log = match File::open(&from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(failed)?,
        };
        let head = || {
            let mut head = [0; LOG_HEAD_BYTES];
            log.read_exact_at(&mut head, 0).map(|()| head).ok()
        };
        let before = head();
        let copy = own_file().open(&to).map_err(failed)?;
        io::copy(&mut &log, &mut { &copy }).map_err(failed)?;
        if before.is_none() || head() != before {
            copy.set_len(0).map_err(failed)?;
        }
        Ok(())
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

/// Puts the log of a copy into its pages. Gives the last transaction.
fn fold(copy: &Path) -> rusqlite::Result<u64> {
    let connection = Connection::open(copy)?;
    // A copy that is not finished is of no use, and a finished one is synced.
    connection.execute_batch("PRAGMA synchronous = OFF")?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    generation::count(&connection)
}

/// Whether this much can be written here, and some room be left.
pub(crate) fn has_room(folder: &Path, bytes: u64) -> Result<(), BackupError> {
    // Where the system does not tell, the write does.
    let has_room = free_bytes(folder).is_none_or(|free| free >= bytes.saturating_add(ROOM_BYTES));
    if has_room { Ok(()) } else { Err(BackupError::NoRoom(folder.to_owned())) }
}
