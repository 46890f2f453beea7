//! The data that is copied: the state of one transaction, while others write.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OpenFlags};

use super::error::BackupError;
use super::inspect::BLOCK_BYTES;
use super::place::Place;
use super::work::{Progress, Stage, Work};
use crate::directory::{DATABASE, OpenError, free_bytes, taken_at};
use crate::generation::{self, Found, log_of};
use crate::number_file::Beside;
use crate::schema::VERSION;

/// All pages of a state, from the first to the last.
const PAGES: &str = "SELECT data FROM sqlite_dbpage ORDER BY pgno";
/// The bytes of a page.
const PAGE_BYTES: usize = 4_096;
/// The room that a backup and a restore leave on each disk.
const ROOM_BYTES: u64 = 64 * 1024 * 1024;
/// How long to wait for a writer.
const BUSY: Duration = Duration::from_secs(5);

const _: () = assert!(
    option_env!("LIBSQLITE3_FLAGS").is_some(),
    "build in a checkout: its .cargo/config.toml has SQLite compiled so that it gives single pages"
);

/// A database that is sound as far as its head says.
pub(super) struct Source {
    directory: PathBuf,
    file: PathBuf,
    bytes: u64,
    /// The size above which the log ends the copying.
    log_bytes_max: u64,
    /// When a process last took the directory.
    taken_at: Option<SystemTime>,
}

/// Its state in a read transaction.
struct Fixed {
    connection: Connection,
    /// The last transaction.
    transaction: u64,
    bytes: u64,
}

/// What was copied.
pub(super) struct Copied {
    /// The database that it is a copy of.
    pub(super) file: PathBuf,
    pub(super) transaction: u64,
    pub(super) bytes: u64,
}

impl Source {
    /// Looks whether there is something to copy.
    pub(super) fn open(directory: &Path, log_bytes: u64) -> Result<Self, BackupError> {
        let file = directory.join(DATABASE);
        if !file.is_file() {
            return Err(BackupError::NoData(directory.to_owned()));
        }
        let (taken_at, directory) = (taken_at(directory), directory.to_owned());
        let source = Self { directory, file, bytes: 0, log_bytes_max: log_bytes, taken_at };
        let Fixed { connection, bytes, .. } = source.fix()?;
        // Where SQLite is compiled otherwise, that is said before the work.
        connection.prepare(PAGES).map_err(|error| BackupError::database(&source.file, error))?;
        Ok(Self { bytes, ..source })
    }

    /// Fixes the state.
    fn fix(&self) -> Result<Fixed, BackupError> {
        // A running process counts on: first what it recorded, then what it has.
        let found = Found::look(&Beside::of(&self.directory), &self.file);
        let failed = |source| BackupError::database(&self.file, source);
        let connection = Connection::open_with_flags(&self.file, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        connection.execute_batch("BEGIN").map_err(failed)?;
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(failed);
        let schema = number("PRAGMA user_version")?;
        if schema > VERSION {
            return Err(OpenError::Newer { file: self.file.clone(), found: schema, known: VERSION }.into());
        }
        if let Some(loss) = found.loss(&connection).map_err(failed)? {
            return Err(OpenError::Lost { file: self.file.clone(), loss }.into());
        }
        let transaction = generation::count(&connection).map_err(failed)?;
        let bytes = number("PRAGMA page_count")?.saturating_mul(number("PRAGMA page_size")?);
        Ok(Fixed { transaction, bytes: u64::try_from(bytes).unwrap_or(0), connection })
    }

    /// Copies it, and ends the transaction. The copy is on disk then.
    pub(super) fn copy(self, place: &Place, work: &mut Work<'_>) -> Result<Copied, BackupError> {
        has_room(place.folder(), self.bytes)?;
        let mut copy = Copy { file: place.make_database()?, path: place.database(), found: Vec::new() };
        self.draft(&mut copy, place, work)?;
        // Its bytes are those of the state, whatever the draft has.
        let fixed = self.fix().map_err(|error| if self.is_taken() { BackupError::ServerStarted } else { error });
        let Fixed { connection, transaction, bytes } = fixed?;
        self.correct(&connection, bytes, &mut copy, place, work)?;
        drop(connection);
        copy.end(bytes)?;
        Ok(Copied { file: self.file, transaction, bytes })
    }

    /// Copies the file as it is, while it is written. No transaction is held.
    fn draft(&self, copy: &mut Copy, place: &Place, work: &mut Work<'_>) -> Result<(), BackupError> {
        let unread = |error| BackupError::file(&self.file, error);
        // Closing it takes the locks of all connections that this process has: there is none.
        let file = File::open(&self.file).map_err(unread)?;
        let length = || file.metadata().map(|file| file.len()).map_err(unread);
        // A file may grow as fast as it is copied.
        let (mut block, mut done, most) = (vec![0; BLOCK_BYTES], 0, length()?.saturating_mul(2));
        loop {
            let all = length()?.min(most);
            if done >= all {
                return Ok(());
            }
            work.reached(Progress { stage: Stage::Copy, done, all })?;
            self.may_go_on(place)?;
            work.rest();
            let read = read_at(&file, &mut block, done).map_err(unread)?;
            copy.put(&block[..read], done)?;
            // Else the system writes all of it at once, and a transaction waits for the disk.
            copy.sync()?;
            done += read as u64;
        }
    }

    /// Writes the pages that differ in the state.
    fn correct(
        &self,
        connection: &Connection,
        all: u64,
        copy: &mut Copy,
        place: &Place,
        work: &mut Work<'_>,
    ) -> Result<(), BackupError> {
        let failed = |source| BackupError::database(&self.file, source);
        let mut pages = connection.prepare(PAGES).map_err(failed)?;
        let mut pages = pages.query([]).map_err(failed)?;
        let (mut block, mut done) = (Vec::with_capacity(BLOCK_BYTES), 0);
        loop {
            work.reached(Progress { stage: Stage::Changes, done, all })?;
            self.log_is_small()?;
            self.may_go_on(place)?;
            while block.len() < BLOCK_BYTES
                && let Some(row) = pages.next().map_err(failed)?
            {
                let page = row.get_ref(0).and_then(|page| Ok(page.as_blob()?)).map_err(failed)?;
                block.extend_from_slice(page);
            }
            if block.is_empty() && done == all {
                return Ok(());
            } else if block.is_empty() {
                let faults = format!("SQLite gives {done} of its {all} bytes");
                return Err(BackupError::Damaged { file: self.file.clone(), faults });
            }
            copy.put(&block, done)?;
            done += block.len() as u64;
            block.clear();
        }
    }

    /// Whether the process that uses the data does well.
    fn may_go_on(&self, place: &Place) -> Result<(), BackupError> {
        if self.is_taken() {
            return Err(BackupError::ServerStarted);
        }
        has_room(&self.directory, 0)?;
        has_room(place.folder(), 0)
    }

    /// Whether a process took the directory meanwhile.
    fn is_taken(&self) -> bool {
        taken_at(&self.directory) != self.taken_at
    }

    /// The log cannot be emptied while the transaction is open.
    fn log_is_small(&self) -> Result<(), BackupError> {
        let bytes = fs::metadata(log_of(&self.file)).map_or(0, |log| log.len());
        if bytes > self.log_bytes_max.max(self.bytes) { Err(BackupError::LogGrew(bytes)) } else { Ok(()) }
    }
}

/// The copy, as far as it is made.
struct Copy {
    file: File,
    path: PathBuf,
    /// What was found where something is put.
    found: Vec<u8>,
}

impl Copy {
    /// Writes the pages that are other ones there.
    fn put(&mut self, pages: &[u8], at: u64) -> Result<(), BackupError> {
        self.found.resize(pages.len(), 0);
        let failed = |error| BackupError::file(&self.path, error);
        let there = read_at(&self.file, &mut self.found, at).map_err(failed)?;
        let mut begin = 0;
        let is_other = |from: usize, to: usize| self.found[..there].get(from..to) != Some(&pages[from..to]);
        while begin < pages.len() {
            let mut end = begin;
            while end < pages.len() && is_other(end, (end + PAGE_BYTES).min(pages.len())) {
                end = (end + PAGE_BYTES).min(pages.len());
            }
            if end > begin {
                self.file.write_all_at(&pages[begin..end], at + begin as u64).map_err(failed)?;
            }
            // The page after them is the same.
            begin = end + PAGE_BYTES;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), BackupError> {
        self.file.sync_data().map_err(|error| BackupError::file(&self.path, error))
    }

    /// It has this length, and is on the disk.
    fn end(self, bytes: u64) -> Result<(), BackupError> {
        let ended = self.file.set_len(bytes).and_then(|()| self.file.sync_all());
        ended.map_err(|error| BackupError::file(&self.path, error))
    }
}

/// Reads as much as there is at this place, and fits.
fn read_at(file: &File, block: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < block.len() {
        match file.read_at(&mut block[done..], at + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Whether this much can be written here, and some room be left.
pub(crate) fn has_room(folder: &Path, bytes: u64) -> Result<(), BackupError> {
    // Where the system does not tell, the write does.
    let has_room = free_bytes(folder).is_none_or(|free| free >= bytes.saturating_add(ROOM_BYTES));
    if has_room { Ok(()) } else { Err(BackupError::NoRoom(folder.to_owned())) }
}
