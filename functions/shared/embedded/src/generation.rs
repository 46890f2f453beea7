//! The number of the last committed transaction. It is in the database, and in a file beside it.
//!
//! A write-ahead log that is lost or damaged is silently shorter: SQLite reads it up to the first frame that is wrong.
//! The database then ends at an earlier transaction than the file beside it says. The file is written after each commit
//! and before anybody learns of it, without a sync. So after a crash it says the same as the database or less, and a
//! difference the other way is always a loss. After a power failure it may say less, and then tells less.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use rusqlite::{Connection, OpenFlags};

use crate::options::NumberFile;

pub(crate) const FILE: &str = "stepwarden.transactions";
const FILE_BYTES_MAX: usize = 64;
/// Without `RETURNING`, which would fill a temporary table.
pub(crate) const UPDATE: &str = "UPDATE transactions SET number = number + 1";

/// Committed transactions that a database lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} committed transactions are missing: the database ends at transaction {count} of {number}, since it or its \
     write-ahead log was lost, damaged or replaced by an older copy",
    .number - .count
)]
pub struct Loss {
    /// The last transaction of the database.
    pub count: u64,
    /// The last transaction that was committed.
    pub number: u64,
}

/// The file beside the database, and the number of the last transaction.
pub(crate) struct Generation {
    files: Arc<dyn NumberFile>,
    number: u64,
    /// What the file says of the log.
    has_log: bool,
    is_failing: bool,
}

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Recorded {
    /// The last committed transaction.
    number: u64,
    /// Whether the write-ahead log may hold some of the transactions.
    has_log: bool,
}

/// What is on disk at a start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Found {
    /// `None`: there is no file beside the database, or it is not readable. Then nothing is known.
    recorded: Option<Recorded>,
    pub(crate) log_bytes: u64,
    /// The last transaction that the database has without its log. `None`: the file cannot be read alone.
    without_log: Option<u64>,
}

impl Generation {
    pub(crate) fn new(files: Arc<dyn NumberFile>) -> Self {
        Self { files, number: 0, has_log: true, is_failing: false }
    }

    /// Looks before SQLite opens the database. Changes nothing.
    pub(crate) fn look(&self, database: &Path) -> Found {
        Found::look(&*self.files, database)
    }

    /// Begins with the last transaction of the database. It and all before it are durable.
    pub(crate) fn begin(&mut self, number: u64) -> io::Result<()> {
        self.number = number;
        self.write(true)?;
        self.files.sync_number()
    }

    /// A transaction is durable in the log. A failed write makes the file say less, which is never a false alarm.
    pub(crate) fn committed(&mut self, number: u64) {
        (self.number, self.has_log) = (number, true);
        let written = self.write(true);
        if let (Err(error), false) = (&written, self.is_failing) {
            tracing::warn!("{FILE} cannot be written, so a loss of transactions could be overlooked: {error}");
        }
        self.is_failing = written.is_err();
    }

    /// The log is about to be emptied. After a power failure an empty log must not look like a lost one, hence the sync.
    pub(crate) fn without_log(&mut self) -> io::Result<()> {
        if self.has_log {
            self.write(false)?;
            self.files.sync_number()?;
            self.has_log = false;
        }
        Ok(())
    }

    /// The last transaction of a database that was put in place, and has no log.
    pub(crate) fn restored(&mut self, number: u64) -> io::Result<()> {
        self.number = number;
        self.without_log()
    }

    fn write(&self, has_log: bool) -> io::Result<()> {
        self.files.write_number(&Recorded { number: self.number, has_log }.text())
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generation").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Recorded {
    /// Always of the same length. The number is there twice, so that a torn write is not taken for a number.
    fn text(self) -> String {
        let Self { number, has_log } = self;
        format!("{number:020} {number:020} {}\n", if has_log { "log" } else { "all" })
    }

    fn read(files: &dyn NumberFile) -> Option<Self> {
        let text = files.number().ok().filter(|text| text.len() <= FILE_BYTES_MAX)?;
        let number = text.split(' ').next()?.parse().ok()?;
        let same = |has_log| Some(Self { number, has_log }).filter(|read| read.text() == text);
        same(true).or_else(|| same(false))
    }

    fn loss(self, count: u64) -> Option<Loss> {
        (count < self.number).then_some(Loss { count, number: self.number })
    }
}

impl Found {
    /// Looks before SQLite opens the database. Changes nothing.
    pub(crate) fn look(files: &dyn NumberFile, database: &Path) -> Self {
        let log_bytes = fs::metadata(log_of(database)).map_or(0, |log| log.len());
        let without_log = if log_bytes > 0 { count_alone(database).ok() } else { None };
        Self { recorded: Recorded::read(files), log_bytes, without_log }
    }

    /// The transactions that the database lacks.
    pub(crate) fn loss(&self, connection: &Connection) -> rusqlite::Result<Option<Loss>> {
        let Some(recorded) = self.recorded else { return Ok(None) };
        Ok(recorded.loss(count(connection)?))
    }

    /// Logs what the write-ahead log held.
    pub(crate) fn report(&self, count: u64) {
        let Self { recorded, log_bytes, without_log } = *self;
        if log_bytes > 0 {
            let transactions = without_log.map(|before| count.saturating_sub(before));
            tracing::info!(transactions, bytes = log_bytes, "read the write-ahead log");
        } else if recorded.is_some_and(|recorded| recorded.has_log && recorded.loss(count).is_none()) {
            tracing::warn!(
                "the last process was not stopped in order, and its write-ahead log is gone; as far as is known, no \
                 transaction is missing"
            );
        }
    }
}

/// The last transaction of the database.
pub(crate) fn count(connection: &Connection) -> rusqlite::Result<u64> {
    // A new file has no tables.
    const KNOWN: &str = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'transactions'";
    match connection.query_row(KNOWN, [], |row| row.get(0))? {
        0 => Ok(0),
        _ => number(connection),
    }
}

/// Counts the transaction, as a part of it.
pub(crate) fn next(transaction: &Connection) -> rusqlite::Result<u64> {
    transaction.prepare_cached(UPDATE)?.execute([])?;
    number(transaction)
}

/// The last transaction of a database that counts them.
pub(crate) fn number(connection: &Connection) -> rusqlite::Result<u64> {
    connection.prepare_cached("SELECT number FROM transactions")?.query_row([], |row| row.get(0))
}

/// The count in the database file, without its log.
fn count_alone(database: &Path) -> rusqlite::Result<u64> {
    count(&open_alone(database)?)
}

/// Opens a database without its log, to read it. No file is made beside it.
pub(crate) fn open_alone(database: &Path) -> rusqlite::Result<Connection> {
    let path: String = database.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(format!("file:{path}?immutable=1"), flags)
}

/// The write-ahead log of a database.
pub(crate) fn log_of(database: &Path) -> PathBuf {
    let mut name = OsString::from(database);
    name.push("-wal");
    name.into()
}
