//! What files say, read again when they change. While they cannot be used, what they said before counts.

#![expect(clippy::disallowed_methods, reason = "times of the host, not of the protocol")]

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Changed files count after this time at the latest, when they are asked for.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(1);

/// What these files say.
#[derive(Debug)]
pub(crate) struct Reread<T, const FILES: usize> {
    files: [PathBuf; FILES],
    known: Mutex<Known<T, FILES>>,
}

#[derive(Debug)]
struct Known<T, const FILES: usize> {
    value: Arc<T>,
    /// Of the files that were read last.
    versions: [Option<Version>; FILES],
    /// Why the files cannot be used, if they cannot.
    fault: Option<String>,
    looked_at: Instant,
}

/// By what a changed file is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    modified: Option<SystemTime>,
    bytes: u64,
    /// A file that was replaced is another one; one with another owner or mode was changed then.
    inode: u64,
    changed: (i64, i64),
}

impl<T, const FILES: usize> Reread<T, FILES> {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) fn start<E>(
        files: [&Path; FILES],
        read: impl FnOnce([&Path; FILES]) -> Result<T, E>,
    ) -> Result<Self, E> {
        let versions = files.map(Version::of);
        let value = Arc::new(read(files)?);
        let known = Mutex::new(Known { value, versions, fault: None, looked_at: Instant::now() });
        Ok(Self { files: files.map(Path::to_owned), known })
    }

    /// What the files say now.
    pub(crate) fn now<E: Display>(&self, read: impl FnOnce([&Path; FILES]) -> Result<T, E>) -> Arc<T> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked_at.elapsed() >= LOOKED_AT_EVERY {
            known.looked_at = Instant::now();
            let files = self.files.each_ref().map(PathBuf::as_path);
            let versions = files.map(Version::of);
            if versions != known.versions {
                match read(files) {
                    Ok(value) => {
                        (known.value, known.versions, known.fault) = (Arc::new(value), versions, None);
                        tracing::info!("{} was read again", files[0].display());
                    }
                    // It is read again within a second: one of two files may have been written first. One line tells of
                    // each fault.
                    Err(error) => {
                        let fault = error.to_string();
                        if known.fault.as_ref() != Some(&fault) {
                            tracing::warn!("what {} said before counts: {fault}", files[0].display());
                            known.fault = Some(fault);
                        }
                    }
                }
            }
        }
        known.value.clone()
    }
}

impl Version {
    /// `None` while there is no such file.
    fn of(path: &Path) -> Option<Self> {
        let about = fs::metadata(path).ok()?;
        Some(Self {
            modified: about.modified().ok(),
            bytes: about.len(),
            inode: about.ino(),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }
}

#[cfg(test)]
impl<T, const FILES: usize> Reread<T, FILES> {
    /// The files were looked at long ago.
    pub(crate) fn look_again(&self) {
        self.known.lock().unwrap().looked_at -= LOOKED_AT_EVERY;
    }

    /// Whether the files cannot be used.
    pub(crate) fn has_fault(&self) -> bool {
        self.known.lock().unwrap().fault.is_some()
    }
}
