//! Whether a database that no process uses is sound, and what is in it.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, ErrorCode};
use sha2::{Digest, Sha256};

use super::error::BackupError;
use super::work::{Progress, Stage, Work};
use crate::check::FAULTS_MAX;
use crate::generation::{count, open_alone};
use crate::recovery::under_way;

/// The bytes that are read at a time.
pub(super) const BLOCK_BYTES: usize = 1024 * 1024;
/// The steps of SQLite's check between two looks at the clock.
const STEPS: i32 = 2_000;

/// What is in a database.
pub(super) struct Inspected {
    pub(super) schema: i64,
    pub(super) transaction: u64,
    /// Orders that are accepted and do not rest.
    pub(super) under_way: u64,
}

/// Reads the whole database without its log, and changes nothing.
///
/// # Errors
/// [`BackupError::Damaged`] if it is not sound.
pub(super) fn inspect(file: &Path, mut work: Work<'_>) -> Result<Inspected, BackupError> {
    let failed = |source| BackupError::database(file, source);
    let all = fs::metadata(file).map_err(|error| BackupError::file(file, error))?.len();
    work.reached(Progress { stage: Stage::Check, done: 0, all })?;
    let mut connection = open_alone(file).map_err(failed)?;
    connection.progress_handler(STEPS, Some(work.into_handler())).map_err(failed)?;
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let faults = faults(&connection).map_err(failed)?;
    if !faults.is_empty() {
        return Err(BackupError::Damaged { file: file.to_owned(), faults: faults.join("; ") });
    }
    let counted = count(&connection).and_then(|transaction| Ok((transaction, under_way(&connection)?)));
    match counted {
        Ok((transaction, under_way)) => Ok(Inspected { schema, transaction, under_way }),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => {
            Err(BackupError::NoBackup { path: file.to_owned(), why: "has no orders of Stepwarden" })
        }
        Err(error) => Err(failed(error)),
    }
}

fn faults(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare(&format!("PRAGMA integrity_check({FAULTS_MAX})"))?;
    let lines = query.query_map([], |row| row.get::<_, String>(0))?;
    let lines = lines.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// The SHA-256 of a file, in hexadecimal.
pub(super) fn digest(file: &Path, all: u64, work: &mut Work<'_>) -> Result<String, BackupError> {
    let failed = |error| BackupError::file(file, error);
    let mut content = File::open(file).map_err(failed)?;
    let (mut sum, mut block, mut done) = (Sha256::new(), vec![0; BLOCK_BYTES], 0);
    loop {
        let read = content.read(&mut block).map_err(failed)?;
        if read == 0 {
            return Ok(hex::encode(sum.finalize()));
        }
        sum.update(&block[..read]);
        done += read as u64;
        work.rest();
        work.reached(Progress { stage: Stage::Checksum, done, all })?;
    }
}
