//! Connections to the database file: one connection writes, and a few others read beside it.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io, thread};

use domain::ports::PortError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::checkpoints;
use crate::directory::OpenError;
use crate::generation::Found;
use crate::identity::Identity;
use crate::lock::lock;
use crate::options::Options;
use crate::own::own_file;
use crate::rows::ReadError;
use crate::schema::{self, VERSION};

/// The bytes of a page in the WAL, with its header.
const FRAME_BYTES: u64 = 4_096 + 24;

/// Room below which an engine is not ready: 1 MiB. No memory is asked for, since there may be none.
const ROOM_CHUNKS: usize = 16;
static ROOM_CHUNK: [u8; 64 * 1024] = [0; 64 * 1024];

/// Why the work of a reader had no end.
pub(crate) const NOT_RUN: &str = "the read had no end";

/// Opens the connection that writes, and migrates the schema.
pub(crate) fn open_writer(file: &Path, options: &Options, found: &Found) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::Database { file: file.to_owned(), source };
    if options.simulated.is_none() {
        // SQLite gives the files beside it the mode of the database, and takes an empty file for a new one. It reports a
        // failure itself. No connection is open yet, so no lock is lost when the file is closed.
        let _created = own_file().open(file);
    }
    let mut connection = open(file, OpenFlags::default(), options.vfs()).map_err(failed)?;
    // A refused start leaves everything as it is, for whoever examines it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    match found.loss(&connection).map_err(failed)? {
        Some(loss) if options.accept_loss => tracing::warn!("accepted: {loss}"),
        Some(loss) => return Err(OpenError::Lost { file: file.to_owned(), loss }),
        None => {}
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(failed)?;
    prepare(&connection, options).map_err(failed)?;
    match schema::migrate(&mut connection).map_err(failed)? {
        VERSION => settle(&connection).map(|()| connection).map_err(failed),
        found => Err(OpenError::Newer { file: file.to_owned(), found, known: VERSION }),
    }
}

fn open(file: &Path, flags: OpenFlags, vfs: Option<&str>) -> rusqlite::Result<Connection> {
    let connection = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(file, flags, vfs),
        None => Connection::open_with_flags(file, flags),
    }?;
    // Query planner stability guarantee: without it, SQLite prepares a cached statement again when a bound value changes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn prepare(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    let kept = options.log_bytes_kept;
    connection.busy_timeout(Duration::from_millis(options.busy_ms))?;
    // SQLite keeps the mode that it has, and reports no error, where it cannot change to this one.
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        let words = format!("no write-ahead log is possible beside it: its journal mode stays {mode}");
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CANTOPEN), Some(words)));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // What is deleted is overwritten: an order may be erased later (rule 46).
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", kept / FRAME_BYTES)?;
    connection.pragma_update(None, "journal_size_limit", kept)?;
    connection.pragma_update(None, "cache_size", -i64::from(options.cache_kib))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Makes the present content of the file durable against a power failure.
///
/// A killed process can leave a commit that the system cache holds and the disk does not. This process sees the commit
/// and acts on it. So the WAL is moved to the file first. The commit after it begins a new WAL and syncs it. Without a
/// new one, a frame whose sync once failed would be a hole: the frames before it would hide what is in the file.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    if !checkpoints::empty(connection)? {
        let words = "another program reads its write-ahead log: end it, such as `sqlite3` or a backup, and start again";
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), Some(words.to_owned())));
    }
    connection.pragma_update(None, "user_version", VERSION)
}

/// Work for one of the threads that read.
type Job = Box<dyn FnOnce() + Send>;

/// Connections that read beside the writer. They see only durable state.
#[derive(Debug)]
pub(crate) struct Readers {
    file: PathBuf,
    busy_ms: u64,
    vfs: Option<&'static str>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// To the threads that read. All are there from the start, so a system that has no thread left refuses no read.
    /// `None` on a simulated machine.
    jobs: Option<Sender<Job>>,
    pub(crate) identity: Identity,
}

impl Readers {
    /// The writer has the file open.
    ///
    /// # Errors
    /// The system's error, if it refuses a thread.
    pub(crate) fn new(file: PathBuf, options: &Options) -> io::Result<Self> {
        let readers_max = options.readers_max.max(1);
        let permits = Arc::new(Semaphore::new(readers_max));
        let (identity, busy_ms, vfs) = (Identity::of(&file), options.busy_ms, options.vfs());
        let jobs = if vfs.is_none() { Some(start_threads(readers_max)?) } else { None };
        Ok(Self { file, busy_ms, vfs, permits, idle: Mutex::default(), jobs, identity })
    }

    /// The permit for one reading connection.
    pub(crate) async fn permit(&self, operation: &'static str) -> Result<OwnedSemaphorePermit, PortError> {
        self.permits.clone().acquire_owned().await.map_err(|closed| PortError::unavailable(operation, closed))
    }

    /// Reads on this thread.
    pub(crate) fn read_here<R>(
        &self,
        _permit: OwnedSemaphorePermit,
        read: impl FnOnce(&Connection) -> Result<R, ReadError>,
    ) -> Result<R, ReadError> {
        let idle = lock(&self.idle).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open()?,
        };
        let found = read(&connection);
        lock(&self.idle).push(connection);
        found
    }

    /// Reads on a thread that may block.
    pub(crate) async fn read<R: Send + 'static>(
        self: &Arc<Self>,
        operation: &'static str,
        read: impl FnOnce(&Connection) -> Result<R, ReadError> + Send + 'static,
    ) -> Result<R, PortError> {
        let permit = self.permit(operation).await?;
        let readers = self.clone();
        let found = self
            .run(move || readers.read_here(permit, read))
            .await
            .ok_or(PortError::unavailable(operation, NOT_RUN))?;
        found.map_err(|error| error.of(operation))
    }

    /// Runs this on a thread that reads, or in place if the machine is simulated. It ends also if its caller is gone.
    /// `None`: it panicked, or the engine is closing. Then all that it holds is dropped.
    pub(crate) async fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        let (sender, receiver) = oneshot::channel();
        let job = move || {
            // Its caller may be gone.
            let _ = sender.send(work());
        };
        match &self.jobs {
            Some(jobs) => jobs.send(Box::new(job)).ok()?,
            None => drop(tokio::spawn(async { job() })),
        }
        receiver.await.ok()
    }

    /// Whether the directory has room, by a file that is removed at once.
    pub(crate) fn has_room(&self) -> io::Result<()> {
        if self.vfs.is_some() {
            return Ok(());
        }
        let probe = self.file.with_extension("room");
        let write = |mut file: fs::File| (0..ROOM_CHUNKS).try_for_each(|_| file.write_all(&ROOM_CHUNK));
        let written = fs::File::create(&probe).and_then(write);
        // Another request may have removed it: they share its name, so a kill leaves at most one file.
        written.and(match fs::remove_file(&probe) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
    }

    fn open(&self) -> Result<Connection, ReadError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = open(&self.file, flags, self.vfs)?;
        connection.busy_timeout(Duration::from_millis(self.busy_ms))?;
        self.identity.check()?;
        Ok(connection)
    }
}

/// Starts the threads that read. They end once the sender is gone.
fn start_threads(count: usize) -> io::Result<Sender<Job>> {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..count {
        let receiver = receiver.clone();
        thread::Builder::new().name("reader".to_owned()).spawn(move || work_off(&receiver))?;
    }
    Ok(sender)
}

fn work_off(jobs: &Mutex<Receiver<Job>>) {
    loop {
        // One thread waits here, and the others for the lock.
        let next = lock(jobs).recv();
        let Ok(job) = next else { return };
        // The panic is printed, and its caller learns of it.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What no test can see without a power failure: a commit waits for the disk.
    #[test]
    fn a_file_without_a_write_ahead_log_is_not_used() {
        let refused = prepare(&Connection::open_in_memory().unwrap(), &Options::default()).unwrap_err();
        assert!(refused.to_string().contains("its journal mode stays memory"), "{refused}");
    }

    #[test]
    fn rule_24_two_that_ask_for_room_at_once_both_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let readers = Readers::new(folder.path().join("db"), &Options::default()).unwrap();
        let ask = || (0..20).for_each(|_| readers.has_room().unwrap());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(ask);
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no file is left");
    }

    #[test]
    fn every_commit_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let writer = open_writer(&folder.path().join("db"), &Options::default(), &Found::default()).unwrap();
        let setting = |name| writer.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert!(setting("synchronous") >= 2, "FULL");
        let mode: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn what_a_killed_process_left_in_the_wal_is_on_disk_before_anybody_acts_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let [running, killed, bare] = ["running", "killed", "bare"].map(|name| folder.path().join(name));
        let writer = open_writer(&running, &Options::default(), &Found::default()).unwrap();
        writer.pragma_update(None, "application_id", 7).unwrap();
        let with_wal = |file: &Path| format!("{}-wal", file.display());
        std::fs::copy(&running, &killed).unwrap();
        std::fs::copy(with_wal(&running), with_wal(&killed)).unwrap();
        let written = |file: &Path| -> i64 {
            std::fs::copy(file, &bare).unwrap();
            let connection = Connection::open(&bare).unwrap();
            connection.pragma_query_value(None, "application_id", |row| row.get(0)).unwrap()
        };

        assert_eq!(written(&killed), 0, "it is in the WAL alone");
        let _writer = open_writer(&killed, &Options::default(), &Found::default()).unwrap();
        assert_eq!(written(&killed), 7, "it is in the file");
    }
}
