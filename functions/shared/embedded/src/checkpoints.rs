//! The size of the write-ahead log: when it is emptied, and what is logged where a reader prevents it.
//!
//! SQLite moves the log into the database at a commit, and begins the log anew if no program reads from it. The file
//! keeps its size then. So a writer that has nothing to write moves the rest and cuts the file. It waits for nobody: a
//! reader is a reason to try again later.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tokio::time::Instant;

use crate::clock::later;
use crate::generation::log_of;
use crate::options::Options;

/// The pause between two lines while the log is too large.
const PAUSE: Duration = Duration::from_secs(10);

/// What the writer knows of its log.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    log: PathBuf,
    idle_ms: u64,
    bytes_max: u64,
    /// When to empty the log, unless something is written before. `None`: it is empty.
    due_at: Option<Instant>,
    large: Option<Large>,
}

/// The log is larger than it may be.
#[derive(Debug)]
struct Large {
    /// A commit moves the log, and only the next one begins it anew: one look is not enough.
    looks: u64,
    logged_at: Option<Instant>,
}

impl Checkpoints {
    /// A start begins the log anew, and then writes to it.
    pub(crate) fn new(database: &Path, options: &Options) -> Self {
        let Options { checkpoint_idle_ms: idle_ms, log_bytes_max: bytes_max, .. } = *options;
        Self { log: log_of(database), idle_ms, bytes_max, due_at: Some(later(idle_ms)), large: None }
    }

    /// When to empty the log, if it holds something.
    pub(crate) const fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// The log holds something.
    pub(crate) fn written(&mut self) {
        self.due_at = Some(later(self.idle_ms));
        self.look();
    }

    /// The log is moved and cut, or a reader of it prevents that.
    pub(crate) fn tried(&mut self, is_empty: bool) {
        self.due_at = if is_empty { None } else { Some(later(self.idle_ms)) };
        self.look();
    }

    fn look(&mut self) {
        let bytes = fs::metadata(&self.log).map_or(0, |log| log.len());
        if bytes <= self.bytes_max {
            if self.large.take().is_some_and(|large| large.logged_at.is_some()) {
                tracing::info!(bytes, "the write-ahead log is moved into the database again");
            }
            return;
        }
        let now = later(0);
        let large = self.large.get_or_insert(Large { looks: 0, logged_at: None });
        large.looks += 1;
        if large.looks > 1 && large.logged_at.is_none_or(|at| now.duration_since(at) >= PAUSE) {
            large.logged_at = Some(now);
            tracing::warn!(
                bytes,
                "the write-ahead log grows: a program that reads the database, such as `sqlite3`, keeps it from being \
                 emptied. End that program; `stepwarden backup` ends by itself"
            );
        }
    }
}

/// Moves the whole log into the database and cuts it. Returns false if another program still reads from it after the
/// connection's time-out.
pub(crate) fn empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0)).map(|is_read| !is_read)
}

/// The same, and waits for nobody.
pub(crate) fn empty_now(connection: &Connection, busy: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(Duration::ZERO)?;
    let is_empty = empty(connection);
    connection.busy_timeout(busy)?;
    is_empty
}
