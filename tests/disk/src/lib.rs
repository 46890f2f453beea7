//! A disk in memory for SQLite. It loses power, fails and fills up, by chance under a seed.
//!
//! [`Disk::path`] names a database on it for the VFS [`VFS`]. What is written becomes durable at a sync. A power cut
//! ([`Disk::cut`]) keeps, loses or tears each write since. All connections to a disk must be on one thread at a time.

mod damage;
mod files;
mod locks;
mod rng;
mod vfs;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use files::{Files, Hook};
use locks::Locks;

pub use damage::SmallFile;
pub use files::{Counts, Faults};
pub use vfs::{VFS, register};

/// The disks by number.
static DISKS: Mutex<BTreeMap<u64, Arc<Mutex<State>>>> = Mutex::new(BTreeMap::new());

/// What is on one disk, and who holds it.
#[derive(Debug)]
struct State {
    files: Files,
    locks: Locks,
}

/// A disk in memory. Dropping it drops its files.
#[derive(Debug)]
pub struct Disk {
    number: u64,
    state: Arc<Mutex<State>>,
}

impl Disk {
    /// An empty disk with this chance.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        register();
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let state = Arc::new(Mutex::new(State { files: Files::new(seed), locks: Locks::default() }));
        lock(&DISKS).insert(number, state.clone());
        Self { number, state }
    }

    /// The path of a file on this disk.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        format!("/{}/{name}", self.number)
    }

    /// Sets the faults from now on.
    pub fn fail(&self, faults: Faults) {
        lock(&self.state).files.faults = faults;
    }

    /// Leaves this much room beyond what is there, in bytes. `None`: any.
    pub fn leave_room(&self, room: Option<usize>) {
        let files = &mut lock(&self.state).files;
        let taken = files.taken();
        files.room = room.map(|room| taken + room);
    }

    /// Turns the power off at this many further writes and syncs. Every operation fails from then on.
    pub fn turn_off_after(&self, operations: u64) {
        lock(&self.state).files.cut_after = Some(operations);
    }

    /// Calls this when the power goes off in the middle of a write or a sync.
    pub fn when_off(&self, hook: impl Fn() + Send + 'static) {
        lock(&self.state).files.when_off = Some(Hook(Box::new(hook)));
    }

    /// Turns the power off now.
    pub fn turn_off(&self) {
        lock(&self.state).files.is_off = true;
    }

    /// Turns the power on again after the end of a process alone: the system still has what was written. All
    /// connections of before must be closed.
    pub fn turn_on(&self) {
        let state = &mut *lock(&self.state);
        state.locks = Locks::default();
        state.files.turn_on();
    }

    /// Whether the power is off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        lock(&self.state).files.is_off
    }

    /// Turns the power on again. What was not synced is kept, lost or torn. All connections of before must be closed.
    pub fn cut(&self) {
        let state = &mut *lock(&self.state);
        state.locks = Locks::default();
        state.files.cut();
    }

    /// What has happened on it.
    #[must_use]
    pub fn counts(&self) -> Counts {
        lock(&self.state).files.counts
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        lock(&DISKS).remove(&self.number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, OpenFlags};

    use super::*;

    fn connect(disk: &Disk) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags_and_vfs(disk.path("db"), OpenFlags::default(), VFS)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "wal_autocheckpoint", 8)?;
        connection.execute_batch("CREATE TABLE IF NOT EXISTS numbers (number INTEGER NOT NULL, room BLOB)")?;
        Ok(connection)
    }

    fn numbers(connection: &Connection) -> i64 {
        connection.query_row("SELECT coalesce(max(number), 0) FROM numbers", [], |row| row.get(0)).unwrap()
    }

    /// Writes 1, 2, … until the power is off. Returns the last number that SQLite said is stored.
    fn count(disk: &Disk, synchronous: &str) -> rusqlite::Result<i64> {
        let connection = connect(disk)?;
        let reader = connect(disk)?;
        connection.pragma_update(None, "synchronous", synchronous)?;
        let mut last = numbers(&connection);
        for number in last + 1.. {
            let insert = "INSERT INTO numbers VALUES (?1, zeroblob(1000))";
            if connection.execute(insert, [number]).is_ok() {
                last = number;
                assert!(disk.is_off() || numbers(&reader) == number);
            }
            if disk.is_off() {
                break;
            }
        }
        Ok(last)
    }

    /// Cuts the power again and again. Returns how often a number was lost that was stored.
    fn losses(synchronous: &str, faults: Faults) -> usize {
        let mut losses = 0;
        for seed in 0..200 {
            let disk = Disk::new(seed);
            for round in 0..3 {
                disk.turn_off_after(40 + seed % 50 + 60 * round);
                disk.fail(faults);
                let stored = count(&disk, synchronous).unwrap_or(0);
                disk.cut();
                disk.fail(Faults::default());
                let kept = numbers(&connect(&disk).unwrap());
                losses += usize::from(kept < stored);
            }
        }
        losses
    }

    #[test]
    fn sqlite_keeps_on_it_what_it_synced_and_loses_what_it_did_not() {
        assert_eq!(losses("FULL", Faults::default()), 0);
        assert!(losses("NORMAL", Faults::default()) > 20);
    }

    #[test]
    fn sqlite_keeps_what_it_synced_also_where_syncs_and_writes_fail() {
        assert_eq!(losses("FULL", Faults { sync: 300, write: 200, read: 0 }), 0);
    }
}
