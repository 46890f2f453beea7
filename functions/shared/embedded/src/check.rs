//! A look into a database file beside whoever has it, for people who wonder whether it is sound.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::directory::OpenError;
use crate::schema::VERSION;

/// Faults that are told of one file.
const FAULTS_MAX: u32 = 10;
/// How long a writer may keep the look waiting.
const BUSY: Duration = Duration::from_secs(5);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The database file.
    pub file: PathBuf,
    /// Its version of the schema. 0 for one that was never used.
    pub schema: i64,
    /// Whether this program would bring it up to a newer version at its next start.
    pub is_older: bool,
    /// What SQLite finds wrong with it; nothing where it is sound.
    pub faults: Vec<String>,
}

/// Looks into the database of a data directory, and changes nothing. Reads the whole file once, which takes about a
/// second for each gigabyte.
///
/// # Errors
/// [`OpenError::Database`] where it cannot be opened or read, [`OpenError::Newer`] where a later version of the program
/// wrote it.
pub fn check(directory: &Path) -> Result<Checked, OpenError> {
    let file = directory.join("stepwarden.db");
    let (schema, faults) = look(&file).map_err(|source| OpenError::Database { file: file.clone(), source })?;
    if schema > VERSION {
        return Err(OpenError::Newer { file, found: schema, known: VERSION });
    }
    Ok(Checked { file, schema, is_older: schema < VERSION, faults })
}

fn look(file: &Path) -> rusqlite::Result<(i64, Vec<String>)> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let mut query = connection.prepare(&format!("PRAGMA quick_check({FAULTS_MAX})"))?;
    let lines = query.query_map([], |row| row.get::<_, String>(0))?;
    let lines = lines.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok((schema, lines.into_iter().filter(|line| line != "ok").collect()))
}
