//! The work of a backup or a restore: its progress, its end before the end, and its pace beside a server.

#![expect(clippy::disallowed_methods, reason = "the rests of a process of its own")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::error::BackupError;
use crate::number_file::Beside;
use crate::options::NumberFile;

/// Rest for each unit of work, while the database is copied. A low priority is not enough: disk, caches and the halves of
/// a processor know none.
const REST: u32 = 9;
/// The same, once it is copied: nothing waits for the rest of the work.
const LONG_REST: u32 = 19;
/// The longest rest: a step that took longer waited for others itself.
const REST_MAX: Duration = Duration::from_secs(1);

/// How far a backup or a restore is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is done at present.
    pub stage: Stage,
    /// The bytes that are done.
    pub done: u64,
    /// All bytes.
    pub all: u64,
}

/// The stages of a backup and of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The database is copied, while it is written.
    Copy,
    /// What changed meanwhile is copied, in one transaction.
    Changes,
    /// The copy is checked.
    Check,
    /// The checksum of the copy is computed.
    Checksum,
}

/// Who watches a backup or a restore.
pub struct Watch<'a> {
    /// Is told of the progress.
    pub show: &'a mut dyn FnMut(Progress),
    /// Once it is set, the work ends, and nothing is left of it.
    pub stop: &'a Arc<AtomicBool>,
}

/// The work under way.
pub(super) struct Work<'a> {
    watch: Watch<'a>,
    pace: Option<Pace>,
}

/// The pace beside the process that uses a data directory.
struct Pace {
    numbers: Beside,
    /// The last transaction, as its file says.
    seen: Option<String>,
    began: Instant,
    rest: u32,
}

impl<'a> Work<'a> {
    /// Work beside the process that uses this data, if any: it rests while orders are carried.
    pub(super) fn beside(directory: &Path, watch: Watch<'a>) -> Self {
        let numbers = Beside::of(directory);
        Self { watch, pace: Some(Pace { seen: numbers.number().ok(), numbers, began: Instant::now(), rest: REST }) }
    }

    /// Work without rests: no process uses the data.
    pub(super) const fn alone(watch: Watch<'a>) -> Self {
        Self { watch, pace: None }
    }

    /// Tells the progress.
    ///
    /// # Errors
    /// [`BackupError::Stopped`] if it was stopped.
    pub(super) fn reached(&mut self, progress: Progress) -> Result<(), BackupError> {
        (self.watch.show)(progress);
        if self.watch.stop.load(Relaxed) { Err(BackupError::Stopped) } else { Ok(()) }
    }

    /// Rests, if something was committed since the last rest.
    pub(super) fn rest(&mut self) {
        self.pace.iter_mut().for_each(Pace::rest);
    }

    /// From now on the rests are longer.
    pub(super) fn take_time(&mut self) {
        self.pace.iter_mut().for_each(|pace| pace.rest = LONG_REST);
    }

    /// For a statement that takes long: rests, and says whether it was stopped.
    pub(super) fn into_handler(self) -> impl FnMut() -> bool + Send + 'static {
        let (mut pace, stop): (_, Arc<AtomicBool>) = (self.pace, self.watch.stop.clone());
        move || {
            pace.iter_mut().for_each(Pace::rest);
            stop.load(Relaxed)
        }
    }
}

impl Pace {
    fn rest(&mut self) {
        let now = self.numbers.number().ok();
        if now != self.seen {
            self.seen = now;
            thread::sleep((self.began.elapsed() * self.rest).min(REST_MAX));
        }
        self.began = Instant::now();
    }
}
