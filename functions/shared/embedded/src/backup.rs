//! Backups of a data directory, also while a process uses it; and the way back.
//!
//! A backup is a folder with the database as of one transaction and a manifest. It needs no other file.
//!
//! # A draft, and what differs from it
//!
//! While a read transaction is open, the write-ahead log cannot be emptied: it grows by what is written, and each
//! transaction costs more. So the file is first copied without one, while it is written. That draft is no database: it has
//! pages of many moments. Then one read transaction fixes the state. SQLite gives each of its pages, and the pages that
//! are other ones in the draft are written again. Comparing is many times faster than copying, as long as the system has
//! both files in memory. Nothing rests on the draft: without it, all pages would be written in the transaction.
//!
//! The check and the checksum come after the transaction. All but what is done in the transaction rests while orders are
//! carried (`work.rs`). The copy is given up before the log or the copy fills a disk, and if a server starts, which needs
//! the log for itself. `VACUUM INTO` holds a transaction as long as it writes. SQLite's own backup without a transaction
//! starts afresh if another process writes between two of its steps, so under load it would never end.

mod copy;
mod error;
mod inspect;
mod manifest;
mod place;
mod restore;
mod work;

use std::path::Path;

use domain::time::Timestamp;

use copy::Source;
#[cfg(test)]
pub(crate) use copy::has_room;
use inspect::{Inspected, digest, inspect};
use place::Place;
use work::Work;

pub use error::BackupError;
pub use manifest::Manifest;
pub use restore::{Restored, restore};
pub use work::{Progress, Stage, Watch};

/// The size above which the write-ahead log ends a backup, unless the database is larger.
const LOG_BYTES: u64 = 1024 * 1024 * 1024;

/// Copies the data of `directory` into the new folder `destination`, checks the copy, and gives it its name only then.
/// Another process may use the data meanwhile, but not this one. `now` is for the manifest.
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
