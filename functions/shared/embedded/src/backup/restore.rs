//! From a backup to a data directory.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::copy::has_room;
use super::error::BackupError;
use super::inspect::{BLOCK_BYTES, Inspected, inspect};
use super::manifest::{MANIFEST, Manifest};
use super::place::sync_folder;
use super::work::{Progress, Stage, Watch, Work};
use crate::directory::{DATABASE, Directory, OpenError, PART};
use crate::generation::{self, log_of};
use crate::own::own_file;
use crate::schema::VERSION;

/// The longest manifest, in bytes.
const MANIFEST_BYTES_MAX: u64 = 64 * 1024;

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The manifest. `None` for a database that another program copied.
    pub manifest: Option<Manifest>,
    /// The schema version.
    pub schema: i64,
    /// The last transaction.
    pub transaction: u64,
    /// Orders that were under way.
    pub under_way: u64,
}

/// A database to restore.
struct Backup {
    file: PathBuf,
    manifest: Option<Manifest>,
}

/// Puts a backup into a directory without data, which is made if it is missing. `source` is a backup, or a database file
/// that another program copied. The database gets its name only once it is checked.
///
/// # Errors
/// [`BackupError`]. The directory then has no data.
pub fn restore(source: &Path, directory: &Path, watch: Watch<'_>) -> Result<Restored, BackupError> {
    let backup = Backup::find(source)?;
    has_no_data(directory)?;
    let mut owned = Directory::take(directory)?;
    has_no_data(directory)?;
    let part = directory.join(PART);
    let mut work = Work::alone(watch);
    let placed = backup.copy(&part, &mut work).and_then(|()| backup.check(&part, work)).and_then(|restored| {
        fs::rename(&part, &owned.database).map_err(|error| BackupError::file(&owned.database, error))?;
        sync_folder(directory)?;
        Ok(restored)
    });
    let restored = placed.inspect_err(|_| {
        // The next restore writes over it.
        let _ = fs::remove_file(&part);
    })?;
    // Without this file nothing is known of a loss, which is no reason to refuse a start.
    owned.generation.restored(restored.transaction).map_err(|error| BackupError::file(directory, error))?;
    Ok(restored)
}

/// Also a log alone is data: SQLite would read it into the restored database.
fn has_no_data(directory: &Path) -> Result<(), BackupError> {
    let database = directory.join(DATABASE);
    let files = [log_of(&database), directory.join(generation::FILE), database];
    match files.into_iter().find(|file| fs::symlink_metadata(file).is_ok()) {
        Some(file) => Err(BackupError::HasData(file)),
        None => Ok(()),
    }
}

/// A backup may come from anybody: its manifest is a short file, and no pipe or device, which would never end.
fn manifest_text(manifest: &Path) -> Option<Vec<u8>> {
    if !manifest.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(manifest).ok()?.take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= MANIFEST_BYTES_MAX).then_some(text)
}

impl Backup {
    fn find(source: &Path) -> Result<Self, BackupError> {
        let no_backup = |why| BackupError::NoBackup { path: source.to_owned(), why };
        if source.is_file() {
            if fs::metadata(log_of(source)).is_ok_and(|log| log.len() > 0) {
                return Err(no_backup("has a write-ahead log beside it; copy it with `stepwarden backup`"));
            }
            return Ok(Self { file: source.to_owned(), manifest: None });
        }
        let (file, manifest) = (source.join(DATABASE), source.join(MANIFEST));
        if !file.is_file() {
            return Err(no_backup("has no database"));
        }
        let text = manifest_text(&manifest).ok_or_else(|| no_backup("has no readable backup.json"))?;
        let manifest = serde_json::from_slice(&text).map_err(|_| no_backup("has no readable backup.json"))?;
        Ok(Self { file, manifest: Some(manifest) })
    }

    /// Copies the database, and compares it with the manifest.
    fn copy(&self, part: &Path, work: &mut Work<'_>) -> Result<(), BackupError> {
        let unread = |error| BackupError::file(&self.file, error);
        let unwritten = |error| BackupError::file(part, error);
        let mut from = File::open(&self.file).map_err(unread)?;
        let all = from.metadata().map_err(unread)?.len();
        has_room(part.parent().unwrap_or(part), all)?;
        let mut to = own_file().truncate(true).open(part).map_err(unwritten)?;
        let (mut sum, mut block, mut done) = (Sha256::new(), vec![0; BLOCK_BYTES], 0);
        loop {
            let read = from.read(&mut block).map_err(unread)?;
            if read == 0 {
                break;
            }
            sum.update(&block[..read]);
            to.write_all(&block[..read]).map_err(unwritten)?;
            done += read as u64;
            work.reached(Progress { stage: Stage::Copy, done, all })?;
        }
        to.sync_all().map_err(unwritten)?;
        match &self.manifest {
            Some(manifest) if manifest.sha256 != hex::encode(sum.finalize()) => {
                let faults = "it is not the file that backup.json names: its checksum differs".to_owned();
                Err(BackupError::Damaged { file: self.file.clone(), faults })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check(&self, part: &Path, work: Work<'_>) -> Result<Restored, BackupError> {
        let inspected = inspect(part, work).map_err(|error| error.about(&self.file));
        let Inspected { schema, transaction, under_way } = inspected?;
        if schema > VERSION {
            return Err(OpenError::Newer { file: self.file.clone(), found: schema, known: VERSION }.into());
        }
        Ok(Restored { manifest: self.manifest.clone(), schema, transaction, under_way })
    }
}
