//! Checks whether a database file is sound. Another process may use the file meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::directory::{DATABASE, OpenError};
use crate::generation::{Found, Loss};
use crate::number_file::Beside;
use crate::schema::VERSION;

/// The maximum number of faults that are reported for one file.
pub(crate) const FAULTS_MAX: u32 = 10;
/// How long the check waits for a writer.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The database file.
    pub file: PathBuf,
    /// Its schema version. 0 if the file was never used.
    pub schema: i64,
    /// Whether this program migrates it to a newer version at its next start.
    pub is_older: bool,
    /// The size of its write-ahead log. Above [`LOG_BYTES_MAX`](crate::LOG_BYTES_MAX) a reader prevents its end.
    pub log_bytes: u64,
    /// Committed transactions that are missing.
    pub loss: Option<Loss>,
    /// The faults that SQLite reports. Empty if the file is sound.
    pub faults: Vec<String>,
}

/// Checks the database of a data directory, and changes nothing. The check reads the whole file, which takes about one
/// second for each gigabyte.
///
/// # Errors
/// [`OpenError::Database`] if the file cannot be opened or read. [`OpenError::Newer`] if a later version of the program
/// wrote it.
pub fn check(directory: &Path) -> Result<Checked, OpenError> {
    let file = directory.join(DATABASE);
    // A running process counts on: first what it recorded, then what it has.
    let found = Found::look(&Beside::of(directory), &file);
    let looked = look(&file, &found).map_err(|source| OpenError::Database { file: file.clone(), source });
    let (schema, loss, faults) = looked?;
    if schema > VERSION {
        return Err(OpenError::Newer { file, found: schema, known: VERSION });
    }
    let log_bytes = found.log_bytes;
    Ok(Checked { file, schema, is_older: schema < VERSION, log_bytes, loss, faults })
}

fn look(file: &Path, found: &Found) -> rusqlite::Result<(i64, Option<Loss>, Vec<String>)> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let loss = found.loss(&connection)?;
    let mut query = connection.prepare(&format!("PRAGMA quick_check({FAULTS_MAX})"))?;
    let lines = query.query_map([], |row| row.get::<_, String>(0))?;
    let lines = lines.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok((schema, loss, lines.into_iter().filter(|line| line != "ok").collect()))
}
