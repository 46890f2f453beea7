//! The folder of a new backup. It has another name until the backup is complete.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::error::BackupError;
use super::manifest::{MANIFEST, Manifest};
use crate::directory::DATABASE;
use crate::identity::inode;
use crate::own::{OWN_DIRECTORY, own_file};

/// The name of a backup that is not complete. It does not depend on the backup's own, so that the next one in the same
/// folder takes away what a kill left.
const PART: &str = ".stepwarden-backup.part";

/// The folder of a new backup. Unless it is finished, nothing is left of it.
pub(super) struct Place {
    folder: PathBuf,
    part: PathBuf,
    destination: PathBuf,
    is_finished: bool,
    /// The system releases it when the process ends, even after a kill.
    _lock: File,
}

impl Place {
    pub(super) fn take(destination: &Path) -> Result<Self, BackupError> {
        if fs::symlink_metadata(destination).is_ok() {
            return Err(BackupError::Exists(destination.to_owned()));
        }
        let folder = match destination.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => Path::new(""),
        };
        if !folder.is_dir() || destination.file_name().is_none() {
            return Err(BackupError::NoPlace(destination.to_owned()));
        }
        let part = folder.join(PART);
        let lock = loop {
            if let Some(lock) = locked(&part, folder)? {
                break lock;
            }
        };
        let (folder, destination) = (folder.to_owned(), destination.to_owned());
        let place = Self { folder, part, destination, is_finished: false, _lock: lock };
        place.clear().map_err(|error| BackupError::file(&place.part, error))?;
        Ok(place)
    }

    /// The folder in which the backup will be.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The database of the backup.
    pub(super) fn database(&self) -> PathBuf {
        self.part.join(DATABASE)
    }

    /// Makes the database's file, which only its owner can read.
    pub(super) fn make_database(&self) -> Result<File, BackupError> {
        own_file().read(true).open(self.database()).map_err(|error| BackupError::file(&self.database(), error))
    }

    /// Gives the backup its name.
    pub(super) fn finish(mut self, manifest: &Manifest) -> Result<(), BackupError> {
        let file = self.part.join(MANIFEST);
        let written = write(&file, manifest);
        written.map_err(|error| BackupError::file(&file, error))?;
        sync_folder(&self.part)?;
        if fs::symlink_metadata(&self.destination).is_ok() {
            return Err(BackupError::Exists(self.destination.clone()));
        }
        fs::rename(&self.part, &self.destination).map_err(|error| BackupError::file(&self.destination, error))?;
        self.is_finished = true;
        sync_folder(&self.folder)
    }

    /// Removes what a killed backup left.
    fn clear(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.part)? {
            fs::remove_file(file?.path())?;
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_finished {
            // The next backup in this folder tries again.
            let _ = self.clear().and_then(|()| fs::remove_dir(&self.part));
        }
    }
}

/// Makes and locks the folder. Returns `None` if another backup renamed or removed it in between.
fn locked(part: &Path, folder: &Path) -> Result<Option<File>, BackupError> {
    let failed = |error| BackupError::file(part, error);
    match DirBuilder::new().mode(OWN_DIRECTORY).create(part) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let lock = match File::open(part) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(BackupError::UnderWay(folder.to_owned())),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let opened = lock.metadata().map_err(failed)?;
    Ok((inode(part) == Some((opened.dev(), opened.ino()))).then_some(lock))
}

/// Makes a rename in this folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| BackupError::file(folder, error))
}

fn write(file: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut file = own_file().open(file)?;
    serde_json::to_writer_pretty(&mut file, manifest)?;
    file.write_all(b"\n")?;
    file.sync_all()
}
